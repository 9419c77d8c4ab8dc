"""Amp, by a stub binary alone: it needs a server of its own, so that no real one was ever run here."""

from __future__ import annotations

import json

from ralph_mission.adapters.agents.clients import AMP, AMP_SETTINGS
from ralph_mission.loop.model.state import Hat
from tests.adapters.agents.clients import play, seen

ANSWER = {"type": "assistant", "message": {"usage": {"input_tokens": 10, "output_tokens": 2}}}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "All done.", "num_turns": 2}


def printing(*messages):
    return "".join(f"print({json.dumps(message)!r})\n" for message in messages)


def test_the_stub_is_called_as_the_manual_says(tmp_path):
    play(AMP, tmp_path, hat=Hat("reviewer", tools_denied=("Bash", "Edit")))
    told = seen(tmp_path)
    assert told["argv"][:2] == ["--execute", "--stream-json"]
    assert told["argv"][-1] == str(tmp_path / "home" / AMP_SETTINGS)
    assert json.loads(told["files"][AMP_SETTINGS])["amp.tools.disable"] == ["Bash", "edit_file"]


def test_the_result_of_the_stub_is_read(tmp_path):
    turn = play(AMP, tmp_path, printing(ANSWER, ANSWER, RESULT))
    assert (turn.text, turn.failure) == ("All done.", "")
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.turns) == (20, 4, 2)
    assert turn.usage.sessions == 1 and turn.usage.cost_usd is None


def test_an_error_of_the_stub_is_a_failure(tmp_path):
    wrong = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "429 rate_limit_error"}
    assert play(AMP, tmp_path, printing(wrong)).failure == "rate_limit"


def test_what_the_stub_called_is_told(tmp_path):
    call = {"type": "tool_use", "name": "Bash", "input": {"cmd": "ls"}}
    asked = {"type": "assistant", "message": {"content": [{"type": "text", "text": "x"}, call]}}
    assert play(AMP, tmp_path, printing(asked, RESULT)).calls == ("Bash: ls",)
