"""What a comment asks for: one grammar for cycles, reviews, drafts, sessions and the gate."""

from __future__ import annotations

import pytest

from ralph_mission.mission.lifecycle.comment_commands import WORDS, addresses_us, read_command


@pytest.mark.parametrize("word", WORDS)
def test_a_command_is_its_word_and_the_text_after_it(word: str) -> None:
    assert read_command(f"/ralph {word} and more\nbelow") == (word, "and more\nbelow")
    assert read_command(f"\r\n \n   /RALPH\t{word.upper()}") == (word, "")


@pytest.mark.parametrize(
    "comment",
    [
        "/ralph aprove",
        "/ralph approve-all",
        "/ralph approved",
        "/ralph status",
        "/ralph-approve",
        "/ralph",
        "/ralph\napprove",
        "    /ralph approve",
        "\t/ralph approve",
        "please /ralph approve",
        "> /ralph approve",
        "",
    ],
)
def test_what_is_spelt_indented_or_placed_otherwise_is_no_command(comment: str) -> None:
    assert read_command(comment) == ("", "")


def test_what_begins_like_a_command_is_no_part_of_a_task() -> None:
    assert all(addresses_us(comment) for comment in ("/ralph aprove", " \n/Ralph, do it", "    /ralph park"))
    assert not addresses_us("see /ralph approve")
