"""What was intended and what came of it, by key, and the open state between two cycles. Pure; a store only keeps it.

An effect is *intended* (durable on the memory branch) before it is performed and *settled*
by its receipt. Keys never hold a run id, a time or an attempt, so the same effect has the
same key for ever and a second one is recognised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.mission.model.effects import (
    Comment,
    EditComment,
    Effect,
    Label,
    MergePull,
    OpenIssue,
    OpenPull,
    Publish,
    PushBranch,
    Receipt,
    Ref,
    at_most_once,
)
from ralph_mission.mission.model.forge import Posted
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import (
    Acceptance,
    Action,
    FailureReason,
    Finding,
    Mission,
    Urgency,
    update_mission,
)
from ralph_mission.values import dataclass

SETTLED = ("done", "adopted")
KEPT_WAKES = 10
KEPT_POSTS = 200
KEPT_IDS = 50  # cycle ids remembered, so that the same cycle asked for twice does nothing


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The pause after each urgency."""

    low: timedelta = timedelta(hours=6)
    medium: timedelta = timedelta(hours=1)
    high: timedelta = timedelta(minutes=15)

    def pause(self, urgency: Urgency) -> timedelta:
        """How long to sleep after a cycle of this urgency."""
        return {Urgency.LOW: self.low, Urgency.MEDIUM: self.medium, Urgency.HIGH: self.high}[urgency]

    @property
    def longest(self) -> timedelta:
        """No due time can be further away than this."""
        return max(self.low, self.medium, self.high)


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One effect's life: (planned,) intended, then done | adopted | failed | unknown.

    Planned effects wait for a person's yes; failed ones certainly did not happen and may be tried again.
    """

    key: str
    action_key: str
    action: Action
    kind: str  # the finding kind it serves
    state: str
    effect: Effect | None  # kept until done or adopted
    cycle: int
    at: datetime
    mission: int = 0
    receipt: Receipt | None = None
    tries: int = 1  # how often it was tried; `at` of a post is that of the first time


@dataclass(frozen=True, slots=True)
class FindingRecord:
    """What became of a finding: acted on in `occurrence`s, and how people judged it."""

    key: str  # the fingerprint
    kind: str
    title: str
    occurrences: tuple[str, ...]
    cycle: int
    mission: int = 0
    verdict: str = ""  # accepted | rejected | ""
    reason: str = ""
    observer: str = ""  # whose it is; "" of an earlier version, or after `memory recover`
    parts: tuple[str, ...] = ()  # keys of the corrections that it was made of


@dataclass(frozen=True, slots=True)
class MonitorRecord:
    """The one monitoring issue of a finding kind and the lines it shows, newest first."""

    key: str
    kind: str
    issue: int
    lines: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class WorkRecord:
    """What the issue agent did about one issue. `usd` were spent on it, `reserved` are set aside while it is tried.

    `state`: working (a runner is at it), ending (its change is on the way), closing (the pull is open), releasing
    (a try came to nothing), withdrawing (a person took it back); these are open, and `OpenState.working` lists their
    issues. Then done (the next cycle makes a mission of the pull), waiting (for a second try), failed (there is
    none) or withdrawn.
    """

    key: str
    issue: int
    branch: str
    base_sha: str
    state: str
    tries: int  # begun so far
    holder: str  # whose the present try is, as in a claim; "" when nobody's
    at: datetime  # when the present try began
    reserved: float = 0.0
    usd: float = 0.0
    code: int = 0  # the exit code of the last try's loop
    reason: str = ""  # why it ended so, in our words
    pull: int = 0
    refusals: int = 0  # times in a row that an open state could not be left
    final: bool = False  # trying again would not help
    title: str = ""  # the issue's, as plain text
    call: str = "ralph-ready"  # the label by which a person requested it
    guided_at: datetime | None = None  # when the newest guidance was written that a try was given
    heard: tuple[str, ...] = ()  # the guidance that the present try was given, in short
    spared: int = 0  # tries that do not count, as nothing was tried: no agent was reached, or they were paused
    away: bool = False  # the last try was one of them

    @property
    def number(self) -> int:
        """The present or last try, of those that count."""
        return self.tries - self.spared + self.away


@dataclass(frozen=True, slots=True)
class CallRecord:
    """That the review of `pull` at `head` was called for: `tries` times, at last `at`; `refused`: not accepted."""

    key: str
    pull: int
    head: str
    tries: int
    at: datetime
    refused: bool = False


Record = EffectRecord | FindingRecord | MonitorRecord | WorkRecord | CallRecord


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose cycle it is. Taken over only when the holder is proven dead."""

    holder: str
    cycle: int
    cycle_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FinishedMission:
    """A mission that was merged or published, to be announced where the owners want that."""

    mission: int
    key: str
    kind: str
    pull: int
    at: datetime
    days: int = 0  # from its start to its end
    cycles: int = 0  # the same, counted in cycles


