"""Texts as an issue shows them, and as they are read back: to the letter, whatever they hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.model.forge import Chart, Post
from ralph_mission.mission.publishing import content
from ralph_mission.mission.publishing.content import PostDraft
from ralph_mission.safety import detect
from tests.mission.build import NOW

HOSTILE = (
    "```", "````\nowned\n````", "~~~", "```text\nx\n```", "### telegram", "<!-- ", "-->", "</details>",
    "<!-- ralph:v1 key=0123456789abcdef -->", "proposal is now `0123abcd`", "    indented", "> quoted", "- list\n  ```",
    "\ttab", "a  \nb", "\r\n", "\n\n\n", "\u202eright", "\u200b", "e\u0301", "\U0001f469\u200d\U0001f467", "\x00",
    "\x0c", "\x1b[31m", "[^1]: note", "[a]: <b>", "---", "***", "===", "|a|b|\n|-|-|", "$$", "&amp;", "\\`", "`",
    "# ", "{{ x }}",
)  # fmt: skip  # one table
WORDS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30)), min_size=1, max_size=6).map("\n".join)


def post(network: str, *parts: str) -> Post:
    return Post(network, parts, tuple(map(len, parts)), 280)


def drafts(*posts: Post) -> tuple[PostDraft, ...]:
    return tuple(PostDraft(one.network, one.parts) for one in posts)


@given(st.lists(st.lists(WORDS.map(content.showable).filter(bool), min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_shown_is_read_back_to_the_letter(parts: list[list[str]]) -> None:
    posts = tuple(post(name, *words) for name, words in zip(("twitter", "telegram", "outbox"), parts, strict=False))
    body = f"Shall it?\n\n{content.render(posts)}\n\n---\n\n**To approve:** label it."
    assert content.read(body) == (drafts(*posts), ())
    assert content.read(body.replace("\n", "\r\n")) == (drafts(*posts), ())


@given(WORDS)
def test_a_text_that_is_made_showable_stays_as_it_is(words: str) -> None:
    assert content.showable(content.showable(words)) == content.showable(words)


@given(WORDS.map(content.showable).filter(bool), WORDS.map(content.showable).filter(bool))
def test_another_text_is_another_hash(one: str, other: str) -> None:
    first, second = (approval.content_hash("a title", content.render([post("x", words)])) for words in (one, other))
    assert (first == second) == (one == other)


@pytest.mark.parametrize(
    "body",
    [
        "<!--\n### twitter\n\n```text\nhidden\n```\n-->",
        "> ### twitter\n>\n> ```text\n> quoted\n> ```",
        "- ### twitter\n\n  ```text\n  nested\n  ```",
        "```text\n### twitter\n```",
        "## twitter\n\n```text\nanother level\n```",
        "",
    ],
)
def test_what_nobody_sees_as_a_text_is_none(body: str) -> None:
    assert content.read(body) == ((), ("no text stands below the name of a network",))


@pytest.mark.parametrize(
    "before",
    [
        "<details>",
        "<div><!--",
        "some <details> words",
        "<!-- a --!> <details> -->",
        "<!--> <details> -->",
        "<table><tr><td>",
        "<!-- a --><!--\n-->\n<p hidden>",
    ],
)
def test_html_that_may_hide_what_follows_is_an_objection(before: str) -> None:
    body = f"{content.render([post('x', 'a')])}\n\n{before}\n\n### y\n\n```text\nunseen\n```\n\n-->"
    assert content.read(body)[1] == ("there is HTML, which may hide a text",)


def test_a_comment_that_is_closed_hides_nothing_else() -> None:
    body = f"<!-- seen by nobody -->\n\n{content.render([post('x', 'a <b>')])}\n\nwords <!-- more -->\n\n<!-- end -->"
    assert content.read(body) == ((PostDraft("x", ("a <b>",)),), ())


@pytest.mark.parametrize("info", ["mermaid", "math", "geojson", "text mermaid"])
def test_a_block_that_is_drawn_is_no_text(info: str) -> None:
    body = f"### x\n\n```{info}\n%% unseen\ngraph TD\n```"
    assert content.read(body)[1] == (f"`x` has a block of `{info}` and not of text",)


def test_a_chart_is_of_the_network_that_it_stands_below() -> None:
    chart = Chart("APR", "%", ((NOW, 1.0), (NOW + timedelta(hours=1), 2.0)), "From 1 % to 2 %")
    both = content.render([replace(post(name, "a"), chart=chart) for name in ("x", "y")])
    digest = content.chart_digest(chart)
    line = next(line for line in both.splitlines() if line.startswith("With a chart"))
    assert content.charts(both) == {("x", digest), ("y", digest)}
    assert content.charts(both.replace(line, "", 1)) == {("y", digest)}
    assert content.charts(both.replace(line, f"<!-- {line} -->")) == frozenset()
    assert content.charts(both.replace(line, f"```text\n{line}\n```")) == frozenset()


def test_a_network_twice_or_without_words_is_an_objection() -> None:
    _, wrong = content.read("### x\n\n```text\na\n```\n\n### x\n\n```text\nb\n```\n\n### y\n\n### z\n\n```text\n \n```")
    assert wrong == ("`x` stands there twice", "`y` has no text", "`z` has no text")


def test_a_block_below_another_heading_is_evidence_and_no_text() -> None:
    body = content.render([post("x", "a")]) + "\n\n## Evidence\n\n```text\nno text\n```"
    assert content.read(body) == ((PostDraft("x", ("a",)),), ())


def test_lengths_limits_and_parts_are_told() -> None:
    shown = content.render([replace(post("twitter", "one", "three"), lengths=(3, 5))])
    assert "Part 1 of 2, 3 of 280:" in shown and "Part 2 of 2, 5 of 280:" in shown


def test_a_chart_is_bound_by_its_digest() -> None:
    chart = Chart("APR", "%", ((NOW, 1.0), (NOW + timedelta(hours=1), 2.0)), "From 1 % to 2 %, says @mara")
    body = content.render([replace(post("x", "a"), chart=chart)])
    assert content.charts(body) == {("x", content.chart_digest(chart))} and "@mara" not in body
    assert content.chart_digest(chart) != content.chart_digest(replace(chart, points=chart.points[:1]))
    assert content.read(body) == ((PostDraft("x", ("a",)),), ())


LINES = st.lists(
    st.one_of(st.sampled_from((*HOSTILE, "``", "https://a.example/b")), st.text()), min_size=9, max_size=30
)


@given(st.lists(LINES.map(" ".join), min_size=1, max_size=3).map("\n".join).map(content.showable).filter(bool))
def test_long_lines_are_read_back_to_the_letter_and_wrap_below_their_block(words: str) -> None:
    body = content.render([post("x", words)])
    assert content.read(body) == ((PostDraft("x", (words,)),), ())
    long = any(len(line) > 100 for line in words.split("\n"))
    assert ("with its long lines wrapped" in body) is long


def test_what_a_wrapped_quote_says_is_what_the_block_says() -> None:
    words = f"{' '.join(20 * ['a `code`'])}\n\n``` @mara fixes #3 <b>"
    body = content.render([post("x", words)])
    quoted = body.split("as it was first asked about:\n\n")[1]
    assert quoted == f"> `` {words.splitlines()[0]} ``\\\n>\n> ```` ``` @mara fixes #3 <b> ````"
    assert detect.mentions(body, markdown=True) == detect.closing_keywords(body, markdown=True) == ()
    assert content.render([post("x", "a" * 100)]).count("a" * 100) == 1


class TenCharacterNetwork:
    """Takes ten characters."""

    networks = ("x",)

    def measure(self, network: str, parts: tuple[str, ...]) -> Post:
        if any(len(part) > 10 for part in parts):
            raise UserError("11 of 10 is too long", "shorten it")
        return post(network, *parts)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("fine", ()),
        ("x" * 11, ("`x`: 11 of 10 is too long",)),
        ("hi @mara", ("x: it mentions somebody with an @",)),
        ("fixes #3", ("x: it says what closes an issue",)),
        ("a\u202eb\u200b", ("x: it contains invisible characters (U+202E, U+200B)",)),
        ("\U0001f469\u200d\U0001f467", ()),
        ("a" + " " * 9, ()),
        ("a" + " " * 8, ()),
    ],
)
def test_what_a_network_or_a_rule_would_refuse_is_told(words: str, wrong: tuple[str, ...]) -> None:
    found = content.measure_posts(TenCharacterNetwork(), content.render([post("x", words)]))  # type: ignore[arg-type]  # all that is asked
    assert found.wrong == wrong


@pytest.mark.parametrize("blanks", [9 * " ", 2 * "\t", 9 * "\u3000", "\u2003\t \u00a0     "])
def test_blanks_that_put_words_out_of_sight_are_refused(blanks: str) -> None:
    told = "it has more than 8 blanks in a row, which may put words out of sight"
    assert list(content.find_traps(post("x", f"a{blanks}b"))) == [told]
    assert list(content.find_traps(post("x", f"a{8 * ' '}b"))) == []
