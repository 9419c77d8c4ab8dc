"""The common parts of all settings: strictness, durations, path patterns."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LONGEST_DURATION = timedelta(days=3650)


class SettingsSection(BaseModel):
    """The base of every section of `ralph.yml`: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _duration(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a duration looks like 15m, 6h or 14d")
    found = re.fullmatch(r"\s*(\d{1,9})\s*([smhdw])\s*", value) if isinstance(value, str) else None
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    return timedelta(seconds=min(seconds, 2 * LONGEST_DURATION.total_seconds())) if found else value


def _positive(value: timedelta) -> timedelta:
    if not timedelta(0) < value <= LONGEST_DURATION:
        raise ValueError("a duration looks like 15m, 6h or 14d")
    return value


def _pattern(pattern: str) -> str:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:
        raise ValueError(f"a pattern as in .gitignore ({error})") from None
    return pattern


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    AfterValidator(_positive),
    WithJsonSchema({"type": ["string", "number"], "examples": ["15m", "6h", "14d", 900]}),
]
"""`15m`, `6h`, `14d`, `2w`, ISO 8601 or seconds."""

PathPattern = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_pattern)]
"""A pattern as in .gitignore."""

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
"""A short name: lower-case letters, digits and hyphens."""

OLD_LIMIT: Any = SkipJsonSchema()  # type: ignore[type-arg]  # as a mark it has none
"""Marks a key of older files that is no longer in the schema: it is obeyed if it is stricter than the default."""


def at_most(usual: Any) -> AfterValidator:
    """For an older key: it may only lower the default."""
    return AfterValidator(lambda value: min(value, usual))


def at_least(usual: Any) -> AfterValidator:
    """For an older key: it may only raise the default, if more is stricter."""
    return AfterValidator(lambda value: max(value, usual))
