"""Reading social networks: what one answers is told in our words, and shows no address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralph_mission.adapters.http.client import ask_network, open_session, read_json
from ralph_mission.errors import UserError
from tests.adapters.web_server import Speak, reply, saying, serving

SECRET = "scripted-webhook-token"


def problem(speak: Speak) -> UserError:
    """What is said of an answer."""
    with serving(speak) as server:
        return problem_of(lambda: read_json("Discord", open_session(5.0), f"{server.url}/{SECRET}"))


def problem_of(call: Callable[[], object]) -> UserError:
    with pytest.raises(UserError) as caught:
        call()
    told = f"{caught.value} {caught.value.next_step}"
    assert SECRET not in told and "127.0.0.1" not in told
    assert caught.value.__cause__ is None
    return caught.value


def test_a_document_is_read() -> None:
    with serving(saying(reply(b'{"id": "1"}'))) as server:
        assert read_json("Discord", open_session(5.0), server.url) == {"id": "1"}


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "429 Too Many", "500 Oops", "204 No Content"])
def test_any_other_status_is_told(status: str) -> None:
    assert f"Discord answers {status[:3]}" in problem(saying(reply(b"", status))).what


def test_a_redirect_is_not_followed() -> None:
    with serving(saying(reply(b"{}"))) as elsewhere:
        told = problem(saying(reply(b"", "302 Found", Location=f"{elsewhere.url}/{SECRET}")))
        assert (elsewhere.paths, told.what) == ([], "Discord answers 302")


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe", b"[" * 100_000], ids=["page", "none", "bytes", "deep"])
def test_what_is_no_document_is_told(body: bytes) -> None:
    assert "no JSON" in problem(saying(reply(body))).what


def test_nobody_there_is_told() -> None:
    def ask() -> object:
        return ask_network("Discord", lambda: open_session(1.0).get(f"http://127.0.0.1:1/{SECRET}"))

    assert problem_of(ask).what == "Discord gives no answer (refused or broke the connection)"
