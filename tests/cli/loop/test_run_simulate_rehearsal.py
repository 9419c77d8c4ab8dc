"""The built-in scripts play the three stories to their end, each with its fault on the way, as real processes."""

from __future__ import annotations

import json

import pytest

from ralph_mission.adapters.storage.loop import state
from ralph_mission.app import teams
from ralph_mission.app.run import build_run
from ralph_mission.app.run_options import RunOptions
from ralph_mission.cli.loop import run
from tests.helpers import git, make_repo
from tests.loop.fakes import FakeProgress

HATS = {
    "ralplan": ["planner", "critic", "architect"] * 2,
    "ultrawork": ["planner", "planner", "builder", "builder", "reviewer", "fixer", "reviewer"],
    "team": ["lead", "author", "examiner", "lead", "tester", "author", "tester"],
}


@pytest.mark.parametrize("name", teams.TEAMS)
def test_a_rehearsal_shows_its_fault_and_converges(name, tmp_path):
    repo = make_repo(tmp_path / "repo", run.SEED)
    script = tmp_path / "script.json"
    script.write_text(json.dumps(run.team_script(name)))
    made = build_run(RunOptions(repo, task=run.OBJECTIVE, agent="scripted", command=str(script)), FakeProgress())
    account = teams.play(made, name)
    assert (account.ending.reason, [output.hat for output in account.outputs]) == ("complete", HATS[name])
    if name != "ralplan":
        assert (repo / "greeting.py").read_text() == run.GREETS
        assert (repo / "tests/test_greeting.py").read_text() == run.TESTS
    else:
        assert (repo / ".ralph/plan.md").read_text() == run.REVISED and git(repo, "status", "--porcelain") == ""


def test_every_story_has_a_rehearsal():
    assert set(run.SCRIPTS) == set(teams.TEAMS) == set(HATS)


def test_a_plan_that_was_agreed_on_is_what_the_planner_of_stories_is_told(tmp_path):
    repo = make_repo(tmp_path / "repo", run.SEED)
    script = tmp_path / "script.json"
    script.write_text(json.dumps(run.team_script("ralplan")))
    asked = RunOptions(repo, task=run.OBJECTIVE, agent="scripted", command=str(script))
    _, account = teams.agree_on_plan(asked, FakeProgress())
    left = state.load(repo)
    assert account.ending.reason == "complete" and left is not None
    assert (left.objective, left.usage.sessions) == (run.OBJECTIVE, len(account.outputs))
    assert run.REVISED in left.pending.payload


@pytest.mark.long  # five seconds
def test_without_agreement_no_planner_of_stories_is_told_anything(tmp_path):
    repo = make_repo(tmp_path / "repo", run.SEED)
    script = tmp_path / "script.json"
    never = run.team_script("ralplan")
    never["hats"]["critic"] = never["hats"]["critic"][:1]
    script.write_text(json.dumps(never))
    asked = RunOptions(repo, task=run.OBJECTIVE, agent="scripted", command=str(script))
    _, account = teams.agree_on_plan(asked, FakeProgress())
    left = state.load(repo)
    assert (account.ending.reason, account.ending.code) == ("rounds", 2)
    assert left is not None and "plan.approved" not in left.pending.topic
