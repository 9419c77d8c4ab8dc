"""One request: whatever a network does, it is over in time, within bounds, and told as a value."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ralph_mission.gateways.networks import Reader
from ralph_mission.publishers import wire

Speak = Callable[[socket.socket], None]


@contextmanager
def network(speak: Speak, heard: list[bytes] | None = None) -> Iterator[str]:
    """A server that answers one request, kept in `heard`, by whatever `speak` sends."""
    kept = [] if heard is None else heard
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            with suppress(OSError):
                came, _ = door.accept()
                with came:
                    kept.append(came.recv(65_536))
                    speak(came)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/"


def asked(speak: Speak) -> wire.Answer:
    with network(speak) as url:
        return wire.ask(lambda: wire.Wire(1.0).request("GET", url))


def saying(words: bytes) -> Speak:
    return lambda came: came.sendall(words)


def dripping(head: bytes, ended: list[bool]) -> Speak:
    """Ten seconds of drops; `ended` says that somebody waited for the last one."""

    def speak(came: socket.socket) -> None:
        came.sendall(head)
        for _ in range(100):
            came.sendall(b"a")
            time.sleep(0.1)
        ended.append(True)

    return speak


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_an_answer_that_drips_is_given_up(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "WHOLE", 0.5)
    ended: list[bool] = []
    answer = asked(dripping(head, ended))
    assert (answer.status, answer.sent, ended) == (0, True, [])


@pytest.mark.parametrize("where", [b"http://[", b"/\xff\xfe", b"file:///etc/passwd"])
def test_where_a_redirect_leads_is_not_even_read(where: bytes) -> None:
    answer = asked(saying(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + where + b"\r\n\r\n"))
    assert answer.status == 302


@pytest.mark.parametrize("head", [b"HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_no_more_is_read_than_an_answer_may_have(head: bytes) -> None:
    sent = 0

    def speak(came: socket.socket) -> None:
        nonlocal sent
        came.sendall(head)
        for _ in range(100):
            came.sendall(b"a" * 1_000_000)
            sent += 1

    assert asked(speak).status == 0
    assert sent < 30


@pytest.mark.parametrize("body", [b'{"a":' + b"[" * 200_000, b'{"a": ' + b"1" * 5_000 + b"}", b"\xff\xfe", b"[]"])
def test_what_is_no_object_is_none(body: bytes) -> None:
    answer = asked(saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body))
    assert (answer.status, answer.body) == (200, {})


@pytest.mark.parametrize(
    "words",
    [
        b"\x00\xff" * 50,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n",
    ],
)
def test_garbage_is_doubt(words: bytes) -> None:
    answer = asked(saying(words))
    assert (answer.status, answer.sent) == (0, True)


def test_a_netrc_adds_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login mara password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for ask in (
        lambda url: wire.Wire(1.0).request("GET", url),
        lambda url: Reader("X", 1.0).request("GET", url),
    ):
        heard: list[bytes] = []
        with network(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), heard) as url:
            ask(url)
        assert heard
        assert b"authorization" not in heard[0].lower()


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
