"""Cycle reports and memories for the tests of what is made of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ralph_mission.mission.model.cycle import (
    CycleReport,
    DecisionLine,
    EffectLine,
    FindingLine,
    MissionLine,
    ObserverLine,
)
from ralph_mission.mission.model.ledger import MemorySnapshot, OpenState
from ralph_mission.mission.model.memory import CompletedNote, Header, Memory
from ralph_mission.mission.model.mission import (
    Acceptance,
    Action,
    Mission,
    Status,
    Tier,
    Urgency,
    Usage,
    Verdict,
    WaitingLine,
    update_mission,
)

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

MISSION = Mission(
    id=7,
    key="aa" * 8,
    title="Fix two misspellings in README.md",
    kind="spelling",
    action=Action.OPEN_FIX,
    tier=Tier.LOW,
    status=Status.IN_REVIEW,
    started_cycle=3,
    started_at=NOON - timedelta(days=2),
    changed_at=NOON,
    issue=4,
    pull=5,
    next_step="review it: ralph pr approve 5",
)

REPORT = CycleReport(
    schema_version=1,
    cycle=3,
    cycle_id="3-20260504T120000Z",
    outcome="done",
    trigger="cli",
    staged=False,
    started_at=NOON,
    finished_at=NOON + timedelta(seconds=4),
    observers=(
        ObserverLine("code", "ok", 2, 0.5, ""),
        ObserverLine("commands", "unavailable", 0, 0.1, "tsc is missing"),
    ),
    findings=(
        FindingLine("f1", "", "spelling", "Two misspellings", 2.0, False),
        FindingLine("f2", "", "todo", "Old", 1.0, True),
    ),
    missions=(MissionLine(7, MISSION.title, Status.IN_REVIEW, 4, 5, 3),),
    decisions=(
        DecisionLine("k1", "open-fix", "spelling", Tier.LOW, Verdict.ALLOW, ()),
        DecisionLine("k2", "open-proposal", "todo", Tier.HIGH, Verdict.HOLD, ("new-mission-cap",)),
    ),
    effects=(
        EffectLine("e1", "open-fix", "open_issue", "done", "issue 4"),
        EffectLine("e2", "open-fix", "push_branch", "done", ""),
        EffectLine("e3", "open-fix", "open_pull", "done", "pull 5"),
        EffectLine("e4", "open-fix", "comment", "unknown", ""),
    ),
    urgency=Urgency.MEDIUM,
    next_due_at=NOON + timedelta(hours=1),
    usage=Usage(),
)

MEMORY = Memory(
    header=Header(
        lineage="ab" * 8,
        serial=9,
        cycle=3,
        next_due_at=NOON + timedelta(hours=1),
        urgency=Urgency.MEDIUM,
        today="2026-05-04",
        spend_usd=0.25,
        dispatches=2,
        last_cycle_at=NOON,
        drift_seconds=42,
    ),
    completed=(CompletedNote("2026-05-01", "Fix a typo", 2, "merged", "small fixes are welcome"),),
    measured=("spelling: 3 of 4 accepted",),
)

STATE = OpenState(missions=(MISSION,), unknown=("e4",), acceptance=(("spelling", Acceptance(3, 1)),))
RECALLED = MemorySnapshot(MEMORY, STATE, "0" * 40)


def ask(command: str, title: str = MISSION.title) -> WaitingLine:
    """A pull request that waits for a person."""
    return WaitingLine(5, True, title, (("approve", command),))


def mission(**changes: object) -> Mission:
    """The sample mission with other values."""
    return update_mission(MISSION, **changes)
