"""What each kind of finding is worth and what may be done about it: one row per kind.

The table is the classification of seed 003's risk tiers. A kind that is not in it is
`UNKNOWN`: high tier, so a person is asked. Whoever adds a kind adds one row here.
"""

from __future__ import annotations

from enum import StrEnum

from ralph_mission.mission.model.mission import Tier
from ralph_mission.values import dataclass


class Route(StrEnum):
    """What becomes of a finding: a pull at once, a line in a monitoring issue, a question to a person.

    `say`: a post where the owner has words for it, and nothing else.
    """

    FIX = "fix"
    MONITOR = "monitor"
    PROPOSE = "propose"
    SAY = "say"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One row. `impact` is 1 (cosmetic) to 10 (people are harmed); `words` name it in people's issues."""

    route: Route
    tier: Tier
    impact: float
    noun: str
    plural: str
    labels: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


_FIX, _MONITOR, _PROPOSE, _SAY = Route.FIX, Route.MONITOR, Route.PROPOSE, Route.SAY
_LOW, _HIGH = Tier.LOW, Tier.HIGH
RESEARCH, CONTENT = ("ralph:research",), ("ralph:content", "content:review")

KINDS: dict[str, FindingKind] = {
    "spelling": FindingKind(_FIX, _LOW, 2, "misspelling", "misspellings", words=("typo", "spelling", "misspell")),
    "lint-fix": FindingKind(_FIX, _LOW, 3, "lint finding", "lint findings", words=("lint",)),
    "dependency-patch": FindingKind(
        _FIX, _LOW, 4, "patch-level update", "patch-level updates", words=("bump", "update")
    ),
    "todo": FindingKind(_MONITOR, _LOW, 1.5, "new TODO, FIXME or HACK marker", "TODO, FIXME and HACK markers"),
    "ts-ignore": FindingKind(_MONITOR, _LOW, 2, "new ts-ignore comment", "ts-ignore comments"),
    "any": FindingKind(_MONITOR, _LOW, 1, "new `any` type", "`any` types"),
    "code-quality": FindingKind(_MONITOR, _LOW, 2, "code quality finding", "code quality findings"),
    "dead-code": FindingKind(_MONITOR, _LOW, 2, "unused definition", "unused definitions"),
    "stale-issue": FindingKind(_MONITOR, _LOW, 3, "issue nobody has taken", "issues nobody has taken"),
    "pull-waiting": FindingKind(_MONITOR, _LOW, 4, "pull waiting for review", "pulls waiting for review"),
    "question": FindingKind(_MONITOR, _LOW, 4, "question without an answer", "questions without an answer"),
    "community": FindingKind(_MONITOR, _LOW, 2, "sign of how the project fares", "signs of how the project fares"),
    "news": FindingKind(_MONITOR, _LOW, 2, "piece of news", "pieces of news"),
    "dependency": FindingKind(_MONITOR, _LOW, 3, "outdated dependency", "outdated dependencies"),
    "dependency-minor": FindingKind(_PROPOSE, _HIGH, 2, "minor update", "minor updates", RESEARCH),
    "dependency-major": FindingKind(_PROPOSE, _HIGH, 3, "major update", "major updates", RESEARCH),
    "bug": FindingKind(_PROPOSE, _HIGH, 8, "bug", "bugs", RESEARCH),
    "vulnerability": FindingKind(_PROPOSE, _HIGH, 9, "vulnerability", "vulnerabilities", RESEARCH),
    "anomaly": FindingKind(_PROPOSE, _HIGH, 6, "anomaly", "anomalies", RESEARCH),
    "feature": FindingKind(_PROPOSE, _HIGH, 4, "feature idea", "feature ideas", RESEARCH),
    "architecture": FindingKind(_PROPOSE, _HIGH, 5, "architecture change", "architecture changes", RESEARCH),
    "integration": FindingKind(_PROPOSE, _HIGH, 5, "new integration", "new integrations", RESEARCH),
    "content": FindingKind(_PROPOSE, _HIGH, 3, "piece of content", "pieces of content", CONTENT),
    "completed": FindingKind(_SAY, _LOW, 2, "completed mission", "completed missions"),
}
BUMPS = "dependency-patch"
"""The one kind whose change may touch manifests and lock files unasked: see `safety.bumps`."""
MATTERS: dict[str, str] = {
    "spelling": "a misspelling makes readers stumble, and a search for the right word misses it",
    "lint-fix": "as long as a linter has known faults to report, a new one goes unseen",
    "dependency-patch": "patch-level releases mend faults and holes without changing behaviour",
    "todo": "a marker that nobody lists is a promise that nobody keeps",
    "ts-ignore": "a silenced type error may be a real one",
    "any": "what has no type is not checked",
    "code-quality": "small faults pile up unseen",
    "dead-code": "what nobody uses still has to be read",
    "stale-issue": "whoever wrote it still waits",
    "pull-waiting": "whoever made it still waits",
    "question": "whoever asked still waits",
    "community": "it shows how the project's people fare",
    "news": "somebody elsewhere did something that may concern the project",
    "dependency": "what falls behind gets harder to update",
    "dependency-minor": "new features come with it, and the longer it waits, the larger the step",
    "dependency-major": "it may break what relies on it, and old versions are one day mended no more",
    "bug": "something does not work as it should",
    "vulnerability": "it may let somebody do what they should not",
    "anomaly": "a number left its usual range, and perhaps nobody noticed",
    "feature": "somebody would be helped by it",
    "architecture": "it changes how the parts fit together, which people decide",
    "integration": "it would tie the project to something outside of it, which people decide",
    "content": "it speaks for the project, so a person reads it first",
    "completed": "whoever follows the project learns what became better",
    "human": "a person asked for it",
}
"""Why a kind deserves a person's ten seconds, as a clause."""


def reason(kind: str) -> str:
    """Why this kind of thing matters, for people."""
    return MATTERS.get(kind, "no rule says what it is worth, so a person has to")


UNKNOWN = FindingKind(_PROPOSE, _HIGH, 3, "finding", "findings", RESEARCH)


def lookup(kind: str) -> FindingKind:
    """The row of a kind; `UNKNOWN` when no rule classifies it."""
    return KINDS.get(kind, UNKNOWN)


def capitalise(noun: str) -> str:
    """It at the beginning of a sentence: what is written in capitals stays so."""
    return noun[:1].upper() + noun[1:]


def count_noun(number: int, kind: str) -> str:
    """ "1 misspelling", "7 misspellings"."""
    row = lookup(kind)
    return f"{number} {row.noun if number == 1 else row.plural}"
