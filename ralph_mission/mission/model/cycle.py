"""What one cycle gathers, concludes and tells: settings, facts of each mission, steps, agents' jobs, its report.

Nouns only. The `CycleReport` is a published contract with fixed keys; `Situation` is kept for `ralph journal show
--replay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Literal

from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.effects import Fate
from ralph_mission.mission.model.forge import Actor, Branch, Issue, Post, Pull, Wording
from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes, OpenState, Record
from ralph_mission.mission.model.memory import Memory, Rhythm
from ralph_mission.mission.model.mission import (
    Acceptance,
    Finding,
    Limits,
    Mission,
    Observation,
    Status,
    Tier,
    Urgency,
    Usage,
    Verdict,
)
from ralph_mission.mission.model.proposal import Decision, Plan, Proposal
from ralph_mission.values import dataclass

REPORT_SCHEMA = 1
Outcome = Literal["done", "not_due", "lost", "paused", "failed"]
Trigger = Literal["cron", "manual", "dispatch", "cli", "watch", "person"]


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
class ThreadLine:
    """An issue or a pull request that was opened, or would be: by the key of its effect, as people would read it."""

    key: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class CycleSummary:
    """What the summary says beyond the report: why this one, who is waited for, what to type next."""

    why: tuple[str, ...] = ()  # for each new mission or action, in plain words
    held: tuple[str, ...] = ()  # "title: what it waits for (rule)"
    waiting: tuple[str, ...] = ()  # commands or clicks a person can do now, one per line
    remarks: tuple[str, ...] = ()  # everything else worth a line (drift, human edits, unknown effects)
    late: int | None = None  # seconds that this cycle started after it was due; None when it did not start
    threads: tuple[ThreadLine, ...] = ()  # what was opened
    posts: tuple[PostLine, ...] = ()  # what was said in public, network by network
    refusal: str = ""  # why everything that was tried was refused, where only a person can change that


@dataclass(frozen=True, slots=True)
class ShownPosts:
    """What an issue shows now: `posts` as they would be said; `wrong` says in words why they cannot be, if so."""

    posts: tuple[Post, ...] = ()
    wrong: tuple[str, ...] = ()


NOTHING_SHOWN = ShownPosts()


@dataclass(frozen=True, slots=True)
class PersonVerdict:
    """What people said last. `state`: none, approved, changes, rejected, or refused with `rules`."""

    state: str = "none"
    actor: Actor | None = None
    words: str = ""
    rules: tuple[str, ...] = ()


NO_VERDICT = PersonVerdict()


class MissionEvent(StrEnum):
    """What can happen to a mission."""

    APPROVED = "approved"  # a person said yes to what was proposed or shown
    STARTED = "started"  # hands have begun
    OFFERED = "offered"  # what they made needs a yes before it is pushed
    PULL_OPENED = "pull opened"
    CHANGES_REQUESTED = "changes requested"
    CHECKS_FAILED = "its checks failed"
    REVISED = "revised"  # the review was answered with a push
    MERGEABLE = "approved at its head"  # no transition of its own: merging follows
    BEHIND = "behind its base"  # nor has this: the base is merged in, and the review asked for again
    MERGED = "merged"
    DONE = "done by a person"
    SOLVED = "no longer found"  # by whatever found it
    PUBLISHED = "published"  # every network answered
    REFUSED = "refused"  # a person said no
    STUCK = "stuck"
    UNANSWERED = "unanswered"
    GONE = "gone"  # somebody deleted the issue: nobody's verdict, but nothing is left to work on
    REVIVED = "revived"


@dataclass(frozen=True, slots=True)
class MissionFacts:
    """What the forge says of one mission now, and which ids may decide."""

    issue: Issue | None  # where it has none, its own pull read as one; None: it was deleted
    pull: Pull | None
    authorised: frozenset[int]
    foreign: str = ""  # why what memory names is not this mission's; then nothing is written there
    announced: frozenset[str] = frozenset()  # digests of what our own issue says will be sent
    offered: frozenset[str] = frozenset()  # and of what it says would be sent after a yes
    offered_at: datetime | None = None  # when a change was shown in a remark of ours: a yes to it is newer
    coder: bool = False  # whether an agent carries out what no fixer can
    us: int = 0  # our own account
    ours: bool = True  # whether its issue, if not its pull, is this mission's
    altered: Actor | None = None  # who changed its issue's text, since it was asked for, without a say
    asked_at: datetime | None = None  # when it was; None where whoever may edit may decide too
    reworded: frozenset[int] = frozenset()  # reviews that somebody else than their author may have changed
    shown: ShownPosts = NOTHING_SHOWN  # the texts that its issue shows, of a mission that publishes
    edited_at: datetime | None = None  # when somebody without a say last changed the text that a yes is asked to
    left: Pull | None = None  # its pull, where its issue is this mission's no more
    yes: tuple[ChatYes, ...] = ()  # what owners approved in a chat
    guidance: tuple[ChatGuidance, ...] = ()  # what they said there to its next session
    seen_at: datetime | None = None  # the newest that anybody did to its issue, by the forge's clock
    heard_at: datetime | None = None  # the newest yes of a chat that memory holds, be it proven or not
    solved: bool = False  # whether all that it is about was looked for in this cycle, and is no longer found
    untold: bool = False  # whether a box of it is ticked on the dashboard, and nobody can tell by whom
    unasked: bool = False  # whether our own issue says that we began it without asking, and no person brought it back


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The facts, read: what happened, who said what, which rules a refused yes ran into."""

    event: MissionEvent | None = None
    opinion: PersonVerdict = NO_VERDICT
    words: str = ""


