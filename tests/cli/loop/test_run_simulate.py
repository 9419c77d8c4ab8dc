"""`ralph agent simulate` plays every pattern in a real repository, with real processes, and shows it converge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ralph_mission.loop.hats import PATTERNS
from tests.helpers import cli_here

pytestmark = pytest.mark.long  # takes ten seconds or more


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_converges(pattern):
    given = cli_here("agent", "simulate", "--pattern", pattern, "--json")
    told = json.loads(given.out)
    assert given.code == 0
    assert told["converged"] and told["pattern"] == pattern
    assert told["issues_per_review"] == [2, 1, 0] and len(told["sessions"]) == 7
    assert not any(row["undone"] or row["failure"] for row in told["sessions"])


REHEARSED = {
    "ralplan": ["planner", "architect", "critic", "planner", "architect", "critic"],
    "ultrawork": ["planner", "planner", "builder", "builder", "reviewer", "fixer", "reviewer"],
    "team": ["lead", "author", "examiner", "lead", "tester", "author", "tester"],
}


@pytest.mark.parametrize("name", REHEARSED)
def test_every_story_of_several_hats_gets_over_its_fault_and_ends(name):
    given = cli_here("agent", "simulate", "--pattern", name, "--json")
    told = json.loads(given.out)
    assert given.code == 0, given.err
    assert told["converged"] and told["pattern"] == name
    assert sorted(row["hat"] for row in told["sessions"]) == sorted(REHEARSED[name])


def test_a_script_of_ones_own_plays_a_story_and_knows_its_task(tmp_path: Path):
    tasks = [{"id": name, "title": name, "files": [name]} for name in ("one", "two")]
    steps = {
        "planner": [{"event": {"topic": "plan.complete", "payload": json.dumps({"tasks": tasks})}}],
        "builder": [{"run": ['echo "$RALPH_TASK" > "$RALPH_TASK"'], "event": "build.complete"}],
        "reviewer": [{"event": {"topic": "review.verdict", "payload": '{"issues": []}'}}],
    }
    script, keep = tmp_path / "play.json", tmp_path / "kept"
    script.write_text(json.dumps({"hats": steps}))
    given = cli_here("agent", "simulate", "--pattern", "ultrawork", "--script", str(script), "--keep", str(keep))
    assert given.code == 0, given.err
    assert (keep / "one").read_text() == "one\n" and (keep / "two").read_text() == "two\n"


def test_a_person_sees_each_session_and_the_issues_of_each_review():
    given = cli_here("agent", "simulate")
    lines = given.out.splitlines()
    assert given.code == 0
    assert "--keep DIR keeps one" in given.err
    assert not any(word in given.err for word in ("records:", "git log", "--verify"))  # of a folder that is gone
    assert lines[0].split() == ["1", "planner", "plan.complete", "PLAN.md"]
    assert lines[-1] == "plan-build-review: complete, 7 sessions; issues per review: 2 -> 1 -> 0"


def test_a_script_of_ones_own_is_played(tmp_path: Path):
    script = tmp_path / "play.toml"
    script.write_text("""
[[hats.planner]]
event = "plan.complete"
[[hats.builder]]
write = {"docs/sneaked.md" = "x", "a.py" = "y"}
event = "build.complete"
[[hats.reviewer]]
event = {topic = "review.verdict", payload = '{"issues": []}'}
""")
    keep = tmp_path / "kept"
    given = cli_here("agent", "simulate", "--pattern", "pbr", "--script", str(script), "--keep", str(keep), "--json")
    told = json.loads(given.out)
    assert given.code == 0
    assert told["sessions"][1]["undone"] == ["docs/sneaked.md"] and told["sessions"][1]["files"] == ["a.py"]
    assert (keep / "a.py").read_text() == "y" and not (keep / "docs").exists()
    log = subprocess.run(["git", "-C", str(keep), "log", "--oneline"], capture_output=True, text=True, check=True)
    assert "start" in log.stdout


def test_a_pattern_that_does_not_converge_ends_as_a_run_does(tmp_path: Path):
    script = tmp_path / "play.json"
    script.write_text(json.dumps({"hats": {"*": [{"failure": "exit"}]}}))
    given = cli_here("agent", "simulate", "--pattern", "debug", "--script", str(script), "--json")
    told = json.loads(given.out)
    assert given.code == 1
    assert not told["converged"] and told["ending"]["reason"] == "failures"


@pytest.mark.parametrize(
    "options",
    [["--pattern", "nonsense"], ["--pattern", "teem"],
     ["--pattern", "debug", "--keep", "/usr"], ["--pattern", "debug", "--scrpt"],
     ["--pattern", "debug", "--script", "/nowhere.toml"]],
)  # fmt: skip  # one list
def test_wrong_usage_ends_with_64(options):
    given = cli_here("agent", "simulate", *options)
    assert given.code == 64 and given.err.strip()


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cli_here("agent", "simulate", "--pattern", "debug", "--json")
    assert list(tmp_path.glob("ralph-simulate-*")) == []
