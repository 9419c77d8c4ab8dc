"""The dispatch: one request, one exact payload, and a receipt that says why, whatever comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, timezone

import pytest

from ralph_mission.adapters.wakers import DispatchAnswer, DispatchWaker, payload
from ralph_mission.errors import UserError
from tests.helpers import NOON


class Line:
    """A post that answers what it was told to, and keeps what it was sent."""

    def __init__(self, answer: DispatchAnswer | Exception) -> None:
        self.answer, self.sent = answer, []

    def __call__(self, path: str, body: dict) -> DispatchAnswer:
        self.sent.append((path, body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def woken(answer: DispatchAnswer | Exception):
    line = Line(answer)
    return DispatchWaker("mara/harbour", line).wake(NOON, 7), line.sent


def test_the_request_is_the_published_one_and_nothing_more():
    receipt, sent = woken(DispatchAnswer(204))
    assert receipt.status == "done"
    body = {
        "event_type": "ralph-loop-trigger",
        "client_payload": {"not_before": "2026-05-04T12:00:00Z", "generation": 7},
    }
    assert sent == [("/repos/mara/harbour/dispatches", body)]


def test_the_moment_is_told_in_utc():
    there = NOON.astimezone(timezone(timedelta(hours=-7)))
    assert payload(there, 1) == payload(NOON, 1)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (DispatchAnswer(403, "Resource not accessible by integration"), "permissions: contents: write"),
        (DispatchAnswer(403, "API rate limit exceeded for installation"), "rate limit"),
        (DispatchAnswer(429), "rate limit"),
        (DispatchAnswer(401, "Bad credentials"), "the token is not valid"),
        (DispatchAnswer(404, "Not Found"), "GITHUB_REPOSITORY"),
        (DispatchAnswer(301, "Moved Permanently"), "renamed or moved"),
        (DispatchAnswer(422, "Invalid request"), "Invalid request"),
        (DispatchAnswer(502), "the next wake makes up for it"),
        (DispatchAnswer(0, "no answer in time"), "no answer in time"),
        (ConnectionRefusedError("at 10.0.0.1"), "did not answer (ConnectionRefusedError)"),
        (UserError("GitHub's rate limit", "try again later", who="forge"), "try again later"),
    ],
)
def test_a_refusal_is_a_failed_receipt_that_says_why_and_nothing_is_sent_again(answer, told):
    receipt, sent = woken(answer)
    assert receipt.status == "failed"
    assert told in receipt.detail
    assert len(sent) == 1


def test_what_the_server_says_is_kept_to_one_short_line():
    receipt, _ = woken(DispatchAnswer(422, "one\ntwo\r\n" + "x" * 5000))
    assert "\n" not in receipt.detail
    assert len(receipt.detail) < 300


def test_the_key_is_that_of_the_generation_and_no_other():
    keys: Callable[[int], str] = lambda n: DispatchWaker("a/b", Line(DispatchAnswer(204))).wake(NOON, n).key  # noqa: E731  # one use
    assert keys(3) == keys(3) != keys(4)