@dataclass(frozen=True, slots=True)
class ChatYes:
    """An approval of issue `issue` that an owner gave in a chat, to the text whose hash it was then.

    `seal` proves that it was given there: who writes memory alone cannot make one.
    """

    issue: int
    hash: str
    chat: int
    at: datetime
    seal: str = ""


@dataclass(frozen=True, slots=True)
class ChatGuidance:
    """What an owner wrote in a chat to the next session of mission `mission`, or of every one where it is 0.

    `at` is when it was heard, by the clock that decides which session is the next.
    """

    id: int
    at: datetime
    words: str
    mission: int = 0
    seal: str = ""


@dataclass(frozen=True, slots=True)
class HeldFix:
    """A fix that is not proposed, and why; `key`: its action's.

    `whole`: a part of it would fail as well. `ran`: its checks ran and failed, so that they are not run again until the
    commit or the checks change.
    """

    key: str
    title: str
    why: str
    members: tuple[str, ...] = ()  # fingerprints of its findings
    whole: bool = False
    ran: bool = True


@dataclass(frozen=True, slots=True)
class RedBase:
    """The repository's own checks that fail on a commit of the default branch, as far as they were run."""

    commit: str = ""
    branch: str = ""
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenState:
    """`memory/open.json`: all that a cycle must know without knowing a key."""

    claim: Claim | None = None
    effects: tuple[str, ...] = ()  # keys intended and not settled, in order
    unknown: tuple[str, ...] = ()  # keys whose fate only a person can tell
    missions: tuple[Mission, ...] = ()  # active, and parked ones that may be revived
    next_mission: int = 1
    acceptance: tuple[tuple[str, Acceptance], ...] = ()
    backlog: tuple[Finding, ...] = ()  # seen, held, not yet acted on; best first
    recent: tuple[tuple[datetime, str, int], ...] = ()  # (when, path, lines) of automatic pulls
    opened: tuple[tuple[datetime, int], ...] = ()  # (when, mission or 0) of issues and pulls that nobody asked for
    unverified: tuple[tuple[str, str], ...] = ()  # (action key, base commit and checks) whose verification failed
    held: tuple[HeldFix, ...] = ()  # fixes that the last cycle did not propose
    silenced: tuple[str, ...] = ()  # finding kinds that people do not want listed
    done: tuple[str, ...] = ()  # ids of the last cycles
    wakes: tuple[tuple[datetime, int], ...] = ()  # (start, seconds after it was due) of the last cycles
    working: tuple[int, ...] = ()  # issues whose work is not at its end
    posted: tuple[Posted, ...] = ()  # what went out, newest first, at most `KEPT_POSTS`
    finished: tuple[FinishedMission, ...] = ()  # missions that came to an end and were not announced yet
    hushed_until: datetime | None = None  # memory was recovered: what it sees until then may have been reported before
    yes: tuple[ChatYes, ...] = ()  # what owners approved in a chat, newest last
    guidance: tuple[ChatGuidance, ...] = ()  # what they wrote there to sessions to come, newest last
    watched: tuple[MonitorRecord, ...] = ()  # the lists that the dashboard shows
    obeyed: int = 0  # ticks that were about Ralph itself: each box of those is another one
    ignored: tuple[tuple[str, str], ...] = ()  # boxes whose tick counts for nothing, and why: the dashboard says so
    red: RedBase = RedBase()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position of the memory branch, remembered outside it."""

    lineage: str
    serial: int
    oid: str


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Memory as of one commit."""

    memory: Memory
    state: OpenState
    oid: str
    human_edits: tuple[str, ...] = ()  # what people changed since our last commit, in words


@dataclass(frozen=True, slots=True)
class MemoryBatch:
    """One commit's worth of memory: everything in it lands together or not at all.

    `journal` is the cycle's audit document (None: not written in this commit); `archive` maps
    `YYYY-MM` to text appended to that month; `dashboard` is the branch's README.
    """

    memory: Memory
    state: OpenState
    records: tuple[Record, ...]
    message: str
    journal: tuple[str, object] | None = None
    archive: tuple[tuple[str, str], ...] = ()
    dashboard: str | None = None
    paused: bool | None = None  # what an owner decided in a chat or by a tick; None: as a person's edit has it


