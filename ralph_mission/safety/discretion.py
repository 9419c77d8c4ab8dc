"""Values with nothing secret in any of their texts, however deep these lie: records of sessions, memory, recordings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from ralph_mission.safety.secrets import redact, without

Value = TypeVar("Value")
SEAM = "\n.-->\n"
"""What stands between texts that are looked at together: what one of them opens ends here, and hides nothing after."""


def discreet(value: Value, secrets: Sequence[str]) -> Value:
    """The same with no secret in it: sessions say what they read, and some of that is nobody's business."""
    return _told(value, lambda text: redact(text, secrets) if text else text)


def untold(value: Value, known: Sequence[str], but: Collection[str] = ()) -> Value:
    """The same without these known values, whoever wrote them there; texts that are in `but` stay as they are."""
    whole = SEAM.join(text for text in texts(value) if text not in but)
    if without(whole, known) == whole:  # one look at all of it is cheaper than many
        return value
    return _told(value, lambda text: text if text in but else without(text, known))


def texts(value: object) -> Iterator[str]:
    """Every text of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        yield from texts(tuple(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from texts(getattr(value, one.name))


def _told(value: Value, clean: Callable[[str], str]) -> Value:
    told: Any = value
    if isinstance(told, str):
        told = told if isinstance(told, Enum) else clean(told)
    elif isinstance(told, tuple | list | frozenset):
        told = type(told)(_told(one, clean) for one in told)
    elif isinstance(told, dict):
        told = {key: _told(one, clean) for key, one in told.items()}
    elif is_dataclass(told) and not isinstance(told, type):
        told = replace(told, **{one.name: _told(getattr(told, one.name), clean) for one in fields(told)})
    return told  # type: ignore[no-any-return]  # of the type it was
