"""Lengths as networks count them, and threads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.publishers.lengths import LONG, MEASURES, MOST, measure_post, split_text, units, weight
from ralph_mission.trouble import UserError

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
