"""What a cycle gathers, concludes and reports: settings, facts about each mission, steps, the report.

Nouns only. The `CycleReport` is a published contract with fixed
keys; `Situation` is kept for `ralph journal show --replay`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Literal

from ralph_mission.mission.model.agent_job import AgentResult
from ralph_mission.mission.model.effects import Fate
from ralph_mission.mission.model.forge import Actor, Branch, Issue, Post, Pull, Wording
from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes, OpenState, Record, Rhythm
from ralph_mission.mission.model.memory import Memory
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
    WaitingLine,
)
from ralph_mission.mission.model.proposal import Decision, Plan, Proposal
from ralph_mission.values import compile_regex, dataclass

REPORT_SCHEMA = 1
Outcome = Literal["done", "not_due", "lost", "paused", "failed"]
Trigger = Literal["cron", "manual", "dispatch", "cli", "watch", "person"]


@dataclass(frozen=True, slots=True)
class ObserverLine:
    """One observer's run; `signals` is a count, `seconds` its duration, `unchecked` what it did not check, and why."""

    name: str
    status: Literal["ok", "unavailable", "skipped"]
    signals: int
    seconds: float
    detail: str
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding; `known` if it was acted on before."""

    fingerprint: str
    occurrence: str
    kind: str
    title: str
    score: float
    known: bool


@dataclass(frozen=True, slots=True)
class MissionLine:
    """One mission; `issue` and `pull_request` are numbers, or null."""

    id: int
    title: str
    status: Status
    issue: int | None
    pull_request: int | None
    started_cycle: int


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """The verdict on one proposal or step, and the rules behind it."""

    key: str
    action: str
    kind: str
    tier: Tier
    verdict: Verdict
    rules: tuple[str, ...]


def thread_number(url: str) -> int:
    """Of the issue or pull request that a URL or file names; 0 for none."""
    found = _NUMBER.search(url)
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class EffectLine:
    """The result of one effect."""

    key: str
    action: str
    kind: str
    status: Fate
    url: str

    @property
    def number(self) -> int:
        """Of the issue or pull request that its URL or file names; 0 for none."""
        return thread_number(self.url)


_NUMBER = compile_regex(r"/(?:issues|pull|pulls)/0*(\d+)(?:\.md)?(?:#[\w-]+)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The report of one cycle. `cycle` is its number; `cycle_id` is permanent."""

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
    """A post as sent or planned: its exact parts, each part's length as the network counts it, and the limit."""

    network: str
    status: Fate
    url: str
    parts: tuple[str, ...]
    lengths: tuple[int, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """An issue or pull request that was opened, or would be. `key`: of its effect; `diff`: what it would change."""

    key: str
    title: str
    body: str
    diff: str = ""  # of a staged cycle only


Answer = Literal["done", "waits", "refused"]


@dataclass(frozen=True, slots=True)
class CycleSummary:
    """What the summary adds to the report: why this one, who is waited for, what to type next."""

    why: tuple[str, ...] = ()  # for each new mission or action, in plain words
    held: tuple[str, ...] = ()  # "title: what it waits for (rule)"
    waiting: tuple[WaitingLine, ...] = ()  # what a person can do now
    remarks: tuple[str, ...] = ()  # anything else worth a line (drift, human edits, unknown effects)
    late: int | None = None  # seconds between due and started; None if it did not start
    threads: tuple[ThreadLine, ...] = ()  # what was opened
    posts: tuple[PostLine, ...] = ()  # posts, by network
    watched: tuple[str, ...] = ()  # titles of what was new on the dashboard's lists
    refusal: str = ""  # why everything was refused, if only a person can change that
    taken: int = 0  # actions that were done, with all their effects
    answers: tuple[tuple[int, Answer], ...] = ()  # what came of what people asked for, by the number of its thread
    subjects: tuple[tuple[str, str], ...] = ()  # what each effect is about, by its key
    needs_person: bool = False  # whether anything does: without it, the summary may say that nothing needs them
    paused: bool = False  # whether people paused everything, so that no cycle follows


@dataclass(frozen=True, slots=True)
class ShownPosts:
    """The posts an issue shows now; `wrong`: why they cannot be sent, if so."""

    posts: tuple[Post, ...] = ()
    wrong: tuple[str, ...] = ()


NOTHING_SHOWN = ShownPosts()


@dataclass(frozen=True, slots=True)
class PersonVerdict:
    """People's latest verdict. `state`: none, approved, changes, rejected, or refused with `rules`."""

    state: str = "none"
    actor: Actor | None = None
    words: str = ""
    rules: tuple[str, ...] = ()


NO_VERDICT = PersonVerdict()


class MissionEvent(StrEnum):
    """What can happen to a mission."""

    APPROVED = "approved"  # a person approved what was proposed or shown
    STARTED = "started"  # work has begun
    OFFERED = "offered"  # the change needs approval before it is pushed
    PULL_OPENED = "pull opened"
    CHANGES_REQUESTED = "changes requested"
    CHECKS_FAILED = "its checks failed"
    REVISED = "revised"  # the review was answered with a push
    MERGEABLE = "approved at its head"  # no transition of its own: merging follows
    BEHIND = "behind its base"  # no transition either: the base is merged in, and review requested again
    MERGED = "merged"
    DONE = "done by a person"
    SOLVED = "no longer found"  # the finding is gone
    PUBLISHED = "published"  # every network answered
    REFUSED = "refused"  # a person rejected it
    STUCK = "stuck"
    UNANSWERED = "unanswered"
    GONE = "gone"  # the issue was deleted: no verdict, but nothing left to work on
    REVIVED = "revived"


@dataclass(frozen=True, slots=True)
class MissionFacts:
    """What the forge says about one mission now, and the ids of those who may decide."""

    issue: Issue | None  # if it has none, its pull request read as one; None: deleted
    pull: Pull | None
    authorised: frozenset[int]
    foreign: str = ""  # why the thread in memory is not this mission's; nothing is written there then
    announced: frozenset[str] = frozenset()  # digests of what our own issue announces
    offered: frozenset[str] = frozenset()  # and of what it announces for after an approval
    offered_at: datetime | None = None  # when our comment showed a change: an approval must be newer
    coder: bool = False  # whether an agent does what no fixer can
    us: int = 0  # our own account
    ours: bool = True  # whether its issue, if not its pull request, is this mission's
    altered: Actor | None = None  # who edited its issue since it was requested without being authorised
    asked_at: datetime | None = None  # when; None where everyone who may edit may also decide
    reworded: frozenset[int] = frozenset()  # reviews that someone other than their author may have edited
    shown: ShownPosts = NOTHING_SHOWN  # the texts its issue shows, for a mission that publishes
    edited_at: datetime | None = None  # when an unauthorised person last edited the text to approve
    left: Pull | None = None  # its pull request, if its issue is no longer this mission's
    yes: tuple[ChatYes, ...] = ()  # owners' approvals in a chat
    guidance: tuple[ChatGuidance, ...] = ()  # and their guidance for its next session
    seen_at: datetime | None = None  # the newest activity there, by the forge's clock
    heard_at: datetime | None = None  # the newest chat approval in memory, proven or not
    solved: bool = False  # whether all its findings were looked for in this cycle and are gone
    present: bool = False  # whether one of them was seen in this cycle, as certain as a look at the commit can be
    certain: bool = False  # whether all are of observers whose look at the commit tells for certain
    usual_reason: str = ""  # of closing an issue, where a person picks none
    untold: bool = False  # whether one of its boxes is ticked on the dashboard by an unknown person
    unasked: bool = False  # whether our own issue says we began it unasked, and nobody revived it


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The facts interpreted: what happened, who wrote what, which rules a refused approval violated."""

    event: MissionEvent | None = None
    verdict: PersonVerdict = NO_VERDICT
    words: str = ""


QUIET = Interpretation()


@dataclass(frozen=True, slots=True)
class Lesson:
    """A person's verdict on a mission. Learning and the rule `rejected-before` use it."""

    mission: int
    kind: str
    members: tuple[str, ...]
    verdict: str  # accepted | rejected
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MissionStep:
    """`mission`: its state if nothing is sent. `proposal`: what would be sent. `lesson`: a person's verdict."""

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
    recent: Mapping[str, int] = field(default_factory=dict)  # lines of automatic pull requests lately, by path
    results: Mapping[int, AgentResult] = field(default_factory=dict)  # by mission: an agent's result in this cycle


@dataclass(frozen=True, slots=True)
class CycleSettings:
    """The owners' settings: limits (already within the built-in ones), rhythm, who may decide."""

    limits: Limits = Limits()
    rhythm: Rhythm = Rhythm()
    owners: tuple[str, ...] = ()
    merge_method: str = "squash"
    memory_branch: str = "ralph-memory"
    name: str = "this repository"
    page: str = ""  # URL of its page on the forge; "" for a forge without URLs
    quiet_hours: tuple[time, time] | None = None  # in UTC
    announce: tuple[str, ...] = ()  # kinds of missions to announce once merged
    post_pause: timedelta = timedelta(0)  # between two posts on one network
    watch_only: tuple[str, ...] = ()  # finding kinds that never open a thread
    weights: tuple[tuple[str, float], ...] = ()  # by finding kind, where the owners set one
    agent: str = ""  # the agent that makes changes; "" if none is set up
    checks: str = ""  # names the commands that verify a change, and their set-up
    priors: tuple[tuple[str, Acceptance], ...] = ()  # by finding kind: verdicts in other repositories of the fleet
    in_fleet: bool = False  # a fleet bounds its money: what a model may cost is in memory before it is asked


@dataclass(frozen=True, slots=True)
class ForgeSnapshot:
    """The forge's state at the start of the cycle."""

    bot: int
    default: Branch
    branches: tuple[str, ...]
    issues: tuple[Issue, ...]
    pulls: tuple[Pull, ...]
    facts: tuple[tuple[int, MissionFacts], ...]  # by mission id
    orders: tuple[str, ...] = ()  # boxes about Ralph itself that authorised people ticked
    ignored: tuple[tuple[str, str], ...] = ()  # ticked boxes that do not count, and why
    adopted: tuple[Mission, ...] = ()  # missions people made by setting the label
    reopened: tuple[Pull, ...] = ()  # our pull requests that were rejected, are open, and were not answered yet
    unwanted: tuple[str, ...] = ()  # unused: recordings of an earlier version hold it

    def requested(self, verb: str) -> tuple[str, ...]:
        """What people asked `verb` for, by ticked boxes."""
        return tuple(box.split(" ")[1] for box in self.orders if box.split(" ")[0] == verb)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything decisions rest on, except the secrets that texts are searched for."""

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
    refused: tuple[str, ...] = ()  # changes that failed the repository's own checks, and why
    verified: str = ""  # the key of the proposal whose change passed its checks
    standing: tuple[str, ...] = ()  # but for these, which fail without that change as they do with it
    green: tuple[str, ...] = ()  # these passed with it
    red: tuple[str, ...] | None = None  # the checks that fail on the default branch; None: none was run
    made: tuple[AgentResult, ...] = ()  # the results of agents, named so in recordings for ever
    wordings: tuple[Wording, ...] = ()  # texts of findings for posts
    judged_at: datetime | None = None  # when it is decided; after agents' work that may be long after `now`
    findings: tuple[Finding, ...] = ()  # seen now or waiting; derived, see `with_findings`
    fresh: tuple[Finding, ...] = ()  # those that still need handling
    steering: bool = False  # a person acted before the next cycle was due: only that is handled

    @property
    def missions(self) -> tuple[Mission, ...]:
        """All missions that have not ended, including those people just made; at most one per issue."""
        issues = {mission.issue for mission in self.world.adopted}
        return (*(mission for mission in self.state.missions if mission.issue not in issues), *self.world.adopted)

    @property
    def usage(self) -> Usage:
        """The cost of models in this cycle: thinker, observers and agents."""
        spent = [
            self.plan.usage,
            *(result.usage for result in self.made),
            *(observation.usage for observation in self.observations),
        ]
        return Usage(
            sum(one.model_calls for one in spent),
            sum(one.input_tokens for one in spent),
            sum(one.output_tokens for one in spent),
            round(sum(max(0.0, one.cost_usd) for one in spent), 6),
        )

    @property
    def slots_taken(self) -> int:
        """The number of missions on which work has begun."""
        return sum(mission.status.begun for mission in self.missions)


@dataclass(frozen=True, slots=True)
class CycleDecisions:
    """The decisions on a situation."""

    steps: tuple[MissionStep, ...]
    decisions: tuple[Decision, ...]

    @property
    def allowed(self) -> list[Decision]:
        """Decisions that are carried out."""
        return [decision for decision in self.decisions if decision.verdict is Verdict.ALLOW]
