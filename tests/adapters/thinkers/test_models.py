"""A real client library against a scripted provider: every way of not answering is a sentence, in bounded time."""

from __future__ import annotations

import gzip
import json
import socket
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ralph_mission.adapters.thinkers import models
from ralph_mission.adapters.thinkers.llm import Bill, ModelQuestion
from ralph_mission.adapters.thinkers.models import ModelAsk
from tests.adapters.thinkers.asked import LEAST, WORST, ranked, thing
from tests.fakes.model.script import Call, Reply, call, fault, say
from tests.fakes.model.server import KEY, ScriptedModel

KINDS = {one.fingerprint: one.kind for one in (WORST, LEAST)}
QUESTION = ModelQuestion("Rank them.", "two findings", KINDS)
GOOD = call(models.TOOL, ranking=[ranked(LEAST), ranked(WORST)])
STRANGE = call(models.TOOL, ranking=[ranked(thing("invented"))])
EXTRA = call(models.TOOL, ranking=[ranked(WORST, action="merge")])
HUGE = call(models.TOOL, ranking=[ranked(WORST, why="w" * 1_000_000)])


def ask(url, seconds=300.0, tries=2, model="anthropic:scripted", key=KEY):
    name = "ANTHROPIC" if model.startswith("anthropic") else "OPENAI"
    base = url if name == "ANTHROPIC" else f"{url}/v1"
    environ = {f"{name}_API_KEY": key, f"{name}_BASE_URL": base}
    return ModelAsk(partial(models.access, model, environ), seconds, tries, 4000)(QUESTION)


def ask_model(*script, **settings):
    """The reply to the question, and the model that was asked."""
    with ScriptedModel(script) as model:
        return ask(model.url, **settings), model


@pytest.mark.parametrize("name", ["anthropic:scripted", "openai:scripted", "openai-chat:scripted"])
def test_a_good_answer_arrives_from_each_kind_of_provider(name):
    reply, model = ask_model(GOOD, model=name)
    assert reply.answer is not None, reply.problem
    assert [one.fingerprint for one in reply.answer.ranking] == [LEAST.fingerprint, WORST.fingerprint]
    assert (reply.requests, reply.input_tokens, reply.output_tokens, reply.doubtful) == (1, 1000, 50, 0)
    assert model.turns[0].tools == (models.TOOL,)
    assert not model.refused


@pytest.mark.parametrize("bad", [STRANGE, EXTRA, say("I would rather talk.")], ids=["unknown", "extra", "words"])
def test_after_a_bad_answer_it_is_asked_once_more(bad):
    reply, model = ask_model(bad, GOOD)
    assert reply.answer is not None
    assert (reply.requests, reply.input_tokens, len(model.turns)) == (2, 2000, 2)


@pytest.mark.parametrize("bad", [STRANGE, EXTRA, call("merge", pull=4)], ids=["unknown", "extra", "invented"])
def test_two_bad_answers_are_the_end_of_it(bad):
    reply, model = ask_model(bad, bad, GOOD)
    assert reply.answer is None
    assert reply.problem == "its answers did not fit what was asked"
    assert reply.final
    assert (len(model.turns), reply.requests, reply.input_tokens) == (2, 2, 2000)


def test_one_try_is_one_request():
    reply, model = ask_model(EXTRA, GOOD, tries=1)
    assert (reply.answer, len(model.turns)) == (None, 1)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "set a valid one"),
        (403, "may not use this model"),
        (404, "look at thinker.model"),
        (429, "the next cycle asks again"),
        (500, "answered 500: the next cycle asks again"),
        (529, "overloaded"),
    ],
)
def test_a_refusal_is_told_costs_nothing_and_is_not_tried_again(status, said):
    reply, model = ask_model(fault(status, "hush-hush", retry_after="1"), GOOD)
    assert reply.answer is None
    assert said in reply.problem
    assert "hush" not in reply.problem
    assert (len(model.turns), reply.doubtful, reply.final) == (1, 0, False)


def test_a_refusal_after_a_bad_answer_costs_that_answer():
    reply, _ = ask_model(EXTRA, fault(529))
    assert (reply.input_tokens, reply.output_tokens, reply.doubtful) == (1000, 50, 0)


def test_an_answer_of_a_megabyte_is_not_read_to_its_end():
    reply, _ = ask_model(HUGE, GOOD)
    assert (reply.answer, reply.problem, reply.doubtful) == (None, "its answer was too long", 1)


