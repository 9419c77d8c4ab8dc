"""From a finding to a judged proposal: kinds of findings, ranking, proposals and what they are judged on.

`KINDS` has one row per kind: what it is worth and what may be done about it. Any other kind is `UNKNOWN`: high tier, so
a person is asked. To add one: CONTRIBUTING, "A finding kind".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, time, timedelta
from enum import StrEnum

from ralph_mission.mission.model.effects import Effect, OpenIssue, OpenPull, Publish
from ralph_mission.mission.model.forge import Branch, Issue, Pull
from ralph_mission.mission.model.ledger import MonitorRecord, Record
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import (
    BRIEFS,
    Acceptance,
    Action,
    Finding,
    Limits,
    Mission,
    Tier,
    Usage,
    Verdict,
)
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass


class Route(StrEnum):
    """What becomes of a finding: a pull request at once, a line on a list, a question to a person.

    `say`: a post if the owner has configured a text for it, and nothing else.
    """

    FIX = "fix"
    MONITOR = "monitor"
    PROPOSE = "propose"
    SAY = "say"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One row. `impact`: 1 (cosmetic) to 10 (people are harmed). `words`: its name in texts for people."""

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
    "formatting": FindingKind(_FIX, _LOW, 2, "unformatted file", "unformatted files", words=("format",)),
    "dependency-patch": FindingKind(
        _FIX, _LOW, 4, "patch-level update", "patch-level updates", words=("bump", "update")
    ),
    "dead-link": FindingKind(_FIX, _LOW, 4, "dead link", "dead links", words=("link", "docs")),
    "broken-docs": FindingKind(
        _MONITOR, _LOW, 4, "reference in the docs that leads nowhere", "references in the docs that lead nowhere"
    ),
    "overdue-marker": FindingKind(_PROPOSE, _HIGH, 5, "overdue marker", "overdue markers", RESEARCH),
    "todo": FindingKind(_MONITOR, _LOW, 1.5, "new TODO, FIXME or HACK marker", "TODO, FIXME and HACK markers"),
    "ts-ignore": FindingKind(_MONITOR, _LOW, 1.5, "new ts-ignore comment", "ts-ignore comments"),
    "any": FindingKind(_MONITOR, _LOW, 1, "new `any` type", "`any` types"),
    "code-quality": FindingKind(_MONITOR, _LOW, 2, "code quality finding", "code quality findings"),
    "dead-code": FindingKind(_MONITOR, _LOW, 2, "unused definition", "unused definitions"),
    "stale-issue": FindingKind(_MONITOR, _LOW, 3, "unassigned issue", "unassigned issues"),
    "pull-waiting": FindingKind(
        _MONITOR, _LOW, 4, "pull request that waits for somebody", "pull requests that wait for somebody"
    ),
    "triage": FindingKind(_MONITOR, _LOW, 4, "hint for triage", "hints for triage"),
    "question": FindingKind(_MONITOR, _LOW, 4, "question without an answer", "questions without an answer"),
    "community": FindingKind(
        _MONITOR, _LOW, 2, "sign of how the project is doing", "signs of how the project is doing"
    ),
    "news": FindingKind(_MONITOR, _LOW, 4, "piece of news", "pieces of news"),
    "dependency": FindingKind(_MONITOR, _LOW, 3, "outdated dependency", "outdated dependencies"),
    "advisory": FindingKind(
        _MONITOR,
        _LOW,
        4,
        "vulnerable package without an upgrade in reach",
        "vulnerable packages without an upgrade in reach",
    ),
    "update-bot": FindingKind(
        _PROPOSE, _HIGH, 3, "gap in dependency updates", "gaps in dependency updates", words=("dependabot", "renovate")
    ),
    "security-alert": FindingKind(_PROPOSE, _HIGH, 10, "security alert", "security alerts", RESEARCH),
    "code-alert": FindingKind(_MONITOR, _LOW, 5, "alert of code scanning", "alerts of code scanning"),
    "workflow-risk": FindingKind(_PROPOSE, _HIGH, 7, "risk in a workflow", "risks in workflows", RESEARCH),
    "workflow-fix": FindingKind(_PROPOSE, _HIGH, 3, "safe fix of a workflow", "safe fixes of workflows"),
    "workflow": FindingKind(_MONITOR, _LOW, 4, "weak spot in a workflow", "weak spots in workflows"),
    "dependency-minor": FindingKind(_PROPOSE, _HIGH, 2, "minor update", "minor updates", RESEARCH),
    "dependency-major": FindingKind(_PROPOSE, _HIGH, 3, "major update", "major updates", RESEARCH),
    "flaky-check": FindingKind(_MONITOR, _LOW, 5, "flaky check", "flaky checks"),
    "unreleased": FindingKind(_MONITOR, _LOW, 3, "release that is due", "releases that are due"),
    "broken-build": FindingKind(_PROPOSE, _HIGH, 10, "broken build", "broken builds", RESEARCH),
    "brief": FindingKind(_PROPOSE, _HIGH, 6, "standing brief", "standing briefs", RESEARCH),
    "bug": FindingKind(_PROPOSE, _HIGH, 8, "bug", "bugs", RESEARCH),
    "proven-bug": FindingKind(_FIX, _HIGH, 8, "proven bug", "proven bugs", RESEARCH),
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
    "spelling": "misspellings trip readers up, and a search for the right word misses them",
    "lint-fix": "new warnings get lost among known ones",
    "formatting": "a check of the repository itself is red until its own formatter has run",
    "dependency-patch": "patch releases fix bugs and security holes without changing behaviour",
    "dead-link": "readers who follow the link find nothing",
    "broken-docs": "readers who follow the documentation get stuck",
    "overdue-marker": "the comment itself says when this was to be done, and that time has come",
    "todo": "a marker that is not listed is forgotten",
    "ts-ignore": "a silenced type error may be a real one",
    "any": "what has no type is not checked",
    "code-quality": "small faults pile up unseen",
    "dead-code": "unused code still has to be read",
    "stale-issue": "its author still waits",
    "pull-waiting": "its author still waits",
    "triage": "otherwise somebody sorts it by hand",
    "question": "the person who asked still waits",
    "community": "it shows how the community is doing",
    "news": "it may matter to the project",
    "dependency": "what falls behind gets harder to update",
    "advisory": "anyone who relies on it should know, and may want to replace it",
    "update-bot": "what nothing updates falls behind, and security fixes come late",
    "security-alert": "attackers may know it already, and an alert alone fixes nothing",
    "code-alert": "what a scanner finds, attackers find too",
    "workflow-risk": "a workflow has tokens and secrets, and somebody else could get to use them",
    "workflow-fix": "a workflow that is not maintained breaks one day; this change keeps what it does",
    "workflow": "a workflow has tokens and secrets, and each weak spot makes an attack easier",
    "dependency-minor": "new features come with it, and the longer it waits, the larger the step",
    "dependency-major": "it may break what relies on it, but old versions stop getting fixes one day",
    "broken-build": "while it is red, it hides what the next change breaks",
    "flaky-check": "people get used to rerunning it, until they miss a real failure",
    "unreleased": "users get fixes and features only with a release",
    "brief": "people of the project wrote down that it should be done",
    "bug": "something does not work as it should",
    "proven-bug": "something does not work as it should, and a test shows it",
    "vulnerability": "it may let somebody do what they should not be able to do",
    "anomaly": "a number left its usual range",
    "feature": "it would help somebody",
    "architecture": "it changes how the parts fit together, which people decide",
    "integration": "it would tie the project to something outside of it, which people decide",
    "content": "it speaks for the project, so a person approves it first",
    "completed": "followers of the project learn what improved",
    "human": "a person requested it",
}
"""Why a kind deserves a person's attention, as a clause."""


