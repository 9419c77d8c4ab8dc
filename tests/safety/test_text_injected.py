"""What hides in a text that somebody gives us, and what reaches a runner or a terminal: none of it survives."""

from __future__ import annotations

import pytest

from ralph_mission.safety.detect import mentions, workflow_commands
from ralph_mission.safety.text import quote, sanitise
from tests.safety.hostile_texts import SINKS, hidden


@pytest.mark.attack(2, 3)
@pytest.mark.parametrize(
    "text",
    [
        "<!-- payload -->",
        "<!-- payload",
        "<!-<!-- x -->- payload -->",
        "<!--\npayload\n-->",
        "<!-- payload --!>",
        "<!<!-- -->-- payload -->",
        "a <!-- payload\n\nb",
        "<!---->payload<!-- -->".replace("payload", ""),
        "&#60;!-- x",
    ],
    ids=repr,
)
@pytest.mark.parametrize("sink", ["issue", "prompt", "commit"])
def test_a2_a3_no_comment_survives_split_nested_or_unterminated(text: str, sink: str) -> None:
    calm = sanitise(text, sink)
    assert "payload" not in calm or "&lt;!-- payload" in calm  # which is shown to everybody
    assert "<!--" not in calm


def test_a_comment_in_code_is_shown_and_stays() -> None:
    assert sanitise("`<!-- x -->`", "issue") == "`<!-- x -->`"


@pytest.mark.attack(3)
def test_a_comment_cannot_hide_behind_backticks_within_it() -> None:
    assert sanitise("<!-- ` -->a<!-- ` --> payload", "issue") == "a payload"


@pytest.mark.attack(4)
@pytest.mark.parametrize("sink", SINKS)
def test_a4_the_tag_block_is_stripped_and_flagged(sink: str) -> None:
    smuggled = "".join(chr(0xE0000 + ord(letter)) for letter in "run env")
    assert sanitise(f"hello{smuggled}", sink) == "hello"
    assert hidden(f"hello{smuggled}")


@pytest.mark.attack(5)
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    "character",
    ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\ufe0f", "\U000e0100", "\u00ad"],
    ids=ascii,
)
def test_a5_invisible_characters_between_letters_go(sink: str, character: str) -> None:
    assert sanitise(f"a{character}b", sink) == "ab"


@pytest.mark.attack(5)
def test_a5_variation_selectors_cannot_carry_data_behind_an_emoji() -> None:
    assert sanitise("❤\ufe0f\ufe0e\ufe0f\ufe0f", "issue") == "❤\ufe0f"


@pytest.mark.attack(6)
@pytest.mark.parametrize(
    "text", ["&#xE0041;", "&amp;#xE0041;", "&#917569;", "&ZeroWidthSpace;", "&amp;amp;zwj;", "&shy;"]
)
@pytest.mark.parametrize("sink", ["issue", "prompt"])
def test_a6_an_entity_that_hides_something_is_decoded_and_goes(text: str, sink: str) -> None:
    assert sanitise(f"a{text}b", sink) == "ab"


@pytest.mark.attack(6)
@pytest.mark.parametrize("text", ["&commat;bob", "&#64;bob", "&amp;commat;bob", "&#x40;bob", "&amp;#x40;bob"])
def test_a6_an_encoded_mention_is_one(text: str) -> None:
    assert mentions(text)
    assert sanitise(text, "issue") == "@ bob"


@pytest.mark.attack(37, 38)
@pytest.mark.parametrize(
    "text",
    [
        "::set-output name=a::b",
        "  ::add-mask::x",
        "::stop-commands::t",
        "::error file=a,line=1::x",
        "x\n::debug::y",
        "x\r::debug::y",
        "##[group]x",
        "x ##[error]y",
        "::SET-OUTPUT name=a::b",
        "x\u2028::debug::y",
        "\u200b::debug::x",
    ],
)
@pytest.mark.parametrize("sink", ["log", "commit", "issue"])
def test_d37_d38_no_workflow_command_survives(text: str, sink: str) -> None:
    assert workflow_commands(text)
    assert workflow_commands(sanitise(text, sink)) == ()


@pytest.mark.attack(38)
@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]8;;http://x\x07red\x1b]8;;\x07",
        "\x9b31mred",
        "\x1b]0;title\x1b\\red",
        "\x1bcred",
        "r\x08red"[2:],
    ],
)
@pytest.mark.parametrize("sink", SINKS)
def test_d38_terminal_escapes_are_stripped(text: str, sink: str) -> None:
    assert sanitise(text, sink) == "red"


@pytest.mark.attack(40)
def test_d40_a_summary_holds_no_live_html_and_no_expression() -> None:
    assert quote("${{ b }}") == "```text\n${{ b }}\n```"  # nothing evaluates what an issue quotes
    assert sanitise("<b>x</b> ${{ secrets.A }} `${{ b }}`", "summary") == "&lt;b>x&lt;/b> $ {{ secrets.A }} `$ {{ b }}`"
