"""What an agent is asked to do, and what came of it. Nouns only.

What a cycle tells afterwards: the `cycle-report`, a published contract with fixed keys.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ralph_mission.mission.model.effects import Fate
from ralph_mission.mission.model.mission import Status, Tier, Urgency, Usage, Verdict
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class AgentJob:
    """One mission's work for an agent, in a clone of `base_sha`, for at most `usd` and `seconds`.

    `round` is 0 for the change itself, n for the answer to the nth review; `subject` is a digest of the issue's text.
    The same mission, round, subject and `attempt` (failures so far) is the same work: what was begun is gone on with,
    in its clone. `guidance` is what people said since the last time.
    """

    mission: int
    round: int
    title: str
    branch: str
    base_sha: str
    task: str
    usd: float
    seconds: float
    guidance: tuple[str, ...] = ()
    subject: str = ""
    attempt: int = 0
    default_sha: str = ""  # where the default branch stands, whose guides and agents' settings count
    answers: datetime | None = None  # when the newest review was written that is answered by it


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What came of a commission: `made` is a change, `goes on` is not finished and can be gone on with.

    `held` was not begun; `reason` is why it is not finished, in our words; `words` are the agent's last ones.
    `guided_at`: the newest guidance that it was given, `answered_at`: the newest review, both by the forge's clock.
    """

    mission: int
    outcome: Literal["made", "goes on", "failed", "held"]
    reason: str = ""
    patch: Patch | None = None
    words: str = ""
    learned: tuple[str, ...] = ()
    sessions: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    progressed: bool = False
    guided_at: datetime | None = None
    answered_at: datetime | None = None


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
