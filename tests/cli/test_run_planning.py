"""`ralph run TASK --prd` without stories: the planner is the first part of the run, with its limits and endings."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.loop_world import World, until, world
from tests.helpers import git

pytestmark = pytest.mark.long  # takes ten seconds or more

PLANS = """
def write_stories(*titles):
    listed = [{"id": f"US-{number:03}", "title": title, "priority": number, "passes": False, "notes": "",
               "description": "As a keeper, I want to see what is left so that I can order more.",
               "acceptanceCriteria": ["an empty shelf counts 0", "Typecheck passes"]}
              for number, title in enumerate(titles, 1)]
    prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop.", "userStories": listed}
    pathlib.Path("prd.json").write_text(json.dumps(prd))

def told(words="done", usd=5):
    print(json.dumps({"type": "result", "result": words, "is_error": False, "total_cost_usd": usd,
                      "usage": {"input_tokens": 10, "output_tokens": 1}}))
    sys.exit()

planner = os.environ["RALPH_HAT"] == "planner"
"""
WRITES = """
if planner:
    write_stories("Count the shelf")
    told()
"""
BUILDS = """
change()
commit()
flip(*todo()[:1])
told()
"""
WAITS = """
if planner and not (here / "again").exists():
    change()
    pathlib.Path("prd.json").write_text("{")
    (here / "waits").write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository without stories."""
    return world(tmp_path)


def state(here: World) -> dict[str, object]:
    """Where the run was left."""
    document = json.loads((here.repo / ".ralph/loop/state.json").read_text())
    found: dict[str, object] = document["state"]
    return found


def test_planner_and_builders_are_one_run_with_one_account(shop: World) -> None:
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + WRITES + BUILDS))
    assert (done.code, shop.calls) == (0, ["planner", "ralph"]), done.err
    assert (done.json["sessions"], done.json["usage"]["cost_usd"]) == (2, 10.0)
    assert done.json["stories"] == {"passing": 1, "total": 1}
    costs = json.loads(shop.ralph("cost", "--json").out)
    assert (costs["runs"], costs["total"]["sessions"], costs["total"]["cost_usd"]) == (1, 2, 10.0)
    assert {row["hat"]: row["cost_usd"] for row in costs["hats"]} == {"planner": 5.0, "ralph": 5.0}


def test_a_cost_limit_counts_what_the_planner_took(shop: World) -> None:
    agent = shop.agent(PLANS + WRITES + BUILDS)
    done = shop.run("a shop", "--prd", "--max-cost", "4", *agent)
    assert (done.code, done.json["ending"], shop.calls) == (2, "cost", ["planner"])
    more = shop.run("a shop", "--prd", "--max-cost", "6", "--continue", *agent)
    assert (more.code, more.json["sessions"], shop.calls) == (0, 2, ["planner", "ralph"]), more.err


@pytest.mark.parametrize(
    ("limit", "ending"),
    [(["--max-cost", "1"], "cost"), (["--max-iterations", "1"], "iterations"), (["--max-runtime", "0.001"], "runtime")],
)
def test_no_planner_starts_beyond_a_limit(shop: World, limit: list[str], ending: str) -> None:
    done = shop.run("a shop", "--prd", *limit, *shop.agent(PLANS + "told()"))
    assert (done.code, done.json["ending"]) == (2, ending), done.err
    assert len(shop.calls) == (0 if ending == "runtime" else 1)


def test_ctrl_c_in_a_planner_ends_as_any_run_does_and_is_gone_on_from(shop: World) -> None:
    agent = shop.agent(PLANS + WAITS + WRITES + BUILDS)
    running = shop.start("a shop", "--prd", *agent)
    until(lambda: (shop.aside / "waits").exists() and (shop.aside / "waits").read_text())
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    document = json.loads(out)
    assert (running.returncode, document["ending"], document["code"]) == (130, "interrupted", 130), err
    assert state(shop)["kind"] == "plan"
    (shop.aside / "again").touch()
    done = shop.run("a shop", "--prd", "--continue", *agent)
    assert (done.code, shop.calls) == (0, ["planner", "planner", "ralph"]), done.err
    assert not (shop.repo / "file-1.txt").exists()
    assert [*shop.repo.glob(".ralph/aside/*.patch")]
    assert done.json["run"] == document["run"]


@pytest.mark.parametrize(("word", "code"), [("stop", 1), ("cancel", 1), ("restart", 3)])
def test_a_persons_word_in_a_planner_ends_it_as_documented(shop: World, word: str, code: int) -> None:
    script = f"(run_dir / 'signal').write_text('{word}')\ntold()"
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + script), env={"RALPH_RESTART": "exit"})
    assert (done.code, done.json["ending"], shop.calls) == (code, word, ["planner"]), done.err
    assert (shop.repo / ".ralph/loop/state.json").exists() == (word != "cancel")


def test_a_word_in_the_last_planner_keeps_the_building_from_beginning(shop: World) -> None:
    writes = "if planner:\n    write_stories('Count')\n    (run_dir / 'signal').write_text('stop')\n    told()\n"
    agent = shop.agent(PLANS + writes + BUILDS)
    done = shop.run("a shop", "--prd", *agent)
    assert (done.code, done.json["ending"], shop.calls) == (1, "stop", ["planner"])
    again = shop.run("a shop", "--prd", "--continue", *agent)
    assert (again.code, shop.calls) == (0, ["planner", "ralph"]), again.err


def test_restart_in_a_planner_replaces_the_process(shop: World) -> None:
    first = """