QUIET = Interpretation()


@dataclass(frozen=True, slots=True)
class Lesson:
    """A person's verdict on a mission: what learning and `rejected-before` rest on."""

    mission: int
    kind: str
    members: tuple[str, ...]
    verdict: str  # accepted | rejected
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MissionStep:
    """`mission` as it stands if nothing is sent; `proposal` what would be sent; `lesson` what a person taught."""

    mission: Mission
    proposal: Proposal | None = None
    lesson: Lesson | None = None


@dataclass(frozen=True, slots=True)
class StepContext:
    """What steps need besides the mission and its facts."""

    cycle: int
    now: datetime
    owners: tuple[str, ...]
    merge_method: str
    records: Mapping[str, Record]
    default: Branch
    limits: Limits = Limits()
    recent: Mapping[str, int] = field(default_factory=dict)  # lines of automatic pulls on each path lately
    made: Mapping[int, AgentResult] = field(default_factory=dict)  # by mission: what an agent came to in this cycle


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """What the owners decided: ceilings (already within the built-in ones), rhythm, who may decide."""

    limits: Limits = Limits()
    rhythm: Rhythm = Rhythm()
    owners: tuple[str, ...] = ()
    merge_method: str = "squash"
    memory_branch: str = "ralph-memory"
    name: str = "this repository"
    page: str = ""  # the address of its page on the forge; "" where files and issues have no address
    quiet_hours: tuple[time, time] | None = None  # in UTC
    announce: tuple[str, ...] = ()  # kinds of missions that are announced once they are merged
    post_pause: timedelta = timedelta(0)  # between two posts on one network
    watch_only: tuple[str, ...] = ()  # finding kinds about which nothing is opened
    weights: tuple[tuple[str, float], ...] = ()  # of finding kinds, where the owners wrote one
    agent: str = ""  # the agent that makes changes; "" where none is set up
    priors: tuple[tuple[str, Acceptance], ...] = ()  # by finding kind: verdicts in other repositories of the fleet


@dataclass(frozen=True, slots=True)
class ForgeSnapshot:
    """What the forge said at the start of the cycle."""

    bot: int
    default: Branch
    branches: tuple[str, ...]
    issues: tuple[Issue, ...]
    pulls: tuple[Pull, ...]
    facts: tuple[tuple[int, MissionFacts], ...]  # by mission id
    orders: tuple[str, ...] = ()  # what people who may decide ticked on the dashboard about Ralph itself
    ignored: tuple[tuple[str, str], ...] = ()  # boxes whose tick there counts for nothing, and why
    adopted: tuple[Mission, ...] = ()  # missions that people made by setting the label
    unwanted: tuple[str, ...] = ()  # kinds whose monitoring issue a person has just closed

    def ordered(self, verb: str) -> tuple[str, ...]:
        """What `verb` is requested of, by the boxes that are ticked."""
        return tuple(box.split(" ")[1] for box in self.orders if box.split(" ")[0] == verb)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that decisions rest on, but for the secrets that texts are searched for."""

    cycle: int
    cycle_id: str
    now: datetime
    settings: CycleSettings
    memory: Memory
    state: OpenState
    world: ForgeSnapshot
    records: dict[str, Record] = field(default_factory=dict)
    observations: tuple[Observation, ...] = ()
    plan: Plan = Plan(())
    refused: tuple[str, ...] = ()  # changes that the repository's own checks refused, and why
    made: tuple[AgentResult, ...] = ()  # what agents came to
    wordings: tuple[Wording, ...] = ()  # what findings would say in public
    judged_at: datetime | None = None  # when it is decided, which may be long after `now`: agents take their time
    findings: tuple[Finding, ...] = ()  # those seen now and those that wait: follows from the rest, see `with_findings`
    fresh: tuple[Finding, ...] = ()  # those of them that nothing was done about yet
    steering: bool = False  # a person spoke before the next cycle was due: only what they said is acted on

    @property
    def missions(self) -> tuple[Mission, ...]:
        """All missions that are not ended, those that people just made included; one issue has one."""
        taken = {mission.issue for mission in self.world.adopted}
        return (*(mission for mission in self.state.missions if mission.issue not in taken), *self.world.adopted)

    @property
    def usage(self) -> Usage:
        """What models cost in this cycle: of the thinker, of observers and of agents."""
        spent = [self.plan.usage, *(made.usage for made in self.made), *(seen.usage for seen in self.observations)]
        return Usage(
            sum(one.model_calls for one in spent),
            sum(one.input_tokens for one in spent),
            sum(one.output_tokens for one in spent),
            round(sum(max(0.0, one.cost_usd) for one in spent), 6),
        )

    @property
    def slots_taken(self) -> int:
        """On how many missions work has begun."""
        return sum(mission.status.begun for mission in self.missions)


@dataclass(frozen=True, slots=True)
class CycleDecisions:
    """What follows from a situation."""

    steps: tuple[MissionStep, ...]
    decisions: tuple[Decision, ...]

    @property
    def allowed(self) -> list[Decision]:
        """Those that are carried out."""
        return [decision for decision in self.decisions if decision.verdict is Verdict.ALLOW]
