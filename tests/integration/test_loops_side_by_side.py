"""Two `ralph run --worktree` in one repository at the same time: neither undoes the other one's commits."""

from __future__ import annotations

from pathlib import Path
from subprocess import Popen

import pytest

from tests.cli.loop_world import ONE_STORY, World, until, world
from tests.helpers import commit, git

pytestmark = pytest.mark.long  # fifteen seconds

TAKING_TURNS = """
change()
commit(os.environ["RALPH_RUN_DIR"].split("build-")[1][0])
(here / f"{call}-done").touch()
while len(list(here.glob("*-done"))) < (call + 1) // 2 * 2:
    time.sleep(0.02)
"""


def test_loops_in_work_trees_leave_each_other_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent(TAKING_TURNS)
    both = {name: here.start(f"build {name}", "--worktree", "--max-iterations", "3", *agent) for name in "ab"}
    for name, process in both.items():
        _, err = process.communicate(timeout=300)
        assert process.returncode == 2 and "undone" not in err, err
        branch = git(here.repo, "for-each-ref", "--format=%(refname)", f"refs/heads/ralph-run/build-{name}-*")
        assert git(here.repo, "log", "--format=%s", branch).split() == [name, name, name, "Start"]


LONG = """
change()
while not (here / "over").exists():
    time.sleep(0.02)
commit("long")
print("LOOP_COMPLETE")
"""
SHORT = "pathlib.Path('precious.txt').write_text(str(call))\ncommit('short')\nprint('LOOP_COMPLETE')"


def test_a_loop_within_one_session_of_another_keeps_its_branch(tmp_path: Path) -> None:
    here, beside = _two(tmp_path)
    long = here.start("long one", "--worktree", *here.agent(LONG))
    until((here.aside / "pid-1").exists)
    short = beside.run("short one", "--worktree", *beside.agent(SHORT))
    _ended(here, long)
    assert short.code == 0, short.err
    assert _messages(here, "short-one") == ["short", "Start"]


def test_a_loop_that_goes_on_within_one_session_of_another_keeps_its_commits(tmp_path: Path) -> None:
    here, beside = _two(tmp_path)
    once = SHORT.replace("print('LOOP_COMPLETE')", "")
    beside.run("short one", "--worktree", "--max-iterations", "1", *beside.agent(once))
    long = here.start("long one", *here.agent(LONG))
    until((here.aside / "pid-1").exists)
    short = beside.run("--continue", "--worktree", "--max-iterations", "9", *beside.agent(SHORT))
    _ended(here, long)
    assert short.code == 0, short.err
    assert _messages(here, "short-one") == ["short", "short", "Start"]


def test_stories_done_within_one_session_of_another_loop_stay_done(tmp_path: Path) -> None:
    here, beside = _two(tmp_path)
    here.stories(2)
    commit(here.repo, {"prd.json": (here.repo / "prd.json").read_text()})
    long = here.start("long one", *here.agent(LONG))
    until((here.aside / "pid-1").exists)
    stories = beside.run("--prd", "--worktree", *beside.agent(ONE_STORY))
    _ended(here, long)
    assert stories.code == 0, stories.err
    assert git(here.repo, "log", "-2", "--format=%s", "ralph/shop").splitlines()[0] == "feat: US-002 - Part 2"


def _two(tmp_path: Path) -> tuple[World, World]:
    """A repository, and the same with another agent."""
    here = world(tmp_path)
    (tmp_path / "aside2").mkdir()
    return here, World(here.repo, tmp_path / "aside2")


def _ended(here: World, long: Popen[str]) -> None:
    (here.aside / "over").touch()
    _, err = long.communicate(timeout=300)
    assert long.returncode == 0 and "undone" not in err, err


def _messages(here: World, slug: str) -> list[str]:
    branch = git(here.repo, "for-each-ref", "--format=%(refname)", f"refs/heads/ralph-run/{slug}-*")
    return git(here.repo, "log", "--format=%s", branch).splitlines()
