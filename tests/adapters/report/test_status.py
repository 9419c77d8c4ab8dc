"""Status: the same keys always, and lines that say what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.adapters.report.status import facts, lines
from ralph_mission.mission.model.ledger import HeldFix, MonitorRecord, OpenState, RedBase, WorkRecord, work_key
from ralph_mission.mission.model.memory import CycleNote, IssueNote
from ralph_mission.mission.model.mission import Limits, Status, Urgency
from tests.adapters.report.samples import MEMORY, NOON, RECALLED, STATE, ask, mission

DONE = IssueNote(9, "Old one", "done", 1, 10)


def test_a_repository_without_memory_has_the_same_keys() -> None:
    assert facts(None, Limits(), NOON).keys() == facts(RECALLED, Limits(), NOON).keys()


def test_facts_are_json() -> None:
    known = facts(RECALLED, Limits(), NOON)
    assert json.loads(json.dumps(known)) == known


@pytest.mark.parametrize(
    "checks, line",
    [
        ((), "red on"),
        (("make test",), "\nYour check `make test` is red on main.\n"),
        (("make lint", "make test"), "\nYour checks `make lint` and `make test` are red on main.\n"),
    ],
)
def test_checks_that_are_red_without_any_change_of_ours_are_named(checks: tuple[str, ...], line: str) -> None:
    state = replace(STATE, red=RedBase("0" * 40, "main", checks))
    assert (line in "\n".join(lines(facts(replace(RECALLED, state=state), Limits(), NOON)))) == bool(checks)


@pytest.mark.parametrize(
    "state",
    [
        OpenState(unknown=("e4",)),
        OpenState(red=RedBase("0" * 40, "main", ("make test",))),
        OpenState(held=(HeldFix("k", "Fix it", "make test failed", ran=True),)),
    ],
)
def test_nothing_needs_a_person_only_where_nothing_is_in_doubt_red_or_held_back(state: OpenState) -> None:
    def rendered(state: OpenState) -> str:
        return "\n".join(lines(facts(replace(RECALLED, state=state), Limits(), NOON)))

    assert "Nothing needs you." in rendered(OpenState()) and "Nothing needs you." not in rendered(state)


def test_due_follows_the_clock() -> None:
    assert facts(RECALLED, Limits(), NOON)["due"] is False
    assert facts(RECALLED, Limits(), NOON + timedelta(hours=1))["due"] is True


def test_a_paused_repository_is_never_due_and_says_so() -> None:
    paused = replace(RECALLED, memory=replace(MEMORY, header=replace(MEMORY.header, paused=True)))
    known = facts(paused, Limits(), NOON + timedelta(days=1))
    assert known["due"] is False
    assert "Paused: nothing is done until ralph resume." in "\n".join(lines(known))


def test_a_parked_mission_takes_no_slot() -> None:
    state = replace(STATE, missions=(*STATE.missions, mission(id=8, status=Status.PARKED)))
    assert facts(replace(RECALLED, state=state), Limits(), NOON)["slots"] == {"used": 1, "total": 3}


def test_yesterdays_money_is_not_todays() -> None:
    assert facts(RECALLED, Limits(), NOON)["spend"]["usd_today"] == 0.25
    assert facts(RECALLED, Limits(), NOON + timedelta(days=1))["spend"]["usd_today"] == 0.0


def test_money_set_aside_for_a_try_is_not_told_as_spent() -> None:
    header = replace(MEMORY.header, spend_usd=5.25)
    recalled = replace(RECALLED, memory=replace(MEMORY, header=header))
    record = WorkRecord(work_key(7), 7, "ralph/issue-7", "0" * 40, "working", 1, "me", NOON, reserved=5.0)
    known = facts(recalled, Limits(), NOON, working=[record])
    assert (known["spend"]["usd_today"], known["spend"]["reserved_usd"]) == (5.25, 5.0)
    text = "\n".join(lines(known))
    assert "Spent today: $0.25 of $10.00, and $5.00 set aside for issues an agent works on." in text
    tomorrow = facts(recalled, Limits(), NOON + timedelta(days=1), working=[record])["spend"]
    assert (tomorrow["usd_today"], tomorrow["reserved_usd"]) == (0.0, 0.0)
    assert "set aside" not in "\n".join(lines(facts(recalled, Limits(), NOON)))


def test_lines_name_the_mission_its_next_step_and_the_unknown_effect() -> None:
    text = "\n".join(lines(facts(RECALLED, Limits(), NOON), waiting=[ask("ralph pr approve 5", "Another")]))
    for expected in (
        "Waiting for you\n  Pull request #5: Another\n    approve  ralph pr approve 5",
        "ralph journal resolve e4 --sent|--not-sent",
    ):
        assert expected in text


def test_a_mission_that_waits_for_nobody_is_told_with_its_state_and_next_step() -> None:
    answered = facts(RECALLED, Limits(), NOON, answers={7: "approved; the next cycle merges it"})
    told = " ".join(" ".join(lines(answered)).split())
    assert "Pull request #5, in review, 2 days old: Fix two misspellings in README.md approved; the next" in told
    assert answered["missions"][0]["next_step"] == "approved; the next cycle merges it"


def test_lines_name_issues_that_an_agent_works_on_and_not_what_is_done() -> None:
    notes = (IssueNote(12, "Add a \x1b[2Jtable", "working", 2), IssueNote(11, "Moon", "failed", 2), DONE)
    known = facts(replace(RECALLED, memory=replace(MEMORY, issues=notes)), Limits(), NOON)
    text = "\n".join(lines(known))
    assert "Issue #12, working, try 2: Add a" in text and "Issue #11, failed, try 2: Moon" in text
    assert "Old one" not in text and "\x1b" not in text
    assert known["issues"][2] == {"issue": 9, "title": "Old one", "state": "done", "tries": 1, "pull": 10}


@pytest.mark.attack(38)
def test_a_title_cannot_paint_the_terminal() -> None:
    state = replace(STATE, missions=(mission(title="\x1b[2Jgone", next_step="\x1b[31m"),))
    assert "\x1b" not in "\n".join(lines(facts(replace(RECALLED, state=state), Limits(), NOON)))


def test_watched_findings_and_what_was_not_checked_are_named() -> None:
    lists = (
        MonitorRecord("k", "code-quality", 0, ("- `Same test twice`; `a.py:3`", "- another"), 2),
        MonitorRecord("l", "todo", 0, ("- `x`",), 1),
    )
    note = CycleNote(3, NOON, ("not checked: advisories: no network",), (), Urgency.LOW, "6h")
    past = replace(
        RECALLED,
        memory=replace(MEMORY, observations=(note,)),
        state=OpenState(watched=lists, silenced=("todo",), held=(HeldFix("k", "Fix it", "no `uv`", ran=False),)),
    )
    told = "\n".join(lines(facts(past, Limits(), NOON), dashboard="dash.md"))
    assert "Watched, see dash.md\n  code quality findings (2): Same test twice; a.py:3\n" in told
    assert "Not looked at\n  advisories: no network\n" in told
    assert "Held back\n  Fix it: no `uv`\n  to try again now: ralph cycle --force\n" in told
