"""The scripted model is itself under test: a fake that answers anything proves nothing."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from tests.fakes.model import server
from tests.fakes.model.script import call, fault, say
from tests.fakes.model.server import KEY, ScriptedModel

TOOL = {"name": "Write", "input_schema": {}}
ASKED = {
    "/v1/messages": {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [TOOL]},
    "/v1/responses": {"model": "m", "input": [{"type": "message"}], "tools": [TOOL]},
    "/v1/chat/completions": {"model": "m", "messages": [{}], "tools": [{"type": "function", "function": TOOL}]},
    "/v1beta/models/m:generateContent": {"contents": [{}], "tools": [{"functionDeclarations": [TOOL]}]},
}
every = pytest.mark.parametrize("path", ASKED)


def ask(model, path, body, key=KEY, method="POST"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(model.url + path, data, {"authorization": f"Bearer {key}"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.read().decode(), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


@every
def test_replies_are_given_in_order_and_each_request_is_in_the_journal(path):
    with ScriptedModel([call("Write", file_path="a"), say("Done.")]) as model:
        first, second = (ask(model, path, ASKED[path])[1] for _ in range(2))
        assert "Write" in first and "Done." in second and model.said_all and model.refused == []
        assert [(one.path, one.tools, one.model) for one in model.turns] == [(path, ("Write",), "m")] * 2


@every
def test_a_script_that_is_over_is_refused(path):
    with ScriptedModel([]) as model:
        assert ask(model, path, ASKED[path])[0] == 404 and "over" in model.refused[0]


@every
def test_a_fault_is_the_providers_own(path):
    with ScriptedModel([fault(429, "slow down", retry_after="7")]) as model:
        status, body, headers = ask(model, path, ASKED[path])
    assert (status, headers["retry-after"]) == (429, "7") and "slow down" in body


@every
def test_another_key_opens_nothing_and_takes_no_reply(path):
    with ScriptedModel([say("Done.")]) as model:
        assert ask(model, path, ASKED[path], key="sk-real")[0] == 401
        assert model.refused and not model.said_all


@every
def test_a_request_without_tools_is_no_agents_and_takes_no_reply(path):
    with ScriptedModel([say("Done.")]) as model:
        assert ask(model, path, {**ASKED[path], "tools": []})[0] == 200
        assert model.turns == [] and model.journal[0].aside and not model.said_all


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/complete"), ("POST", "/"), ("GET", "/v1/me")])
def test_what_it_does_not_know_is_refused(method, path):
    with ScriptedModel([say("Done.")]) as model:
        assert ask(model, path, {} if method == "POST" else None, method=method)[0] == 404
        assert path in model.refused[0]


def test_a_conversation_that_is_empty_is_refused():
    with ScriptedModel([say("Done.")]) as model:
        assert ask(model, "/v1/messages", {"model": "m", "messages": []})[0] == 404 and model.refused


@pytest.mark.parametrize("path", [path for path in ASKED if path.startswith("/v1/")])
def test_a_stream_ends_as_its_dialect_ends_one(path):
    with ScriptedModel([call("Write", file_path="a")]) as model:
        body = ask(model, path, {**ASKED[path], "stream": True})[1]
    ends = {"/v1/messages": "message_stop", "/v1/responses": "response.completed", "/v1/chat/completions": "[DONE]"}
    assert ends[path] in body.strip().splitlines()[-1] and "Write" in body


def test_a_step_may_look_at_the_request_and_wait(monkeypatch):
    pauses: list[float] = []
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(server, "time", clock)
    with ScriptedModel([lambda request: say(f"You asked {request.model}.", delay=0.2)]) as model:
        assert "You asked m." in ask(model, "/v1/messages", ASKED["/v1/messages"])[1]
    assert pauses == [0.2]


def test_all_of_a_request_is_kept_as_it_came():
    with ScriptedModel([say("Done.")]) as model:
        ask(model, "/v1/messages?beta=one-two", ASKED["/v1/messages"])
        ask(model, "/v1/models", None, method="GET")
    first, second = (request.raw for request in model.journal)
    assert first.startswith(b"POST /v1/messages?beta=one-two HTTP/1.1\r\n") and KEY.encode() in first
    assert first.endswith(json.dumps(ASKED["/v1/messages"]).encode()) and b"messages" not in second
