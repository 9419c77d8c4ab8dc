"""Lengths as networks count them, and threads.

What facts look like in public: names stay names, whatever a stranger made of them.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Finding, Signal
from ralph_mission.mission.publishing import texts
from ralph_mission.mission.publishing.texts import (
    LONG,
    LONGEST,
    MEASURES,
    MOST,
    clean_fact,
    measure_post,
    split_text,
    units,
    value,
    weight,
)
from ralph_mission.safety import detect
from tests.safety.hostile_texts import hidden

PRIVATE = "mara@example.org lives at 7 Quay Street"


@pytest.mark.attack(35)
def test_a_fact_of_an_odd_name_is_none() -> None:
    told = (("a b", 1), ("tvl\n", 2), ("tvl", 3))
    offered = texts.template_facts(
        Finding("f" * 16, Signal("database", "change", "a title", ("essence",), "o1", facts=told))
    )
    assert "tvl" in offered and not {"a b", "tvl\n"} & {*offered}


@pytest.mark.attack(35)
@pytest.mark.parametrize("observer", [*sorted(texts.SOURCES), "web", "code", "commands"])
def test_of_what_a_finding_says_in_words_a_template_knows_nothing(observer: str) -> None:
    told = Signal(
        observer, "change", PRIVATE, (PRIVATE,), "o1", detail=PRIVATE, path=PRIVATE, author=PRIVATE,
        facts=(("value", 3),),
    )  # fmt: skip  # one call
    offered = texts.template_facts(Finding("f" * 16, told))
    assert "Quay" not in repr(offered)
    assert bool(offered) is (observer in texts.SOURCES)


FAMILY = "👨‍👩‍👧‍👦"


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("a", 1),
        ("日", 2),
        ("😷", 2),
        (FAMILY, 2),
        ("🇫🇮", 2),
        ("1️⃣", 2),
        ("e\u0301", 1),
        ("https://example.com/" + "a" * 200, 23),
        ("see example.com now", 31),
        ("a  b\n", 5),
        ("a\u202eb", 4),
    ],
)
def test_x_counts_by_weight(said: str, counted: int) -> None:
    assert weight(said) == counted


@pytest.mark.parametrize(("unit", "size"), [("日", 2), (FAMILY, 2), ("a", 1)])
def test_what_just_fits_on_x_is_one_post(unit: str, size: int) -> None:
    assert measure_post("twitter", (unit * (280 // size),)).lengths == (280,)
    with pytest.raises(UserError, match="280"):
        measure_post("twitter", (unit * (280 // size) + "a",))


@pytest.mark.parametrize(("network", "limit"), [("telegram", 4096), ("discord", 2000), ("outbox", 4096)])
@pytest.mark.parametrize("unit", ["a", "日", "😷", FAMILY])
def test_the_others_count_characters_and_an_emoji_as_all_it_is_made_of(network: str, limit: int, unit: str) -> None:
    fits = unit * (limit // units(unit))
    assert measure_post(network, (fits,)).lengths[0] <= limit
    with pytest.raises(UserError, match=f"{limit:,}"):
        measure_post(network, (fits + unit,))


def test_a_word_that_nobody_would_write_is_measured_at_once() -> None:
    assert weight("a." * 1_900) == 3_800
    assert weight("a." * 50_000) > 280
    assert LONG < 1_000


@pytest.mark.parametrize("parts", [(), ("",), ("  \n",), ("a", "")])
def test_a_post_without_a_text_is_refused(parts: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="no text"):
        measure_post("discord", parts)


def test_an_unknown_network_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError) as told:
        measure_post("myspace", ("hello",))
    assert "discord" in told.value.next_step


def test_what_is_short_stays_one_part() -> None:
    assert split_text("Hello there.", "twitter") == ("Hello there.",)


def test_a_long_text_is_cut_after_sentences_and_counted() -> None:
    sentence = "Every sentence of this text is about sixty characters long. "
    parts = split_text((sentence * 10).strip(), "twitter")
    assert [part[-5:] for part in parts] == ["(1/3)", "(2/3)", "(3/3)"]
    assert all(part[:-6].endswith("long.") for part in parts)


def test_a_long_sentence_is_cut_between_words_and_loses_none() -> None:
    said = " ".join(f"word{number}" for number in range(100))
    parts = split_text(said, "twitter")
    assert " ".join(part.rpartition(" (")[0] for part in parts) == said


def test_a_long_word_is_cut_between_whole_emoji() -> None:
    parts = split_text(FAMILY * 300, "twitter")
    assert all(weight(part) <= 280 for part in parts)
    assert "".join(part.rpartition(" (")[0] for part in parts) == FAMILY * 300


def test_more_than_a_thread_may_have_is_refused() -> None:
    with pytest.raises(UserError, match="parts"):
        measure_post("twitter", split_text("word " * 1_000, "twitter"))


HARD = "ab .!?\n日\u3002😷👩🏽\u200d🚀e\u0301"


@given(st.text(HARD, min_size=1, max_size=1_500).filter(str.strip), st.sampled_from(sorted(MEASURES)))
def test_every_part_fits_and_no_word_is_lost(said: str, network: str) -> None:
    parts = split_text(said, network)
    limit, length = MEASURES[network]
    if len(parts) > MOST:
        return
    assert all(length(part) <= limit for part in parts)
    bodies = [part.rpartition(" (")[0] for part in parts] if len(parts) > 1 else list(parts)
    assert "".join("".join(bodies).split()) == "".join(said.split())


@pytest.mark.parametrize("before", ["", "Look: ", "\u65e5" * 100, "\u65e5" * 200])
def test_an_address_is_never_cut_in_two(before: str) -> None:
    with pytest.raises(UserError, match="fits into no part"):
        split_text(f"{before}https://example.com/{'a' * (LONG + 50)} and more", "twitter")
    address = f"https://example.com/{'a' * (LONG - 30)}"
    parts = split_text(f"{before}{address} and more. {'word ' * 80}", "twitter")
    assert sum(address in part for part in parts) == 1


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
    assert clean_fact(name) == name


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
    assert clean_fact(hostile) == harmless


def test_a_value_of_ten_thousand_characters_is_cut() -> None:
    assert len(clean_fact("x" * 10_000)) == LONGEST
    assert clean_fact("x" * 10_000).endswith("…")


def test_marks_that_pile_up_are_cut_to_two() -> None:
    assert clean_fact("a" + "\u0301" * 50) == "a\u0301\u0301"


def test_a_keyword_that_would_close_an_issue_closes_none() -> None:
    assert not detect.closing_keywords(clean_fact("closes GH-12"), markdown=False)


@pytest.mark.attack(28, 36)
@given(st.text(max_size=300))
def test_nothing_that_calls_leads_or_formats_is_left(said: str) -> None:
    from twitter_text.extract_urls import extract_urls_with_indices  # 0.4 seconds, which listing tests can do without

    calm = clean_fact(said)
    assert len(calm) <= LONGEST
    assert not set("@#<>*_`~|\\[]{}^\n\r") & set(calm)
    assert not detect.mentions(calm, markdown=False)
    assert not hidden(calm)
    assert not extract_urls_with_indices(calm)
    assert clean_fact(calm) == calm


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
