"""A script is played step by step in fresh processes, the same every time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.agents.scripted import ScriptedAgent, load, script
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import AgentTurn, Hat, Session


@pytest.fixture
def plays(agent, tmp_path):
    def made(hats: dict, **options):
        player = ScriptedAgent(script({"hats": hats}), agent("unused", **options), tmp_path / "calls.json")

        def call(hat="builder", iteration=1, seconds=600.0, stopped=lambda: False) -> AgentTurn:
            return player.play(Session(Hat(hat), iteration, "prompt", str(tmp_path / "run"), "", seconds), stopped)

        return call

    return made


def test_a_step_writes_appends_deletes_runs_and_says_one_event(plays, tree):
    (tree / "old.py").write_text("old")
    step = {"write": {"src/deep/a.py": "it's $HOME `id`\n"}, "append": {"log": "one\n"}, "delete": ["old.py"],
            "run": ["echo $RALPH_HAT > ran"], "text": "Did it.",
            "event": {"topic": "build.complete", "payload": "done"}}  # fmt: skip  # one step
    given = plays({"builder": [step]})()
    assert (given.text, given.failure) == ('Did it.\n<event topic="build.complete">done</event>', "")
    assert (tree / "src/deep/a.py").read_text() == "it's $HOME `id`\n" and (tree / "log").read_text() == "one\n"
    assert (tree / "ran").read_text() == "builder\n" and not (tree / "old.py").exists()


def test_each_call_of_a_hat_is_its_next_step_and_the_last_one_stays(plays):
    call = plays({"a": [{"text": "1"}, {"text": "2"}], "b": [{"text": "other"}]})
    said = [call(hat, number).text for number, hat in enumerate("abaa", 1)]
    assert said == ["1", "other", "2", "2"]


def test_a_new_process_goes_on_counting_and_a_new_run_counts_anew(plays):
    steps = {"a": [{"text": "1"}, {"text": "2"}, {"text": "3"}]}
    assert [plays(steps)("a", number).text for number in (1, 2, 3)] == ["1", "2", "3"]
    assert plays(steps)("a", 1).text == "1"


def test_calls_are_counted_for_each_task_apart_and_outlive_the_homes(agent, tree, tmp_path):
    steps = script({"hats": {"*": [{"text": "1"}, {"text": "2"}]}})
    whole = ScriptedAgent(steps, agent("unused"), tmp_path / "run" / "calls.json")
    parts = [whole.apart(agent("unused"), task) for task in "ab"]

    def play_session(player: ScriptedAgent) -> str:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        return player.play(Session(Hat("builder"), 1, "prompt", str(tmp_path), "", 600.0), lambda: False).text

    assert [play_session(player) for player in (*parts, whole, parts[0], whole, parts[1])] == [
        "1",
        "1",
        "1",
        "2",
        "2",
        "2",
    ]


def test_no_call_is_counted_by_a_link_or_what_a_session_wrote_there(plays, tmp_path):
    call = plays({"a": [{"text": "1"}, {"text": "2"}]})
    counts, other = tmp_path / "calls.json", tmp_path / "other"
    counts.write_text("[")
    assert call("a").text == "1"
    counts.replace(other)
    counts.symlink_to(other)
    before = other.read_text()
    assert call("a").text == "1" and other.read_text() == before and not counts.is_symlink()


def test_a_star_is_for_every_hat_without_steps_and_without_one_the_turn_fails(plays):
    assert plays({"*": [{"text": "any"}]})("somebody").text == "any"
    assert plays({"a": [{}]})("b") == AgentTurn(failure="exit", detail="the script has no step for b")


@pytest.mark.parametrize(
    ("step", "failure"),
    [({"failure": "rate_limit"}, "rate_limit"), ({"failure": "server"}, "server"), ({"failure": "exit"}, "exit"),
     ({"exit": 3}, "exit"), ({"run": ["false"]}, "exit"), ({"failure": "timeout"}, "timeout")],
)  # fmt: skip  # one table
def test_failures_look_like_those_of_real_agents(plays, step, failure):
    given = plays({"builder": [step]})(seconds=0.5 if failure == "timeout" else 600)
    assert given.failure == failure
    assert given.retry_after == (1 if failure == "rate_limit" else 0)


def test_what_it_did_before_it_failed_stays(plays, tree):
    plays({"builder": [{"write": {"half.py": "x"}, "failure": "exit"}]})()
    assert (tree / "half.py").exists()


def test_it_tells_what_it_took_as_claude_does(plays):
    step = {"text": "ok", "usage": {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}}
    given = plays({"builder": [step]})()
    assert given.text == "ok"
    assert (given.usage.input_tokens, given.usage.output_tokens, given.usage.cost_usd) == (10, 2, 0.5)
    assert plays({"builder": [{"usage": {"input_tokens": 1}}]})().usage.cost_usd is None


def test_it_is_isolated_as_any_agent_is(plays, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret-value")
    given = plays({"builder": [{"run": ['test -z "$GITHUB_TOKEN"']}]})()
    assert given.failure == ""


def test_a_dangerous_command_is_refused_to_it_too(plays, tree):
    given = plays({"builder": [{"run": ["git push -f origin main"]}]})()
    assert given.failure == "exit" and "git push" in given.detail


def test_it_ends_when_it_is_asked_to(plays):
    given = plays({"builder": [{"delay": 600}]})(stopped=lambda: True)
    assert given.failure == "exit" and "on request" in given.detail


def test_scripts_are_read_from_toml_and_json(tmp_path: Path):
    toml, other = tmp_path / "play.toml", tmp_path / "play.json"
    toml.write_text('[[hats.a]]\nevent = "x.y"\n[[hats.a]]\ntext = "2"\n[hats."*"]\n')
    with pytest.raises(UserError, match="hats"):
        load(toml)
    toml.write_text('[[hats.a]]\nevent = "x.y"\n[[hats.a]]\ntext = "2"\n')
    other.write_text(json.dumps({"hats": {"a": [{"event": {"topic": "x.y"}}, {"text": "2"}]}}))
    assert load(toml) == load(other) and len(load(toml)["a"]) == 2


@pytest.mark.parametrize(
    ("value", "told", "hint"),
    [
        ({}, "hats", "docs/agents.md"),
        ({"hats": {}}, "hats", "docs/agents.md"),
        ({"hats": {"a": []}}, "hats.a", "docs/agents.md"),
        ([], "hats", "docs/agents.md"),
        ({"hats": {"a": [{"wrte": {}}]}}, "hats.a.0.wrte", "did you mean write?"),
        ({"hats": {"a": [{"write": {"x": 1}}]}}, "hats.a.0.write.x", "docs/agents.md"),
        ({"hats": {"a": [{"event": {"payload": "x"}}]}}, "hats.a.0.event.topic", "docs/agents.md"),
        ({"hats": {"a": [{"failure": "sad"}]}}, "hats.a.0.failure", "docs/agents.md"),
        ({"hats": {"a": [{"delay": -1}]}}, "hats.a.0.delay", "docs/agents.md"),
        ({"hats": {"a": [{"exit": 256}]}}, "hats.a.0.exit", "docs/agents.md"),
    ],
)
def test_a_mistake_in_a_script_names_its_place(value, told, hint):
    with pytest.raises(UserError) as caught:
        script(value, "play.json")
    assert caught.value.what.startswith(f"play.json: {told}: ") and hint in caught.value.next_step


def test_a_file_that_is_no_script_is_told(tmp_path: Path):
    (tmp_path / "x.toml").write_text("= 3")
    (tmp_path / "x.json").write_text("[" * 200_000)
    for name in ("x.toml", "x.json", "missing.json"):
        with pytest.raises(UserError, match="cannot be read as a script"):
            load(tmp_path / name)
