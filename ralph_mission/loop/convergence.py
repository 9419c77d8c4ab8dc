"""How many issues short of critical may be left: one number per kind of task, set by people or learned from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEFAULTS: Mapping[str, int] = {"refactor": 1}
"""Kinds (a pattern's name) whose default is not 0: a refactoring always leaves one suggestion (seed 001)."""
MEAN, ENOUGH = 0.6, 3
"""What counts as accepted: mean of Beta(1 + accepted, 1 + refused), over at least so many verdicts."""


@dataclass(frozen=True, slots=True)
class AcceptanceVerdict:
    """A person took or refused work of this kind with `left` issues short of critical in it."""

    kind: str
    left: int
    accepted: bool


def read_verdicts(records: Iterable[object]) -> tuple[AcceptanceVerdict, ...]:
    """The verdicts among `records` ({kind, left, accepted}); what is anything else says nothing."""
    return tuple(
        AcceptanceVerdict(record["kind"], record["left"], record["accepted"])
        for record in records
        if isinstance(record, Mapping)
        and isinstance(record.get("kind"), str)
        and type(record.get("left")) is int
        and record["left"] >= 0
        and type(record.get("accepted")) is bool
    )


def threshold(kind: str, settings: Mapping[str, object] | str, verdicts: Iterable[AcceptanceVerdict]) -> int:
    """Issues short of critical that may be left in work of this kind: what `settings` fix, else what people accept.

    A setting that is no number (`learn`, for one kind or for all) leaves it to people. Nobody's word is stretched:
    beyond the largest number that people accepted nothing is allowed, and a default that they refuse becomes 0.
    """
    fixed = settings.get(kind) if isinstance(settings, Mapping) else None
    if type(fixed) is int and fixed >= 0:
        return fixed
    seen = [verdict for verdict in verdicts if verdict.kind == kind]
    default = DEFAULTS.get(kind, 0)
    fine = [left for left in {verdict.left for verdict in seen} if _is_acceptable(seen, left) is True]
    return max([*fine, 0 if _is_acceptable(seen, default) is False else default])


def _is_acceptable(seen: list[AcceptanceVerdict], left: int) -> bool | None:
    """Whether people take work with so many left; None while too few have said.

    Who takes more takes so many too, and who refuses fewer refuses so many too.
    """
    yes = sum(verdict.accepted and verdict.left >= left for verdict in seen)
    no = sum(not verdict.accepted and verdict.left <= left for verdict in seen)
    return (1 + yes) / (2 + yes + no) >= MEAN if yes + no >= ENOUGH else None
