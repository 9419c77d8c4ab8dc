"""What one page says of a fleet: who is late, what waits for whom, what was done, from one scan alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ralph_mission.mission.fleet.model import (
    FleetPlan,
    FleetStart,
    FleetState,
    FleetThread,
    HeldRepository,
    RepositoryHeader,
)
from ralph_mission.mission.fleet.plan import LATE, FleetAsk, FleetStanding, look_over
from ralph_mission.mission.lifecycle.waiting import CLOSES_BY_ITSELF, WAITS_FOR_AGENT, find_waiting
from ralph_mission.mission.memory.learning import learnings, under_way
from ralph_mission.mission.memory.text import render_memory
from ralph_mission.mission.model.memory import CompletedNote, Memory, MissionNote
from ralph_mission.mission.model.mission import Acceptance, MissionQuestion, Status, Urgency
from tests.helpers import NOON
from tests.mission.build import mission as mission_of

NOTHING = FleetPlan((), (), (), FleetState())


def header(name: str, memory: Memory | None = None, **more: Any) -> RepositoryHeader:
    usual = {"has_memory": True, "next_due_at": NOON + timedelta(hours=1), "text": render_memory(memory or Memory())}
    return RepositoryHeader(name, **{**usual, **more})


def mission(number: int, status: Status, **more: Any) -> MissionNote:
    return MissionNote(number, f"Mission {number}", status, **more)


def test_what_waits_is_told_by_person_and_what_waits_for_nobody_is_not() -> None:
    active = (
        mission(1, Status.IN_REVIEW, issue=1, pull=2),
        mission(2, Status.DISCOVERED, issue=3),
        mission(3, Status.DISCOVERED, issue=4, next_step=CLOSES_BY_ITSELF),
        mission(4, Status.ESCALATED, issue=5),
        mission(5, Status.PLANNED, issue=6, next_step=WAITS_FOR_AGENT),
        mission(6, Status.EXECUTING, issue=7),
    )
    threads = (
        FleetThread(2, "", NOON, NOON, pull=True, waits_for=("mara", "jon")),
        FleetThread(5, "", NOON, NOON, waits_for=("mara",)),
    )
    overview = look_over([header("harbour/quay", Memory(active=active), threads=threads)], NOTHING, NOON)
    people = {who: [(one.what, one.number) for one in asks] for who, asks in overview.people()}
    assert people == {"jon": [("review", 2)], "mara": [("review", 2), ("decide", 5)], "": [("answer", 3), ("read", 4)]}
    assert list(people)[-1] == ""
    assert (overview.rows[0].missions, overview.rows[0].waiting) == (6, 4)  # what waits for two counts once


def test_rows_stand_with_what_needs_a_look_first() -> None:
    headers = [
        header("a/quiet"),
        header("a/paused", paused=True, next_due_at=NOON - timedelta(days=9)),
        header("a/due", next_due_at=NOON - LATE),
        header("a/late", next_due_at=NOON - LATE - timedelta(seconds=1)),
        header("a/later", next_due_at=NOON - timedelta(days=1)),
        RepositoryHeader("a/new"),
        RepositoryHeader("a/gone", failure="it is archived"),
    ]
    plan = FleetPlan((), (), (HeldRepository("a/gone", "it is archived"),), FleetState())
    rows = look_over(headers, plan, NOON).rows
    assert [row.name for row in rows] == ["a/gone", "a/later", "a/late", "a/due", "a/new", "a/quiet", "a/paused"]
    assert rows[0].note == "it is archived"
    assert [row.standing for row in rows].count(FleetStanding.LATE) == 2
    assert rows[-1].late == timedelta(0)


def test_what_the_plan_starts_or_holds_is_due_and_a_question_is_not() -> None:
    headers = [header("a/spoke"), header("a/waits"), header("a/quiet"), RepositoryHeader("a/new")]
    headers.append(RepositoryHeader("a/asked", has_settings=False, onboarding="open", onboarding_pull=7))
    held = tuple(HeldRepository(name, "") for name in ("a/waits", "a/asked"))
    starts = tuple(FleetStart(name, 0, Urgency.LOW) for name in ("a/spoke", "a/new"))
    overview = look_over(headers, FleetPlan(starts, held, (), FleetState()), NOON)
    told = {row.name: (row.standing.value, row.due) for row in overview.rows}
    assert told == {
        "a/spoke": ("due", True),
        "a/waits": ("due", True),
        "a/quiet": ("on time", False),
        "a/new": ("new", True),
        "a/asked": ("new", False),
    }
    assert [one.number for one in overview.asks] == [7]


def test_a_memory_that_cannot_be_read_is_one_line() -> None:
    overview = look_over([header("a/broken", text="---\nschema: 1\n---\nnonsense\n"), header("a/well")], NOTHING, NOON)
    assert [(row.name, row.standing) for row in overview.rows] == [
        ("a/broken", FleetStanding.FAILING),
        ("a/well", FleetStanding.ON_TIME),
    ]
    assert "cut short" in overview.rows[0].note


def test_a_question_whether_to_look_after_a_repository_waits_for_people_too() -> None:
    asked = RepositoryHeader("a/new", has_settings=False, onboarding="open")
    held = FleetPlan((), (HeldRepository("a/new", "waits for somebody"),), (), FleetState())
    overview = look_over([asked], held, NOON)
    assert overview.asks == (FleetAsk("", "a/new", "review", "Configure Ralph", 0, True),)
    assert (overview.rows[0].waiting, overview.rows[0].note) == (1, "waits for somebody")


def test_a_week_of_effects_money_and_verdicts_add_up() -> None:
    old, new = (NOON - timedelta(days=8)).date().isoformat(), NOON.date().isoformat()
    completed = (CompletedNote(new, "Fix links", 2, "merged"), CompletedNote(old, "Fix words", 2, "merged"))
    said = learnings({"spelling": Acceptance(3, 1)}, ())
    headers = [
        header("a/one", Memory(completed=completed, measured=said), spent_usd=1.25),
        header("a/two", Memory(completed=completed[:1], measured=said), spent_usd=0.5),
    ]
    overview = look_over(headers, NOTHING, NOON, usd_limit=20.0)
    assert [(one.repository, one.title) for one in overview.results] == [("a/two", "Fix links"), ("a/one", "Fix links")]
    assert (overview.spent_usd, overview.usd_limit) == (1.75, 20.0)
    assert overview.verdicts == {"spelling": Acceptance(6, 2)}


def test_addresses_lead_to_the_server_or_nowhere() -> None:
    ask = FleetAsk("", "a/one", "review", "Fix", 7, True)
    there = look_over([], NOTHING, NOON, server="https://github.com")
    assert there.address(ask.repository, ask.number) == "https://github.com/a/one/issues/7"
    assert look_over([], NOTHING, NOON).address(ask.repository, ask.number) == ""


@pytest.mark.parametrize("next_step", ["", CLOSES_BY_ITSELF, WAITS_FOR_AGENT])
@pytest.mark.parametrize(("issue", "pull"), [(3, 0), (3, 4), (0, 4), (0, 0)])
@pytest.mark.parametrize("status", Status)
def test_what_waits_in_a_fleet_is_what_waits_in_ralph_status(
    status: Status, issue: int, pull: int, next_step: str
) -> None:
    asked = status is Status.DISCOVERED and bool(issue) and next_step != WAITS_FOR_AGENT
    question = MissionQuestion(proposal_hash="0123abcd" if asked else "")
    one = mission_of(status=status, issue=issue, pull=pull, next_step=next_step, question=question)
    if (status is Status.IN_REVIEW and not pull) or (status is Status.DISCOVERED and pull):
        return  # there is no such mission
    there = find_waiting([one], lambda *_: "")
    here = look_over([header("acme/api", Memory(active=under_way([one])))], NOTHING, NOON).asks
    assert len(here) == len(there)
    assert [(ask.number, ask.pull) for ask in here] == [(line.number, line.pull) for line in there]
