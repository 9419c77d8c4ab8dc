"""What the texts of a claim tell before anything is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from ralph_mission.mission.proof.claim import (
    CodeClaim,
    CodeQuote,
    CodeState,
    MalformedClaim,
    changes_in,
    judge_text,
    read_claim,
    read_claims,
)
from ralph_mission.safety.patch import REGULAR, FileChange

CODE = b"def half(n):\n    return n // 2\n\n\ndef twice(n):\n    return n + n\n"
MENDED = CODE.replace(b"n // 2", b"n / 2")
OLD_TEST = b"from app import half\n\n\ndef test_two():\n    assert half(2) == 1\n"
NEW_TEST = OLD_TEST + b"\n\ndef test_three():\n    assert half(3) == 1.5\n"
FILES = {"app.py": CODE, "tests/test_app.py": OLD_TEST}
TEST = FileChange("tests/test_app.py", REGULAR, REGULAR, OLD_TEST, NEW_TEST)
CHANGE = FileChange("app.py", REGULAR, REGULAR, CODE, MENDED)
CLAIM = CodeClaim(
    "bug", "half drops the rest", "app.py", (CodeQuote("app.py", "    return n // 2"),), "assertion", (TEST,), (CHANGE,)
)


def refusal(claim: CodeClaim) -> str:
    """The rule that speaks against it; "" for none."""
    found = judge_text(claim, FILES.get)
    return found.rule if found else ""


def added(path: str, content: bytes) -> FileChange:
    return FileChange(path, "", REGULAR, None, content)


def with_test(content: bytes) -> Callable[[CodeClaim], CodeClaim]:
    return lambda claim: replace(claim, test=(replace(TEST, new=content),))


def with_name(line: bytes) -> Callable[[CodeClaim], CodeClaim]:
    brought = replace(CHANGE, new=MENDED + b"third = 1\n")
    test = replace(TEST, new=OLD_TEST + b"def test_x():\n" + line)
    return lambda claim: replace(claim, change=(brought,), test=(test,))


def changed(*more: FileChange) -> Callable[[CodeClaim], CodeClaim]:
    return lambda claim: replace(claim, change=(*claim.change, *more))


def test_a_claim_whose_texts_are_in_order_is_let_through() -> None:
    assert refusal(CLAIM) == ""


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("kind", lambda c: replace(c, kind="architecture")),
        ("quote", lambda c: replace(c, quotes=())),
        ("quote", lambda c: replace(c, quotes=(CodeQuote("app.py", "    return n // 3"),))),
        ("quote", lambda c: replace(c, quotes=(CodeQuote("app.py", "return n // 2"),))),
        ("quote", lambda c: replace(c, quotes=(CodeQuote("gone.py", "    return n // 2"),))),
        ("quote", lambda c: replace(c, quotes=(CodeQuote("tests/test_app.py", "    assert half(2) == 1"),))),
        ("no-test", lambda c: replace(c, test=())),
        ("no-test", lambda c: replace(c, change=())),
        ("scope", lambda c: replace(c, change=(added("other.py", b"x = 1\n"),))),
        ("scope", lambda c: replace(c, test=(added("app_check.py", b"assert 0\n"),))),
        ("scope", changed(added("../up.py", b"x = 1\n"))),
        ("scope", changed(added("pyproject.toml", b"[tool.pytest]\n"))),
        ("scope", lambda c: replace(c, test=(TEST, added("tests/conftest.py", b"x = 1\n")))),
        ("scope", changed(added("blob.py", b"\0"))),
        ("edits-tests", changed(replace(TEST, new=OLD_TEST + b"\n"))),
        ("edits-tests", changed(added("tests/test_more.py", b"def test_x():\n    assert 1 + 1 == 2\n"))),
        ("weakens-tests", lambda c: replace(c, test=(TEST, FileChange("tests/test_b.py", REGULAR, "", b"x\n", None)))),
        ("weakens-tests", with_test(NEW_TEST.replace(b"half(2) == 1\n", b"True\n"))),
        ("weakens-tests", with_test(NEW_TEST.replace(b"def test_two", b"@pytest.mark.skip\ndef test_two"))),
        ("reads-source", with_test(NEW_TEST + b"    assert '/ 2' in inspect.getsource(half)\n")),
        ("reads-source", with_test(NEW_TEST + b"    assert half.__code__.co_consts\n")),
        ("reads-source", with_test(NEW_TEST + b"    assert run('git diff')\n")),
        ("reads-source", with_name(b"    assert hasattr(app, 'third')\n")),
        ("reads-source", with_name(b"    assert 'third' in dir(app)\n")),
        ("reads-source", with_name(b"  assert(typeof app.third === 'number')\n")),
        ("", with_name(b"    assert hasattr(app, 'twice')\n")),
        ("", with_name(b"    assert hasattr(app, 'third')\n    assert half(3) == 1.5\n")),
    ],
)
def test_what_the_texts_speak_against(rule: str, spoil: Callable[[CodeClaim], CodeClaim]) -> None:
    assert refusal(spoil(CLAIM)) == rule


def test_the_lines_of_the_change_stand_as_comments_at_the_end_of_the_code() -> None:
    (test, noted) = changes_in(CLAIM, CodeState.NOTED)
    assert test == TEST
    assert noted.new == CODE + b"# return n / 2\n"
    (_, mended) = changes_in(CLAIM, CodeState.CHANGED_NOTED)
    assert mended.new == MENDED + b"# return n // 2\n"


def test_the_change_without_the_file_that_is_named() -> None:
    other = added("other.py", b"x = 1\n")
    assert changes_in(changed(other)(CLAIM), CodeState.OTHERS) == (TEST, other)


def render_claim(**other: object) -> str:
    claim = {
        "kind": "bug", "title": "half drops the rest", "path": "app.py", "reason": "// rounds",
        "fails_with": "assertion",
        "quotes": [{"path": "app.py", "text": "    return n // 2"}],
        "test": [{"path": "tests/test_half.py", "old": "", "new": "def test_x(): ...\n"}],
        "change": [{"path": "app.py", "old": "n // 2", "new": "n / 2"}],
    }  # fmt: skip  # one document
    return json.dumps({"claims": [{**claim, **other}]})


def test_a_claim_is_read_from_json_with_its_edits_made() -> None:
    (one,) = read_claims(render_claim())
    claim = read_claim(one, FILES.get)
    assert claim.change == (CHANGE,)
    assert claim.test == (added("tests/test_half.py", b"def test_x(): ...\n"),)
    assert judge_text(claim, FILES.get) is None


@pytest.mark.parametrize(
    "document",
    [
        "no json",
        "[]",
        '{"claims": [1]}',
        render_claim(title=1),
        render_claim(quotes="all"),
        render_claim(change=[{"path": "app.py", "old": "n", "new": "m"}]),
        render_claim(change=[{"path": "app.py", "old": "", "new": "m"}]),
        render_claim(change=[{"path": "gone.py", "old": "n", "new": "m"}]),
        render_claim(cases="all"),
        render_claim(reason="x" * 200_000),
    ],
)
def test_what_cannot_be_read_is_malformed(document: str) -> None:
    with pytest.raises(MalformedClaim):
        for one in read_claims(document):
            read_claim(one, FILES.get)
