"""A file says all that it was told, byte for byte, and what is not a file of ours is named by its line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.forges.local.documents import BOT, LocalThread, Mangled, parse, person, render
from ralph_mission.mission.model.forge import LabelEvent, Review, ThreadComment
from tests.helpers import NOON

MARA = person("mara")
ISSUE = LocalThread(
    number=7, title="Typo", body="There is a typo.", author=BOT, created_at=NOON, updated_at=NOON, labels=("bug",)
)
TALK = replace(ISSUE, remarks=(ThreadComment(1, MARA, "Where?", NOON, NOON),))

anything = st.text(st.characters(codec=None))  # lone surrogates included
pieces = ("=====", "======", "---", " ", "\n", "\r", "\u2028", "x", "===== comment 1 by a (1) at ")
texts = anything | st.lists(st.sampled_from(pieces)).map("".join)
words = st.text(st.characters(codec="utf-8"))
actors = st.sampled_from([BOT, MARA, person("jo.h-n_2"), person("Ünal"), person("a@b")])
moments = st.integers(0, 10**9).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=n))
remarks = st.builds(ThreadComment, st.integers(1, 99), actors, texts, moments, moments)
states = st.sampled_from(["approved", "changes_requested", "commented", "dismissed"])
reviews = st.builds(Review, actors, states, texts, st.sampled_from(["", "0" * 40, "abc123"]), moments)
events = st.builds(LabelEvent, words, actors, moments, st.booleans())


def several(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=4).map(tuple)


facts = {
    "number": st.integers(1, 10**6),
    "title": words,
    "body": texts,
    "author": actors,
    "created_at": moments,
    "updated_at": moments,
    "state": st.sampled_from(["open", "closed", "merged"]),
    "state_reason": words,
    "labels": several(words),
    "assignees": several(words),
    "closed_by": st.none() | actors,
    "closed_at": st.none() | moments,
    "events": several(events),
    "remarks": several(remarks),
}
sides = {"head": words.filter(bool), "merged_by": st.none() | actors, "reviews": several(reviews)}
sides |= dict.fromkeys(("base", "head_sha", "merging", "merged_sha"), words)
threads = st.builds(LocalThread, **facts) | st.builds(LocalThread, **facts, **sides)


@given(threads)
def test_what_is_written_is_what_is_read(thread: LocalThread) -> None:
    assert parse(render(thread)) == thread


@given(threads)
def test_writing_is_stable(thread: LocalThread) -> None:
    assert render(parse(render(thread))) == render(thread)


def test_file_is_pleasant_to_read() -> None:
    assert render(TALK) == (
        "---\nnumber: 7\ntitle: Typo\nstate: open\nauthor: {id: 1, login: 'ralph[bot]'}\nlabels: [bug]\n"
        "assignees: []\ncreated_at: 2026-05-04T12:00:00.000Z\nupdated_at: 2026-05-04T12:00:00.000Z\n"
        "boundary: =====\n---\nThere is a typo.\n"
        f"===== comment 1 by mara ({MARA.id}) at 2026-05-04T12:00:00.000Z\nWhere?\n"
    )


def test_boundary_occurs_in_no_text() -> None:
    thread = replace(TALK, body="======= comment 2 by mara (1) at 2026-05-04T12:00:00Z\n===")
    assert "\n======== comment 1 by" in render(thread)
    assert parse(render(thread)) == thread


def test_editor_that_ends_lines_with_crlf_does_no_harm() -> None:
    assert parse(render(TALK).replace("\n", "\r\n")) == TALK


def test_editor_that_drops_the_last_newline_does_no_harm() -> None:
    assert parse(render(TALK).rstrip("\n")) == TALK


def test_editor_that_writes_a_byte_order_mark_does_no_harm() -> None:
    assert parse("\ufeff" + render(TALK)) == TALK


def test_time_may_be_written_by_hand() -> None:
    text = render(ISSUE).replace("updated_at: 2026-05-04T12:00:00.000Z", "updated_at: 2026-05-04 14:00:00+02:00")
    assert parse(text) == ISSUE


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ("---\nnumber", "number", 1, "begin"),
        ("boundary: =====\n---\n", "", 1, "no end"),
        ("number: 7\n", "number: seven\n", 2, "number"),
        ("title: Typo\n", "title: 2026\n", 3, "quotes"),
        ("title: Typo\n", "", 1, "missing"),
        ("state: open\n", "state: ajar\n", 4, "one of"),
        ("login: 'ralph[bot]'", "name: x", 5, "who"),
        ("labels: [bug]\n", "labels: [1]\n", 6, "labels"),
        ("labels: [bug]\n", "labels: [bug\n", 7, ""),
        ("labels: [bug]\n", "lbls: [bug]\n", 6, "lbls"),
        ("updated_at: 2026-05-04T12:00:00.000Z", "updated_at: soon", 9, "time"),
        ("boundary: =====", "boundary: '#'", 1, "boundary"),
        ("===== comment 1 by", "===== comment one by", 13, "heading"),
        (") at 2026-05-04T", ") at 2026-99-04T", 13, "month"),
    ],
)
def test_mangled_file_is_named_by_its_line(old: str, new: str, line: int, word: str) -> None:
    assert old in render(TALK)
    with pytest.raises(Mangled) as caught:
        parse(render(TALK).replace(old, new, 1))
    assert caught.value.line == line and word in caught.value.what
