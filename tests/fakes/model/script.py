"""What a scripted model says: replies of texts and tool calls, and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `input` is a text for the tools of OpenAI that take one (`apply_patch`)."""

    tool: str
    input: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model; `delay` in seconds before it."""

    blocks: tuple[Text | Call, ...]
    input_tokens: int = 1000
    output_tokens: int = 50
    delay: float = 0.0

    @property
    def text(self) -> str:
        """All its words."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[Call, ...]:
        """All its tool calls."""
        return tuple(block for block in self.blocks if isinstance(block, Call))


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that is none. `headers` are sent with it (`retry-after`)."""

    status: int
    message: str = "scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


def say(text: str, **options: Any) -> Reply:
    """A reply of words, which ends a session."""
    return Reply((Text(text),), **options)


def call(tool: str, text: str | None = None, /, **arguments: Any) -> Reply:
    """A reply that is one tool call; with `text` of a tool that takes one."""
    return Reply((Call(tool, arguments if text is None else text),))


def fault(status: int, message: str = "scripted fault", **headers: str) -> Fault:
    """An error of the provider; `retry_after="7"` becomes that header."""
    return Fault(status, message, {name.replace("_", "-"): value for name, value in headers.items()})
