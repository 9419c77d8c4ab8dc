"""What facts look like in public: names stay names, whatever a stranger made of them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twitter_text.extract_urls import extract_urls_with_indices

from ralph_mission.publishers.public_text import LONGEST, value, words
from ralph_mission.safety import text
from tests.safety.hostile_texts import hidden


@pytest.mark.parametrize(
    "name",
    [
        "Cosmos Hub",
        "AT&T",
        "日本のバリデータ",
        "Łódź 24/7",
        "it's 5 $",
        "v1.2.3",
        "👩🏽‍🚀 crew",
        "2026-02-16T06:00:00Z",
    ],
)
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert words(name) == name


@pytest.mark.attack(28, 36)
@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("@everyone look", "everyone look"),
        ("\uff20everyone", "everyone"),
        ("&#64;everyone", "everyone"),
        ("<@&123> <b>bold</b>", "&123 b bold b"),
        ("fixes #3", "fixes 3"),
        ("see https://evil.example/x?y", "see evil. example/x?y"),
        ("www.evil.com", "evil. com"),
        ("stake.fish", "stake. fish"),
        ("\U0001f4a9.la", "\U0001f4a9. la"),
        ("[click](javascript:alert(1))", "click (javascript:alert(1))"),
        ("**bold** _it_ ~~no~~ `code` ||spoiler||", "bold it no code spoiler"),
        ("abc\u202edcb\u2066", "abcdcb"),
        ("ze\u200bro\ufeff", "zero"),
        ("two\nlines\r\nand\tmore", "two lines and more"),
        ("\x1b[31mred\x07", "red"),
        ("/start me", "start me"),
        ("$ATOM to the moon", "ATOM to the moon"),
        ("#ad", "ad"),
    ],
)
def test_what_a_stranger_made_of_a_name_does_nothing(hostile: str, harmless: str) -> None:
    assert words(hostile) == harmless


def test_a_value_of_ten_thousand_characters_is_cut() -> None:
    assert len(words("x" * 10_000)) == LONGEST
    assert words("x" * 10_000).endswith("…")


def test_marks_that_pile_up_are_cut_to_two() -> None:
    assert words("a" + "\u0301" * 50) == "a\u0301\u0301"


def test_a_keyword_that_would_close_an_issue_closes_none() -> None:
    assert not text.closing_keywords(words("closes GH-12"), markdown=False)


@pytest.mark.attack(28, 36)
@given(st.text(max_size=300))
def test_nothing_that_calls_leads_or_formats_is_left(said: str) -> None:
    calm = words(said)
    assert len(calm) <= LONGEST
    assert not set("@#<>*_`~|\\[]{}^\n\r") & set(calm)
    assert not text.mentions(calm, markdown=False)
    assert not hidden(calm)
    assert not extract_urls_with_indices(calm)
    assert words(calm) == calm


@pytest.mark.parametrize("number", ["12.50", "-3", "0.000001", "123456789012345678901234567890"])
def test_a_number_stays_exact(number: str) -> None:
    assert value(number) == Decimal(number)
    assert str(value(number)) == number


@pytest.mark.parametrize("said", ["007", "1e5", "NaN", "Infinity", "\uff11\uff12"])
def test_what_only_looks_like_a_number_stays_a_text(said: str) -> None:
    assert isinstance(value(said), str)


def test_a_float_is_what_it_says() -> None:
    assert value(0.1) == Decimal("0.1")
    assert value(3) == Decimal(3)
