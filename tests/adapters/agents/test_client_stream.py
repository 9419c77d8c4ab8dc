"""What an agent says and does, told while it does it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.client import LONGEST_LINE, AgentStream
from ralph_mission.adapters.agents.clients import CLIENTS
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.model.state import AgentTurn
from tests.adapters.agents.clients import sample

NOW, NOTHING = datetime(2026, 5, 4, tzinfo=UTC), AgentTurn()


def feed_stream(stream: bytes, turn: AgentTurn = NOTHING, size: int = 7) -> list[RunEvent]:
    """What is told of a stream that comes in pieces of `size` bytes."""
    found: list[RunEvent] = []
    fed = AgentStream(found.append)
    for start in range(0, len(stream), size):
        fed.feed(stream[start : start + size])
    fed.end(turn)
    return found


@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "opencode", "gemini"])
def test_what_a_real_client_printed_is_told_as_its_turn_has_it(name: str) -> None:
    gave = sample(name, "ok")
    turn = reading.turn(gave, NOW, CLIENTS[name].read)
    found = feed_stream(gave.stdout if CLIENTS[name].streams else b"", turn)
    calls = [event.text for event in found if event.kind == "tool"]
    assert len(calls) == len(turn.calls)
    assert [event.text for event in found if event.kind == "text"][-1].endswith(turn.text)
    if name in ("claude", "codex", "opencode"):
        assert sum(event.tokens for event in found) == turn.usage.input_tokens + turn.usage.output_tokens
    if name == "claude":
        assert sum(event.usd or 0 for event in found) == turn.usage.cost_usd


def test_claude_codes_own_stream_counts_an_answer_in_parts_once() -> None:
    usage = {"input_tokens": 100, "output_tokens": 5}
    words = {"type": "text", "text": "I run it."}
    call = {"type": "tool_use", "name": "Bash", "input": {"command": "cat <<X\nsecret\nX"}}
    parts = [{"type": "assistant", "message": {"id": "m1", "content": [one], "usage": usage}} for one in (words, call)]
    end = {"type": "result", "total_cost_usd": 0.5, "usage": {"input_tokens": 100, "output_tokens": 50}}
    found = feed_stream(b"".join(json.dumps(one).encode() + b"\n" for one in (*parts, end)))
    assert [(event.kind, event.text, event.tokens, event.usd) for event in found] == [
        ("text", "I run it.", 0, None),
        ("usage", "", 105, None),
        ("tool", "Bash: cat <<X", 0, None),
        ("usage", "", 0, 0.5),
    ]


def test_words_of_any_program_are_told_line_by_line() -> None:
    found = feed_stream(b'first\n\x1b[31mred\n{"type": "noise"}\n\nlast')
    assert [event.text for event in found] == ["first", "red", "last"]


def test_a_flood_of_lines_is_told_in_few_texts_without_losing_one() -> None:
    found = feed_stream(b"line\n" * 100_000, size=65_536)
    assert len(found) < 200
    assert sum(event.text.split().count("line") for event in found) == 100_000


def test_a_line_that_never_ends_takes_no_room() -> None:
    found = feed_stream(b"x" * (2 * LONGEST_LINE) + b"\nnext\n", size=100_000)
    assert [event.text for event in found] == ["next"]
