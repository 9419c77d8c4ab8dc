"""What an earlier version wrote is read and continued: memory, local forge, recordings, loops and `ralph.yml`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop.events import EventLog
from ralph_mission.config import reading
from ralph_mission.loop.model.state import LoopEvent
from tests.helpers import Result, cli_here, git

SAMPLES = Path(__file__).parent / "samples" / "old"
RECORDED = "000003"
LATER, LATER_STILL = "2026-11-22T23:00:00Z", "2026-11-22T23:30:00Z"
"""An hour after the samples were made: nothing of them is stale or over."""
STORIES = """
import json, pathlib, subprocess
prd = json.loads(pathlib.Path("prd.json").read_text())
todo = [story for story in prd["userStories"] if not story["passes"]]
pathlib.Path(todo[0]["title"].split()[-1] + ".txt").write_text("whole\\n")
todo[0]["passes"] = True
pathlib.Path("prd.json").write_text(json.dumps(prd, indent=2))
for line in pathlib.Path(".ralph/agent/tasks.jsonl").read_text().splitlines():
    subprocess.run(["ralph", "task", "done", json.loads(line)["id"]], check=True)
"""
PLANS = """
import os, pathlib, sys
if os.environ["RALPH_HAT"] == "planner" and "userStories" in sys.stdin.read():
    pathlib.Path("prd.json").write_text('''{"project": "Shop", "branchName": "ralph/shop", "description": "A shop",
        "userStories": [{"id": "US-001", "title": "A store", "description": "As a keeper, I want a store",
        "acceptanceCriteria": ["store.txt is there", "Typecheck passes"], "priority": 1, "passes": false}]}''')
elif os.environ["RALPH_HAT"] == "planner":
    pathlib.Path(".ralph/plan.md").write_text("# Shop\\n\\n## Store\\nOne table.\\n\\n## Door\\nOne door, of oak.\\n")
    print('<event topic="plan.complete">the plan</event>')
elif os.environ["RALPH_HAT"] == "critic":
    print('<event topic="plan.verdict">{"verdict": "approve"}</event>')
else:
    print('<event topic="plan.advice">one table is enough</event>')
"""
TEAM = """
import os, pathlib
if os.environ["RALPH_HAT"] == "ada":
    pathlib.Path("c.txt").write_text("c")
    print('<event topic="build.complete">c</event>')
else:
    assert os.environ["RALPH_HAT"] == "tester"
    print('<event topic="verification.passed">all there</event>')
