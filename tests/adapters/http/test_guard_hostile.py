"""What strangers do with a reader of the web: nothing of it reaches a private place, outlasts a cap, or hangs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ralph_mission.adapters.http import guard
from ralph_mission.adapters.http.guard import GuardedWeb
from ralph_mission.safety.address import AddressRefused, is_public, parse_address
from tests.adapters.http.test_guard import SOMEWHERE, allowing, problem_of
from tests.adapters.observers.web.test_robots import polite
from tests.adapters.web_server import reply, saying, serving, site

PRIVATE = """127.0.0.1 127.8.9.1 0.0.0.0 10.0.0.1 172.16.5.4 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200
    192.0.0.192 198.18.0.1 192.0.2.1 203.0.113.7 192.88.99.1 224.0.0.1 239.1.2.3 240.0.0.1 255.255.255.255 :: ::1
    ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 ff02::1 3fff::1
    2001:db8::1 2002:7f00:1:: 2002:808:808:: 2001:0:7f00:1:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1
    localhost example""".split()
SPELLINGS = """127.0.0.1 127.1 127.0.1 0 0.0.0.0 2130706433 017700000001 0177.0.0.1 0177.1 0x7f000001 0x7f.0.0.1 0x7f.1
    0X7F.0.0.1 127.0.0.1. 0x 127.0.0.0x1 00000127.0.0.1 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::127.0.0.1] [::1%25lo] [::1%lo] [fe80::1%25eth0] [127.0.0.1] [::1].
    \uff11\uff12\uff17.\uff10.\uff10.\uff11 ①②⑦.⓪.⓪.① 127。0。0。1 ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhost LOCALHOST. localhost.localdomain
    127.0.0.1.nip.example user@127.0.0.1 user:pass@127.0.0.1 example.org@127.0.0.1 127.0.0.1%00.example.org
    127.0.0.1%2f.example.org ::1 a..b""".split()
WRITTEN = (
    "http://{}/",
    "http://example.org\\@{}/",
    "http:\\\\{}\\",
    "http://{}#@example.org/",
    "http://example.org\r\nHost: {}/",
    "http://{}/\r\nX-Evil: 1",
    "http://{}/ HTTP/1.1\r\nX: ",
    " http://{}/",
    "http:{}/",
    "http:///{}/",
    "//{}/",
    "ftp://{}/",
    "gopher://{}/_GET",
    "file:///etc/passwd?{}",
    "dict://{}/",
    "ws://{}/",
    "jar:http://{}!/",
)


def loopback(host: str, port: int) -> list[str]:
    """A resolver on which every name is one of ours."""
    return ["127.0.0.1"]


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.attack(55)
def test_an_address_that_is_not_everybodys_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [SOMEWHERE, "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
@pytest.mark.benign("url")
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.attack(55)
def test_no_spelling_of_a_private_address_reaches_it(spelling: str) -> None:
    with serving(saying(reply(b"secret"))) as server:
        for host in (spelling, f"{spelling}:{server.port}"):
            for form in WRITTEN:
                assert isinstance(problem_of(GuardedWeb(resolve=loopback), form.format(host)), AddressRefused)
        assert server.connections == 0


@pytest.mark.parametrize("address", [one for one in PRIVATE if one[0] in "0123456789:f"])
@pytest.mark.attack(55)
def test_no_name_of_a_private_address_reaches_it(address: str) -> None:
    dialled: list[str] = []

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        raise OSError

    for found in ([address], [SOMEWHERE, address], [address, SOMEWHERE]):
        web = GuardedWeb(resolve=lambda host, port, found=found: found, connect=dial)
        assert isinstance(problem_of(web, "http://friendly.example/"), AddressRefused)
    assert dialled == []


@pytest.mark.attack(55)
def test_a_name_that_changes_its_mind_is_asked_where_it_was_checked() -> None:
    answers, dialled = iter([[SOMEWHERE], ["127.0.0.1"], ["127.0.0.1"]]), []

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError

    problem_of(GuardedWeb(resolve=lambda host, port: next(answers), connect=dial), "http://rebinding.example/")
    assert dialled == [SOMEWHERE]


@pytest.mark.attack(55)
def test_a_name_that_changes_its_mind_before_a_redirect_is_checked_again() -> None:
    answers = iter([[SOMEWHERE], ["127.0.0.1"]])
    with serving(saying(reply(b"", "302 Found", Location="/next"))) as server:

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            assert address == SOMEWHERE
            return socket.create_connection(("127.0.0.1", server.port), seconds)

        said = problem_of(
            GuardedWeb(resolve=lambda host, port: next(answers), connect=dial), "http://rebinding.example/"
        )
    assert isinstance(said, AddressRefused)
    assert server.paths == ["/"]


@pytest.mark.parametrize("spelling", [*SPELLINGS, *PRIVATE[:12]])
@pytest.mark.attack(55)
def test_no_redirect_leads_to_a_private_place(spelling: str) -> None:
    with serving(saying(reply(b"secret"))) as target:
        for form in WRITTEN:
            location = form.format(f"{spelling}:{target.port}").replace("\r\n", "\r\n ")
            with serving(saying(reply(b"", "302 Found", Location=location))) as first:
                web = allowing(first, redirects=1, resolve=loopback)
                problem_of(web, first.url)
        assert target.connections == 0


@pytest.mark.parametrize("allowed", ["127.0.0.1:1", "localhost", "127.0.0.2", "0.0.0.1", "*", "", "27.0.0.1"])
@pytest.mark.attack(55)
def test_what_is_allowed_is_allowed_by_its_very_name(allowed: str) -> None:
    with serving(saying(reply(b"secret"))) as server:
        problem_of(GuardedWeb((allowed,)), server.url)
        assert server.connections == 0


@pytest.mark.parametrize("way", [GuardedWeb, lambda **fields: polite(GuardedWeb(**fields))])
@pytest.mark.attack(55)
def test_a_strangers_redirect_does_not_lead_to_what_is_allowed(way: Callable[..., GuardedWeb]) -> None:
    with serving(saying(reply(b"secret"))) as inside:
        pages = {"/a": reply(b"", "302 Found", Location=f"{inside.url}/")}
        with serving(site(pages)) as stranger:

            def dial(address: str, port: int, seconds: float) -> socket.socket:
                port = stranger.port if address == SOMEWHERE else port
                return socket.create_connection(("127.0.0.1", port), seconds)

            web = way(allow=(inside.place,), resolve=lambda host, port: by_name(host), connect=dial)
            problem_of(web, "http://stranger.example/a")
            assert stranger.paths[-1] == "/a"
            assert inside.connections == 0
            assert web.get(inside.url).content == b"secret"


def by_name(host: str) -> list[str]:
    return [SOMEWHERE] if host.endswith(".example") else [host]


@pytest.mark.attack(55)
def test_a_redirect_to_another_port_of_a_public_host_is_not_followed() -> None:
    with serving(saying(reply(b"", "302 Found", Location="http://example.org:22/"))) as server:

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            assert port == 80
            return socket.create_connection(("127.0.0.1", server.port), seconds)

        said = problem_of(GuardedWeb(resolve=lambda host, port: [SOMEWHERE], connect=dial), "http://example.org/")
    assert "unusual port" in said.what
    assert server.connections == 1


@pytest.mark.parametrize(("body", "why"), [(b"x" * 1_001, "more than 1,000 bytes"), (b"x" * 1_000, "")])
@pytest.mark.attack(56)
def test_an_answer_has_no_more_bytes_than_were_asked_for(body: bytes, why: str) -> None:
    with serving(saying(reply(body))) as server:
        if why:
            assert why in problem_of(allowing(server), server.url, cap=1_000).what
        else:
            assert allowing(server).get(server.url, cap=1_000).content == body


@pytest.mark.attack(56)
def test_redirects_share_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each hop is quick enough by itself: it takes 200 of the 500 seconds.
    hops, over = list[bytes](), threading.Event()
    monkeypatch.setattr(guard, "time", SimpleNamespace(monotonic=lambda: 200.0 * len(hops)))

    def slow(plug: socket.socket, request: bytes) -> None:
        hops.append(request)
        if len(hops) <= 3:
            plug.sendall(reply(b"", "302 Found", Location="/"))
        else:  # whoever has time left gets an answer
            over.wait(20)
            plug.sendall(reply(b"late"))

    with serving(slow) as server:
        try:
            said = problem_of(allowing(server, seconds=500.0, redirects=50), server.url)
        finally:
            over.set()
    assert "in time" in said.what
    assert len(hops) in (3, 4)


@pytest.mark.attack(56)
def test_a_resolver_that_never_answers_is_not_waited_for() -> None:
    never = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        never.wait(60)
        return [SOMEWHERE]

    try:
        assert "not found in time" in problem_of(GuardedWeb(seconds=0.2, resolve=resolve), "http://example.org/").what
    finally:
        never.set()


def test_no_trouble_tells_a_key_in_an_address() -> None:
    said = problem_of(GuardedWeb(resolve=loopback), "http://example.org/hook/abcdef?key=hush-hush")
    assert "hush" not in said.what + said.next_step
    assert "abcdef" not in said.what + said.next_step


@pytest.mark.attack(55)
def test_a_stranger_on_the_way_does_not_lead_back_to_what_is_allowed() -> None:
    with serving(saying(reply(b"secret"))) as inside:
        back = reply(b"", "302 Found", Location=f"{inside.url}/")
        out = reply(b"", "302 Found", Location="http://stranger.example/a")
        with serving(saying(back)) as stranger, serving(saying(out)) as asked:

            def dial(address: str, port: int, seconds: float) -> socket.socket:
                port = stranger.port if address == SOMEWHERE else port
                return socket.create_connection(("127.0.0.1", port), seconds)

            web = GuardedWeb((inside.place, asked.place), resolve=lambda host, port: by_name(host), connect=dial)
            problem_of(web, asked.url)
            assert (stranger.connections, inside.connections) == (1, 0)


@pytest.mark.attack(55)
@pytest.mark.parametrize("trick", ["a b", "a\\b", "a\tb", "a\x00b", "a" * 20_000])
def test_an_address_with_tricks_in_it_is_refused(trick: str) -> None:
    with pytest.raises(AddressRefused):
        parse_address(f"http://example.org/{trick}")
