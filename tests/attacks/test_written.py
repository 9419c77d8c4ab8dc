"""What we write, at the place it goes to: one sanitiser for each, at rest afterwards, and nothing gets through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from ralph_mission.adapters.report.dashboard import ours
from ralph_mission.adapters.report.progress import safe
from ralph_mission.mission.model.effects import MARKER, marker
from ralph_mission.mission.proposals.wording import plain
from ralph_mission.mission.publishing.texts import clean_fact
from ralph_mission.safety.detect import workflow_commands
from ralph_mission.safety.text import inline, inline_words, quote, sanitise
from tests.attacks.words import harmful_actions, wrapped
from tests.safety.hostile_texts import commands, hidden, nasty

SINKS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "words within a body": inline_words,
        "a title, a label": plain,
        "a commit message": lambda text: sanitise(text, "commit"),
        "a post": clean_fact,
        "a prompt": lambda text: sanitise(text, "prompt"),
        "a line of a terminal or a log": safe,
        "a page of ours": ours,
    }
)
WITHOUT_MARKUP = ("a title, a label", "a commit message", "a post", "words within a body")
ON_A_FORGE = tuple(name for name in SINKS if name not in ("a prompt", "a line of a terminal or a log"))


def first_of(sinks: Iterable[str]) -> list[Any]:
    """All of them, the first one in every run and the others in long ones."""
    first, *others = sinks
    return [first, *(pytest.param(one, marks=pytest.mark.long) for one in others)]


@pytest.mark.parametrize("sink", SINKS)
@given(text=nasty)
@example("    fixes #3")  # code, until it is one line
@settings(max_examples=25, deadline=None)
def test_what_was_made_harmless_for_a_place_stays_as_it_is(sink: str, text: str) -> None:
    once = SINKS[sink](text)
    assert SINKS[sink](once) == once


def done(sink: str, text: str) -> list[str]:
    """What it would still do there. Words within a body are read in both ways."""
    ways = (True, False) if sink == "words within a body" else (sink not in WITHOUT_MARKUP,)
    return [action for markdown in ways for action in harmful_actions(SINKS[sink](text), markdown)]


WORDS = ("close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved")
CASES = (str.lower, str.upper, str.title)
GAPS = (" ", ": ", ":", "\t", "  ", "\n", " : ")
WHAT = (
    "#3", "owner/repo#4", "GH-6", "https://github.com/o/r/issues/5", "https://github.com/o/r/pull/7", "&#35;8",
    "GH-team/repo#9", "https://github.com/gh-actions/gh-1/issues/2",
)  # fmt: skip  # one list


@pytest.mark.long  # the sanitiser's own tests have every spelling
@pytest.mark.attack(27)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("sink", first_of(ON_A_FORGE))
def test_no_spelling_of_a_closing_keyword_closes_anything(sink: str, word: str) -> None:
    for case, gap, what in product(CASES, GAPS, WHAT):
        for text in wrapped(f"{case(word)}{gap}{what}"):
            assert done(sink, f"This {text}.") == [], text


NAMES = (
    "@mara", "@org/team", "@everyone", "@here", "@channel", "<@123>", "<@!123>", "<@&123>", "@dependabot", "@claude",
    "\uff20mara", "@\u200bmara", "&commat;mara", "&#64;mara", "\\@mara", "@mara-quint", "@m", "a @mara b", "(@mara)",
)  # fmt: skip  # one list


@pytest.mark.attack(28)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("sink", first_of(ON_A_FORGE))
def test_no_name_is_called(sink: str, name: str) -> None:
    for text in wrapped(name):
        assert done(sink, f"Thanks {text}!") == [], text


ORDERS = {
    29: ("[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "***NO_CI***", "skip-checks: true",
         "[SKIP CI]", "[skip-ci]", "[azp skip]", "[skip travis]", "[Skip Netlify]", "[skip\u200b ci]"),
    30: ("Co-authored-by: E <e@x.y>", "co-authored-by:E", "Signed-off-by: E", "Reviewed-by: E", "Acked-by: E",
         "> Signed-off-by: E", "Change-Id: I1", "Co-Authored-By : E"),
    31: ("/merge", "/approve", "/lgtm", "/ralph approve", "bors r+", "bors try", "homu r+", "ok to test",
         "@dependabot merge", "`@dependabot merge`", "- /rebase", "> /close", "/retest", "mergify merge", "/retitle: x",
         "/deploy:prod", "/close: done"),
    37: ("::set-output name=a::b", "::add-mask::x", "::stop-commands::x", "::error file=a::b", "  ::debug::x",
         "##[error]x", "##[group]x", "::save-state name=a::b", "::add-path::x", "::set-env name=a::b"),
}  # fmt: skip  # by case


@pytest.mark.parametrize(
    "order",
    [pytest.param(one, marks=pytest.mark.attack(case), id=ascii(one)) for case, all_ in ORDERS.items() for one in all_],
)
@pytest.mark.parametrize(
    "sink", first_of(("words within a body", "a page of ours", "a title, a label", "a commit message"))
)
def test_no_order_to_a_machine_is_left(sink: str, order: str) -> None:
    for text in (order, f"words\n{order}", f"words\r\n{order}\r\nmore", f"words\n\n{order}\n"):
        calm = SINKS[sink](text)
        assert (commands(calm), workflow_commands(calm, markdown=sink not in WITHOUT_MARKUP)) == ([], ()), text


@pytest.mark.parametrize(
    "order",
    [pytest.param(one, marks=pytest.mark.attack(case), id=ascii(one))
     for case, all_ in (ORDERS | {28: NAMES}).items() for one in all_],
)  # fmt: skip  # one list
def test_no_fact_in_the_mark_of_what_is_ours_is_an_order_or_a_name(order: str) -> None:
    mark = marker("0" * 16, kind=order, mission="1")
    assert harmful_actions(f"Text.\n\n{mark}") == []
    assert MARKER.findall(mark) == ["0" * 16] and mark.endswith(" mission=1 -->")


ADDRESSES = (
    "https://evil.example/?d=1", "http://evil.example", "HTTPS://EVIL.example/x", "//evil.example/x",
    "https:evil.example",
    "https:\\\\evil.example", "https://github.com@evil.example/", "https://github.com.evil.example/",
    "https&colon;//evil.example", "&#104;ttps://evil.example", "javascript:alert(1)", "JaVaScRiPt:alert(1)",
    "data:text/html;base64,eA==", "vbscript:x", "file:///etc/passwd", "java&Tab;script:x", "&#x6A;avascript:x",
    "https://evil。example", "ftp://evil.example", "tg://resolve?domain=x", "discord://x",
)  # fmt: skip  # one list
FORMS = (
    "![x]({})",
    "[x]({})",
    "[x](<{}>)",
    "[x]: {}\n\n[x]",
    "![x][y]\n\n[y]: {}",
    "<img src='{}'>",
    "<a href={}>x</a>",
)
HARMLESS = re.compile(
    r"hxxps?:|mailto:|https://(?:docs\.)?github\.com(?:/|$)|(?!//|/?\\)(?![a-z][a-z0-9+.-]*:)", re.IGNORECASE
)
"""What leads nowhere, to a place that is allowed, or to one of the repository's own."""


