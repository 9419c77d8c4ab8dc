"""Links to lines and threads: clickable on GitHub, harmless whatever a path says, plain on the local forge."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote as encode

import pytest
from markdown_it import MarkdownIt

from ralph_mission.mission.model.mission import Quote
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.proposals.analysis import place_link, quote_line, thread_link
from tests.mission.build import finding
from tests.mission.hostile import harmful_actions

PAGE, SHA = "https://github.com/acme/shop", "a" * 40


def test_a_line_is_linked_as_it_was_seen() -> None:
    assert (
        place_link(PAGE, Quote("x", "src/a b.py", 12, SHA)) == f"[`src/a b.py:12`]({PAGE}/blob/{SHA}/src/a%20b.py#L12)"
    )


def test_without_a_page_or_a_commit_a_line_is_named() -> None:
    assert place_link("", Quote("x", "a.py", 12, SHA)) == "`a.py:12`"
    assert place_link(PAGE, Quote("x", "a.py", 12)) == "`a.py:12`"


def test_a_thread_is_linked_without_a_trace_on_it() -> None:
    assert thread_link(PAGE, 7) == "[#7](https://redirect.github.com/acme/shop/issues/7)"
    assert thread_link("https://git.example.org/acme/shop", 7) == "[#7](https://git.example.org/acme/shop/issues/7)"
    assert thread_link("", 7) == "#7"


def test_a_run_and_a_commit_are_linked() -> None:
    assert quote_line(PAGE, Quote("test", run=7)) == f"[run 7]({PAGE}/actions/runs/7): `test`"
    assert quote_line(PAGE, Quote("Break it", commit=SHA)) == f"[`{SHA[:12]}`]({PAGE}/commit/{SHA}): `Break it`"
    assert quote_line("", Quote("test", run=7)) == "run 7: `test`"
    assert quote_line(PAGE, Quote("x", commit="](x) ")) == "`](x)`: `x`"


def test_a_list_links_the_thread_that_it_is_about() -> None:
    member = finding(kind="stale-issue", title="#7 is unassigned and has been quiet for 15 days: Crash", reference=7)
    assert wording.monitor_line(member, PAGE).startswith(f"- {thread_link(PAGE, 7)} `is unassigned and has been quiet")
    assert wording.monitor_line(member).startswith("- `#7 is unassigned")


def test_a_proposal_shows_what_it_rests_on() -> None:
    quote = Quote("# TODO: remove after 2019", "a.py", 2, SHA)
    member = finding(kind="overdue-marker")
    member = replace(member, signal=replace(member.signal, quotes=(quote,)))
    assert f"- {quote_line(PAGE, quote)}" in wording.proposal_body(member, "why", None, page=PAGE)


@pytest.mark.parametrize(
    "path",
    ["a)](https://evil.example/x.py", "@joe/a.py", "`@joe`.py", "fixes #3/a.py", "a\n::add-mask::x.py", "<img>.py"],
)
def test_a_path_or_line_does_nothing_but_stand_there(path: str) -> None:
    member = finding(kind="overdue-marker")
    quotes = (Quote(f"{path} fixes #3 @joe", path, 2, SHA), Quote(path, reference=3))
    member = replace(member, signal=replace(member.signal, quotes=quotes))
    for body in (wording.proposal_body(member, "why", None, page=PAGE), wording.monitor_line(member, PAGE)):
        assert harmful_actions(body) == []
        assert targets(body) <= {f"{PAGE}/blob/{SHA}/{encode(path, safe='/')}#L2", thread_link(PAGE, 3)[5:-1]}


def targets(body: str) -> set[str]:
    """Where the links of a text lead, as a reader of Markdown finds them."""
    tokens = (child for token in MarkdownIt().parse(body) for child in token.children or ())
    return {str(token.attrGet("href")) for token in tokens if token.type == "link_open"}
