"""What is judged, and all that a judgement may rest on. Nouns only; `rules` and `policy` are the verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, time, timedelta

from ralph_mission.mission.findings.bans import Ban
from ralph_mission.mission.model.effects import Effect, Publish
from ralph_mission.mission.model.kinds import lookup
from ralph_mission.mission.model.ledger import MonitorRecord, Record
from ralph_mission.mission.model.mission import Action, Finding, Limits, Mission, Tier, Verdict
from ralph_mission.mission.model.threads import Issue, Pull
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action, worded: its effects are exactly what would be sent.

    `after` is the mission once every effect is done; `interim` what memory holds meanwhile.
    `approved` is true when a person's counted yes stands behind it; `objections` are rule
    ids that reading the approval itself ran into.
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
    planned: tuple[Effect, ...] = ()  # what a yes will release; kept, not sent
    monitor: MonitorRecord | None = None  # the monitoring issue's new state
    approved: bool = False
    approver: str = ""
    objections: tuple[str, ...] = ()
    why: str = ""
    score: float = 0.0
    cost_usd: float = 0.0
    dispatches: int = 0
    pings: tuple[str, ...] = ()  # configured owners that an escalation may name
    wished: bool = False  # whether a person made its mission or brought it back: by the forge; memory grants nothing

    @property
    def new_mission(self) -> bool:
        """Whether allowing it takes a slot that is free now."""
        return self.before is None and self.action in (Action.OPEN_FIX, Action.OPEN_PROPOSAL)

    @property
    def automatic(self) -> bool:
        """Whether it is a new fix that nobody was asked about."""
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
        """Where it posts, each as often as it does."""
        return tuple(effect.network for effect in self.effects if isinstance(effect, Publish))

    @property
    def tier(self) -> Tier:
        """Low is done at once, high is asked first. What no rule can classify is high."""
        if self.action is Action.PUBLISH:
            return Tier.HIGH if self.approved else Tier.LOW  # typed facts in the owner's own words, or a person's yes
        return Tier.HIGH if self.action is Action.OPEN_PROPOSAL else lookup(self.kind).tier


@dataclass(frozen=True, slots=True)
class BudgetUsed:
    """What has been used up: this cycle's actions, and today's money and dispatches."""

    active: int = 0
    new_missions: int = 0
    actions: int = 0
    auto_pulls: int = 0
    usd_cycle: float = 0.0
    usd_day: float = 0.0
    dispatches_day: int = 0
    posts_day: Mapping[str, int] = field(default_factory=dict)  # by network
    posts_lately: Mapping[str, int] = field(default_factory=dict)  # the same, within the pause between two posts


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """All that a judgement rests on; nothing else may influence it."""

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
    """A proposal with its verdict and every rule that spoke against it."""

    proposal: Proposal
    verdict: Verdict
    rules: tuple[str, ...] = ()
