"""Reading social networks: whatever one answers is bounded, goes nowhere else, and shows no address."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from ralph_mission.gateways import networks
from ralph_mission.gateways.networks import Reader
from ralph_mission.trouble import Trouble
from tests.gateways.web_server import Speak, for_ever, reply, saying, serving

SECRET = "scripted-webhook-token"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def trouble(speak: Speak, seconds: float = 5.0, listens: bool = True) -> Trouble:
    """What is said of an answer."""
    with serving(speak, listens=listens) as server, pytest.raises(Trouble) as caught:
        Reader("Discord", seconds).json(f"{server.url}/{SECRET}")
    told = f"{caught.value} {caught.value.next_step}"
    assert SECRET not in told and "127.0.0.1" not in told
    assert caught.value.__cause__ is None
    return caught.value


def test_a_document_is_read() -> None:
    with serving(saying(reply(b'{"id": "1"}'))) as server:
        assert Reader("Discord", 5.0).json(server.url) == {"id": "1"}


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "429 Too Many", "500 Oops", "204 No Content"])
def test_any_other_status_is_told(status: str) -> None:
    assert f"Discord answers {status[:3]}" in trouble(saying(reply(b"", status))).what


def test_a_redirect_is_not_followed() -> None:
    with serving(saying(reply(b"{}"))) as elsewhere:
        told = trouble(saying(reply(b"", "302 Found", Location=f"{elsewhere.url}/{SECRET}")))
        assert (elsewhere.paths, told.what) == ([], "Discord answers 302")


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe", b"[" * 100_000], ids=["page", "none", "bytes", "deep"])
def test_what_is_no_document_is_told(body: bytes) -> None:
    assert "no JSON" in trouble(saying(reply(body))).what


def test_headers_that_come_drop_by_drop_are_not_waited_for() -> None:
    assert "no answer" in trouble(for_ever(b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.1), seconds=0.5).what


def test_an_answer_without_an_end_is_cut_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "MOST", 100_000)
    assert "no answer" in trouble(for_ever(HEAD, b"x" * 65_536)).what


def test_an_answer_that_drips_is_cut_by_its_time() -> None:
    # Each piece comes well within the time that one may take.
    assert "no answer" in trouble(for_ever(HEAD, b"x", pause=0.05), seconds=0.5).what


def test_a_connection_that_is_cut_is_told() -> None:
    assert "no answer" in trouble(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")).what


def test_nobody_there_is_told() -> None:
    with pytest.raises(Trouble) as caught:
        Reader("Discord", 1.0).json(f"http://127.0.0.1:1/{SECRET}")
    assert SECRET not in f"{caught.value} {caught.value.next_step}"


def test_a_library_that_knows_one_address_only_is_led_to_another() -> None:
    with serving(saying(reply(b"{}"))) as server:
        reader = Reader("X", 5.0, "https://api.example.org", f"{server.url}/")
        assert reader.get("https://api.example.org/2/tweets").status_code == 200
        assert server.paths == ["/2/tweets"]


@pytest.mark.attack(56)
def test_an_answer_that_ends_may_not_be_longer_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "MOST", 1_000)
    with serving(saying(reply(b'"' + b"x" * 2_000 + b'"'))) as server, pytest.raises(Trouble, match="no answer"):
        Reader("Discord", 30.0).json(server.url)


@pytest.mark.attack(56)
def test_an_answer_that_ends_may_not_take_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 4.0, 8.0, 8.0])
    monkeypatch.setattr(networks, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    pieces = iter([b"1", b"2", b""])
    answer = requests.Response()
    answer.raw = SimpleNamespace(read1=lambda *_, **__: next(pieces), close=lambda: None)
    with pytest.raises(OSError, match="without an end"):
        Reader("Discord", 5.0)._whole(answer)


@pytest.mark.attack(42)
def test_a_login_that_the_machine_keeps_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login mara password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(saying(reply(b"{}"))) as server:
        Reader("Discord", 30.0).json(server.url)
        assert b"authorization" not in server.asked[0].lower()
