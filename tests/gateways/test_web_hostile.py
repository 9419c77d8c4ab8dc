"""What strangers do with a reader of the web: nothing of it reaches a private place, outlasts a cap, or hangs."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from collections.abc import Callable

import pytest

from ralph_mission.gateways.web import Guarded
from ralph_mission.gateways.web_address import Refused, place, public
from ralph_mission.gateways.web_robots import polite
from tests.gateways.test_web import SOMEWHERE, allowing, trouble_of
from tests.gateways.web_server import Speak, for_ever, reply, saying, serving, site

CAP = 100_000
OK = b"HTTP/1.1 200 OK\r\n"
PRIVATE = """127.0.0.1 127.8.9.1 0.0.0.0 10.0.0.1 172.16.5.4 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200
    192.0.0.192 198.18.0.1 192.0.2.1 203.0.113.7 192.88.99.1 224.0.0.1 239.1.2.3 240.0.0.1 255.255.255.255 :: ::1
    ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 ff02::1
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
    assert not public(address)


@pytest.mark.parametrize("address", [SOMEWHERE, "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
@pytest.mark.benign("url")
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert public(address)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.attack(55)
def test_no_spelling_of_a_private_address_reaches_it(spelling: str) -> None:
    with serving(saying(reply(b"secret"))) as server:
        for host in (spelling, f"{spelling}:{server.port}"):
            for form in WRITTEN:
                assert isinstance(trouble_of(Guarded(resolve=loopback), form.format(host)), Refused)
        assert server.connections == 0


@pytest.mark.parametrize("address", [one for one in PRIVATE if one[0] in "0123456789:f"])
@pytest.mark.attack(55)
def test_no_name_of_a_private_address_reaches_it(address: str) -> None:
    dialled: list[str] = []

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        raise OSError

    for found in ([address], [SOMEWHERE, address], [address, SOMEWHERE]):
        web = Guarded(resolve=lambda host, port, found=found: found, dial=dial)
        assert isinstance(trouble_of(web, "http://friendly.example/"), Refused)
    assert dialled == []


@pytest.mark.attack(55)
def test_a_name_that_changes_its_mind_is_asked_where_it_was_checked() -> None:
    answers, dialled = iter([[SOMEWHERE], ["127.0.0.1"], ["127.0.0.1"]]), []

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError

    trouble_of(Guarded(resolve=lambda host, port: next(answers), dial=dial), "http://rebinding.example/")
    assert dialled == [SOMEWHERE]


@pytest.mark.attack(55)
def test_a_name_that_changes_its_mind_before_a_redirect_is_checked_again() -> None:
    answers = iter([[SOMEWHERE], ["127.0.0.1"]])
    with serving(saying(reply(b"", "302 Found", Location="/next"))) as server:

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            assert address == SOMEWHERE
            return socket.create_connection(("127.0.0.1", server.port), seconds)

        said = trouble_of(Guarded(resolve=lambda host, port: next(answers), dial=dial), "http://rebinding.example/")
    assert isinstance(said, Refused)
    assert server.paths == ["/"]


@pytest.mark.parametrize("spelling", [*SPELLINGS, *PRIVATE[:12]])
@pytest.mark.attack(55)
def test_no_redirect_leads_to_a_private_place(spelling: str) -> None:
    with serving(saying(reply(b"secret"))) as target:
        for form in WRITTEN:
            location = form.format(f"{spelling}:{target.port}").replace("\r\n", "\r\n ")
            with serving(saying(reply(b"", "302 Found", Location=location))) as first:
                web = allowing(first, redirects=1, resolve=loopback)
                trouble_of(web, first.url)
        assert target.connections == 0


@pytest.mark.parametrize("allowed", ["127.0.0.1:1", "localhost", "127.0.0.2", "0.0.0.1", "*", "", "27.0.0.1"])
@pytest.mark.attack(55)
def test_what_is_allowed_is_allowed_by_its_very_name(allowed: str) -> None:
    with serving(saying(reply(b"secret"))) as server:
        trouble_of(Guarded((allowed,)), server.url)
        assert server.connections == 0


@pytest.mark.parametrize("way", [Guarded, lambda **fields: polite(Guarded(**fields))])
@pytest.mark.attack(55)
def test_a_strangers_redirect_does_not_lead_to_what_is_allowed(way: Callable[..., Guarded]) -> None:
    with serving(saying(reply(b"secret"))) as inside:
        pages = {"/a": reply(b"", "302 Found", Location=f"{inside.url}/")}
        with serving(site(pages)) as stranger:

            def dial(address: str, port: int, seconds: float) -> socket.socket:
                port = stranger.port if address == SOMEWHERE else port
                return socket.create_connection(("127.0.0.1", port), seconds)

            web = way(allow=(inside.place,), resolve=lambda host, port: by_name(host), dial=dial)
            trouble_of(web, "http://stranger.example/a")
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

        said = trouble_of(Guarded(resolve=lambda host, port: [SOMEWHERE], dial=dial), "http://example.org/")
    assert "unusual port" in said.what
    assert server.connections == 1


@pytest.mark.parametrize("name", ["X-A", "Host", "User-Agent"])
def test_a_line_break_in_a_header_is_not_sent(name: str) -> None:
    with serving(saying(reply())) as server:
        trouble_of(allowing(server), server.url, headers={name: "a\r\nX-Evil: 1"})
        assert server.asked == []


def bomb(levels: int) -> bytes:
    body = b"\0" * 20_000_000
    for _ in range(levels):
        body = gzip.compress(body)
    return body


HEAD = OK + b"Content-Type: text/html\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
EMPTY_BLOCKS = b"\0\0\0\xff\xff" * 5_000  # deflate that says nothing, and goes on
HOSTILE: dict[str, tuple[Speak, str]] = {
    "gzip bomb": (saying(reply(bomb(1), Content_Encoding="gzip")), "more than"),
    "deflate bomb": (saying(reply(zlib.compress(b"\0" * 20_000_000), Content_Encoding="deflate")), "more than"),
    "bomb in a bomb": (saying(reply(bomb(2), Content_Encoding="gzip, gzip")), "encoding"),
    "brotli": (saying(reply(b"\x8b\x00\x80", Content_Encoding="br")), "encoding"),
    "zstd": (saying(reply(b"\x28\xb5\x2f\xfd", Content_Encoding="zstd")), "encoding"),
    "gzip of nothing for ever": (
        for_ever(GZIP + b"\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", EMPTY_BLOCKS),
        "more than was asked for",
    ),
    "no gzip": (saying(reply(b"plain", Content_Encoding="gzip")), "HTTP"),
    "gzip cut short": (saying(reply(gzip.compress(b"hello" * 99)[:-9], Content_Encoding="gzip")), "broke off"),
    "too long and says so": (saying(HEAD + b"Content-Length: 99999999999\r\n\r\n"), "more than"),
    "too long": (saying(reply(b"x" * (CAP + 1))), "more than"),
    "endless": (for_ever(HEAD + b"\r\n", b"x" * 10_000), "more than"),
    "endless chunks": (for_ever(HEAD + CHUNKED, b"5\r\nhello\r\n"), "more than"),
    "a chunk of terabytes": (for_ever(HEAD + CHUNKED + b"ffffffffff\r\n", b"x" * 10_000), "more than"),
    "endless chunk size": (for_ever(HEAD + CHUNKED, b"0" * 10_000), "HTTP"),
    "endless chunk extension": (for_ever(HEAD + CHUNKED + b"1;", b"x" * 10_000), "HTTP"),
    "endless trailer": (for_ever(HEAD + CHUNKED + b"0\r\n", b"A: b\r\n" * 1_000), "more than was asked for"),
    "slow": (for_ever(HEAD + b"\r\n", b"x", 0.02), "within 0.5 s"),
    "slow headers": (for_ever(OK + b"X-A: ", b"x", 0.02), "within 0.5 s"),
    "slow status": (for_ever(b"HTTP", b"/", 0.02), "within 0.5 s"),
    "silent": (for_ever(b"", b"", 0.02), "within 0.5 s"),
    "one huge header": (for_ever(OK + b"X-A: ", b"x" * 10_000), "HTTP"),
    "endless headers": (for_ever(OK, b"X-A: b\r\n" * 1_000), "HTTP"),
    "endless 100 Continue": (for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "more than was asked for"),
    "no HTTP": (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), "HTTP"),
    "nothing": (saying(b""), "connection"),
    "broken off": (saying(HEAD + b"Content-Length: 100\r\n\r\nhello"), "broke off"),
    "chunk broken off": (saying(HEAD + CHUNKED + b"50\r\nhello"), "HTTP"),
    "negative length": (saying(HEAD + b"Content-Length: -1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello"), "HTTP"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.attack(56)
def test_whatever_a_server_sends_ends_within_the_caps(case: str) -> None:
    speak, why = HOSTILE[case]
    seconds = 0.5 if why.startswith("within") else 60.0  # one cap at a time
    with serving(speak) as server:
        said = trouble_of(allowing(server, seconds=seconds), server.url, cap=CAP)
    assert why in said.what, said.what


@pytest.mark.attack(56)
def test_a_handshake_that_drips_ends_too() -> None:
    with serving(for_ever(b"\x16\x03\x03\x40\x00\x02", b"\0", 0.02), listens=False) as server:
        said = trouble_of(allowing(server, seconds=0.5), server.url.replace("http", "https"))
    assert "within 0.5 s" in said.what


@pytest.mark.attack(56)
def test_redirects_share_one_time() -> None:
    # Each hop is quick enough by itself.
    def slow(plug: socket.socket, _: bytes) -> None:
        threading.Event().wait(0.2)
        plug.sendall(reply(b"", "302 Found", Location="/"))

    with serving(slow) as server:
        said = trouble_of(allowing(server, seconds=0.5, redirects=50), server.url)
    assert "within 0.5 s" in said.what
    assert len(server.asked) < 5


@pytest.mark.attack(56)
def test_a_resolver_that_never_answers_is_not_waited_for() -> None:
    never = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        never.wait(60)
        return [SOMEWHERE]

    try:
        assert "not found in time" in trouble_of(Guarded(seconds=0.2, resolve=resolve), "http://example.org/").what
    finally:
        never.set()


def test_no_trouble_tells_a_key_in_an_address() -> None:
    said = trouble_of(Guarded(resolve=loopback), "http://example.org/hook/abcdef?key=hush-hush")
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

            web = Guarded((inside.place, asked.place), resolve=lambda host, port: by_name(host), dial=dial)
            trouble_of(web, asked.url)
            assert (stranger.connections, inside.connections) == (1, 0)


@pytest.mark.attack(55)
@pytest.mark.parametrize("trick", ["a b", "a\\b", "a\tb", "a\x00b", "a" * 20_000])
def test_an_address_with_tricks_in_it_is_refused(trick: str) -> None:
    with pytest.raises(Refused):
        place(f"http://example.org/{trick}")


@pytest.mark.attack(39)
def test_a_header_with_a_line_break_is_never_sent() -> None:
    with serving(saying(reply(b""))) as server:
        said = trouble_of(allowing(server), server.url, headers={"X-Told": "a\r\nHost: elsewhere"})
        assert server.asked == []
    assert "cannot be asked with these headers" in said.what