def reason(kind: str) -> str:
    """Why this kind matters, for people."""
    return MATTERS.get(kind, "no rule says what it is worth, so a person has to")


UNKNOWN = FindingKind(_PROPOSE, _HIGH, 3, "finding", "findings", RESEARCH)


def lookup(kind: str) -> FindingKind:
    """The row of a kind, or `UNKNOWN`."""
    return KINDS.get(kind, UNKNOWN)


def name_findings(kind: str) -> str:
    """Findings of a kind in words: "misspellings"; the kind itself where it has no row."""
    return KINDS[kind].plural if kind in KINDS else kind


def count_findings(number: int, kind: str) -> str:
    """ "1 misspelling", "7 misspellings"."""
    row = lookup(kind)
    return f"{number} {row.noun if number == 1 else row.plural}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action with its final texts: its effects are exactly what would be sent.

    `after` is the mission once every effect is done; `interim` what memory holds meanwhile.
    `approved`: a person's valid approval stands behind it. `objections`: rule ids that reading the approval
    raised.
    """

    key: str
    action: Action
    kind: str
    title: str
    effects: tuple[Effect, ...] = ()
    members: tuple[Finding, ...] = ()
    patch: Patch | None = None
    before: Mission | None = None
    interim: Mission | None = None
    after: Mission | None = None
    planned: tuple[Effect, ...] = ()  # what an approval releases; kept, not sent
    monitor: MonitorRecord | None = None  # the monitoring issue's new state
    approved: bool = False
    approver: str = ""
    objections: tuple[str, ...] = ()
    why: str = ""
    score: float = 0.0
    cost_usd: float = 0.0
    dispatches: int = 0
    pings: tuple[str, ...] = ()  # configured owners an escalation may mention
    requested: bool = False  # whether a person made or revived its mission, by the forge: memory grants nothing

    @property
    def new_mission(self) -> bool:
        """Whether allowing it creates a mission."""
        return self.before is None and self.action in (Action.OPEN_FIX, Action.OPEN_PROPOSAL)

    @property
    def begins_work(self) -> bool:
        """Whether allowing it takes a free slot."""
        begun = self.after.status.begun if self.after else self.action is Action.OPEN_FIX
        return begun and not (self.before and self.before.status.begun)

    @property
    def threads(self) -> int:
        """How many issues and pull requests it opens unasked; work on an issue was asked for, and so is a brief."""
        briefs = bool(self.members) and all(member.signal.observer == BRIEFS for member in self.members)
        if self.before is not None or self.action is Action.WORK or briefs:
            return 0
        return sum(isinstance(effect, OpenIssue | OpenPull) for effect in self.effects)

    @property
    def automatic(self) -> bool:
        """Whether it is a new fix that nobody is asked about."""
        return self.unasked and self.before is None

    @property
    def unasked(self) -> bool:
        """Whether it opens a pull that nobody was asked about, be it one that a dead cycle could not open any more.

        A new one that waits for a slot has no effects yet; of an old one without any, nothing is left to be opened.
        """
        opens = self.before is None or bool(self.effects)
        return self.action is Action.OPEN_FIX and not self.approved and opens

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks it posts to, with repetitions."""
        return tuple(effect.network for effect in self.effects if isinstance(effect, Publish))

    @property
    def tier(self) -> Tier:
        """Low is done at once; high asks first. Whatever no rule classifies is high."""
        if self.action is Action.PUBLISH:
            return Tier.HIGH if self.approved else Tier.LOW  # typed facts in the owner's own words, or a person's yes
        return Tier.HIGH if self.action is Action.OPEN_PROPOSAL else lookup(self.kind).tier


