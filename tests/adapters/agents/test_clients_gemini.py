"""Gemini CLI: how it is called, and how its documents are read. Samples are of the real client."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from ralph_mission.adapters.agents.clients import GEMINI, GEMINI_SETTINGS
from ralph_mission.adapters.agents.reading import Gave, turn
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import play, sample, seen

NOW = datetime(2026, 1, 1)


def settings(folder, hat=None, **options):
    play(GEMINI, folder, hat=hat, **options)
    return json.loads(seen(folder)["files"][GEMINI_SETTINGS])


def test_its_turns_are_limited_and_nothing_hooks_into_it(tmp_path):
    told = settings(tmp_path, turns=7, model="gemini-2.5-pro")
    assert told["model"]["maxSessionTurns"] == 7 and told["hooksConfig"] == {"enabled": False}
    assert told["advanced"]["ignoreLocalEnv"] is True
    assert seen(tmp_path)["argv"][-2:] == ["-m", "gemini-2.5-pro"]


@pytest.mark.attack(60)
def test_its_address_is_never_left_to_a_file_of_the_repository(tmp_path, monkeypatch):
    play(GEMINI, tmp_path)
    assert seen(tmp_path)["env"]["GOOGLE_GEMINI_BASE_URL"] == "https://generativelanguage.googleapis.com"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    play(GEMINI, tmp_path)
    assert seen(tmp_path)["env"]["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("hat", "denied"),
    [
        (Hat("builder"), set()),
        (Hat("reviewer", write_allowed=()), {"write_file", "replace"}),
        (Hat("planner", tools_denied=("Bash", "Edit", "Write")), {"write_file", "replace", "run_shell_command"}),
    ],
)
def test_denied_tools_are_not_offered(tmp_path, hat, denied):
    assert set(settings(tmp_path, hat)["tools"]["exclude"]) == {"web_fetch", "google_web_search"} | denied


@pytest.mark.parametrize(("status", "failure"), [("401", "auth"), ("429", "rate_limit"), ("529", "server")])
def test_what_the_provider_says_names_the_failure(status, failure):
    assert turn(sample("gemini", status), NOW, GEMINI.read).failure == failure


def test_too_many_turns_are_told_by_the_exit_code():
    given = turn(Gave(b"", b"", 53), NOW, GEMINI.read)
    assert given.failure == "exit" and "within its turns" in given.detail


def test_tokens_of_every_model_and_of_thoughts_are_counted():
    models = {"a": {"tokens": {"prompt": 5, "candidates": 2, "thoughts": 3}}, "b": {"tokens": {"prompt": 1}}}
    said = GEMINI.read(Gave(json.dumps({"response": "x", "stats": {"models": models}}).encode()))
    assert (said.usage.input_tokens, said.usage.output_tokens) == (6, 5)


def test_which_tools_it_called_is_told():
    assert GEMINI.read(sample("gemini", "ok")).calls == ("write_file",)
