"""The nouns of a mission cycle. Frozen values; no behaviour beyond looking at themselves.

Times are timezone-aware and in UTC. Ages are in days, durations in seconds, money in USD.
"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from ralph_mission.mission.model.forge import Measured
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass


class Status(StrEnum):
    """Where a mission stands; `TRANSITIONS` of `lifecycle/table.py` says what may follow."""

    DISCOVERED = "DISCOVERED"
    PLANNED = "PLANNED"
    EXECUTING = "EXECUTING"
    IN_REVIEW = "IN_REVIEW"
    FIXING = "FIXING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"
    ESCALATED = "ESCALATED"
    PARKED = "PARKED"

    @property
    def active(self) -> bool:
        """Whether a mission in this state is on people's list: it has not ended, and was not set aside."""
        return not self.ended and self is not Status.PARKED

    @property
    def begun(self) -> bool:
        """Whether work on it has begun, which takes a slot; a question that waits for an answer takes none."""
        return self.active and self is not Status.DISCOVERED

    @property
    def ended(self) -> bool:
        """Whether it leaves memory: nothing follows."""
        return self in (Status.COMPLETED, Status.REJECTED)


BRIEFS = "briefs"
"""The observer of what people of the project wrote down, briefs and texts: its findings return in every period, and
wait while the previous one is under way."""
HUMAN = "human"
"""The kind of a mission that a person made by labelling an issue."""


class FailureReason(StrEnum):
    """Why an effect failed, where that decides what is done next; any other failure has none."""

    NOT_ATTEMPTED = "not attempted"  # it says nothing about the effect itself
    NOT_FOUND = "not there after a lost answer"  # nor does this: it may be sent again
    NEEDS_PERSON = "needs a person"  # trying again will not lift it
    QUEUED = "queued"  # of a merge: nor does this: it was ordered, and a merge queue may still make it
    BEHIND = "behind"  # of a merge: the base has to be merged into the branch first
    LATER = "later"  # of a post: a rate limit, a network out of reach


class Severity(StrEnum):
    """How bad it is if nobody looks."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Urgency(StrEnum):
    """How soon to look again: low 6 h, medium 1 h, high 15 min by default."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Tier(StrEnum):
    """Low: done at once. High: asked first. Unknown is always high."""

    LOW = "low"
    HIGH = "high"


class Verdict(StrEnum):
    """What policy says of a proposal. Hold waits; deny does not."""

    ALLOW = "allow"
    HOLD = "hold"
    DENY = "deny"


class Action(StrEnum):
    """One allowed proposal or mission step; it may take several effects."""

    OPEN_FIX = "open-fix"
    OPEN_PROPOSAL = "open-proposal"
    FINISH = "finish"
    REVISE = "revise"
    PUBLISH = "publish"
    MONITOR = "monitor"
    ANSWER = "answer"
    WORK = "work"


