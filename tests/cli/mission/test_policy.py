"""`ralph sanitize` reads a text and writes a harmless one."""

from __future__ import annotations

from tests.helpers import cli_here


def test_a_text_comes_out_inert() -> None:
    result = cli_here("sanitize", "--sink", "issue", stdin="@bob fixes #3 <!-- x -->\n")
    assert (result.code, result.out) == (0, "@ bob fixes no. 3 \n")


def test_ordinary_text_comes_out_byte_for_byte() -> None:
    text = "# Häding\n\n`@x` and **bold**, no newline at the end"
    assert cli_here("sanitize", "--sink", "pr", stdin=text).out == text


def test_a_sink_is_needed() -> None:
    assert cli_here("sanitize", stdin="x").code == 2


def test_an_unknown_sink_is_wrong_usage() -> None:
    result = cli_here("sanitize", "--sink", "nowhere", stdin="x")
    assert result.code == 2
    assert "nowhere" in result.err


def test_the_sinks_of_the_command_are_those_of_the_library() -> None:
    from ralph_mission.cli.mission.policy import SINKS
    from ralph_mission.safety.text import LIMITS

    assert set(SINKS) == set(LIMITS)
