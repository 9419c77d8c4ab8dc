"""`ralph plan`: the stories of a task, with `--consensus` from a plan that a critic approved; one account."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.loop.test_run_teams import AGREES, OBJECTS, PLANS, SAYS
from tests.cli.loop_world import RALPH, World, until, world
from tests.helpers import cli

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
COSTS = """
def priced(topic, payload):
    said = f'<event topic="{topic}">{json.dumps(payload)}</event>'
    print(json.dumps({"type": "result", "result": said, "is_error": False, "total_cost_usd": 1}))

say = priced
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


@pytest.mark.long  # together they take ten seconds or more
def test_by_consensus_the_stories_are_made_from_the_approved_plan(shop: World) -> None:
    done = shop.ralph("plan", "a shop", "--consensus", *shop.agent(SAYS + STORIES + PLANS + AGREES), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["sessions"] == 4
    assert sorted(shop.calls[:3]) == ["architect", "critic", "planner"] and shop.calls[3:] == ["planner"]
    assert "One table." in shop.prompt(4) and "This plan was agreed on" in shop.prompt(4)


@pytest.mark.long  # together they take ten seconds or more
def test_without_consensus_no_story_is_written(shop: World) -> None:
    done = shop.ralph("plan", "a shop", "--consensus", *shop.agent(SAYS + STORIES + PLANS + OBJECTS), "--json")
    assert done.code == 2, done.err
    assert json.loads(done.out)["ending"] == "rounds"
    assert not (shop.repo / "prd.json").exists()


@pytest.mark.long  # together they take ten seconds or more
def test_stories_that_are_there_are_kept_unless_told_otherwise(shop: World) -> None:
    shop.stories(2)
    agent = shop.agent(SAYS + STORIES)
    done = shop.ralph("plan", "a shop", *agent)
    assert (done.code, shop.calls) == (64, [])
    assert "ralph run" in done.err and "--prd" in done.err
    assert shop.ralph("plan", "a shop", "--force", *agent).code == 0


@pytest.mark.long  # together they take ten seconds or more
def test_wrong_usage_ends_with_64(shop: World) -> None:
    assert shop.ralph("plan").code == 64
    assert shop.ralph("plan", "a shop", "--agent", "nobody").code == 64


@pytest.mark.parametrize(
    ("limit", "ending", "calls"),
    [
        (["--max-cost", "1"], "cost", 1),
        (["--max-cost", "2"], "cost", 2),
        (["--max-iterations", "2"], "iterations", 2),
        (["--max-runtime", "0.001"], "runtime", 0),
    ],
)
@pytest.mark.long  # together they take ten seconds or more
def test_limits_are_asked_before_each_session(shop: World, limit: list[str], ending: str, calls: int) -> None:
    agent = shop.agent(SAYS + COSTS + 'say("plan.complete", "nothing yet")')
    done = shop.ralph("plan", "a shop", *limit, *agent, "--json")
    document = json.loads(done.out)
    assert (done.code, document["code"], document["ending"], len(shop.calls)) == (2, 2, ending, calls), done.err


@pytest.mark.long  # together they take ten seconds or more
def test_consensus_and_planner_have_one_budget(shop: World) -> None:
    agent = shop.agent(SAYS + COSTS + STORIES + PLANS + AGREES)
    done = shop.ralph("plan", "a shop", "--consensus", "--max-cost", "3", *agent, "--json")
    assert (done.code, json.loads(done.out)["ending"], len(shop.calls)) == (2, "cost", 3), done.err
    more = shop.ralph("plan", "a shop", "--consensus", "--max-cost", "4", "--continue", *agent, "--json")
    assert (more.code, json.loads(more.out)["sessions"], len(shop.calls)) == (0, 4, 4), more.err
    assert "One table." in shop.prompt(4)
    costs = json.loads(shop.ralph("cost", "--json").out)
    assert (costs["runs"], costs["total"]["cost_usd"]) == (1, 4.0)


@pytest.mark.long  # together they take ten seconds or more
def test_ctrl_c_ends_with_130_and_is_gone_on_from(shop: World) -> None:
    waits = """
if not (here / "again").exists():
    write("prd.json", "{")
    (here / "waits").touch()
    time.sleep(600)
"""
    agent = shop.agent(SAYS + waits + STORIES)
    line = [*RALPH, "plan", "a shop", *agent, "--json"]
    running = subprocess.Popen(line, text=True, cwd=shop.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: (shop.aside / "waits").exists())
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (running.returncode, json.loads(out)["ending"]) == (130, "interrupted"), err
    (shop.aside / "again").touch()
    done = shop.ralph("plan", "a shop", "--continue", *agent, "--json")
    assert (done.code, len(shop.calls)) == (0, 2), done.err


@pytest.mark.long  # together they take ten seconds or more
def test_restart_replaces_the_process(shop: World) -> None:
    restarts = """
if call == 1:
    write("prd.json", "[]")
    (run_dir / "signal").write_text("restart")
    say("plan.complete", "")
    sys.exit()
"""
    done = cli("plan", "a shop", *shop.agent(SAYS + restarts + STORIES), "--json", repo=shop.repo)
    assert (done.code, len(shop.calls)) == (0, 2), done.err
    assert json.loads(done.out)["sessions"] == 1


@pytest.mark.long  # together they take ten seconds or more
def test_the_old_stories_are_not_taken_for_the_new_ones(shop: World) -> None:
    done = shop.ralph("plan", "a shop", *shop.agent(SAYS + STORIES))
    assert done.code == 0, done.err
    (shop.aside / "calls").unlink()
    idle = shop.agent(SAYS + 'say("plan.complete", "they are there")')
    done = shop.ralph("plan", "another shop", "--force", *idle, "--json")
    assert (done.code, json.loads(done.out)["ending"], len(shop.calls)) == (1, "stuck", 3), done.err


@pytest.mark.long  # together they take ten seconds or more
def test_the_model_of_the_command_line_reaches_the_planner(shop: World) -> None:
    notes = '(here / "model").write_text(os.environ["RALPH_MODEL"])\n'
    assert shop.ralph("plan", "a shop", "--model", "large", *shop.agent(SAYS + notes + STORIES)).code == 0
    assert (shop.aside / "model").read_text() == "large"
