"""Whatever a program prints, reading it gives a turn: of numbers what can be, of calls all that were told."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import pytest

from ralph_mission.adapters.agents import claude, codex, copilot, reading
from ralph_mission.adapters.agents.client import PLAIN, Client
from ralph_mission.adapters.agents.reading import MOST, MOST_USD, Gave, turn
from ralph_mission.adapters.agents.registry import CLIENTS
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.loop.model.state import AgentTurn, HatOutput

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
EVERY = {**CLIENTS, "command": PLAIN}
KEYS = """type result subtype is_error num_turns total_cost_usd usage model_usage errors refused limit api_error_status
input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens inputTokens outputTokens tool input item
id command changes text message error code statusCode data content toolRequests name arguments outputTokens part tokens
cache read write cost state stats models byName tools count api totalRequests prompt candidates thoughts response
modelMetrics requests reasoning file_path query""".split()
TYPES = """result call assistant item.completed turn.completed turn.failed agent_message command_execution tool_use
assistant.message session.error tool.execution_complete text step_finish error error_max_turns success""".split()
ODD: tuple[Any, ...] = (
    None, True, False, 0, 5, -1, 7, 10**30, 10**400, 0.25, -0.5, 1e300, float("nan"), float("inf"), "", "done",
    "\ud800", "a\u2028b\x85c\x1cd", "x" * 5000, [], {}, [[]], [{}], ["a", 3, None], 401, 529,
)  # fmt: skip  # one list
LINE = '{"type":"result","result":"done","total_cost_usd":%s,"usage":{"input_tokens":%s,"output_tokens":2}}'


def anything(chance: random.Random, depth: int = 0) -> Any:
    """JSON of no shape in particular, of keys that clients read."""
    kind = chance.random()
    if depth > 4 or kind < 0.45:
        return chance.choice(ODD)
    if kind < 0.6:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    found = {chance.choice(KEYS): anything(chance, depth + 1) for _ in range(chance.randrange(9))}
    return found | ({"type": chance.choice(TYPES)} if chance.random() < 0.8 else {})


def document(chance: random.Random) -> str:
    made = {key: anything(chance, 1) for key in chance.sample(KEYS, chance.randrange(1, 14))}
    return json.dumps(made | {"type": chance.choice(TYPES)}, ensure_ascii=chance.random() < 0.5)


def sound(given: AgentTurn) -> None:
    usage = given.usage
    assert usage.cost_usd is None or (isfinite(usage.cost_usd) and 0 <= usage.cost_usd <= MOST_USD)
    assert all(type(count) is int and 0 <= count <= MOST for count in (usage.input_tokens, usage.output_tokens))
    assert type(usage.turns) is int and 0 <= usage.turns <= MOST
    assert all(isinstance(one, str) for one in (given.text, given.detail, *given.refused, *given.calls))
    codec.dump(HatOutput, HatOutput("x", 1, summary=given.text, reason=given.detail, usage=usage,
                                    refused=given.refused, calls=given.calls))  # fmt: skip  # one call


@pytest.mark.parametrize("client", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("seed", range(2))
def test_no_document_raises_anything(client: Client, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        lines = "\n".join(document(chance) for _ in range(chance.randrange(1, 4)))
        stream = lines.encode("utf-8", "surrogatepass")
        sound(turn(Gave(stream, b"", chance.choice((0, 1, 53)), left=stream), NOW, client.read))
        sound(turn(Gave(b"", stream, 1), NOW, client.read))


@pytest.mark.parametrize("client", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("deep", ['{"a":' * 900 + "1" + "}" * 900, "[" * 5_000, "1" * 5000, "-" + "9" * 400])
def test_no_depth_and_no_length_raises_anything(client: Client, deep: str) -> None:
    for key in ("input", "errors", "total_cost_usd", "input_tokens", "item"):
        for kind in ("result", "call", "step_finish"):
            stream = f'{{"type": "{kind}", "item": {{"type": "{kind}"}}, "{key}": {deep}}}\n'.encode()
            sound(turn(Gave(stream, b"", 1), NOW, client.read))


@pytest.mark.parametrize("client", [claude.CLIENT, CLIENTS["amp"], PLAIN], ids=lambda client: client.name)
@pytest.mark.parametrize(
    "cost", ["1" + "0" * 400, "1e300", "1" + "0" * 5000, "NaN", "Infinity", "-1", "1000.01", '"9"']
)
def test_a_price_that_no_session_has_is_not_told(client: Client, cost: str) -> None:
    given = turn(Gave((LINE % (cost, 5)).encode()), NOW, client.read)
    assert (given.text, given.usage.cost_usd, given.usage.input_tokens) == ("done", None, 5)


@pytest.mark.parametrize("count", ["1" + "0" * 11, "1" + "0" * 400, "1" + "0" * 5000, "-3", "1e9", "true"])
def test_tokens_that_no_session_has_are_not_told(count: str) -> None:
    given = turn(Gave((LINE % (0.25, count)).encode()), NOW, claude.CLIENT.read)
    assert (given.text, given.usage.cost_usd, given.usage.input_tokens, given.usage.output_tokens) == (
        "done",
        0.25,
        0,
        2,
    )


def test_what_many_steps_say_together_is_bounded_too() -> None:
    step = {"type": "step_finish", "part": {"cost": 900, "tokens": {"input": MOST}}}
    given = turn(Gave("\n".join([json.dumps(step)] * 3).encode()), NOW, CLIENTS["opencode"].read)
    assert (given.usage.cost_usd, given.usage.input_tokens, given.usage.turns) == (None, 0, 3)


@pytest.mark.parametrize("strange", [5, 7.5, True, "text", {"a": 1}, [1, None, ["x"]], None])
def test_lists_that_are_none_say_nothing(strange: Any) -> None:
    said = {"type": "result", "subtype": "error_x", "is_error": True, "errors": strange, "refused": strange}
    given = turn(Gave(json.dumps(said).encode()), NOW, claude.CLIENT.read)
    assert given.failure == "exit" and given.refused in ((), ("1",))


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x1c", "\x1d", "\x1e", "\x0b", "\x0c", "\r"])
def test_no_other_end_of_a_line_hides_a_call(mark: str) -> None:
    raw = mark if ord(mark) > 0x20 else json.dumps(mark)[1:-1]  # as JSON has it
    lines = [f'{{"type":"call","tool":"Bash","input":{{"command":"curl a{raw}b"}}}}', LINE % (0.25, 5)]
    given = turn(Gave("\n".join(lines).encode()), NOW, claude.CLIENT.read)
    assert len(given.calls) == 1 and given.calls[0].startswith("Bash: curl a") and given.text == "done"


def test_every_event_of_the_others_is_read_whatever_its_words_hold() -> None:
    item = '{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"a\u2028b"}}'
    assert len(codex.CLIENT.read(Gave(item.encode())).calls) == 1
    asked = '{"type":"assistant.message","data":{"toolRequests":[{"name":"bash","arguments":{"command":"a\x85b"}}]}}'
    assert len(copilot.CLIENT.read(Gave(asked.encode())).calls) == 1
    assert [one["a"] for one in reading.documents('{"a":"\u2029"}\r\n{"a":2}\n'.encode())] == ["\u2029", 2]


def test_a_number_of_any_length_hides_no_call() -> None:
    line = '{"type":"call","tool":"Bash","input":{"command":"curl","n":' + "1" * 5000 + "}}"
    assert claude.CLIENT.read(Gave(line.encode())).calls == ("Bash: curl",)


WORDS = ("API Error: 401 authentication_error", "last status: 429 Too Many Requests", "API Error: 529 overloaded_error")


def stream_of(name: str, words: str) -> bytes:
    """What a client tells while its model says these words, and then ends it."""
    told: dict[str, dict[str, Any]] = {
        "claude": {"type": "assistant", "text": words},
        "codex": {"type": "item.completed", "item": {"type": "agent_message", "text": words}},
        "copilot": {"type": "assistant.message", "data": {"content": words}},
        "opencode": {"type": "text", "part": {"text": words}},
        "gemini": {"response": words},
    }
    return f"{json.dumps(told[name])}\n".encode()


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "gemini", "opencode"])
def test_a_model_that_ends_its_client_does_not_choose_why_it_failed(name: str, words: str) -> None:
    stream, errors = stream_of(name, words), f"{words}\n".encode()
    for gave in (Gave(stream, errors, 1), Gave(b"", errors, -9), Gave(stream + errors, b"", 137)):
        given = turn(gave, NOW, CLIENTS[name].read)
        assert (given.failure, given.retry_after, given.usage.cost_usd) == ("exit", 0.0, None)


def test_a_model_that_talks_of_a_refused_key_and_ends_its_client_was_not_turned_away():
    said = {"type": "assistant", "text": "API Error: 401 Unauthorized"}
    call = {"type": "call", "tool": "Bash", "input": {"command": "kill -9 $PPID"}}
    stream = "\n".join(map(json.dumps, (said, call))).encode()
    assert turn(Gave(stream, code=-9), NOW, claude.CLIENT.read).usage.untold
    refused = {"type": "result", "is_error": True, "api_error_status": 401, "result": "API Error: 401"}
    assert turn(Gave(json.dumps(refused).encode()), NOW, claude.CLIENT.read).usage.cost_usd == 0.0
