"""Sources that are dead, forbidden or hostile: each is `unavailable` by itself, in time, and says what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ralph_mission.adapters.observers import look_once, web
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.http.test_client import HOSTILE, bomb
from tests.adapters.web_server import Server, reply, saying, serving, site
from tests.helpers import NOON


def seen(folder: Path, server: Server, *, reading: float = 10.0, allow: str = "", **settings: Any) -> Observation:
    """What came of one look, by an observer with half a second for asking and a page of a megabyte at most."""
    told = web.WebSettings.model_validate(
        {"name": "x", "kind": "page", "url": f"{server.url}/a?key=hush-hush", **settings}
    )
    source = replace(
        web.build(told, folder / "cache", {web.ALLOW: allow or server.place}), seconds=0.5, patience=reading
    )
    return look_once(source, ObservationContext(Branch("main", ""), NOON, None, "", str(folder)))


def unavailable(found: Observation) -> str:
    assert (found.status, found.signals) == ("unavailable", ())
    assert "hush" not in found.detail
    assert "unexpectedly" not in found.detail
    assert "; " in found.detail  # what to do
    return found.detail


@pytest.fixture
def pages() -> dict[str, Any]:
    return {}


@pytest.fixture
def server(pages: dict[str, Any]) -> Iterator[Server]:
    with serving(site(pages)) as one:
        yield one


@pytest.mark.parametrize("case", ["gzip bomb", "endless headers", "no HTTP", "broken off"])
@pytest.mark.attack(56)
def test_a_hostile_server_is_unavailable(tmp_path: Path, case: str) -> None:
    with serving(HOSTILE[case][0]) as hostile:
        unavailable(seen(tmp_path, hostile, kind="feed"))


@pytest.mark.attack(55)
def test_a_private_place_in_the_settings_is_not_asked(tmp_path: Path, server: Server) -> None:
    assert "RALPH_WEB_ALLOW" in unavailable(seen(tmp_path, server, allow="example.org"))
    assert server.connections == 0


@pytest.mark.parametrize("status", ["404 Not Found", "429 Too Many", "500 Oops", "204 No Content"])
def test_a_status_that_is_no_answer_is_told(tmp_path: Path, server: Server, pages: dict[str, Any], status: str) -> None:
    pages["/a"] = reply(b"", status)
    assert status[:3] in unavailable(seen(tmp_path, server))


def test_a_host_that_wants_no_programs_is_left_alone(tmp_path: Path, server: Server, pages: dict[str, Any]) -> None:
    pages |= {"/robots.txt": reply(b"User-agent: *\nDisallow: /"), "/a": reply(b"<p>x")}
    assert "robots.txt" in unavailable(seen(tmp_path, server))
    assert server.paths == ["/robots.txt"]


LAUGHS = "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
UNREADABLE = {
    "no feed": ("feed", b"<p>hello", "is no feed"),
    "nothing": ("feed", b"", "is no feed"),
    "no JSON": ("json", b"<p>hello", "no JSON"),
    "deep JSON": ("json", b"[" * 900_000, "no JSON"),
    "nothing at the path": ("json", b'{"a": 1}', "nothing at `path`"),
    "an archive in a page": ("page", bomb(1), "is no page"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_not_what_it_should_be_is_told(
    tmp_path: Path, server: Server, pages: dict[str, Any], case: str
) -> None:
    kind, body, why = UNREADABLE[case]
    pages["/a"] = reply(body, Content_Type="application/gzip" if kind == "page" else "text/plain")
    path = {"path": "b"} if kind == "json" else {}
    assert why in unavailable(seen(tmp_path, server, kind=kind, **path))


EXHAUSTING = {
    "deep page": ("page", b"<div>" * 400_000, ""),
    "laughs": ("feed", f"<!DOCTYPE r [<!ENTITY a0 'ha'>{LAUGHS}]><rss><channel>&a11;</channel></rss>".encode(), ""),
    "a pattern for ever": ("json", json.dumps(["a" * 40 + "!"]).encode(), "(a|a)*$"),
    "many attributes": ("page", b"<a " + b"x=1 " * 400_000, ""),
    "many lines": ("page", b"<br>x" * 400_000, ""),
    "open brackets": ("feed", b"<rss><channel><item><title>" + b"<" * 900_000, ""),
}


@pytest.mark.parametrize("case", EXHAUSTING)
@pytest.mark.attack(56, 57)
def test_what_exhausts_a_reader_ends(tmp_path: Path, server: Server, pages: dict[str, Any], case: str) -> None:
    kind, body, match = EXHAUSTING[case]
    pages["/a"] = reply(body, Content_Type="text/html")
    found = seen(tmp_path, server, reading=2.0, kind=kind, match=match)
    assert found.status == "ok" or "cannot be read" in unavailable(found) or "no feed" in found.detail
    assert len(found.cursor) < 3_000


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "feed", "url": "file:///etc/passwd"},
        {"kind": "feed", "url": "http://me:key@example.org/"},
        {"kind": "feed", "url": "http://0x7f.1/"},
        {"kind": "feed"},
        {"kind": "feed", "url": "https://example.org/", "query": "x"},
        {"kind": "feed", "url": "https://example.org/", "path": "x"},
        {"kind": "json", "url": "https://example.org/", "path": "[["},
        {"kind": "page", "url": "https://example.org/", "path": "p["},
        {"kind": "page", "url": "https://example.org/", "match": "("},
        {"kind": "search"},
        {"kind": "search", "query": "x", "url": "https://example.org/"},
        {"kind": "mail", "url": "https://example.org/"},
        {"kind": "feed", "url": "https://example.org/", "allow": ["localhost"]},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        web.WebSettings.model_validate({"name": "x", **settings})


@pytest.mark.attack(10)
def test_what_strangers_write_stays_in_its_quotation(tmp_path: Path, server: Server, pages: dict[str, Any]) -> None:
    hostile = "Hi\r\n\u2028# Heading\x1b[31m\n> not ours\n\u202e<script>x</script> ::set-output::"
    empty, full = [], [{"id": "1", "title": hostile, "text": hostile}]
    pages["/a"] = reply(json.dumps(empty).encode())
    told = web.WebSettings(name="x", kind="json", url=f"{server.url}/a", every="1s")
    source = web.build(told, None, {web.ALLOW: server.place})
    first = source.observe(ObservationContext(Branch("main", ""), NOON, None, "", str(tmp_path)))
    pages["/a"] = reply(json.dumps(full).encode())
    (signal,) = source.observe(
        ObservationContext(Branch("main", ""), NOON.replace(hour=13), None, first.cursor, str(tmp_path))
    ).signals
    assert all(line.startswith("> ") for line in signal.detail.split("\n")[1:])
    assert "\n" not in signal.title
    assert "\x1b" not in signal.detail and "script" not in signal.detail


def test_one_dead_source_hides_no_other(tmp_path: Path, server: Server, pages: dict[str, Any]) -> None:
    pages["/a"] = reply(b"<p>fine")
    with serving(saying(b"")) as dead:
        assert [seen(tmp_path, one).status for one in (dead, server)] == ["unavailable", "ok"]
