"""What a session said, before any of it is kept: sessions say what they read, and some of that is nobody's business."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ralph_mission.safety.secrets import redact

Value = TypeVar("Value")


def discreet(value: Value, secrets: Sequence[str]) -> Value:
    """The same with no secret in any of its texts, however deep they lie."""
    told: Any = value
    if isinstance(told, str):
        told = redact(told, secrets) if told else told
    elif isinstance(told, tuple):
        told = tuple(discreet(one, secrets) for one in told)
    elif is_dataclass(told) and not isinstance(told, type):
        told = replace(told, **{one.name: discreet(getattr(told, one.name), secrets) for one in fields(told)})
    return told  # type: ignore[no-any-return]  # of the type it was
