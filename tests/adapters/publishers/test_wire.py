"""One request to a network: whatever comes of it is told as a value."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.http.client import NoAnswer
from ralph_mission.adapters.publishers import wire
from tests.adapters.web_server import reply, saying, serving


@pytest.mark.parametrize("sent", [True, False])
def test_no_answer_says_whether_it_may_have_got_through(sent: bool) -> None:
    def call() -> None:
        raise NoAnswer("did not answer in time", sent=sent)

    assert wire.ask(call) == wire.Answer(0, sent=sent, why="did not answer in time")


@pytest.mark.parametrize("body", [b'{"a":' + b"[" * 200_000, b'{"a": ' + b"1" * 5_000 + b"}", b"\xff\xfe", b"[]"])
def test_what_is_no_object_is_none(body: bytes) -> None:
    with serving(saying(reply(body))) as server:
        answer = wire.ask(lambda: wire.open_session(60.0).get(server.url))
    assert (answer.status, answer.body) == (200, {})


def test_no_more_is_read_than_an_answer_may_have() -> None:
    with serving(saying(reply(b"x" * (wire.BYTES + 1)))) as server:
        answer = wire.ask(lambda: wire.open_session(60.0).post(server.url))
    assert (answer.status, answer.sent) == (0, True)


@pytest.mark.parametrize(
    ("wait", "header", "seconds"),
    [
        (30, "", 30.0),
        (1.5, "", 1.5),
        (None, "12", 12.0),
        (None, "soon", 0.0),
        (-4, "9", 0.0),
        (10**9, "", 0.0),
        ([], "", 0.0),
    ],
)
def test_how_long_a_network_wants_to_be_left_alone_is_told_as_a_number(
    wait: object, header: str, seconds: float
) -> None:
    answer = wire.Answer(429, headers={"retry-after": header} if header else {})
    assert wire.no("X", answer, "", {}, wait).wait == seconds
