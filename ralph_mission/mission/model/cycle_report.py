"""What a cycle tells afterwards: the `cycle-report`, a published contract with fixed keys."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ralph_mission.mission.model.effects import Fate
from ralph_mission.mission.model.mission import Status, Tier, Urgency, Usage, Verdict
from ralph_mission.values import dataclass

REPORT_SCHEMA = 1
Outcome = Literal["done", "not_due", "lost", "paused", "failed"]
Trigger = Literal["cron", "manual", "dispatch", "cli", "watch"]


@dataclass(frozen=True, slots=True)
class ObserverLine:
    """How one observer fared; `signals` is a count, `seconds` its time."""

    name: str
    status: Literal["ok", "unavailable", "skipped"]
    signals: int
    seconds: float
    detail: str


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding; `known` when it was acted on before."""

    fingerprint: str
    occurrence: str
    kind: str
    title: str
    score: float
    known: bool


@dataclass(frozen=True, slots=True)
class MissionLine:
    """One mission; `issue` and `pull_request` are numbers, null where there is none."""

    id: int
    title: str
    status: Status
    issue: int | None
    pull_request: int | None
    started_cycle: int


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """What policy said of one proposal or step, and by which rules."""

    key: str
    action: str
    kind: str
    tier: Tier
    verdict: Verdict
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectLine:
    """What came of one effect."""

    key: str
    action: str
    kind: str
    status: Fate
    url: str


@dataclass(frozen=True, slots=True)
class CycleReport:
    """One cycle, told. `cycle` is its number; `cycle_id` names it for ever."""

    schema_version: int
    cycle: int
    cycle_id: str
    outcome: Outcome
    trigger: Trigger
    staged: bool
    started_at: datetime
    finished_at: datetime
    observers: tuple[ObserverLine, ...]
    findings: tuple[FindingLine, ...]
    missions: tuple[MissionLine, ...]
    decisions: tuple[DecisionLine, ...]
    effects: tuple[EffectLine, ...]
    urgency: Urgency
    next_due_at: datetime | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class PostLine:
    """A post as it was said, or would be: its exact parts, what the network counts of each, and what it allows."""

    network: str
    status: Fate
    url: str
    parts: tuple[str, ...]
    lengths: tuple[int, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class CycleSummary:
    """What the summary says beyond the report: why this one, who is waited for, what to type next."""

    why: tuple[str, ...] = ()  # for each new mission or action, in plain words
    held: tuple[str, ...] = ()  # "title: what it waits for (rule)"
    waiting: tuple[str, ...] = ()  # commands or clicks a person can do now, one per line
    remarks: tuple[str, ...] = ()  # everything else worth a line (drift, human edits, unknown effects)
    late: int | None = None  # seconds that this cycle started after it was due; None when it did not start
    posts: tuple[PostLine, ...] = ()  # what was said in public, network by network
    refusal: str = ""  # why everything that was tried was refused, where only a person can change that
