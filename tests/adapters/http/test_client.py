"""The one HTTP client: whatever a server does is over in time and within bounds, and an error says what was sent."""

from __future__ import annotations

import gzip
import itertools
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.http import client
from ralph_mission.adapters.http.client import LATE, HttpLimits, HttpSession, NoAnswer
from ralph_mission.adapters.http.deadline import call_within, start_call
from tests.adapters.web_server import Server, Speak, for_ever, reply, saying, serving, site
from tests.cli.loop_world import until

CAP = 100_000
SECRET = "scripted-webhook-token"
GENEROUS = HttpLimits(300.0, 300.0, CAP)


def read(server: Server, limits: HttpLimits = GENEROUS) -> bytes:
    return HttpSession(limits).get(f"{server.url}/{SECRET}").content


def failure_once_asked(speak: Speak, limits: HttpLimits, **how: Any) -> NoAnswer:
    """The same of a server whose time begins when it has the request, however busy the machine is."""
    asked = threading.Event()

    def say(plug: socket.socket, request: bytes) -> None:
        asked.set()
        speak(plug, request)

    def call_once_asked(seconds: float, work: Callable[[], Any], name: str) -> Any:
        call = start_call(work, name)
        assert asked.wait(300)
        return call_within(seconds, call.result, name)

    with mock.patch.object(client, "call_within", call_once_asked):
        return failure(say, limits, **how)


def failure(speak: Speak, limits: HttpLimits = GENEROUS, listens: bool = True, scheme: str = "http") -> NoAnswer:
    """What is said of an answer to a POST."""
    with serving(speak, listens=listens) as server, pytest.raises(NoAnswer) as caught:
        HttpSession(limits).post(f"{server.url}/{SECRET}".replace("http", scheme, 1))
    until(lambda: server.connections)
    assert SECRET not in str(caught.value) and "127.0.0.1" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert server.connections == 1  # nothing is sent twice
    return caught.value


# --- answers


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_gzip_is_undone(encoding: str) -> None:
    with serving(saying(reply(gzip.compress(b"hello" * 100), Content_Encoding=encoding))) as server:
        assert read(server) == b"hello" * 100


def test_chunks_are_put_together() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    with serving(saying(answer)) as server:
        assert read(server) == b"abcde"


@pytest.mark.parametrize("packed", [False, True])
def test_the_largest_answer_is_read(packed: bool) -> None:
    body = b"x" * CAP
    answer = reply(gzip.compress(body), Content_Encoding="gzip") if packed else reply(body)
    with serving(saying(answer)) as server:
        assert read(server) == body


@pytest.mark.parametrize("where", [b"http://[", b"/\xff\xfe", b"file:///etc/passwd", b"/elsewhere"])
@pytest.mark.attack(55)
def test_where_a_redirect_leads_is_not_even_read(where: bytes) -> None:
    moved = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + where + b"\r\n\r\n"
    with serving(saying(moved)) as server:
        assert HttpSession(GENEROUS).post(server.url).status_code == 302
        assert len(server.asked) == 1


@pytest.mark.attack(42)
def test_a_login_that_the_machine_keeps_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login mara password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(saying(reply())) as server:
        read(server)
        assert b"authorization" not in server.asked[0].lower()


def test_a_library_that_knows_one_address_only_is_led_to_another() -> None:
    with serving(saying(reply(b"{}"))) as server:
        session = HttpSession(GENEROUS, {"https://api.example.org": f"{server.url}/"})
        assert session.get("https://api.example.org/2/tweets").status_code == 200
        assert server.paths == ["/2/tweets"]


@pytest.mark.parametrize(("idle", "connections"), [(30.0, 1), (10.0, 3), (0.0, 3)])
def test_a_connection_that_rested_for_long_is_not_used_again(
    idle: float, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = itertools.count(100.0, 20.0)
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: next(moments)))

    def speak(plug: socket.socket, _: bytes) -> None:
        plug.sendall(reply(b"one"))
        while plug.recv(65_536):
            plug.sendall(reply(b"more"))

    with serving(speak) as server, HttpSession(GENEROUS, idle=idle) as session:
        for _ in range(3):
            session.get(server.url)
        assert server.connections == connections


# --- what a server should not do

OK = b"HTTP/1.1 200 OK\r\n"
HEAD = OK + b"Content-Type: text/html\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
EMPTY_BLOCKS = b"\0\0\0\xff\xff" * 5_000  # deflate that says nothing, and goes on
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MORE, BROKEN_OFF, NO_HTTP = "more than 100,000 bytes", "broke off", "does not speak HTTP"


def bomb(levels: int) -> bytes:
    body = b"\0" * 20_000_000
    for _ in range(levels):
        body = gzip.compress(body)
    return body


