"""What is read next, how it is asked for, and what is said of what was proven."""

from __future__ import annotations

import json

import pytest

from ralph_mission.loop.rules.verdicts import UnclearVerdict
from ralph_mission.mission.proof.exploring import (
    KIND,
    SourceFile,
    choose_files,
    describe_look,
    describe_proof,
    explorer_prompt,
    parse_answer,
    proven_signal,
    researcher_prompt,
)
from ralph_mission.mission.proof.judge import ProofVerdict
from tests.mission.proof.test_claim import CLAIM
from tests.mission.proof.test_judge import BAD


def source(path: str, changes: int = 5, size: int = 1_000) -> SourceFile:
    return SourceFile(path, f"oid of {path}", size, changes)


def chosen(*files: SourceFile, known: tuple[SourceFile, ...] = ()) -> list[str]:
    tests = ["tests/test_parser.py", "src/__tests__/view.spec.ts"]
    return [file.path for file in choose_files(files, tests, {file.path: file.oid for file in known})]


def test_what_changes_much_and_is_tested_little_comes_first() -> None:
    assert chosen(source("src/a.py", 2), source("src/parser.py", 10), source("src/b.py", 4), source("view.ts", 9)) == [
        "src/b.py", "src/parser.py", "view.ts", "src/a.py"
    ]  # fmt: skip  # one list


def test_a_few_files_are_read_and_none_twice_with_the_same_content() -> None:
    files = [source(f"src/{name}.py", 9 - number) for number, name in enumerate("abcdef")]
    assert chosen(*files) == ["src/a.py", "src/b.py", "src/c.py", "src/d.py"]
    assert chosen(*files, known=tuple(files[:4])) == ["src/e.py", "src/f.py"]
    changed = SourceFile("src/a.py", "another", 1_000, 10)
    assert chosen(changed, *files[1:], known=tuple(files)) == ["src/a.py"]


@pytest.mark.parametrize(
    "file",
    [
        source("tests/test_a.py"),
        source("docs/a.md"),
        source("setup.py"),
        source(".github/a.py"),
        source("a.bin"),
        source("src/small.py", size=100),
        source("src/huge.py", size=1_000_000),
        source("src/old.py", 0),
    ],
)
def test_what_is_not_read(file: SourceFile) -> None:
    assert chosen(file) == []


def test_an_explorer_is_told_what_to_read_and_what_was_wrong_before() -> None:
    text = explorer_prompt(["src/a.py"], "broken JSON")
    assert "- `src/a.py`" in text
    assert "did not answer as asked: broken JSON" in text
    assert "did not answer" not in explorer_prompt(["src/a.py"])


def test_an_answer_is_its_claims_or_unclear() -> None:
    assert parse_answer('```json\n{"claims": [{"title": "x"}]}\n```') == ({"title": "x"},)
    for text in ("I found nothing.", '{"claims": 1}', json.dumps([1])):
        with pytest.raises(UnclearVerdict):
            parse_answer(text)


def test_a_proven_claim_is_a_finding_with_its_change_and_its_evidence() -> None:
    evidence = describe_proof(CLAIM, ProofVerdict(None, (BAD,)))
    signal = proven_signal(CLAIM, evidence, "c" * 40)
    assert (signal.kind, signal.path, signal.line) == (KIND, "app.py", 2)
    assert signal.patch is not None
    assert set(signal.patch.paths) == {"app.py", "tests/test_app.py"} == set(signal.paths)
    assert "fails in 3 of 3 runs" in signal.detail
    assert "assert 1 == 1.5" in signal.detail
    assert "tests/test_app.py:9" in signal.detail
    assert signal.quotes[0].text == "    return n // 2"


def test_what_was_dropped_is_counted_by_rule() -> None:
    said = describe_look(4, 1, ["quote", "flaky", "quote"])
    assert said == "4 files read, 1 of 4 claims proven (dropped: 1 flaky, 2 quote)"
    assert describe_look(1, 0, []) == "1 file read, 0 of 0 claims proven"


def test_a_researcher_reads_the_brief_and_the_pages_as_material() -> None:
    prompt = researcher_prompt(
        "Compare tides", {"https://tides.example/": "High at noon"}, "", more=False, searches=False
    )
    assert [line for line in prompt.splitlines() if line.startswith("## ")][1:3] == ["## ASKED FOR", "## PAGES"]
    assert "Compare tides" in prompt and "High at noon" in prompt
