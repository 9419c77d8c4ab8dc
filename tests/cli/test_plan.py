"""`ralph plan`: the stories of a task, with `--consensus` from a plan that a critic approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.cli.test_run_teams import AGREES, OBJECTS, PLANS, SAYS

STORIES = """
if "user stories of this task" in prompt:
    story = {"id": "US-001", "title": "Count the shelf", "description": "As a keeper I see what is left.",
             "acceptanceCriteria": ["an empty shelf counts 0", "Typecheck passes"], "priority": 1, "passes": False,
             "notes": ""}
    prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop", "userStories": [story]}
    write("prd.json", json.dumps(prd))
    say("plan.complete", "one story")
    sys.exit()
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository without stories."""
    return world(tmp_path)


def test_the_stories_of_a_task_are_written_and_nothing_is_built(shop: World) -> None:
    done = shop.ralph("plan", "a shop", *shop.agent(SAYS + STORIES), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["stories"] == [{"id": "US-001", "title": "Count the shelf", "priority": 1}]
    assert shop.messages() == ["Start"] and (shop.repo / "prd.json").exists()


def test_by_consensus_the_stories_are_made_from_the_approved_plan(shop: World) -> None:
    done = shop.ralph("plan", "a shop", "--consensus", *shop.agent(SAYS + STORIES + PLANS + AGREES), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["sessions"] == 4
    assert sorted(shop.calls[:3]) == ["architect", "critic", "planner"] and shop.calls[3:] == ["planner"]
    assert "One table." in shop.prompt(4) and "This plan was agreed on" in shop.prompt(4)


def test_without_consensus_no_story_is_written(shop: World) -> None:
    done = shop.ralph("plan", "a shop", "--consensus", *shop.agent(SAYS + STORIES + PLANS + OBJECTS), "--json")
    assert done.code == 2, done.err
    assert json.loads(done.out)["ending"] == "rounds"
    assert not (shop.repo / "prd.json").exists()


def test_stories_that_are_there_are_kept_unless_told_otherwise(shop: World) -> None:
    shop.stories(2)
    agent = shop.agent(SAYS + STORIES)
    done = shop.ralph("plan", "a shop", *agent)
    assert (done.code, shop.calls) == (64, [])
    assert "ralph run" in done.err and "--prd" in done.err
    assert shop.ralph("plan", "a shop", "--force", *agent).code == 0


def test_wrong_usage_ends_with_64(shop: World) -> None:
    assert shop.ralph("plan").code == 64
    assert shop.ralph("plan", "a shop", "--agent", "nobody").code == 64
