"""`ralph doctor`: the thinker is ready, needs no model, or is broken with the mend."""

from __future__ import annotations

import pytest

from ralph_mission.cli.doctor import sources
from ralph_mission.extras import install_command
from tests.adapters.thinkers.test_models import serving
from tests.cli.doctor_place import ask_sources
from tests.fakes.model.server import KEY, ScriptedModel
from tests.helpers import cli_here, make_repo, nobody

CONFIG = "thinker: {kind: llm, model: 'anthropic:scripted'}\n"


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """The provider's client is imported within the doctor's seconds: a busy machine takes longer than a person."""
    monkeypatch.setattr(sources, "MODEL_PATIENCE", 300.0)


def checks(repo, **env):
    """The doctor's lines for the thinker, by name."""
    told = ask_sources(repo, env=env).json["checks"]
    return [(line["status"], line["found"], line["hint"]) for line in told if line["name"] == "thinker"]


def repository(path, config=CONFIG):
    return make_repo(path / "repo", {"ralph.yml": config})


def test_rules_need_nothing(tmp_path):
    assert checks(repository(tmp_path, "")) == [("ok", "rules, which need no model", "")]


def test_without_a_key_the_variable_is_named(tmp_path):
    first, _ = checks(repository(tmp_path))
    assert first == ("wrong", "broken: ANTHROPIC_API_KEY is not set", "set ANTHROPIC_API_KEY in the environment")


def test_a_model_that_can_be_asked_is_ready_and_a_price_that_nobody_knows_is_told(tmp_path):
    with ScriptedModel([]) as model:
        ready, price = checks(repository(tmp_path), ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=model.url)
    assert ready == ("ok", "ready: anthropic:scripted", "")
    assert price[:2] == ("note", "no price is known for anthropic:scripted: a careful one is assumed")
    assert model.turns == []


def test_with_its_price_written_down_there_is_nothing_to_tell(tmp_path):
    priced = f"{CONFIG}cost: {{prices: {{scripted: {{input: 1, output: 2}}}}}}\n"
    with ScriptedModel([]) as model:
        found = checks(repository(tmp_path, priced), ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=model.url)
    assert [status for status, _, _ in found] == ["ok"]


def test_when_nobody_is_there_the_network_is_named(tmp_path):
    with nobody() as url:
        first, _ = checks(repository(tmp_path), ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=url)
    assert first[:2] == ("wrong", "broken: its provider cannot be reached")
    assert first[2].startswith("look at the network")


@pytest.mark.parametrize(("status", "body"), [(404, b"{}"), (200, b"<html>")], ids=["not there", "a page"])
def test_an_address_where_something_else_listens_is_broken(tmp_path, status, body):
    with serving(status, {}, body) as (url, _):
        first, _ = checks(repository(tmp_path), ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=url)
    assert (first[0], first[2]) == ("wrong", "check its address in the environment")


@pytest.mark.parametrize("missing", ["pydantic_ai", "anthropic"])
def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch, missing):
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == missing else object())
    first, _ = checks(repository(tmp_path), ANTHROPIC_API_KEY=KEY)
    assert first[0] == "wrong"
    assert first[2] == install_command("llm")


@pytest.mark.parametrize(
    "section", ["{kind: llm}", "{kind: llm, model: 'mystery:x'}", "{kind: llm, model: 'anthropic:x', usd: 3}"]
)
def test_what_cannot_be_meant_is_told_with_its_place(tmp_path, section):
    done = cli_here("cycle", repo=repository(tmp_path, f"thinker: {section}\n"))
    assert done.code == 2
    assert "thinker" in done.err
    assert "Traceback" not in done.err
