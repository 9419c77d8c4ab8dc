"""GitHub Copilot CLI: how it is called, and how its events are read. Samples are of the real client."""

from __future__ import annotations

from datetime import datetime

import pytest

from ralph_mission.adapters.agents.clients import COPILOT, COPILOT_TALLY
from ralph_mission.adapters.agents.reading import turn
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import called, play, sample, seen

NOW = datetime(2026, 1, 1)


def test_it_obeys_nothing_of_the_repository_unless_somebody_trusts_it():
    assert "--no-custom-instructions" in called(COPILOT) and "--trust-folder" not in called(COPILOT)
    assert "--trust-folder" in called(COPILOT, trusted=True)


def test_keys_are_kept_from_what_it_runs():
    assert any(word.startswith("--secret-env-vars=COPILOT_PROVIDER_API_KEY") for word in called(COPILOT))


@pytest.mark.parametrize(
    ("hat", "denied"),
    [
        (Hat("builder"), []),
        (Hat("reviewer", write_allowed=()), ["--deny-tool=write"]),
        (Hat("x", tools_denied=("Bash", "Edit", "Write")), ["--deny-tool=write", "--deny-tool=shell"]),
    ],
)
def test_denied_tools_are_denied(hat, denied):
    assert [word for word in called(COPILOT, hat) if word.startswith("--deny")] == denied


def test_with_a_model_of_ones_own_it_talks_to_nobody_else(tmp_path, monkeypatch):
    play(COPILOT, tmp_path, model="gpt-5.4")
    assert "COPILOT_OFFLINE" not in seen(tmp_path)["env"] and seen(tmp_path)["env"]["COPILOT_MODEL"] == "gpt-5.4"
    monkeypatch.setenv("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1")
    play(COPILOT, tmp_path)
    assert seen(tmp_path)["env"]["COPILOT_OFFLINE"] == "true"


@pytest.mark.parametrize(("status", "failure"), [("401", "auth"), ("529", "server")])
def test_what_the_provider_says_names_the_failure(status, failure):
    assert turn(sample("copilot", status), NOW, COPILOT.read).failure == failure


def test_what_it_denied_itself_is_told():
    assert [why[:17] for why in COPILOT.read(sample("copilot", "ok")).refused] == ["Permission denied"]


def test_a_tally_of_an_earlier_session_is_not_this_ones(tmp_path):
    wrote = f"open(os.path.join(os.environ['HOME'], '{COPILOT_TALLY}'), 'w').write("
    tally = '{"modelMetrics": {"m": {"usage": {"inputTokens": 5, "outputTokens": 2}}}}'
    assert play(COPILOT, tmp_path, f"{wrote}{tally!r})").usage.input_tokens == 5
    assert play(COPILOT, tmp_path).usage.input_tokens == 0


def test_a_tally_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text('{"modelMetrics": {"m": {"usage": {"inputTokens": 5}}}}')
    script = f"os.symlink({str(tmp_path / 'secret')!r}, os.path.join(os.environ['HOME'], '{COPILOT_TALLY}'))"
    assert play(COPILOT, tmp_path, script).usage.input_tokens == 0


def test_what_it_called_is_told():
    assert COPILOT.read(sample("copilot", "ok")).calls == ("bash: echo 1 > b.txt", "view: /etc/passwd")
