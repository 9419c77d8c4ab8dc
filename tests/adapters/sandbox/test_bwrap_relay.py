"""The way out leads to the model's host and nowhere else, and carries what it is given byte for byte."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.bwrap import Endpoint, endpoint, of_models, relay
from ralph_mission.errors import UserError

MODEL = Endpoint("model.example.org", 443)
REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """A server that gives back what it is sent; every host is this one. Whom it was taken for."""
    asked: list[tuple[str, int]] = []
    server = socket.create_server(("127.0.0.1", 0))
    real = socket.create_connection

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        asked.append(address)
        return real(server.getsockname(), timeout)

    def serve() -> None:
        while True:
            try:
                came, _ = server.accept()
            except OSError:
                return
            with came:
                while chunk := came.recv(65536):
                    came.sendall(chunk)

    monkeypatch.setattr(socket, "create_connection", connect)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield asked
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(300)


def talk(folder: Path, sent: bytes, number: int = 0) -> bytes:
    """All that comes back over a socket of the relay."""
    received = b""
    with socket.socket(socket.AF_UNIX) as way:
        way.settimeout(300)
        way.connect(str(folder / str(number)))
        sender = threading.Thread(target=_send, args=(way, sent), daemon=True)
        sender.start()
        with suppress(ConnectionResetError):  # it did not want to hear it all
            while chunk := way.recv(65536):
                received += chunk
        sender.join(300)
    return received


def _send(way: socket.socket, sent: bytes) -> None:
    with suppress(OSError):
        way.sendall(sent)
        way.shutdown(socket.SHUT_WR)


def test_a_host_elsewhere_is_reached_as_through_a_proxy(echo: list[tuple[str, int]]) -> None:
    body = os.urandom(1_000_000)
    with relay([MODEL]) as folder:
        said = talk(folder, b"CONNECT Model.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n" + body)
    head, _, rest = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and rest == body and echo == [("model.example.org", 443)]


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT evil.example.org:443 HTTP/1.1",
        "CONNECT model.example.org:22 HTTP/1.1",
        "CONNECT model.example.org.evil.org:443 HTTP/1.1",
        "CONNECT 127.0.0.1:443 HTTP/1.1",
        "CONNECT model.example.org HTTP/1.1",
        "CONNECT model.example.org:\u00b2 HTTP/1.1",
        "GET http://model.example.org:443/ HTTP/1.1",
        "CONNECT " + "a" * 10_000,
    ],
)
def test_nobody_else_is_reached(echo: list[tuple[str, int]], head: str) -> None:
    with relay([MODEL]) as folder:
        assert talk(folder, head.encode("latin-1") + b"\r\n\r\n") in (REFUSED, b"")
    assert echo == []


def test_a_port_of_endless_digits_is_refused_like_any_other(echo: list[tuple[str, int]]) -> None:
    with relay([MODEL]) as folder:
        assert talk(folder, b"CONNECT model.example.org:" + b"4" * 5_000 + b" HTTP/1.1\r\n\r\n") == REFUSED
    assert echo == []


def test_a_host_of_this_machine_is_reached_without_a_word_before(echo: list[tuple[str, int]]) -> None:
    with relay([MODEL, Endpoint("localhost", 4000)]) as folder:
        assert talk(folder, b"CONNECT is what it says\r\n\r\n", 1) == b"CONNECT is what it says\r\n\r\n"
    assert echo == [("localhost", 4000)]


def test_the_way_is_nobody_elses_and_goes_with_the_run(echo: list[tuple[str, int]]) -> None:
    with relay([MODEL]) as folder:
        modes = [stat.S_IMODE(place.stat().st_mode) for place in (folder, folder / "0")]
    assert modes == [0o700, 0o600] and not folder.exists()


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("https://api.anthropic.com", Endpoint("api.anthropic.com", 443)),
        ("https://gateway.example.org:8443/v1", Endpoint("gateway.example.org", 8443)),
        ("http://127.0.0.1:4000", Endpoint("127.0.0.1", 4000)),
        ("http://localhost:11434/v1", Endpoint("localhost", 11434)),
        ("http://[::1]:4000", Endpoint("::1", 4000)),
    ],
)
def test_an_address_names_a_host_and_a_port(url: str, made: Endpoint) -> None:
    assert endpoint(url) == made


@pytest.mark.parametrize(
    "url",
    ["http://model.example.org", "ftp://localhost", "model.example.org", "https://x:port", "http://localhost", ""],
)
def test_an_address_that_would_carry_the_key_in_clear_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError) as told:
        endpoint(url)
    assert told.value.exit_code == 2


def test_the_hosts_are_those_of_the_keys_that_are_there() -> None:
    keys = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:4000", "GEMINI_API_KEY": "k"}
    gemini = Endpoint("generativelanguage.googleapis.com", 443)
    assert of_models({**keys, "GOOGLE_API_KEY": "k", "OPENAI_BASE_URL": "https://unused"}) == (
        Endpoint("127.0.0.1", 4000),
        gemini,
    )
    assert of_models({}) == ()