@dataclass(frozen=True, slots=True)
class BudgetUsed:
    """Budget used: slots, this cycle's actions, today's money and dispatches, this week's threads."""

    active: int = 0
    new_missions: int = 0
    actions: int = 0
    auto_pulls: int = 0
    usd_cycle: float = 0.0
    usd_day: float = 0.0
    dispatches_day: int = 0
    posts_day: Mapping[str, int] = field(default_factory=dict)  # by network
    posts_lately: Mapping[str, int] = field(default_factory=dict)  # the same, within the pause between two posts
    threads_week: int = 0
    unanswered: int = 0  # our missions that no person has answered yet


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """Everything a judgement rests on. Nothing else may influence it."""

    limits: Limits
    spent: BudgetUsed
    default_branch: str
    memory_branch: str
    bot: int
    now: datetime
    records: Mapping[str, Record] = field(default_factory=dict)
    pulls: tuple[Pull, ...] = ()
    issues: tuple[Issue, ...] = ()
    branches: tuple[str, ...] = ()
    bans: tuple[Ban, ...] = ()
    recent_lines: Mapping[str, int] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    quiet_hours: tuple[time, time] | None = None
    paused: bool = False
    post_pause: timedelta = timedelta(0)  # between two posts on one network


@dataclass(frozen=True, slots=True)
class Decision:
    """A proposal with its verdict and every rule that objected."""

    proposal: Proposal
    verdict: Verdict
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathBan:
    """Paths that match a gitignore pattern, below the repository's root."""

    glob: str


@dataclass(frozen=True, slots=True)
class ReferenceBan:
    """One issue or pull."""

    number: int


@dataclass(frozen=True, slots=True)
class KindBan:
    """Every finding of one kind."""

    kind: str


Ban = PathBan | ReferenceBan | KindBan


@dataclass(frozen=True, slots=True)
class RankedFinding:
    """One finding (or a coherent group) worth doing something about, best first in a plan."""

    members: tuple[str, ...]  # fingerprints, all of them known findings
    kind: str
    score: float
    why: str
    ask: bool = False  # a person is to be asked, even where rules would act at once
    sections: tuple[tuple[str, str], ...] = ()  # heading and text, for its analysis


@dataclass(frozen=True, slots=True)
class Plan:
    """A thinker's answer. Validated, never trusted."""

    ranked_findings: tuple[RankedFinding, ...]
    usage: Usage = Usage()
    remark: str = ""  # e.g. why the rules thinker answered instead
    cursor: str = ""  # returned to the thinker in the next cycle


@dataclass(frozen=True, slots=True)
class Brief:
    """All a thinker may know."""

    findings: tuple[Finding, ...]
    missions: tuple[Mission, ...]
    acceptance: Mapping[str, Acceptance]
    limits: Limits
    memory: Memory
    now: datetime
    engagement: Mapping[str, float] = field(default_factory=dict)  # by finding kind: how its posts do, 0.75 to 1.25


@dataclass(frozen=True, slots=True)
class PatchVerification:
    """The repository's own checks on a patch; `detail` is for people if they failed: its first line says why.

    `green`: checks that passed. `standing`: those that failed before and still do, where that is allowed. `red_base`:
    what failed cannot pass without the patch either. `red`: checks that fail without it, None if not known. `ran`:
    whether they could be run.
    """

    ok: bool
    detail: str = ""
    standing: tuple[str, ...] = ()
    red_base: bool = False
    ran: bool = True
    red: tuple[str, ...] | None = None
    green: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservationContext:
    """What an observer gets: the commit to look at, when it last looked, and how far it got."""

    head: Branch  # its commit is in the clone; "" if there is none yet
    now: datetime
    last_cycle_at: datetime | None
    cursor: str
    scratch: str  # an existing folder, removed after the run
    usd: float = 0.0  # dollars that its model calls may cost
