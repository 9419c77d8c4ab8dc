"""The gateway to the web, against real servers on loopback that may be asked because the test allows it."""

from __future__ import annotations

import socket
import ssl

import pytest

from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.errors import UserError
from tests.adapters.web_server import Server, reply, saying, serving, site

SOMEWHERE = "93.184.216.34"  # public; the tripwire raises when a test really connects to it


def allowing(*servers: Server, **more: object) -> GuardedWeb:
    return GuardedWeb(tuple(server.place for server in servers), **more)  # type: ignore[arg-type]  # fields by name


def lead_to(server: Server) -> bytes:
    return reply(b"", "302 Found", Location=f"{server.url}/x")


def problem_of(web: GuardedWeb, url: str, **more: object) -> UserError:
    with pytest.raises(UserError) as caught:
        web.get(url, **more)  # type: ignore[arg-type]  # as `get` takes them
    assert caught.value.who == "network"
    assert caught.value.next_step
    assert "\n" not in caught.value.what
    return caught.value


def test_an_answer_has_what_the_next_question_needs() -> None:
    page = reply(b"hello", Content_Type="text/plain", ETag='"one"', Last_Modified="Mon, 04 May 2026 12:00:00 GMT")
    with serving(saying(page)) as server:
        answer = allowing(server).get(f"{server.url}/a?b=c d".replace(" ", "%20"))
    assert (answer.status, answer.content, answer.content_type) == (200, b"hello", "text/plain")
    assert (answer.etag, answer.modified) == ('"one"', "Mon, 04 May 2026 12:00:00 GMT")
    assert answer.url == f"{server.url}/a?b=c%20d"


def test_what_is_unchanged_comes_without_content() -> None:
    with serving(saying(reply(b"", "304 Not Modified", ETag='"one"'))) as server:
        answer = allowing(server).get(server.url, etag='"one"', modified="Mon, 04 May 2026 12:00:00 GMT")
    assert (answer.status, answer.content) == (304, b"")
    assert b'If-None-Match: "one"\r\n' in server.asked[0]
    assert b"If-Modified-Since: Mon, 04 May 2026 12:00:00 GMT\r\n" in server.asked[0]


@pytest.mark.parametrize("etag", ['"a"\r\nX-Evil: 1', "é", "x" * 5_000])
def test_a_kept_header_that_is_none_is_not_sent(etag: str) -> None:
    with serving(saying(reply())) as server:
        allowing(server).get(server.url, etag=etag)
    assert b"If-None-Match" not in server.asked[0]
    assert b"Evil" not in server.asked[0]


def test_an_error_status_is_an_answer() -> None:
    with serving(saying(reply(b"gone", "410 Gone"))) as server:
        assert allowing(server).get(server.url).status == 410


def test_a_post_sends_its_body_once_and_follows_nothing() -> None:
    with serving(saying(reply(b"", "307 Temporary Redirect", Location="/other"))) as server:
        answer = allowing(server).post(f"{server.url}/q", b'{"a": 1}', headers={"Content-Type": "application/json"})
    assert (answer.status, server.paths) == (307, ["/q"])


def test_it_says_who_asks_and_carries_nothing_of_a_person() -> None:
    with serving(saying(reply())) as server:
        allowing(server).get(server.url)
    head = server.asked[0].decode()
    assert "User-Agent: ralph-mission\r\n" in head
    assert f"Host: {server.place}\r\n" in head
    assert "Cookie" not in head and "Referer" not in head and "Authorization" not in head


def test_redirects_are_followed_to_the_end() -> None:
    pages = {"/": reply(b"", "301 Moved", Location="/a"), "/a": reply(b"", "308 Moved", Location="b?c=\xc3\xa9")}
    with serving(site({**pages, "/b": reply(b"here")})) as server:
        answer = allowing(server).get(server.url)
    assert (answer.content, answer.url) == (b"here", f"{server.url}/b?c=%C3%83%C2%A9")


def test_headers_of_the_caller_stay_with_the_first_place() -> None:
    with serving(saying(reply(b"here"))) as other, serving(saying(lead_to(other))) as first:
        answer = allowing(first, other).get(first.url, headers={"Authorization": "Bearer key"})
    assert answer.content == b"here"
    assert b"Bearer key" in first.asked[0]
    assert b"Bearer key" not in other.asked[0]


def test_a_circle_of_redirects_ends() -> None:
    with serving(saying(reply(b"", "302 Found", Location="/"))) as server:
        said = problem_of(allowing(server, redirects=3), server.url)
    assert "leads on more than 3 times" in said.what
    assert len(server.asked) == 4


def test_a_name_is_asked_at_the_address_that_was_checked() -> None:
    dialled = []
    with serving(saying(reply(b"here"))) as server:

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            dialled.append((address, port))
            return socket.create_connection(("127.0.0.1", server.port), seconds)

        web = GuardedWeb(resolve=lambda host, port: [SOMEWHERE], connect=dial)
        assert web.get("http://example.org/x").content == b"here"
    assert dialled == [(SOMEWHERE, 80)]
    assert b"Host: example.org\r\n" in server.asked[0]


def test_the_next_address_of_a_name_is_tried_when_one_is_dead() -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:
        free = dead.getsockname()[1]
    with serving(saying(reply(b"here"))) as server:

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            return socket.create_connection(("127.0.0.1", free if address == "1.1.1.1" else server.port), seconds)

        web = GuardedWeb(resolve=lambda host, port: ["1.1.1.1", SOMEWHERE], connect=dial)
        assert web.get("http://example.org/").content == b"here"


@pytest.mark.parametrize(
    "written",
    ["http://EXAMPLE.org./", "http://bücher.example/", "http://\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25.org/"],
)
def test_a_name_is_resolved_in_its_plain_form(written: str) -> None:
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        raise OSError

    assert "cannot be resolved" in problem_of(GuardedWeb(resolve=resolve), written).what
    assert asked[0] in ("example.org", "xn--bcher-kva.example")


def test_a_host_that_nobody_answers_at_is_trouble() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = problem_of(GuardedWeb((f"127.0.0.1:{port}",)), f"http://127.0.0.1:{port}/?key=hush")
    assert said.what == f"127.0.0.1:{port} refused or broke the connection"


# --- https


def leading_to(server: Server) -> GuardedWeb:
    """Every name is public, and answered by `server`."""

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port), seconds)

    return GuardedWeb(resolve=lambda host, port: [SOMEWHERE], connect=dial, seconds=300.0)


def test_a_redirect_out_of_https_is_not_followed(certified: ssl.SSLContext) -> None:
    with serving(saying(reply(b"", "302 Found", Location="http://secure.example/")), certified) as server:
        assert "from https to http" in problem_of(leading_to(server), "https://secure.example/").what