def test_a_slow_answer_is_not_waited_for_and_its_cost_is_in_doubt():
    reply, _ = ask_model(Reply((Call(models.TOOL, {"ranking": []}),), delay=5.0), seconds=0.5)
    assert reply.answer is None
    assert "longer than 0.5 seconds" in reply.problem
    assert reply.doubtful == 1


def test_nobody_there_costs_nothing():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        reply = ask(f"http://127.0.0.1:{free.getsockname()[1]}")  # bound, and nobody listens
    assert reply.answer is None
    assert "cannot be reached" in reply.problem
    assert reply.doubtful == 0


# --- what no provider does ------------------------------------------------------------


@contextmanager
def serving(status, headers, body):
    """A server that gives one answer to everything, and tells what was asked."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.do_POST()

        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            paths.append(self.path)
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", paths
        server.shutdown()


def test_an_answer_that_grows_when_unpacked_is_not_unpacked():
    packed = gzip.compress(json.dumps({"content": "w" * 50_000_000}).encode())
    with serving(200, {"content-encoding": "gzip"}, packed) as (url, _):
        assert ask(url).problem == "its answer was too long"


def test_a_redirection_is_not_followed_with_the_key():
    with serving(307, {"location": "/elsewhere"}, b"") as (url, paths):
        reply = ask(url)
    assert reply.answer is None
    assert paths == ["/v1/messages"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"content": 7}', b"null"])
def test_what_is_no_answer_at_all_is_none(body):
    with serving(200, {}, body) as (url, _):
        reply = ask(url)
    assert reply.answer is None
    assert reply.problem


def message(used: str, ranking: str) -> bytes:
    """A provider's answer as bytes, which may be no JSON that anybody else would write."""
    block = f'{{"type":"tool_use","id":"t","name":"{models.TOOL}","input":{{"ranking":{ranking}}}}}'
    head = '"id":"m","type":"message","role":"assistant","model":"s","stop_reason":"tool_use","stop_sequence":null'
    return f'{{{head},"usage":{used},"content":[{block}]}}'.encode()


RANKING = json.dumps([ranked(LEAST)])
NUMBERS = ["-100000000", "1" + "0" * 400, "1e400", "NaN", '"many"', str(2**62), "0"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
@pytest.mark.filterwarnings("error")
def test_tokens_that_are_no_number_of_tokens_count_as_the_most_it_may_have_cost(number):
    with serving(200, {}, message(f'{{"input_tokens":{number},"output_tokens":{number}}}', RANKING)) as (url, _):
        reply = ask(url)
    assert reply.answer is not None, reply.problem
    assert (reply.requests, reply.doubtful, reply.input_tokens, reply.output_tokens) == (1, 1, 0, 0)
    assert Bill(lambda read, written: None).usage(reply, QUESTION).cost_usd == Bill(lambda *_: None).most(QUESTION)


@pytest.mark.parametrize("ranking", ["NaN", "[" * 100_000 + "]" * 100_000, '"\\ud800"'], ids=["nan", "deep", "half"])
def test_an_answer_that_nobody_can_read_is_not_asked_for_again(ranking):
    with serving(200, {}, message('{"input_tokens":10,"output_tokens":5}', ranking)) as (url, _):
        reply = ask(url)
    assert (reply.answer, reply.final) == (None, True)


# --- before anything is asked ---------------------------------------------------------


def test_without_a_key_the_variable_is_named():
    reply = ModelAsk(partial(models.access, "openai:scripted", {}), 1.0, 2, 4000)(QUESTION)
    assert reply.problem == "OPENAI_API_KEY is not set: set OPENAI_API_KEY in the environment"
    assert reply.requests == 0


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    assert "EXTRAS=llm" in ask("http://127.0.0.1:9").problem


def test_prices_are_listed_for_what_providers_sell_and_for_nothing_else():
    known = models.listed_price("anthropic", "claude-sonnet-4-5", 1000, 100)
    assert known == pytest.approx(1000 * 3e-6 + 100 * 15e-6)
    same = {models.listed_price(provider, "gpt-4o", 1000, 100) for provider in ("openai", "openai-chat")}
    assert len(same) == 1
    assert None not in same
    assert models.listed_price("anthropic", "scripted", 1000, 100) is None


@pytest.mark.parametrize("name", ["anthropic:scripted", "openai:scripted", "openai-chat:scripted"])
def test_a_free_look_tells_whether_it_can_be_asked(name):
    with ScriptedModel([]) as model:
        base = model.url if name.startswith("anthropic") else f"{model.url}/v1"
        provider, _, short = name.partition(":")
        assert models.why_unreachable(models.Access(provider, short, KEY, base), 10.0) == ""
        assert model.turns == []