def places(markdown: str) -> list[str]:
    """Where a reader's browser would go, of itself or when clicked."""
    tokens = MarkdownIt("commonmark").parse(markdown)
    every = [child for token in tokens for child in (token, *(token.children or ()))]
    return [str(token.attrGet(name)) for token in every for name in ("src", "href") if token.attrGet(name)]


@pytest.mark.attack(32, 36)
@pytest.mark.parametrize("address", ADDRESSES, ids=ascii)
@pytest.mark.parametrize("sink", first_of(("words within a body", "a page of ours")))
def test_no_image_and_no_link_leads_to_a_place_that_is_not_allowed(sink: str, address: str) -> None:
    for form in FORMS:
        calm = SINKS[sink](form.format(address))
        assert [place for place in places(calm) if not re.match(HARMLESS, place)] == [], calm
        assert re.search("<[A-Za-z/!?]", calm) is None, calm


@pytest.mark.attack(8, 27, 28, 31)
@given(text=nasty)
@settings(max_examples=25, deadline=None)
def test_a_quotation_is_one_block_of_code_whatever_it_holds(text: str) -> None:
    assert [token.type for token in MarkdownIt("commonmark").parse(quote(text))] == ["fence"]
    assert len(inline(text).splitlines()) == 1
    assert hidden(inline(text)) == []
