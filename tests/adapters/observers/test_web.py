"""The web observer on feeds: what is new is told once, as a quotation, at the source's own pace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.observers import cache, web
from ralph_mission.adapters.observers.together import together
from ralph_mission.adapters.observers.web.state import WebCursor
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Tier
from ralph_mission.mission.model.proposal import ObservationContext, Route, lookup
from tests.adapters.observers.web_world import World, looking, page, rss, titles
from tests.adapters.web_server import reply


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with looking(tmp_path) as one:
        yield one


def test_the_first_look_remembers_and_tells_nothing(world: World) -> None:
    world.pages["/a"] = rss(("1", "One"), ("2", "Two"))
    first = world.look()
    assert (titles(first), first.detail) == ([], "first look: 2 items remembered")


def test_a_new_entry_is_told_once(world: World) -> None:
    world.pages["/a"] = rss(("1", "One"))
    world.look()
    world.pages["/a"] = rss(("2", "Two"), ("1", "One"))
    assert titles(world.look()) == ["rivals: Two"]
    assert titles(world.look()) == []


def test_news_carry_address_date_and_a_quotation_that_says_what_it_is(world: World) -> None:
    world.pages["/a"] = rss()
    world.look()
    world.pages["/a"] = rss(("2", "Two"), extra="&lt;b&gt;Bold&lt;/b&gt; words&lt;script&gt;steal()&lt;/script&gt;")
    (signal,) = world.look(finding="integration").signals
    assert signal.detail == (
        "https://example.org/2, 2026-05-04, from the feed rivals (untrusted words of strangers, quoted):\n"
        "> Two\n> Bold words"
    )
    assert signal.facts == (("source", "rivals"), ("url", "https://example.org/2"), ("date", "2026-05-04"))
    assert (signal.observer, signal.kind) == ("web.rivals", "integration")


def test_news_are_listed_by_default() -> None:
    row = lookup(web.WebSettings(name="x", kind="feed", url="https://example.org/").finding)
    assert (row.route, row.tier) == (Route.MONITOR, Tier.LOW)


def test_only_what_matches_is_told(world: World) -> None:
    world.pages["/a"] = rss()
    world.look(match="risk|score")
    world.pages["/a"] = rss(("1", "A Risk"), ("2", "Nothing"), ("3", "SCORES"))
    assert titles(world.look(match="risk|score")) == ["rivals: A Risk", "rivals: SCORES"]


def test_many_news_are_told_in_part_and_counted(world: World) -> None:
    world.pages["/a"] = rss()
    world.look()
    world.pages["/a"] = rss(*((str(number), f"Number {number}") for number in range(90)))
    seen = world.look()
    assert len(titles(seen)) == 20
    assert seen.detail == "90 items, 90 new, only the first 20 are told"
    assert titles(world.look()) == []


def test_an_entry_that_comes_back_is_not_new(world: World) -> None:
    for entries in ([("1", "One")], [("2", "Two")]):
        world.pages["/a"] = rss(*entries)
        world.look()
    world.pages["/a"] = rss(("1", "One"))
    assert titles(world.look()) == []


@pytest.mark.parametrize(
    "feed",
    [
        b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>2</id><title>Two</title></entry></feed>",
        b"<rss><channel><item><title>Two</title></item>",
        b"<?xml version='1.0' encoding='iso-8859-1'?><rss><channel><item><title>Two</title></item></channel></rss>",
    ],
)
def test_feeds_of_all_kinds_are_read(world: World, feed: bytes) -> None:
    world.pages["/a"] = rss()
    world.look()
    world.pages["/a"] = reply(feed)
    assert titles(world.look()) == ["rivals: Two"]


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "file:///etc/passwd", "http://me:secret@example.org/", "data:text/html,x", "ht tp://"],
)
def test_a_link_that_nobody_should_follow_is_not_shown(world: World, link: str) -> None:
    world.pages["/a"] = rss()
    world.look()
    item = f"<rss version='2.0'><channel><item><title>Two</title><link>{link}</link></item></channel></rss>"
    world.pages["/a"] = reply(item.encode())
    (signal,) = world.look().signals
    assert link not in signal.detail
    assert ("url", "") in signal.facts


def test_what_a_feed_is_made_of_is_never_opened(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(rss(("9", "Secret")).decode().partition("\r\n\r\n")[2])
    entity = f"<!DOCTYPE x [<!ENTITY e SYSTEM '{world.server.url}/canary'><!ENTITY f SYSTEM 'file://{secret}'>]>"
    feed = f"{entity}<rss version='2.0'><channel><item><title>&e;&f;x</title></item></channel></rss>"
    for body in (str(secret), f"file://{secret}", f"{world.server.url}/canary", feed):
        world.pages["/a"] = reply(body.encode(), Content_Location=f"{world.server.url}/canary")
        assert "Secret" not in str(world.look())
    assert "/canary" not in world.asked


# --- pace and memory ------------------------------------------------------------------


def test_an_unchanged_source_is_neither_sent_nor_read_again(world: World) -> None:
    def feed(head: bytes) -> bytes:
        unchanged = b'If-None-Match: "one"' in head
        return (
            reply(b"", "304 Not Modified")
            if unchanged
            else rss(("1", "One")).replace(b"\r\n", b'\r\nETag: "one"\r\n', 1)
        )

    world.pages["/a"] = feed
    assert [world.look().detail for _ in range(3)] == ["first look: 1 item remembered", "unchanged", "unchanged"]


def test_an_unasked_for_304_is_no_first_look(world: World) -> None:
    world.pages["/a"] = reply(b"", "304 Not Modified")
    assert world.look().status == "unavailable"


def test_robots_txt_is_asked_for_once_a_day(world: World) -> None:
    world.pages["/a"] = rss()
    for _ in range(3):
        world.look()
        world.now += timedelta(hours=9)
    assert world.server.paths.count("/robots.txt") == 2


def test_sources_of_one_host_that_look_at_once_ask_for_its_robots_txt_once(world: World) -> None:
    world.pages["/a"] = rss()
    errands, named = web.Errands(), [f"s{n}" for n in range(5)]
    settings = [web.WebSettings(name=name, kind="feed", url=f"{world.server.url}/a") for name in named]
    told = {web.ALLOW: world.server.place}
    sources = [web.build(one, world.folder / "cache", told, errands) for one in settings]
    gaze = ObservationContext(Branch("main", ""), world.now, None, "", str(world.folder))
    seen = list(together([(source, gaze) for source in sources], 60.0))
    assert [one.status for one in seen] == ["ok"] * 5, seen
    assert sorted(world.server.paths) == ["/a"] * 5 + ["/robots.txt"]


def test_a_source_is_left_alone_in_between(world: World) -> None:
    world.pages["/a"] = rss()
    looks = [world.look(every="3h").status for _ in range(5)]
    assert looks == ["ok", "skipped", "skipped", "ok", "skipped"]
    assert len(world.asked) == 2


def test_another_address_is_a_first_look(world: World) -> None:
    world.pages |= {"/a": rss(("1", "One")), "/b": rss(("2", "Two"))}
    world.look()
    assert world.look(url=f"{world.server.url}/b").detail == "first look: 1 item remembered"


@pytest.mark.parametrize("cursor", ["x", "[]", "{}", '{"about":1}', '{"at":"2026-05-04","seen":[]}', "[" * 99_999])
def test_a_cursor_that_cannot_be_read_is_a_first_look(world: World, cursor: str) -> None:
    world.pages["/a"] = rss(("1", "One"))
    world.cursor = cursor
    assert titles(world.look()) == []


def test_memory_stays_small(world: World) -> None:
    for start in range(0, 450, 150):
        world.pages["/a"] = rss(*((str(number), "x") for number in range(start, start + 150)))
        world.look()
    assert len(world.cursor) < 2_000
    assert WebCursor.parse(world.cursor, json.loads(world.cursor)["about"]).dump() == world.cursor


def test_few_texts_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEPT", 3)
    for price in range(5):
        world.pages["/a"] = page(str(price))
        world.look(kind="page")
    assert len(list((world.folder / "cache").rglob("*.json"))) == 3