HOSTILE: dict[str, tuple[Speak, str]] = {
    "gzip bomb": (saying(reply(bomb(1), Content_Encoding="gzip")), MORE),
    "deflate bomb": (saying(reply(zlib.compress(b"\0" * 20_000_000), Content_Encoding="deflate")), MORE),
    "bomb in a bomb": (saying(reply(bomb(2), Content_Encoding="gzip, gzip")), "encoding"),
    "brotli": (saying(reply(b"\x8b\x00\x80", Content_Encoding="br")), "encoding"),
    "zstd": (saying(reply(b"\x28\xb5\x2f\xfd", Content_Encoding="zstd")), "encoding"),
    "gzip of nothing for ever": (
        for_ever(GZIP + b"\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", EMPTY_BLOCKS),
        MORE,
    ),
    "no gzip": (saying(reply(b"plain", Content_Encoding="gzip")), NO_HTTP),
    "gzip cut short": (saying(reply(gzip.compress(b"hello" * 99)[:-9], Content_Encoding="gzip")), BROKEN_OFF),
    "too long and says so": (saying(HEAD + b"Content-Length: 99999999999\r\n\r\n"), MORE),
    "too long": (saying(reply(b"x" * (CAP + 1))), MORE),
    "endless": (for_ever(HEAD + b"\r\n", b"x" * 10_000), MORE),
    "endless where nothing is to be read": (
        for_ever(b"HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n", b"x" * 10_000),
        MORE,
    ),
    "endless chunks": (for_ever(HEAD + CHUNKED, b"5\r\nhello\r\n"), MORE),
    "a chunk of terabytes": (for_ever(HEAD + CHUNKED + b"ffffffffff\r\n", b"x" * 10_000), MORE),
    "endless chunk size": (for_ever(HEAD + CHUNKED, b"0" * 10_000), NO_HTTP),
    "endless chunk extension": (for_ever(HEAD + CHUNKED + b"1;", b"x" * 10_000), NO_HTTP),
    "no chunk": (saying(HEAD + CHUNKED + b"zz\r\n"), NO_HTTP),
    "one huge header": (for_ever(OK + b"X-A: ", b"x" * 10_000), NO_HTTP),
    "endless headers": (for_ever(OK, b"X-A: b\r\n" * 1_000), NO_HTTP),
    "no HTTP": (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), NO_HTTP),
    "garbage": (saying(b"\x00\xff" * 50), NO_HTTP),
    "nothing": (saying(b""), "broke the connection"),
    "broken off": (saying(HEAD + b"Content-Length: 100\r\n\r\nhello"), BROKEN_OFF),
    "chunk broken off": (saying(HEAD + CHUNKED + b"50\r\nhello"), BROKEN_OFF),
    "negative length": (
        saying(HEAD + b"Content-Length: -1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello"),
        BROKEN_OFF,
    ),
    "two lengths": (saying(HEAD + b"Content-Length: 5, 6\r\n\r\n"), NO_HTTP),
}
SLOW: dict[str, Speak] = {
    "endless trailer": for_ever(HEAD + CHUNKED + b"0\r\n", b"A: b\r\n" * 1_000),
    "endless 100 Continue": for_ever(b"", CONTINUE * 100),
    "dripping body": for_ever(HEAD + b"\r\n", b"x", 0.02),
    "dripping chunks": for_ever(HEAD + CHUNKED, b"1\r\nx\r\n", 0.02),
    "dripping headers": for_ever(OK + b"X-A: ", b"x", 0.02),
    "dripping status": for_ever(b"HTTP", b"/", 0.02),
    "silence": for_ever(b"", b"", 0.02),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.attack(56)
def test_whatever_a_server_sends_ends_within_the_caps(case: str) -> None:
    speak, why = HOSTILE[case]
    error = failure(speak)
    assert why in str(error) and error.sent
    assert error.final == (why == MORE)


@pytest.mark.parametrize("case", SLOW)
@pytest.mark.attack(56)
def test_an_answer_is_whole_by_its_deadline_or_given_up(case: str) -> None:
    error = failure_once_asked(SLOW[case], HttpLimits(0.3, 300.0, CAP))
    assert (str(error), error.sent, error.final) == (LATE, True, True)


@pytest.mark.attack(56)
def test_a_connection_that_is_given_up_is_cut() -> None:
    over = threading.Event()

    def speak(plug: socket.socket, _: bytes) -> None:
        with pytest.raises(OSError):
            while True:
                plug.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        over.set()

    failure_once_asked(speak, HttpLimits(0.3, 300.0, CAP))
    assert over.wait(60)


# --- what was sent


def test_a_request_that_nobody_took_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(NoAnswer) as caught:
        HttpSession(GENEROUS).post(f"http://127.0.0.1:{port}/{SECRET}")
    assert (str(caught.value), caught.value.sent) == ("refused or broke the connection", False)


def test_a_name_that_is_unknown_was_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, SECRET)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(NoAnswer) as caught:
        HttpSession(GENEROUS).post("http://example.org/")
    assert (str(caught.value), caught.value.sent) == ("cannot be resolved", False)


