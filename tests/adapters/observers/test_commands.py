"""The commands observer: real commands in real clones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.observers import commands, matching
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.mission import Observation, Severity
from tests.adapters.observers.place import Place
from tests.helpers import commit, git

REGEX = {"regex": r"^(?P<path>[^:]+):(?P<line>\d+): (?P<code>[A-Z]\d+) (?P<message>.+)$"}
CODE = {"a.py": "import os\n\nprint(1)\n"}


def look(place: Place, run: str, parse: Any = REGEX, kept: Path | None = None, **settings: Any) -> Observation:
    told = commands.CommandSettings.model_validate({"name": "lint", "run": run, "parse": parse, **settings})
    return commands.build(told, place.git, kept).observe(place.context())


def test_each_result_is_a_signal_with_its_place(place: Place) -> None:
    commit(place.path, CODE)
    seen = look(place, "echo 'a.py:1: F401 unused import'; exit 1")
    (signal,) = seen.signals
    assert (seen.name, seen.status, seen.complete) == ("commands.lint", "ok", True)
    assert signal.title == "unused import in a.py:1"
    assert signal.essence == ("code-quality", "F401", "unused import", "import os", "", "print(1)")
    assert (signal.path, signal.line) == ("a.py", 1)


def saw(*lines: int) -> str:
    """A SARIF log that saw `except:` on these lines of a.py."""
    regions = [{"startLine": line, "snippet": {"text": "except:"}} for line in lines]
    places = [{"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": one}} for one in regions]
    results = [{"ruleId": "E7", "message": {"text": "bare except"}, "locations": [place]} for place in places]
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": {}}, "results": results}]})


BARE = "try:\n    {0}()\nexcept:\n    no_{0}()\n"
TWO_BARE = BARE.format("read") + BARE.format("write")


def test_of_two_that_read_alike_one_stays_what_it_is_when_the_other_is_mended(place: Place) -> None:
    commit(place.path, {"a.py": TWO_BARE, "log": saw(3, 7)})
    _, second = identify(look(place, "cat log", "sarif").signals)
    commit(place.path, {"log": saw(7)})
    (left,) = identify(look(place, "cat log", "sarif").signals)
    assert {second.signal.line, left.signal.line} == {7}
    assert left.fingerprint == second.fingerprint


def test_what_a_stale_log_saw_is_found_where_it_stands_now(place: Place) -> None:
    commit(place.path, {"a.py": TWO_BARE, "log": saw(7)})
    before = look(place, "cat log", "sarif").signals[0]
    commit(place.path, {"a.py": "import os\n" + TWO_BARE})
    after = look(place, "cat log", "sarif").signals[0]
    assert (after.line, after.essence) == (8, before.essence)


def test_what_a_stale_log_saw_and_is_gone_is_about_no_line(place: Place) -> None:
    commit(place.path, {"a.py": "import os\n", "log": saw(7)})
    (signal,) = look(place, "cat log", "sarif").signals
    assert (signal.line, signal.essence[-1]) == (0, "except:")


def test_a_line_that_a_progress_bar_was_drawn_before_is_a_line(place: Place) -> None:
    seen = look(place, r"printf '10%%\r100%%\ra.py:1: F401 one\r\na.py:2: F402 two\n'")
    assert [signal.title for signal in seen.signals] == ["one in a.py:1", "two in a.py:2"]


def test_it_runs_on_the_commit_and_not_in_the_work_tree(place: Place) -> None:
    commit(place.path, {"a.txt": "committed"})
    (place.path / "a.txt").write_text("edited")
    seen = look(place, 'echo "a.txt:1: T1 $(cat a.txt)"; echo scribble > a.txt')
    assert seen.signals[0].title == "committed in a.txt:1"
    assert (place.path / "a.txt").read_text() == "edited"


@pytest.mark.attack(42)
def test_nothing_of_our_environment_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "sesame")
    seen = look(place, "env > all; grep -q sesame all && echo 'a:1: T1 leaked'; git remote | sed 's/^/a:1: T2 /'; true")
    assert (seen.status, seen.signals) == ("ok", ())


def test_the_fingerprint_survives_a_move_and_another_clone(place: Place) -> None:
    commit(place.path, CODE)
    run = 'n=$(grep -n "import os" *.py | cut -d: -f1); echo "$PWD/$(ls *.py):$n: F401 see $PWD/x:$n or line $n"'
    here = identify(look(place, run).signals)
    commit(place.path, {"a.py": None, "b.py": "\n\n" + CODE["a.py"]})
    there = identify(look(place, run).signals)
    assert here[0].signal.line != there[0].signal.line
    assert here[0].fingerprint == there[0].fingerprint
    assert "workshop" not in here[0].title + here[0].signal.detail


def test_a_result_about_a_whole_file_is_known_by_the_file(place: Place) -> None:
    parse = {"regex": r"(?P<path>\S+) (?P<message>is unused)"}
    findings = identify(look(place, "echo 'a.ts is unused'; echo 'b.ts is unused'", parse).signals)
    assert len({finding.fingerprint for finding in findings}) == 2
    assert findings[0].signal.essence[-1] == "a.ts"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.py", "a/../../x.py"])
def test_a_path_outside_the_repository_is_dropped(place: Place, path: str) -> None:
    (signal,) = look(place, f"echo '{path}:1: T1 odd'").signals
    assert (signal.path, signal.title) == ("", "odd")


# --- when it goes wrong ---------------------------------------------------------------


def test_a_command_that_fails_is_unavailable_with_its_last_words(place: Place) -> None:
    seen = look(place, "echo first >&2; echo 'no such option' >&2; exit 2")
    assert (seen.status, seen.detail) == ("unavailable", "exit code 2: no such option")


def test_a_missing_tool_is_unavailable(place: Place) -> None:
    seen = look(place, "surely-not-installed --check")
    assert seen.status == "unavailable" and "surely-not-installed" in seen.detail


def test_results_count_whatever_the_exit_code(place: Place) -> None:
    seen = look(place, "echo 'README.md:1: T1 odd'; exit 7")
    assert (seen.status, len(seen.signals)) == ("ok", 1)
    assert seen.detail == "1 result, exit code 7"


def test_silence_with_an_expected_exit_code_is_no_result(place: Place) -> None:
    seen = look(place, "grep -rn surely-nowhere .; exit 1")
    assert (seen.status, seen.signals) == ("ok", ())


def test_silence_with_a_complaint_is_unavailable(place: Place) -> None:
    seen = look(place, "echo 'npm error: no lock file' >&2; exit 1")
    assert (seen.status, seen.detail) == ("unavailable", "exit code 1: npm error: no lock file")


@pytest.mark.parametrize("parse", [REGEX, "sarif", {"json": {"items": "results"}}])
def test_garbled_output_is_unavailable(place: Place, parse: Any) -> None:
    assert look(place, "echo 'Segmentation fault'; exit 1", parse).status == "unavailable"


@pytest.mark.parametrize("parse", ["sarif", {"json": {}}])
def test_deeply_nested_output_is_unavailable(place: Place, parse: Any) -> None:
    commit(place.path, {"deep": "[" * 200_000})
    assert look(place, "cat deep", parse).status == "unavailable"


def test_a_command_that_takes_too_long_is_ended(place: Place) -> None:
    seen = look(place, "echo 'a:1: T1 early'; sleep 60", timeout=0.3)
    assert seen.status == "unavailable" and "not finished within 0.3 s" in seen.detail


def test_a_command_that_says_too_much_is_ended(place: Place) -> None:
    seen = look(place, "yes 'a:1: T1 more'", output_cap=10_000)
    assert seen.status == "unavailable" and "10,000 bytes" in seen.detail


def test_a_severity_of_an_older_file_is_the_most_that_a_result_has(place: Place) -> None:
    for said, found in (("low", "low"), ("medium", "medium"), ("high", "high")):
        (signal,) = look(place, "echo 'a:1: T1 worse'", kind="bug", severity=said).signals
        assert signal.severity == found
    (signal,) = look(place, "echo 'a:1: T1 worse'", kind="code-quality", severity="high").signals
    assert signal.severity == "low"


@pytest.mark.attack(57)
def test_a_regex_that_never_ends_is_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.observers.markers.SECONDS", 1.0)
    seen = look(place, f"echo '{'a' * 64}!'", {"regex": "(a+)+$"})
    assert seen.status == "unavailable" and "regex took longer" in seen.detail


@pytest.mark.attack(57)
def test_a_regex_that_never_ends_is_ended_though_who_waited_for_it_was_killed() -> None:
    asked = {"pattern": "(a+)+$", "most": 1, "lines": ["a" * 64 + "!"], "seconds": 1}
    program = (sys.executable, "-I", "-S", matching.__file__)
    done = subprocess.run(program, input=json.dumps(asked).encode(), capture_output=True, check=False, timeout=300)
    assert done.returncode == -signal.SIGALRM


def test_more_than_the_cap_is_told(place: Place) -> None:
    seen = look(place, "seq 1 900 | sed 's/.*/README.md:1: T& odd/'")
    assert len(seen.signals) == commands.MOST
    assert "only the first 500" in seen.detail
    assert not seen.complete


@pytest.mark.attack(9, 38)
def test_control_characters_and_length_do_not_get_through(place: Place) -> None:
    run = r"printf 'a.py:1: T1 \033[31mred\033[0m\007 \033]8;;http://x\007link%s\n' " + "x" * 3_000
    (signal,) = look(place, r"printf '\033[1ma.py:1: T1 \033[31mred\033[0m\007\n'").signals
    assert signal.title == "red in a.py:1"
    assert look(place, run).status == "ok"


# --- severity, exclusion, cache -------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "level", "severity"),
    [
        ("bug", "error", Severity.HIGH),
        ("bug", "warning", Severity.MEDIUM),
        ("bug", "note", Severity.LOW),
        ("code-quality", "error", Severity.MEDIUM),
        ("code-quality", "warning", Severity.LOW),
    ],
)
def test_severity_follows_kind_and_level(place: Place, kind: str, level: str, severity: Severity) -> None:
    seen = look(place, f"echo '{level}: odd'", {"regex": "(?P<level>[a-z]+): (?P<message>.+)"}, kind=kind)
    assert seen.signals[0].severity is severity


def test_excluded_paths_are_left_out(place: Place) -> None:
    run = "for f in a.py gen/b.py vendor/c.py; do echo $f:1: T1 odd; done"
    assert [signal.path for signal in look(place, run, exclude=["gen/"]).signals] == ["a.py"]


def test_an_unchanged_commit_is_not_run_again(place: Place, tmp_path: Path) -> None:
    count = tmp_path / "count"
    run = f"echo x >> {count}; echo 'README.md:1: T1 odd'"
    first, second = (look(place, run, kept=tmp_path / "kept") for _ in range(2))
    assert first.signals == second.signals
    assert count.read_text() == "x\n"
    commit(place.path, {"b": "1"})
    look(place, run, kept=tmp_path / "kept")
    assert count.read_text() == "x\nx\n"


@pytest.mark.parametrize("changed", [{"exclude": ["x"]}, {"kind": "bug"}, {"parse": {"regex": "(?P<message>T1.*)"}}])
def test_other_settings_are_another_question(place: Place, tmp_path: Path, changed: dict[str, Any]) -> None:
    count = tmp_path / "count"
    run = f"echo x >> {count}; echo 'README.md:1: T1 odd'"
    look(place, run, kept=tmp_path / "kept")
    look(place, run, kept=tmp_path / "kept", **changed)
    assert count.read_text() == "x\nx\n"


def test_a_failure_is_not_remembered(place: Place, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = f"test -e {flag} || {{ touch {flag}; exit 9; }}; echo 'README.md:1: T1 odd'"
    assert [look(place, run, kept=tmp_path / "kept").status for _ in range(2)] == ["unavailable", "ok"]


def test_a_spoilt_cache_is_as_good_as_none(place: Place, tmp_path: Path) -> None:
    run = "echo 'README.md:1: T1 odd'"
    first = look(place, run, kept=tmp_path / "kept")
    for file in (tmp_path / "kept").rglob("*.json"):
        file.write_text('[{"path": 1, "nonsense": true}]')
    assert look(place, run, kept=tmp_path / "kept").signals == first.signals


def test_the_cache_stays_small(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "FileCache", partial(FileCache, most=1))
    for code in ("T1", "T2"):
        look(place, f"echo 'README.md:1: {code} odd'", kept=tmp_path / "cache")
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 1


def test_what_asks_a_network_is_run_each_time(place: Place, tmp_path: Path) -> None:
    run = f"echo x >> {tmp_path / 'count'}; echo 'README.md:1: T1 odd'"
    for _ in range(2):
        told = commands.CommandSettings.model_validate({"name": "audit", "run": run, "parse": REGEX, "cache": False})
        commands.build(told, place.git, tmp_path / "cache").observe(place.context())
    assert (tmp_path / "count").read_text() == "x\nx\n"


def test_no_clone_is_left_behind(place: Place) -> None:
    look(place, "mkdir -p deep && chmod 0 deep; echo 'README.md:1: T1 odd'")
    assert [entry for entry in os.listdir(place.scratch) if entry.startswith("workshop")] == []


def test_a_repository_without_commits_is_fine(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    place = Place(tmp_path, tmp_path)
    told = commands.CommandSettings.model_validate({"name": "lint", "run": "false", "parse": "sarif"})
    assert commands.build(told, place.git).observe(place.context(head="")).status == "ok"


# --- settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"parse": {"regex": "("}},
        {"parse": {"regex": "(?P<file>x)"}},
        {"parse": {"json": {"items": "["}}},
        {"parse": "xml"},
        {"timeout": 0},
        {"kind": "Bug!"},
        {"name": "../x"},
        {"ok_codes": [300]},
    ],
)
def test_impossible_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        commands.CommandSettings.model_validate({"name": "lint", "run": "true", "parse": "sarif", **bad})


def test_settings_survive_being_written_and_read() -> None:
    told = commands.CommandSettings.model_validate({"name": "x", "run": "y", "parse": {"json": {"items": "a.b[]"}}})
    assert commands.CommandSettings.model_validate(json.loads(told.model_dump_json(by_alias=True))) == told
