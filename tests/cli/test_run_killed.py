"""A run of stories that is killed at any moment: whoever goes on with it loses one session at most, redoes nothing."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest

from tests.cli import loop_world
from tests.cli.loop_world import ONE_STORY, World, until, world
from tests.helpers import git

STORIES = 5
TAKES = 0.6  # seconds of a session and of the engine around it, or so: the moment is anywhere in there
NOTES = "story = todo()[0]\nwith (here / 'given').open('a') as file:\n    file.write(f'{story}\\n')\n"
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.crash) for seed in range(2, 12))]  # the whole takes long


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_at_any_moment_and_nothing_is_redone(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shop = world(tmp_path)
    shop.stories(STORIES)
    asked = ["--prd", "--preset", "fresh", *shop.agent(NOTES + ONE_STORY)]
    process = shop.start(*asked)
    session = chance.randint(1, STORIES)
    until(lambda: len(shop.calls) >= session)
    time.sleep(chance.uniform(0, TAKES))  # nothing to wait for: any moment will do
    shop.end(process)
    passed, before = committed(shop), len(given(shop))
    done = shop.run("--continue", *asked)
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    noted = (shop.repo / "progress.txt").read_text().count("- Passed in session")
    assert done.json["sessions"] == noted, done.err
    assert noted in (STORIES, STORIES - 1)  # killed between a commit and its note: the story is done all the same
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in range(STORIES, 0, -1)] + ["Start"]
    assert not set(given(shop)[before:]) & set(passed)
    assert len(shop.calls) <= STORIES + 1


DIES = """
import os, sys
from ralph_mission.cli.main import main
from ralph_mission.adapters.git.git import Git
move = Git.move_ref
def die(*given, **named):
    {after} and move(*given, **named)
    os.kill(os.getpid(), 9)
Git.move_ref = die
sys.exit(main())
"""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.long  # five seconds
def test_a_story_counts_when_its_own_commit_landed_whatever_a_person_commits_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    shop = world(tmp_path)
    shop.stories(2)
    asked = ["--prd", "--preset", "fresh", *shop.agent(ONE_STORY)]
    with monkeypatch.context() as patched:
        patched.setattr(loop_world, "RALPH", [sys.executable, "-c", DIES.format(after=after)])
        assert shop.start(*asked).wait() == -9
    git(shop.repo, "commit", "--quiet", "--allow-empty", "--message", "A person's")
    done = shop.run("--continue", *asked)
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    wanted = ["feat: US-002 - Part 2", "A person's", "feat: US-001 - Part 1", "Start"]
    redone = ["feat: US-002 - Part 2", "feat: US-001 - Part 1", "A person's", "Start"]
    assert shop.messages() == (wanted if after else redone)


def given(shop: World) -> list[str]:
    """The story of each session, in order."""
    path = shop.aside / "given"
    return path.read_text().split() if path.exists() else []


def committed(shop: World) -> list[str]:
    """The stories that have their commit."""
    return [message.split()[1] for message in shop.messages() if message.startswith("feat: ")]


def test_what_a_killed_run_left_running_is_ended_by_the_next(tmp_path: Path) -> None:
    shop = world(tmp_path)
    shop.stories(1)
    pid = shop.aside / "pid"
    lingers = f"import time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    process = shop.start("--prd", "--preset", "fresh", *shop.agent(lingers))
    until(pid.exists)
    process.kill()
    process.communicate()
    agent = Path("/proc") / pid.read_text()
    assert agent.exists()
    done = shop.run("--continue", "--prd", "--preset", "fresh", *shop.agent(ONE_STORY))
    assert done.code == 0, done.err
    until(lambda: not agent.exists())  # whoever collects the dead may take a moment


@pytest.mark.parametrize("leaves", ["pathlib.Path('prd.json').write_text('')", "os.unlink('prd.json')"])
@pytest.mark.long  # six seconds
def test_a_kill_in_the_middle_of_a_write_of_the_stories_loses_none(tmp_path: Path, leaves: str) -> None:
    shop = world(tmp_path)
    shop.stories(3)
    halfway = shop.aside / "halfway"
    dies = f"if call == 2:\n    {leaves}\n    pathlib.Path({str(halfway)!r}).touch()\n    time.sleep(600)\n"
    asked = ["--prd", "--preset", "fresh", *shop.agent(dies + ONE_STORY)]
    process = shop.start(*asked)
    until(halfway.exists)
    shop.end(process)
    done = shop.run("--continue", *asked)
    assert (done.code, shop.passing()) == (0, ["US-001", "US-002", "US-003"]), done.err
    assert "prd.json" in (shop.aside / "prompt-3").read_text()