def test_a_silence_that_is_shorter_than_the_deadline_may_be_asked_again() -> None:
    error = failure(SLOW["silence"], HttpLimits(300.0, 0.2, CAP))
    assert (str(error), error.sent, error.final) == (LATE, True, False)


def test_nothing_is_sent_once_it_was_given_up() -> None:
    given_up, (ours, theirs) = threading.Event(), socket.socketpair()

    def dial(seconds: float) -> socket.socket:
        given_up.wait(60)
        return ours

    with theirs, pytest.raises(NoAnswer) as caught:
        try:
            HttpSession(HttpLimits(0.2, 60.0, CAP), dial=dial).post("http://example.org/")
        finally:
            given_up.set()
            theirs.settimeout(60)
            assert theirs.recv(100) == b""  # closed, and nothing came before
    assert (caught.value.sent, caught.value.final) == (False, True)


@pytest.mark.parametrize("name", ["X-A", "Host", "User-Agent"])
@pytest.mark.attack(39)
def test_a_line_break_in_a_header_is_not_sent(name: str) -> None:
    with serving(saying(reply())) as server:
        for ask in (
            lambda headers: HttpSession(GENEROUS).get(server.url, headers=headers),
            lambda headers: HttpSession(GENEROUS).request_exactly("GET", server.url, headers, None),
        ):
            with pytest.raises(NoAnswer) as caught:
                ask({name: "a\r\nX-Evil: 1"})
            assert not caught.value.sent
        assert server.connections == 0


@pytest.mark.parametrize("target", ["/a/../b", "//elsewhere.example/x", "/%7Ea%2Fb", "/a;b?c=d&e=%20", "/?"])
def test_an_address_that_was_judged_is_asked_as_it_stands(target: str) -> None:
    with serving(saying(reply())) as server:
        HttpSession(GENEROUS).request_exactly("GET", server.url + target, {}, None)
        assert server.paths == [target.removesuffix("?")]


# --- https


def leading_to(server: Server) -> HttpSession:
    """Every name leads to `server`."""
    return HttpSession(GENEROUS, dial=lambda seconds: socket.create_connection(("127.0.0.1", server.port), seconds))


def test_https_is_spoken_with_the_name_wherever_it_leads(certified: ssl.SSLContext) -> None:
    with serving(saying(reply(b"here")), certified) as server:
        assert leading_to(server).get("https://secure.example/").content == b"here"


def test_a_certificate_of_another_name_is_not_trusted(certified: ssl.SSLContext) -> None:
    with serving(saying(reply(b"here")), certified) as server, pytest.raises(NoAnswer) as caught:
        leading_to(server).get("https://other.example/", verify=False)
    assert "no certificate that can be trusted" in str(caught.value)
    assert not caught.value.sent and server.asked == []


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(
    certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(saying(reply(b"here")), certified) as server, pytest.raises(NoAnswer) as caught:
        leading_to(server).get("https://secure.example/")
    assert "no certificate that can be trusted" in str(caught.value)


def test_a_server_without_tls_is_no_https() -> None:
    error = failure(saying(reply()), listens=False, scheme="https")
    assert ("does not speak TLS" in str(error), error.sent) == (True, False)


@pytest.mark.attack(56)
def test_a_handshake_that_drips_ends_too() -> None:
    speak = for_ever(b"\x16\x03\x03\x40\x00\x02", b"\0", 0.02)
    error = failure_once_asked(speak, HttpLimits(0.3, 300.0, CAP), listens=False, scheme="https")
    assert (str(error), error.sent) == (LATE, False)


# --- proxies


def test_a_proxy_of_the_environment_is_used_but_by_who_says_where_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(site({"http://example.org/": reply(b"by proxy"), "/": reply(b"itself")})) as server:
        monkeypatch.setenv("http_proxy", server.url)
        assert HttpSession(GENEROUS).get("http://example.org/").content == b"by proxy"
        assert leading_to(server).get("http://example.org/").content == b"itself"


def test_a_proxy_that_refuses_leaves_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(saying(reply(b"", "407 Proxy Authentication Required"))) as server:
        monkeypatch.setenv("https_proxy", server.url)
        with pytest.raises(NoAnswer) as caught:
            HttpSession(GENEROUS).post("https://example.org/")
    assert caught.value.sent
