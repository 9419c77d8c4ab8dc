"""`ralph run --prd` as a process: one story, one session, one commit; nothing passes that was not proven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import ONE_STORY, World, until, world
from tests.helpers import git

pytestmark = pytest.mark.long  # takes ten seconds or more

AT_ONCE = ("--prd", "--preset", "fresh")
"""As `--prd`, without its pause between two sessions."""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """Five stories."""
    here = world(tmp_path)
    here.stories(5)
    return here


@pytest.fixture
def two(tmp_path: Path) -> World:
    """Two stories."""
    here = world(tmp_path)
    here.stories(2)
    return here


def test_five_stories_take_five_sessions_and_five_commits(shop: World) -> None:
    done = shop.run("--prd", *shop.agent(ONE_STORY))
    assert done.code == 0, done.err
    assert done.json["stories"] == {"passing": 5, "total": 5}
    assert len(shop.calls) == 5
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert git(shop.repo, "symbolic-ref", "--short", "HEAD") == "ralph/shop"
    assert (shop.repo / "progress.txt").read_text().count("- Passed in session") == 5


def test_a_kill_in_the_third_session_and_nothing_is_done_twice(shop: World) -> None:
    agent = shop.agent("if call == 3:\n    change()\n    time.sleep(600)\n" + ONE_STORY)
    process = shop.start(*AT_ONCE, *agent)
    until(lambda: (shop.clone / "file-3.txt").exists())
    shop.end(process)
    again = shop.run(*AT_ONCE, "--continue", *agent)
    assert again.code == 0, again.err
    assert again.json["sessions"] == 5
    assert len(shop.calls) == 6  # the one that was killed was given once more
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert not (shop.repo / "file-3.txt").exists()
    assert [*shop.repo.glob(".ralph/aside/*.patch")] and not git(shop.repo, "for-each-ref", "refs/ralph")


def test_work_that_is_done_takes_no_session(two: World) -> None:
    agent = two.agent(ONE_STORY)
    assert two.run(*AT_ONCE, *agent).code == 0
    git(two.repo, "add", "-A")
    git(two.repo, "commit", "-qm", "The list")
    assert two.run(*AT_ONCE, *agent).json["sessions"] == 0
    assert len(two.calls) == 2


def test_who_only_quotes_the_promise_never_completes(shop: World) -> None:
    quoting = (
        "change()\nprint('I must not say TASK_COMPLETE yet.\\nWhen done: <promise>TASK_COMPLETE</promise> comes last.')"
    )
    done = shop.run(*AT_ONCE, "--max-iterations", "2", *shop.agent(quoting))
    assert (done.code, done.json["stories"]["passing"]) == (2, 0)


def test_the_promise_alone_does_not_complete_stories(shop: World) -> None:
    done = shop.run(
        *AT_ONCE, "--max-iterations", "2", *shop.agent("change()\nprint('<promise>TASK_COMPLETE</promise>')")
    )
    assert (done.code, done.json["ending"]) == (2, "iterations")


def test_who_flips_all_stories_with_red_checks_never_completes(shop: World) -> None:
    agent = shop.agent("change()\nflip(*todo())\nprint('<promise>TASK_COMPLETE</promise>')")
    done = shop.run(*AT_ONCE, "--max-iterations", "2", "--verify", "false", *agent)
    assert (done.code, done.json["stories"]["passing"], shop.passing()) == (2, 0, [])


def test_who_flips_all_stories_with_green_checks_gets_one_at_a_time(shop: World) -> None:
    done = shop.run(*AT_ONCE, "--max-iterations", "2", "--verify", "true", *shop.agent("change()\nflip(*todo())"))
    assert (done.code, shop.passing()) == (2, ["US-001", "US-002"])


def test_the_stories_of_another_branch_put_the_former_ones_away(two: World) -> None:
    agent = two.agent(ONE_STORY)
    assert two.run(*AT_ONCE, *agent).code == 0
    two.stories(1, branch="ralph/cellar")
    assert two.run(*AT_ONCE, "--allow-dirty", *agent).code == 0
    archived = sorted(path.name for path in two.repo.glob("archive/*-shop/*"))
    assert archived == ["prd.json", "progress.txt"]
    put_away = next(two.repo.glob("archive/*-shop/prd.json"))
    assert len(two.passing(str(put_away.relative_to(two.repo)))) == 2


def test_the_former_stories_may_stay_where_they_are(two: World) -> None:
    agent = two.agent(ONE_STORY)
    assert two.run(*AT_ONCE, *agent).code == 0
    two.stories(1, branch="ralph/cellar")
    assert two.run(*AT_ONCE, "--allow-dirty", "--no-archive-previous", *agent).code == 0
    assert not (two.repo / "archive").exists()


def test_a_run_of_one_story(shop: World) -> None:
    done = shop.run("--prd", "--single-story-per-run", *shop.agent(ONE_STORY))
    assert (done.code, shop.passing()) == (0, ["US-001"])


def test_required_tests_need_a_check(shop: World) -> None:
    done = shop.run("--prd", "--require-tests", *shop.agent(ONE_STORY))
    assert done.code == 64
    assert "--require-tests needs a check" in done.err
    assert shop.calls == []


def test_stories_of_the_user_interface_pass_the_browser_check_as_well(tmp_path: Path) -> None:
    here = world(tmp_path, {"ralph.yml": "loop: {browser_check: 'test -e browsed'}"})
    here.stories(2)
    prd = json.loads((here.repo / "prd.json").read_text())
    prd["userStories"][1]["acceptanceCriteria"].append("Verify in browser")
    (here.repo / "prd.json").write_text(json.dumps(prd))
    done = here.run(*AT_ONCE, "--max-iterations", "3", *here.agent(ONE_STORY))
    assert (done.code, here.passing()) == (2, ["US-001"])
    assert "test -e browsed" in here.prompt(3)


def test_stories_in_omc_stay_there_and_its_state_follows(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, place=".omc/prd.json")
    flipping = ONE_STORY.replace("flip(todo()[0])", "os.chdir('.omc'); flip('US-001'); os.chdir('..')")
    done = here.run(*AT_ONCE, *here.agent(flipping))
    assert (done.code, here.passing(".omc/prd.json")) == (0, ["US-001"])
    handoff = json.loads((here.repo / ".omc/state/ralph-fresh-handoff.json").read_text())
    assert (handoff["completed"], handoff["prd"]["storiesCompleted"]) == (True, 1)
    assert json.loads((here.repo / ".omc/state/ralph-fresh-state.json").read_text())["active"] is False


def test_the_fresh_preset_takes_stories_where_there_are_some(tmp_path: Path) -> None:
    here = world(tmp_path)
    assert here.run("it", "--preset", "fresh", *here.agent("print('TASK_COMPLETE')")).json["stories"] is None
    here.stories(1)
    done = here.run("it", "--preset", "fresh", *here.agent(ONE_STORY))
    assert done.json["stories"] == {"passing": 1, "total": 1}


def test_progress_is_told_in_plain_lines_and_the_document_stands_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(2)
    done = here.run(*AT_ONCE, *here.agent(ONE_STORY))
    assert done.json["ending"] == "complete"
    assert "[1/20] no hat, US-001 Part 1, 0/2 stories" in done.err
    assert "passed US-001, file-1.txt, prd.json" in done.err
    assert "\x1b" not in done.err


def test_a_check_that_flips_stories_where_git_does_not_look_passes_none(tmp_path):
    shop, place = world(tmp_path), ".ralph/prd.json"
    shop.stories(3, place=place)
    script = f"change()\nlisted = pathlib.Path({place!r})\n"
    script += "listed.write_text(listed.read_text().replace('false', 'true', 1))\n"
    flips = ("--verify", f"sed -i s/false/true/g {place} {shop.repo / place}")
    done = shop.run("--prd", "--preset", "fresh", "--max-iterations", "1", *flips, *shop.agent(script))
    assert done.code == 2, done.err
    assert shop.passing(place) == ["US-001"]