"""


def restore(name: str, folder: Path) -> Path:
    """The repository that a sample was taken of."""
    sample, repo = SAMPLES / name, folder / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--template=")
    git(repo, "fast-import", "--quiet", stdin=(sample / "history.fast-export").read_text())
    git(repo, "symbolic-ref", "HEAD", f"refs/heads/{(sample / 'branch').read_text().strip()}")
    git(repo, "reset", "--quiet", "--hard")
    git(repo, "config", "user.name", "Mara Quint")
    git(repo, "config", "user.email", "mara@example.org")
    if (sample / "files").is_dir():
        shutil.copytree(sample / "files", repo, dirs_exist_ok=True)
    shutil.copytree(sample / "ralph", repo / ".ralph")
    shutil.copytree(sample / "git", repo / ".git", dirs_exist_ok=True)
    return repo


def succeed(*arguments: str, repo: Path, cwd: Path | None = None) -> Result:
    done = cli_here(*arguments, repo=repo, cwd=cwd)
    assert done.code == 0, done.err + done.out
    return done


def agent(script: str, folder: Path) -> tuple[str, str]:
    """The options that name a program of these lines as the agent."""
    program = folder / "agent.py"
    program.write_text(script)
    return "--command", f"{shlex.quote(sys.executable)} {shlex.quote(str(program))}"


def subjects(repo: Path, branch: str = "HEAD") -> list[str]:
    return git(repo, "log", "--format=%s", branch).splitlines()


@pytest.fixture
def missions(tmp_path: Path) -> Path:
    return restore("missions", tmp_path)


def test_missions_of_an_old_memory_are_shown(missions: Path) -> None:
    told = succeed("status", "--json", repo=missions).json
    assert [(one["id"], one["status"]) for one in told["missions"]] == [
        (2, "DISCOVERED"), (3, "IN_REVIEW"), (4, "DISCOVERED"),
    ]  # fmt: skip  # one list
    assert "### Mission #3: Correct 1 misspelling" in succeed("memory", "show", repo=missions).out
    assert "agrees up to serial 8" in succeed("memory", "verify", repo=missions).out


def test_what_was_approved_under_the_old_version_is_done_once(missions: Path) -> None:
    succeed("cycle", "--force", "--now", LATER, repo=missions)
    succeed("cycle", "--force", "--now", LATER_STILL, repo=missions)
    assert subjects(missions).count("Correct 1 misspelling in docs/guide.md") == 1
    states = {
        one["number"]: one["state"]
        for one in succeed("pr", "list", "--state", "all", "--json", repo=missions).json["pulls"]
    }
    assert states == {2: "merged", 5: "merged"}
    issues = succeed("issue", "list", "--state", "all", "--json", repo=missions).json["issues"]
    assert {one["number"]: one["state"] for one in issues} == {1: "closed", 3: "open", 4: "closed", 6: "closed"}
    posts = [path.read_text() for path in sorted((missions / "outbox").glob("*.md"))]
    assert [sum(text in post for post in posts) for text in ("pull request 2", "Slackwater", "pull request 5")] == [
        1
    ] * 3
    assert len(posts) == 3
    assert "effects: 0 open" in succeed("memory", "verify", repo=missions).out


def test_a_cycle_that_was_killed_is_finished_without_doing_anything_twice(tmp_path: Path) -> None:
    repo = restore("killed", tmp_path)
    assert "Another runner holds this cycle" in succeed("cycle", "--force", "--now", LATER, repo=repo).out
    assert "adopted" in succeed("memory", "recover", "--take-over", repo=repo).out
    succeed("cycle", "--force", "--now", LATER_STILL, repo=repo)
    assert subjects(repo, "main").count("Correct 1 misspelling in docs/guide.md") == 1
    assert succeed("issue", "show", "4", "--json", repo=repo).json["state"] == "closed"
    assert "effects: 0 open" in succeed("memory", "verify", repo=repo).out


def test_an_old_recording_is_decided_again_and_differs_in_words_alone(missions: Path) -> None:
    (recorded,) = (path.name for path in (missions / ".ralph" / "cycles").iterdir())
    assert recorded.startswith(RECORDED)
    told = cli_here("replay", recorded, "--json", repo=missions).json
    assert all(line.endswith(": the same decision, worded differently") for line in told["differences"]), told


@pytest.mark.long  # the same, for another kind of run
def test_a_run_of_stories_that_was_killed_goes_on(tmp_path: Path) -> None:
    repo = restore("stories", tmp_path)
    options = ("run", "--prd", "--continue", *agent(STORIES, tmp_path), "--json")
    left = cli_here(*options, repo=repo)
    assert (left.code, "till.txt" in left.err, "Commit or stash" in left.err) == (1, True, True)
    git(repo, "stash", "push", "--quiet", "--include-untracked", "--", "till.txt")
    done = succeed(*options, repo=repo).json
    assert (done["ending"], done["sessions"], done["run"]) == ("complete", 3, "20261122-215223-prd")
    assert subjects(repo)[:3] == ["feat: US-003 - A door", "feat: US-002 - A till", "feat: US-001 - A shelf"]
    assert "brass" in json.loads((repo / ".ralph/loop/guidance.jsonl").read_text().splitlines()[0])["text"]
    assert {task["status"] for task in succeed("task", "list", "--json", repo=repo).json["tasks"]} == {"done"}
    assert "A shelf of oak" in (repo / "progress.txt").read_text()


def test_tasks_guidance_and_memories_of_an_old_loop_are_read(tmp_path: Path) -> None:
    repo = restore("stories", tmp_path)
    tasks = succeed("task", "list", "--json", repo=repo).json
    assert [task["title"] for task in tasks["tasks"]] == ["Oil the hinges", "Hang the sign"]
    assert "The till is to be of brass" in succeed("guidance", "--list", repo=repo).out


def test_verdicts_of_an_old_run_are_read_and_its_event_log_goes_on(tmp_path: Path) -> None:
    repo = restore("hats", tmp_path)
    log = EventLog(repo / ".ralph")
    old = log.path.read_bytes()
    log.record(LoopEvent("loop.complete"))
    assert log.path.read_bytes().startswith(old) and log.restore() == ()
    assert "is judged already" in cli_here("agent", "verdict", "reject", repo=repo).err


@pytest.mark.long  # the same, for another kind of run
def test_a_plan_that_was_killed_goes_on_in_its_round(tmp_path: Path) -> None:
    repo = restore("plan", tmp_path)
    done = succeed("plan", "A shop", "--consensus", "--continue", *agent(PLANS, tmp_path), "--json", repo=repo).json
    assert done["stories"][0]["id"] == "US-001"
    plan = json.loads((repo / ".ralph/plan.json").read_text())
    assert (plan["rounds"], sorted(plan["approved"])) == (2, ["Door", "Store"])


@pytest.mark.long  # the same, for another kind of run
def test_a_team_that_was_killed_goes_on_with_what_is_left(tmp_path: Path) -> None:
    repo = restore("team", tmp_path)
    options = ("run", "two files", "--pattern", "team", "--continue", *agent(TEAM, tmp_path), "--json")
    done = succeed(*options, repo=repo).json
    assert (done["ending"], done["sessions"]) == ("complete", 5)
    assert subjects(repo)[1:] == ["two: built apart", "one: built apart", "Start"]
    assert (repo / "c.txt").read_text() == "c"


def test_settings_of_the_old_version_load_with_a_warning_for_what_was_dropped() -> None:
    config = reading.load((SAMPLES / "ralph.yml").read_text())
    assert config.limits.active_missions == 2
    assert config.schedule.wake == "auto"
    assert any("environments no longer wake anything" in line for line in config.warnings)
    assert all(" line " in line for line in config.warnings)
