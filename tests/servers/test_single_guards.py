"""What one guard of the tools' arguments alone holds back."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from ralph_mission.servers import mcp
from ralph_mission.trouble import Trouble


@pytest.mark.attack(38)
@pytest.mark.parametrize("text", ["a\x1b[2J", "a\x00", "a\x07b", "\ufffd"])
def test_a_text_and_a_payload_hold_nothing_that_steers_a_terminal(text: str) -> None:
    for kind in (mcp.Text, mcp.Line, mcp.Name):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(text)
    with pytest.raises(Trouble, match="control characters"):
        mcp._payload(text)


@pytest.mark.attack(37)
@pytest.mark.parametrize("line", ["a\n::set-output name=x::y", "a\rb"])
def test_a_line_and_a_name_are_one_line(line: str) -> None:
    for kind in (mcp.Line, mcp.Name):
        with pytest.raises(ValidationError, match="one line"):
            TypeAdapter(kind).validate_python(line)


@pytest.mark.attack(56)
def test_a_text_and_a_payload_are_no_books() -> None:
    assert TypeAdapter(mcp.Text).validate_python("a" * mcp.LONG)
    with pytest.raises(ValidationError):
        TypeAdapter(mcp.Text).validate_python("a" * (mcp.LONG + 1))
    assert mcp._payload("a" * mcp.PAYLOAD)
    with pytest.raises(Trouble, match="too long"):
        mcp._payload("a" * (mcp.PAYLOAD + 1))