# --- what is seen ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that show what was seen, and where they stand: a line of a file at a commit, a commit, an issue or pull, a
    run of a workflow, or a page of the web."""

    text: str
    path: str = ""
    line: int = 0  # 1-based; 0 where there is none
    commit: str = ""  # the object id that `line` counts in
    reference: int = 0  # an issue or pull number; 0 where there is none
    run: int = 0  # the forge's number of a run; 0 where there is none
    url: str = ""  # a page of the web


@dataclass(frozen=True, slots=True)
class SignalPart:
    """One of several corrections that a signal stands for: what a person refuses is each of them, not their set. What
    stands on one line of a file has one, the line: it is the same whatever becomes of its neighbours.

    `essence` is its share of the signal's. It is known again in its file by `what` is corrected and the line that this
    makes, whatever else of that line is corrected before. `line` (1-based) is where it stands; 0 where it cannot be
    taken out of the ready change without the others.
    """

    essence: str
    what: str
    line: int


@dataclass(frozen=True, slots=True)
class Signal:
    """What an observer saw, before it has an identity. All text in it is untrusted.

    `essence` says *which thing* without saying where it stands: normalised lines and
    neighbours for code, the set of corrections for a fixer, an issue's number. `occurrence`
    says *which instance* of it (a window's start, a row id); "" when there is only one.
    """

    observer: str
    kind: str
    title: str
    essence: tuple[str, ...]
    occurrence: str = ""
    severity: Severity = Severity.LOW
    confidence: float = 0.8  # 0..1: how sure the observer is that this is real
    effort: float = 1.0  # > 0: 1 is a few minutes of a person's time
    detail: str = ""
    path: str = ""
    line: int = 0  # 1-based; 0 where there is none
    author: str = ""
    age_days: float = 0.0
    reference: int = 0  # an issue or pull number; 0 where there is none
    facts: tuple[tuple[str, str | int | float], ...] = ()
    patch: Patch | None = None  # the ready change, when a fixer saw it
    series: tuple[tuple[datetime, float], ...] = ()  # a watched value over time, where it is at hand, for a chart
    quotes: tuple[Quote, ...] = ()  # the evidence, best first, shown with a link to where it stands
    parts: tuple[SignalPart, ...] = ()  # its corrections one by one, when a fixer saw them; () of too many

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that it is about: its own, and the `file`s among its facts."""
        return (self.path, *(str(value) for name, value in self.facts if name == "file"))


@dataclass(frozen=True, slots=True)
class Finding:
    """A signal with its identity: `fingerprint` (which thing) and the signal's occurrence.

    `seen_at`: when what waits was seen first (None: now, or by an earlier version).
    """

    fingerprint: str
    signal: Signal
    seen_at: datetime | None = None

    @property
    def kind(self) -> str:
        """The finding kind, which `policy.py` gives a tier."""
        return self.signal.kind

    @property
    def title(self) -> str:
        """One line for people."""
        return self.signal.title


@dataclass(frozen=True, slots=True)
class Usage:
    """What models cost."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of asking one observer. `cursor` is remembered for its next call.

    `complete`: the signals are everything that is there now, not only the news since the cursor; if they are
    not, `gone` are the essences of what was there at the cursor and is no more.
    """

    name: str
    status: Literal["ok", "unavailable", "skipped"]
    signals: tuple[Signal, ...] = ()
    seconds: float = 0.0
    detail: str = ""
    cursor: str = ""
    complete: bool = True
    gone: tuple[tuple[str, ...], ...] = ()
    measured: tuple[Measured, ...] = ()  # what became of our own posts
    usage: Usage = Usage()  # what a model cost that was asked for it
    unchecked: tuple[str, ...] = ()  # what it could not check though it looked, and why: "what: why"
    whole: tuple[str, ...] = ()  # kinds of which all that have parts are among the signals, though not complete
    at_commit: bool = False  # whether it looked at the commit alone: a build, an alert or a page may be late


# --- what is intended -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MissionProgress:
    """How it gets on: what failed last, and how often nothing moved."""

    failure: str = ""  # the last failure, to see three equal ones
    failure_reason: FailureReason | None = None
    failures: int = 0
    turns: int = 0  # cycles in which an agent worked on it without coming to an end
    stalled_cycles: int = 0
    refused: tuple[str, ...] = ()  # rules that kept its last step from being sent


@dataclass(frozen=True, slots=True)
class MissionQuestion:
    """What a person is asked, since when, and how far was looked for an answer."""

    waiting_since: datetime | None = None  # since when a person is waited for
    proposal_hash: str = ""  # what people see of the next one
    proposal_sha256: str = ""  # of the whole text; "" in memory of earlier versions
    proposal_at: datetime | None = None  # what a yes must be newer than, once an edit made us ask again
    seen_at: datetime | None = None  # the newest that had been seen of it as it was set aside, by the forge's clock
    heard_at: datetime | None = None  # the newest yes of a chat that was known then, by the chat's clock


@dataclass(frozen=True, slots=True)
class MissionReview:
    """How far reviews and guidance were answered."""

    rounds: int = 0  # reviews that were answered
    answered_at: datetime | None = None  # when the newest of those was written, by the forge's clock
    answered_before: datetime | None = None  # `answered_at` as the review came that is being answered
    offered_until: datetime | None = None  # the same of those that an answer on offer is to; None: none is on offer
    guided_at: datetime | None = None  # when the newest guidance was written that an agent was given
    checks: str = ""  # what a person should know of the checks of its head; "" while they are well or run


@dataclass(frozen=True, slots=True)
class Mission:
    """One thing being driven to its end. Machine state; the memory file shows it to people.

    It is stored flat: the fields of its parts beside its own.
    """

    id: int
    key: str
    title: str
    kind: str
    action: Action
    tier: Tier
    status: Status
    started_cycle: int
    started_at: datetime
    changed_at: datetime
    members: tuple[str, ...] = ()  # finding fingerprints
    issue: int = 0
    pull: int = 0
    branch: str = ""
    base_sha: str = ""
    head_sha: str = ""  # the commit we pushed; any other head is someone else's
    pending: tuple[str, ...] = ()  # keys of effects that carry it out: planned, or to be tried again
    progress: MissionProgress = MissionProgress()
    question: MissionQuestion = MissionQuestion()
    review: MissionReview = MissionReview()
    comment: int = 0  # our one standing remark on the issue; 0 until there is one
    story: tuple[str, ...] = ()  # its lines, oldest first
    last_action: str = ""
    next_step: str = ""
    outcome: str = ""
    learning: str = ""
    finished_at: datetime | None = None

    @property
    def thread(self) -> int:
        """The number of what it lives in: its issue or, of a fix that asks nobody, its pull; 0 before it has one."""
        return self.issue or self.pull


MISSION_PARTS: dict[str, type] = {"progress": MissionProgress, "question": MissionQuestion, "review": MissionReview}
_PART_OF = {field.name: part for part, kind in MISSION_PARTS.items() for field in fields(kind)}


def update_mission(mission: Mission, **values: Any) -> Mission:
    """The mission with other values, of its own fields and of its parts', by the names under which they are stored."""
    own: dict[str, Any] = {name: value for name, value in values.items() if name not in _PART_OF}
    for part in MISSION_PARTS:
        changed = {name: value for name, value in values.items() if _PART_OF.get(name) == part}
        if changed:
            own[part] = replace(getattr(mission, part), **changed)
    return replace(mission, **own)


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """What one mission asks of a person: `number` is that of its issue, or of its pull request if `pull`.

    `ways`: what can be done and the very words to type or the link to open, as ("approve", "ralph pr approve 8").
    """

    number: int
    pull: bool
    title: str
    ways: tuple[tuple[str, str], ...]
    note: str = ""  # what failed, if anything


@dataclass(frozen=True, slots=True)
class Limits:
    """What a cycle may do at most. The defaults are the ceilings: configuration may lower them, and raise them with
    `limits.above_ceilings` alone."""

    active_missions: int = 3
    new_missions_per_cycle: int = 1
    actions_per_cycle: int = 3
    auto_prs_per_cycle: int = 1
    auto_pr_lines: int = 49  # "under 50 changed lines"
    dispatches_per_day: int = 48
    posts_per_day: int = 10  # on each network
    threads_per_week: int = 5  # issues and pull requests opened unasked; so many may be unanswered, too
    usd_per_cycle: float = 2.0
    usd_per_day: float = 10.0
    auto_kinds: tuple[str, ...] = ()  # kinds of high tier whose fixes need no question: the owner wants that


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Human verdicts on one finding kind: a Beta(1 + accepted, 1 + rejected) posterior."""

    accepted: int = 0
    rejected: int = 0

    @property
    def mean(self) -> float:
        """Expected acceptance, 0..1; one half without any verdict."""
        return (self.accepted + 1) / (self.accepted + self.rejected + 2)


PRIOR_VERDICTS = 2
"""What all verdicts of other repositories weigh together: alone they silence no kind, with one own refusal they do."""


@dataclass(frozen=True, slots=True)
class PriorAcceptance(Acceptance):
    """The same where people decided on the kind in other repositories of the fleet: that is the prior, of bounded
    weight."""

    elsewhere: Acceptance = Acceptance()

    @property
    def mean(self) -> float:
        """Expected acceptance, 0..1."""
        known = self.elsewhere.accepted + self.elsewhere.rejected
        weight = min(1.0, PRIOR_VERDICTS / known) if known else 0.0
        accepted = self.accepted + weight * self.elsewhere.accepted + 1
        return accepted / (self.accepted + self.rejected + weight * known + 2)