(here / f"holder-{call}").write_text(str(json.loads((run_dir.parents[1] / ".git/ralph-running").read_text())["pid"]))
if call == 1:
    pathlib.Path("prd.json").write_text("[]")
    (run_dir / "signal").write_text("restart")
    told()
"""
    running = shop.start("a shop", "--prd", *shop.agent(PLANS + first + WRITES + BUILDS))
    out, err = running.communicate(timeout=300)
    assert (running.returncode, shop.calls) == (0, ["planner", "planner", "ralph"]), err
    assert json.loads(out)["ending"] == "complete"
    assert json.loads(out)["sessions"] == 2, "a restart starts a new run"
    assert {(shop.aside / f"holder-{call}").read_text() for call in (1, 2, 3)} == {str(running.pid)}


def test_a_planner_that_is_killed_is_gone_on_from(shop: World) -> None:
    agent = shop.agent(PLANS + WAITS + WRITES + BUILDS)
    running = shop.start("a shop", "--prd", *agent)
    until(lambda: (shop.aside / "waits").exists() and (shop.aside / "waits").read_text())
    running.kill()
    running.communicate(timeout=300)
    os.kill(int((shop.aside / "waits").read_text()), signal.SIGKILL)
    (shop.aside / "again").touch()
    done = shop.run("a shop", "--prd", "--continue", *agent)
    assert (done.code, shop.calls) == (0, ["planner", "planner", "ralph"]), done.err


def test_a_planning_goes_on_without_its_task_being_named(shop: World) -> None:
    first = shop.run("a shop", "--prd", "--max-iterations", "1", *shop.agent(PLANS + "told()"))
    assert (first.code, first.json["ending"]) == (2, "iterations"), first.err
    done = shop.run("--continue", *shop.agent(PLANS + WRITES + BUILDS))
    assert (done.code, shop.calls) == (0, ["planner", "planner", "ralph"]), done.err
    assert done.json["stories"] == {"passing": 1, "total": 1}


def test_three_planners_without_stories_end_as_stuck(shop: World) -> None:
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + "told(usd=1)"))
    assert (done.code, done.json["ending"], shop.calls) == (1, "stuck", ["planner"] * 3), done.err
    assert done.json["usage"]["cost_usd"] == 3.0 and "no stories after 3 sessions" in done.json["detail"]


def test_what_was_undone_of_the_planner_is_in_the_report(shop: World) -> None:
    writes = "if planner:\n    change()\n    write_stories('Count')\n    told()\n"
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + writes + BUILDS))
    assert [(row["session"], row["path"]) for row in done.json["reverted"]] == [(1, "file-1.txt")], done.err


def test_the_stories_of_another_branch_are_put_away_after_planning(shop: World) -> None:
    (shop.repo / ".last-branch").write_text("ralph/old\n")
    (shop.repo / "progress.txt").write_text("# Ralph Progress Log\nStarted: x\n---\n## old - US-009\n- did it\n---\n")
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + WRITES + BUILDS))
    assert done.code == 0, done.err
    assert (shop.repo / ".last-branch").read_text() == "ralph/shop\n"
    assert [path.parent.name[11:] for path in shop.repo.glob("archive/*/progress.txt")] == ["old"]
    assert git(shop.repo, "branch", "--show-current") == "ralph/shop"


def test_in_a_linked_work_tree_the_account_goes_with_the_stories(shop: World) -> None:
    done = shop.run("a shop", "--prd", "--worktree", *shop.agent(PLANS + WRITES + BUILDS))
    assert (done.code, done.json["sessions"], done.json["usage"]["cost_usd"]) == (0, 2, 10.0), done.err
    assert not (shop.repo / ".ralph/loop/state.json").exists()


def test_a_persistent_loop_is_refused_before_any_planner_is_paid(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"
    shop = world(tmp_path, {"ralph.yml": settings})
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + WRITES))
    assert (done.code, shop.calls) == (64, [])
