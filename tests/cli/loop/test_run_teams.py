"""`ralph run --pattern ralplan|ultrawork|team`: several hats on one objective, each session a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.helpers import git

SAYS = """
hat, task = os.environ["RALPH_HAT"], os.environ.get("RALPH_TASK", "")

def say(topic, payload):
    print(f'<event topic="{topic}">{json.dumps(payload)}</event>')

def write(path, text="x"):
    pathlib.Path(path).write_text(text)
"""
PLANS = """
if hat == "planner":
    write(".ralph/plan.md", "# Shop\\n\\n## Store\\nOne table.\\n")
    say("plan.complete", "the plan")
elif hat == "architect":
    say("plan.advice", "one table is enough")
"""
AGREES = 'elif hat == "critic":\n    say("plan.verdict", {"verdict": "approve"})'
OBJECTS = """
elif hat == "critic":
    say("plan.verdict", {"sections": [{"section": "Store", "verdict": "reject", "objections": ["which table?"]}]})
"""
BUILDS = """
if hat == "planner":
    say("plan.complete", {"tasks": [{"id": name, "title": name, "files": [name + ".txt"]} for name in ("one", "two")]})
elif hat == "builder":
    write(task + ".txt")
    say("build.complete", task)
elif hat == "reviewer":
    say("review.verdict", {"issues": []})
"""
OWNS = """
if hat == "lead":
    say("plan.complete", {"members": [{"name": "ada", "files": ["a.txt"]}, {"name": "ben", "files": ["b.txt"]}],
                          "tasks": [{"id": "one", "title": "A", "owner": "ada"},
                                    {"id": "two", "title": "B", "owner": "ben"}]})
elif hat in ("ada", "ben"):
    write(hat[0] + ".txt")
    say("build.complete", hat)
elif hat == "tester":
    say("verification.passed", "both are there")
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository with a README."""
    return world(tmp_path)


@pytest.mark.long  # a variation of the team of owners
def test_ralplan_ends_with_the_plan_that_the_critic_approved(shop: World) -> None:
    done = shop.run("a shop", "--pattern", "ralplan", *shop.agent(SAYS + PLANS + AGREES))
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    assert sorted(shop.calls) == ["architect", "critic", "planner"]
    assert "One table." in (shop.repo / ".ralph/plan.md").read_text()
    assert shop.messages() == ["Start"]


@pytest.mark.long  # a variation of the team of owners
def test_ultrawork_builds_side_by_side_and_merges_in_the_order_of_the_tasks(shop: World) -> None:
    done = shop.run("two files", "--pattern", "ultrawork", *shop.agent(SAYS + BUILDS))
    assert (done.code, done.json["ending"], done.json["sessions"]) == (0, "complete", 4), done.err
    assert shop.messages()[:2] == ["two files (builder, session 3)", "two files (builder, session 2)"]
    assert git(shop.repo, "status", "--porcelain") == ""


@pytest.mark.long  # a team of sessions
def test_a_team_of_owners_ends_when_its_tester_is_satisfied(shop: World) -> None:
    done = shop.run("two files", "--pattern", "team", *shop.agent(SAYS + OWNS))
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    assert (shop.repo / "a.txt").exists() and (shop.repo / "b.txt").exists()
    assert shop.calls[0] == "lead" and shop.calls[-1] == "tester"


def test_a_persistent_loop_has_no_use_for_a_story_that_ends(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"
    shop = world(tmp_path, {"ralph.yml": settings})
    done = shop.run("a shop", "--pattern", "team", *shop.agent(SAYS + OWNS))
    assert (done.code, shop.calls) == (64, [])
    assert "event_loop.persistent" in done.err


def test_a_mistyped_story_is_answered_with_the_nearest(shop: World) -> None:
    done = shop.run("a shop", "--pattern", "ultrawrk", *shop.agent(SAYS + BUILDS))
    assert (done.code, shop.calls) == (64, [])
    assert "Did you mean ultrawork?" in done.err