def key_of(*parts: str) -> str:
    """An effect's key: 16 hex digits over its parts, none of which may be a time or an attempt."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def monitor_key(kind: str) -> str:
    """The key of a kind's one monitoring issue."""
    return key_of("monitor", kind)


def work_key(issue: int) -> str:
    """The key of what is known about the work on an issue."""
    return key_of("work", str(issue))


def build_intents(
    effects: Iterable[Effect],
    action_key: str,
    action: Action,
    kind: str,
    mission: int,
    cycle: int,
    at: datetime,
    state: str = "intended",
) -> tuple[EffectRecord, ...]:
    """Write-ahead records of an action's effects."""
    return tuple(EffectRecord(e.key, action_key, action, kind, state, e, cycle, at, mission) for e in effects)


def settle(record: EffectRecord, receipt: Receipt) -> EffectRecord:
    """The record once its receipt is in. What may have to be sent again keeps its effect."""
    effect = None if receipt.status in SETTLED else record.effect
    return replace(record, state=receipt.status, receipt=receipt, effect=effect)


def remaining(effects: Iterable[Effect], records: Mapping[str, Record]) -> tuple[Effect, ...]:
    """The effects that were not done before: the same effect is never done twice."""
    return tuple(effect for effect in effects if not may_be_done(records.get(effect.key)))


def may_be_done(record: Record | None) -> bool:
    """Whether this effect has been done, or may have been (`unknown`): it is never sent again."""
    return isinstance(record, EffectRecord) and record.state in (*SETTLED, "unknown")


def may_redo(effect: Effect, list_is_complete: bool) -> bool:
    """Whether an effect that was intended and is not listed was certainly not done, so that it may be sent.

    A repeatable one: yes. One sent once: only where a list shows everything at once: then "not listed" is proof.
    """
    if isinstance(effect, Publish):  # no network lists for certain what was posted there
        return not at_most_once(effect)
    return list_is_complete or not at_most_once(effect)


def numbers(records: Iterable[Record]) -> dict[str, int]:
    """The numbers that settled effects were given, by key: what `Ref`s are resolved with."""
    receipts = (record.receipt for record in records if isinstance(record, EffectRecord) and record.receipt)
    return {receipt.key: receipt.number for receipt in receipts if receipt.number}


def refers_to(effect: Effect) -> str:
    """The key of the effect whose number this one needs, or ""."""
    issue = getattr(effect, "issue", None)
    return issue.key if isinstance(issue, Ref) else ""


def absorb(mission: Mission, effect: Effect, receipt: Receipt) -> Mission:
    """The mission once the receipt of one of its effects is in."""
    if receipt.status not in SETTLED:
        return _count_failure(mission, effect, receipt)
    if isinstance(effect, Publish):  # what a network got is looked up by its key, for ever
        return mission
    mission = replace(mission, pending=tuple(key for key in mission.pending if key != effect.key))
    if isinstance(effect, OpenIssue):
        return replace(mission, issue=receipt.number)
    if isinstance(effect, PushBranch):
        return replace(mission, branch=effect.branch, base_sha=effect.base_sha, head_sha=receipt.sha)
    if isinstance(effect, OpenPull):  # its branch may be a person's by now, whose commit is no receipt of a push
        return replace(mission, pull=receipt.number, branch=mission.branch or effect.head)
    if isinstance(effect, Comment) and effect.key == key_of(mission.key, "comment", "standing"):
        return replace(mission, comment=receipt.number)
    return mission


def _count_failure(mission: Mission, effect: Effect, receipt: Receipt) -> Mission:
    if receipt.status != "failed" or (receipt.not_attempted and not isinstance(effect, MergePull)):
        return mission
    before, reason = mission.progress, receipt.reason
    announces = isinstance(effect, Comment | EditComment | Label)
    if announces and before.failure_reason is FailureReason.NEEDS_PERSON:
        return mission  # people first have to lift what it is escalated for, not what keeps us from saying so
    leaves = reason in (FailureReason.NEEDS_PERSON, FailureReason.BEHIND)
    if before.failure_reason is FailureReason.QUEUED and not leaves:
        reason = FailureReason.QUEUED  # what else failed does not take it out of the queue
    same = (before.failure, before.failure_reason) == (receipt.detail, reason)
    failures = before.failures + 1 if same else 1
    if receipt.not_attempted:  # it waits for checks, and is reported as long as it does
        failures = 0
    return update_mission(mission, failure=receipt.detail, failure_reason=reason, failures=failures)
