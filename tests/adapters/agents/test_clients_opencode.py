"""OpenCode: how it is called, and how its events are read. Samples are of the real client."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from ralph_mission.adapters.agents.clients import OPENCODE
from ralph_mission.adapters.agents.reading import Gave, turn
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import play, sample, seen


def settings(folder, hat=None, **options):
    play(OPENCODE, folder, hat=hat, **options)
    return json.loads(seen(folder)["env"]["OPENCODE_CONFIG_CONTENT"])


def test_it_reads_no_settings_of_the_repository_unless_somebody_trusts_it(tmp_path):
    play(OPENCODE, tmp_path)
    assert seen(tmp_path)["env"]["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1" and "--pure" in seen(tmp_path)["argv"]
    play(OPENCODE, tmp_path, trusted=True)
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in seen(tmp_path)["env"]


@pytest.mark.parametrize(
    ("hat", "edit", "bash"),
    [
        (Hat("builder"), {"*": "allow"}, "allow"),
        (Hat("reviewer", write_allowed=()), {"*": "deny"}, "allow"),
        (
            Hat("writer", write_allowed=("docs/**",), write_denied=("docs/api.md",), tools_denied=("Bash",)),
            {"*": "deny", "docs/**": "allow", "docs/api.md": "deny"},
            "deny",
        ),
    ],
)
def test_its_permissions_are_the_hats(tmp_path, hat, edit, bash):
    told = settings(tmp_path, hat)["permission"]
    assert (told["edit"], told["bash"]) == (edit, bash) and list(told["edit"]) == list(edit)
    assert told["external_directory"] == told["webfetch"] == "deny"


def test_a_server_of_ones_own_is_its_only_provider(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    told = settings(tmp_path, model="qwen")
    assert (
        told["enabled_providers"] == ["ralph"]
        and told["provider"]["ralph"]["options"]["baseURL"] == "http://127.0.0.1:1/v1"
    )
    assert seen(tmp_path)["argv"][-2:] == ["-m", "ralph/qwen"]
    assert seen(tmp_path)["env"]["OPENCODE_DISABLE_MODELS_FETCH"] == "1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert "provider" not in settings(tmp_path, model="anthropic/claude-sonnet-5")
    assert seen(tmp_path)["argv"][-2:] == ["-m", "anthropic/claude-sonnet-5"]


def test_a_key_that_nobody_knows_is_told_by_its_status():
    assert turn(sample("opencode", "401"), datetime(2026, 1, 1), OPENCODE.read).failure == "auth"


def test_cost_and_cached_tokens_of_every_step_are_counted():
    tokens = {"input": 10, "output": 2, "reasoning": 1, "cache": {"read": 5, "write": 4}}
    step = json.dumps({"type": "step_finish", "part": {"cost": 0.25, "tokens": tokens}})
    usage = OPENCODE.read(Gave(f"{step}\n{step}".encode())).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.turns) == (38, 6, 0.5, 2)


def test_a_price_that_it_does_not_know_is_not_told_as_nothing():
    assert OPENCODE.read(sample("opencode", "ok")).usage.cost_usd is None


def test_what_it_called_is_told():
    assert OPENCODE.read(sample("opencode", "ok")).calls == ("bash: echo 1 > b.txt",)
