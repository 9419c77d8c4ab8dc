"""What each kind of finding is worth and what may be done about it: one row per kind.

The table is the classification of seed 003's risk tiers. A kind that is not in it is
`UNKNOWN`: high tier, so a person is asked. Whoever adds a kind adds one row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ralph_mission.mission.model import Tier


class Route(StrEnum):
    """What becomes of a finding: a pull at once, a line in a monitoring issue, a question to a person."""

    FIX = "fix"
    MONITOR = "monitor"
    PROPOSE = "propose"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row. `impact` is 1 (cosmetic) to 10 (people are harmed); `words` name it in people's issues."""

    route: Route
    tier: Tier
    impact: float
    noun: str
    plural: str
    labels: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


_FIX, _MONITOR, _PROPOSE = Route.FIX, Route.MONITOR, Route.PROPOSE
_LOW, _HIGH = Tier.LOW, Tier.HIGH
RESEARCH, CONTENT = ("ralph:research",), ("ralph:content", "content:review")

KINDS: dict[str, Kind] = {
    "spelling": Kind(_FIX, _LOW, 2, "misspelling", "misspellings", words=("typo", "spelling", "misspell")),
    "lint-fix": Kind(_FIX, _LOW, 3, "lint finding", "lint findings", words=("lint",)),
    "dependency-patch": Kind(_FIX, _LOW, 4, "patch-level update", "patch-level updates", words=("bump", "update")),
    "todo": Kind(_MONITOR, _LOW, 1.5, "new TODO, FIXME or HACK marker", "TODO, FIXME and HACK markers"),
    "ts-ignore": Kind(_MONITOR, _LOW, 2, "new ts-ignore comment", "ts-ignore comments"),
    "any": Kind(_MONITOR, _LOW, 1, "new `any` type", "`any` types"),
    "code-quality": Kind(_MONITOR, _LOW, 2, "code quality finding", "code quality findings"),
    "dead-code": Kind(_MONITOR, _LOW, 2, "unused definition", "unused definitions"),
    "stale-issue": Kind(_MONITOR, _LOW, 3, "issue nobody has taken", "issues nobody has taken"),
    "pull-waiting": Kind(_MONITOR, _LOW, 4, "pull waiting for review", "pulls waiting for review"),
    "question": Kind(_MONITOR, _LOW, 4, "question without an answer", "questions without an answer"),
    "community": Kind(_MONITOR, _LOW, 2, "sign of how the project fares", "signs of how the project fares"),
    "dependency": Kind(_MONITOR, _LOW, 3, "outdated dependency", "outdated dependencies"),
    "bug": Kind(_PROPOSE, _HIGH, 8, "bug", "bugs", RESEARCH),
    "vulnerability": Kind(_PROPOSE, _HIGH, 9, "vulnerability", "vulnerabilities", RESEARCH),
    "anomaly": Kind(_PROPOSE, _HIGH, 6, "anomaly", "anomalies", RESEARCH),
    "feature": Kind(_PROPOSE, _HIGH, 4, "feature idea", "feature ideas", RESEARCH),
    "architecture": Kind(_PROPOSE, _HIGH, 5, "architecture change", "architecture changes", RESEARCH),
    "integration": Kind(_PROPOSE, _HIGH, 5, "new integration", "new integrations", RESEARCH),
    "content": Kind(_PROPOSE, _HIGH, 3, "piece of content", "pieces of content", CONTENT),
}
UNKNOWN = Kind(_PROPOSE, _HIGH, 3, "finding", "findings", RESEARCH)


def lookup(kind: str) -> Kind:
    """The row of a kind; `UNKNOWN` when no rule classifies it."""
    return KINDS.get(kind, UNKNOWN)


def counted(number: int, kind: str) -> str:
    """ "1 misspelling", "7 misspellings"."""
    row = lookup(kind)
    return f"{number} {row.noun if number == 1 else row.plural}"
