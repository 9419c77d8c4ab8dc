"""Stories of several hats and what they have no use for; ralplan that builds what its critic approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world
from tests.cli.test_run_teams import AGREES, OWNS, PLANS, SAYS
from tests.helpers import git

pytestmark = pytest.mark.long  # takes ten seconds or more

TWO_SECTIONS = """
if hat == "planner":
    again = "mended" if call > 1 else "vague"
    write(".ralph/plan.md", f"# Shop\\n\\n## Store\\nOne table.\\n\\n## Shelf\\n{again}\\n")
    say("plan.complete", "the plan")
elif hat == "architect":
    say("plan.advice", "one table is enough")
elif hat == "critic":
    shelf = "approve" if "mended" in pathlib.Path(".ralph/plan.md").read_text() else "reject"
    rows = [{"section": "Store", "verdict": "approve"},
            {"section": "Shelf", "verdict": shelf, "objections": [] if shelf == "approve" else ["which shelf?"]}]
    say("plan.verdict", {"sections": rows})
elif hat == "builder":
    name = "store" if "> One table." in prompt and "EVENT: plan.approved" in prompt else "shelf"
    write(f"{name}.txt")
    commit(name)
    say("build.complete", name)
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository with a README."""
    return world(tmp_path)


def test_approved_sections_are_built_while_the_rest_is_revised(shop: World) -> None:
    done = shop.run("a shop", "--pattern", "ralplan", "--build", *shop.agent(SAYS + TWO_SECTIONS))
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    assert json.loads((shop.repo / ".ralph/plan.json").read_text())["built"] == ["Store", "Shelf"]
    assert (shop.repo / "store.txt").exists() and (shop.repo / "shelf.txt").exists()
    assert sorted(shop.calls[3:5]) == ["builder", "planner"] and shop.calls[-1] == "builder"
    assert git(shop.repo, "status", "--porcelain") == ""


def test_what_is_built_has_to_pass_the_checks(shop: World) -> None:
    script = SAYS + PLANS + AGREES + '\nelif hat == "builder":\n    change()\n    say("build.complete", "x")\n'
    done = shop.run("a shop", "--pattern", "ralplan", "--build", "--verify", "false", *shop.agent(script))
    assert (done.code, done.json["ending"]) == (2, "rounds"), done.err
    assert shop.calls.count("builder") == 4


@pytest.mark.parametrize("pattern", ["ralplan", "ultrawork", "team"])
@pytest.mark.parametrize("gate", [["--prd"], ["--prd-file", "prd.json"], ["--preset", "prd"], ["--preset", "fresh"]])
def test_stories_are_no_gate_of_several_hats_and_the_pair_is_refused(
    shop: World, pattern: str, gate: list[str]
) -> None:
    shop.stories(2)
    done = shop.run("a shop", "--pattern", pattern, *gate, *shop.agent(SAYS + OWNS))
    assert (done.code, shop.calls) == (64, []), done.err
    assert f"{pattern} works on one task" in done.err
    assert git(shop.repo, "branch", "--show-current") != "ralph/shop"


def test_no_planner_writes_stories_that_nobody_would_work_through(shop: World) -> None:
    done = shop.run("a shop", "--prd", "--pattern", "team", *shop.agent(SAYS + OWNS))
    assert (done.code, shop.calls) == (64, [])


@pytest.mark.parametrize("options", [[], ["--pattern", "team"], ["--pattern", "plan-build-review"]])
def test_build_belongs_to_ralplan(shop: World, options: list[str]) -> None:
    done = shop.run("a shop", "--build", *options, *shop.agent(SAYS + OWNS))
    assert (done.code, shop.calls) == (64, [])
    assert "--pattern ralplan" in done.err
