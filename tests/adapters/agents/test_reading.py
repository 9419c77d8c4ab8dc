"""An agent's output is read for what it says; only a failed turn is read for what a provider says."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import pytest

from ralph_mission.adapters.agents import claude, clients, codex, reading
from ralph_mission.adapters.agents.client import PLAIN, Client
from ralph_mission.adapters.agents.clients import CLIENTS
from ralph_mission.adapters.agents.reading import FAULTS, MOST, MOST_USD, AgentReply, Gave, describe_call, turn
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.loop.model.state import AgentTurn, HatOutput, SessionUsage

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 5, "num_turns": 3, "session_id": "x",
    "result": "It is done.\n<event topic=\"build.complete\">ok</event>", "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000,
              "output_tokens": 40},
}  # fmt: skip  # one document


def read(stdout: str | dict, stderr: str = "", code: int = 0, **how) -> AgentTurn:
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    return turn(Gave(text.encode(), stderr.encode(), code, **how), NOW)


def test_plain_text_is_the_message():
    given = read("Working\nDone.\n")
    assert (given.text, given.failure, given.usage) == ("Working\nDone.", "", SessionUsage(1))


def test_a_result_document_gives_message_tokens_and_cost():
    given = read(RESULT)
    assert given.text.startswith("It is done.") and given.failure == ""
    assert given.usage == SessionUsage(1, 3210, 40, 0.25)


@pytest.mark.parametrize("before", ["", '{"type":"system","subtype":"init"}\n{"type":"assistant"}\n', "some words\n"])
def test_the_document_may_be_the_last_line(before):
    given = read(before + json.dumps(RESULT))
    assert given.text == RESULT["result"] and given.usage.cost_usd == 0.25


def test_the_document_may_end_a_list():
    assert read(json.dumps([{"type": "system"}, RESULT])).text == RESULT["result"]


def test_a_last_line_of_figures_leaves_the_words_before_it():
    given = read('I did it.\n{"usage": {"input_tokens": 5, "output_tokens": 6}}')
    assert (given.text, given.usage) == ("I did it.", SessionUsage(1, 5, 6))


@pytest.mark.parametrize("text", ['{"a": 1}', "{not json", "[]", '["x"]', "[" * 100_000, '{"issues": []}'])
def test_other_json_is_ordinary_text(text):
    assert (read(text).text, read(text).failure) == (text, "")


@pytest.mark.parametrize("cost", [True, "0.1", -1, None, float("inf"), float("nan")])
def test_a_cost_that_is_no_amount_is_not_known(cost):
    assert read(RESULT | {"total_cost_usd": cost}).usage.cost_usd is None


@pytest.mark.parametrize("count", [True, "5", -1, None, 1.5])
def test_tokens_that_are_no_number_count_as_none(count):
    assert read(RESULT | {"usage": {"input_tokens": count}}).usage.input_tokens == 0


def test_an_agent_may_write_about_rate_limits_as_much_as_it_likes():
    words = "I added the rate limit: HTTP 429 Too Many Requests, rate_limit_error, usage limit reached|1753088400."
    for stdout in (words, json.dumps(RESULT | {"result": words})):
        given = read(stdout, stderr="warning: API Error: 429, retried")
        assert (given.failure, given.retry_after, given.text) == ("", 0.0, words)


def test_a_timeout_is_never_taken_for_a_rate_limit():
    given = read(
        "API Error: 429 rate_limit_error Retry-After: 99", "429 Too Many Requests", 124, timed_out=True, seconds=2700
    )
    assert (given.failure, given.retry_after, given.detail) == ("timeout", 0.0, "not done after 2700 s")


def test_what_we_ended_is_not_a_providers_fault():
    assert read("429 Too Many Requests", code=124, stopped=True).failure == "exit"
    assert read("429 Too Many Requests", code=124, truncated=True).detail == "ended: too much output"


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("API Error: 400 due to tool use concurrency issues. Run /rewind to recover the conversation.", "server"),
        ('API Error (529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})', "server"),
        ("API Error: 500 Internal server error", "server"),
        ("unexpected status 503 Service Unavailable", "server"),
        ("stream disconnected before completion", "server"),
        ("API Error: 429 rate_limit_error", "rate_limit"),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: x", "rate_limit"),
        ("Claude AI usage limit reached|1772445600", "rate_limit"),
        ("5-hour limit reached ∙ resets 3pm", "rate_limit"),
        ("You've hit your limit · resets 2am (Europe/Berlin)", "rate_limit"),
        ("You've hit your session limit · resets 10:30pm (Europe/Berlin)", "rate_limit"),
        ("You've hit your usage limit. Try again in 3 hours.", "rate_limit"),
        ("Rate limit reached for gpt-x in organization org on tokens per min", "rate_limit"),
        ("This request would exceed your account's rate limit. Please try again later.", "rate_limit"),
        ("429 RESOURCE_EXHAUSTED: Quota exceeded", "rate_limit"),
        ("Error: 400 invalid_request_error: prompt is too long", "exit"),
        ("API Error: 401 authentication_error: invalid x-api-key", "auth"),
        ("ran 429 tests, 500 lines of code, 3 failed", "exit"),
        ("FAILED tests/test_limits.py::test_rate_limit_exceeded_is_told", "exit"),
        ("Request timed out.", "exit"),
        ("", "exit"),
    ],
)
def test_the_last_words_of_a_failed_turn_name_its_failure(said, failure):
    assert read("", said, 1).failure == failure
    assert read(said, "", 1).failure == failure


def test_every_row_of_the_table_says_where_it_is_from():
    assert all(source for _, _, source in FAULTS)


def test_words_far_before_the_end_are_no_reason():
    long_ago = "API Error: 429 rate_limit_error\n" + "then it went on\n" * 60
    assert read(long_ago, long_ago + "Segmentation fault", 139).failure == "exit"


def test_the_providers_word_on_when_is_kept():
    assert read("", "API Error: 429. Retry-After: 90", 1).retry_after == 90
    assert read("", "API Error: 529 overloaded_error, retry-after: 12", 1).retry_after == 12


@pytest.mark.parametrize(
    ("document", "failure", "told"),
    [
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, "rate_limit", "slow down"),
        ({"error": {"code": 529, "type": "overloaded_error", "message": "Overloaded"}}, "server", "Overloaded"),
        (RESULT | {"is_error": True, "result": "usage limit reached|1772445600"}, "rate_limit", "usage limit"),
        (RESULT | {"is_error": True, "result": "API Error: 400 due to tool use concurrency issues"}, "server", "400"),
        (RESULT | {"subtype": "error_max_turns", "result": None}, "exit", "error_max_turns"),
        (RESULT | {"subtype": "error_during_execution"}, "exit", "error_during_execution"),
    ],
)  # fmt: skip  # one table
def test_an_error_that_the_output_itself_reports_fails_the_turn_with_exit_code_0(document, failure, told):
    given = read(document)
    assert given.failure == failure and told in given.detail


def test_a_failed_turn_still_tells_what_it_took():
    assert read(RESULT | {"is_error": True, "result": "no"}, code=1).usage.cost_usd == 0.25


def test_the_reason_is_short_and_plain():
    given = read("", "\x1b[31mfirst\x1b[0m\n" + "x" * 5000 + "\nlast\n", 3)
    assert given.detail.endswith("x (exit code 3)\nlast")
    assert len(given.detail) < 700 and "\x1b" not in given.detail


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_is_not_there_is_missing(code):
    assert read("", "sh: 1: exec: no-such-agent: not found", code).failure == "missing"
    assert read("words", "helper: not found", code).failure == "exit"


def test_a_session_that_was_turned_away_cost_nothing_and_a_silent_one_is_unknown() -> None:
    refused = turn(Gave(b"", b"API Error: 429", 1), NOW)
    assert (refused.failure, refused.usage.cost_usd) == ("rate_limit", 0.0)
    assert turn(Gave(b"did it"), NOW).usage.untold == 1


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("Bash", {"command": "cat /proc/1/environ", "description": "look"}, "Bash: cat /proc/1/environ"),
        ("Write", {"content": "x" * 9000, "file_path": "/etc/evil"}, "Write: /etc/evil"),
        ("bash", {"command": "a\nb\tc"}, "bash: a b c"),
        ("TodoWrite", {"todos": [1, 2]}, 'TodoWrite: {"todos": [1, 2]}'),
        ("odd", "words", 'odd: "words"'),
    ],
)
def test_a_tool_call_is_one_line_of_the_record(tool, given, told):
    assert describe_call(tool, given) == told


def test_what_a_session_called_holds_no_secret_and_commands_nobody():
    told = describe_call(
        "Bash", {"command": "echo '\x1b[2J'\n::add-mask::x\necho ghs_canary0123456789canary0123456789abcd"}
    )
    assert "canary" not in told and "\x1b" not in told and "\n" not in told and not told.startswith("::")


def test_a_session_that_floods_the_record_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(reading, "CALLS", 2)
    given = turn(Gave(b""), NOW, lambda gave: AgentReply("done", calls=("a: 1", "b: 2", "c: 3")))
    assert given.calls == ("a: 1", "b: 2", "and 1 more")


def test_a_program_that_called_a_tool_was_not_turned_away_for_nothing() -> None:
    """Its model had an answer: what that cost is not known, so it is not taken for none."""
    assert reading.usage_when_refused("rate_limit", SessionUsage(), AgentReply("")).cost_usd == 0.0
    assert (
        reading.usage_when_refused("rate_limit", SessionUsage(), AgentReply("", calls=("bash: ls",))).cost_usd is None
    )


# --- Whatever a program prints, reading it gives a turn: of numbers what can be, of calls all that were told. ---

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
    codec.dump(HatOutput("x", 1, summary=given.text, reason=given.detail, usage=usage,
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
    assert len(clients.COPILOT.read(Gave(asked.encode())).calls) == 1
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
