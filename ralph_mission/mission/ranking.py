"""Which finding matters most: impact x confidence x acceptance x resonance / effort, said in plain words.

Acceptance is learned (`Acceptance.mean`), and so is how people react to posts of a kind (`resonance`);
everything else stands in the finding and in `kinds.KINDS`. Weights, from configuration, multiply a kind's impact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import log2

from ralph_mission.mission.kinds import Route, lookup
from ralph_mission.mission.model import Acceptance, Finding, Severity
from ralph_mission.mission.ports import RankedFinding

SEVERITY = {Severity.LOW: 1.0, Severity.MEDIUM: 1.5, Severity.HIGH: 2.5}


def score(
    finding: Finding,
    acceptance: Mapping[str, Acceptance],
    weights: Mapping[str, float],
    resonance: Mapping[str, float] = {},
) -> float:
    """Worth doing first, 0 upwards. Doubling a weight doubles the score; so does doubling the acceptance."""
    signal = finding.signal
    impact = lookup(signal.kind).impact * SEVERITY[signal.severity] * weights.get(signal.kind, 1.0)
    liked = acceptance.get(signal.kind, Acceptance()).mean
    return round(impact * signal.confidence * liked * resonance.get(signal.kind, 1.0) / max(signal.effort, 0.1), 4)


def rank(
    findings: Sequence[Finding],
    acceptance: Mapping[str, Acceptance],
    weights: Mapping[str, float],
    resonance: Mapping[str, float] = {},
) -> tuple[RankedFinding, ...]:
    """Thoughts, best first: fixes and monitored kinds in one group each, everything else alone."""
    scored = {f: score(f, acceptance, weights, resonance) for f in findings}
    groups = [tuple(group) for _, group in groupby(sorted(findings, key=_group), key=_group)]
    thoughts = [_rank_group(group, scored, acceptance, resonance) for group in groups]
    ordered = sorted(thoughts, key=lambda t: (-t.score, t.kind, t.members))
    return tuple(_with_place(thought, place, len(ordered)) for place, thought in enumerate(ordered, 1))


def _with_place(thought: RankedFinding, place: int, of: int) -> RankedFinding:
    return replace(thought, why=f"{thought.why}; number {place} of {of} by score ({thought.score:.2f})")


def _group(finding: Finding) -> tuple[str, ...]:
    alone = lookup(finding.kind).route is Route.PROPOSE
    return (finding.kind, finding.fingerprint if alone else "")


def _rank_group(
    group: Sequence[Finding],
    scored: Mapping[Finding, float],
    acceptance: Mapping[str, Acceptance],
    resonance: Mapping[str, float],
) -> RankedFinding:
    best = sorted(group, key=lambda f: (-scored[f], f.fingerprint))
    # Many alike are worth more than one, but ten are not worth ten times as much of a person's day.
    total = scored[best[0]] * (1 + log2(len(group)) / 4)
    members = tuple(finding.fingerprint for finding in best)
    return RankedFinding(members, group[0].kind, round(total, 4), explain(best, acceptance, resonance))


def explain(group: Sequence[Finding], acceptance: Mapping[str, Acceptance], resonance: Mapping[str, float] = {}) -> str:
    """Why this one and why now, for a person."""
    signal, kind = group[0].signal, group[0].kind
    said = acceptance.get(kind, Acceptance())
    verdicts = said.accepted + said.rejected
    history = f"people accepted {said.accepted} of {verdicts} like it" if verdicts else "nobody has judged its kind yet"
    age = f", {days(signal.age_days)} old" if signal.age_days >= 1 else ""
    ready = "a correction is ready" if signal.patch else effort(signal.effort)
    return (
        f"impact {lookup(kind).impact:g} of 10, severity {signal.severity}{age}, "
        f"{signal.confidence:.0%} sure, {ready}, {history}{_engagement_words(resonance.get(kind, 1.0))}"
    )


def _engagement_words(factor: float) -> str:
    """How posts of the kind did, where that is known and makes a difference."""
    return "" if factor == 1 else f", posts about its kind do {'better' if factor > 1 else 'worse'} than most"


def days(age: float) -> str:
    """ "1 day", "3 days"."""
    return "1 day" if round(age) == 1 else f"{age:.0f} days"


def effort(amount: float) -> str:
    """What an effort means in a person's time."""
    return "minutes of work" if amount <= 1 else "about an hour of work" if amount <= 4 else "real work"
