"""Somebody who can push to `ralph-memory` writes memory that goes on without a gap: it must grant nothing.

Every attack runs on the local forge and on GitHub, where the forged commit is pushed from another clone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import Action, Mission, Status, Tier
from tests.integration.forging import forge_memory, issue, place, push_branch, state_of, untouched
from tests.integration.world import CALM, statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

__all__ = ["place"]


def merged_pull(place) -> int:
    """A pull of a person's that she merged."""
    push_branch(place, "hers", {"hers.txt": "mine\n"})
    mara = place.person()
    number = mara.open_pull("hers", "main", "Add mine")
    mara.merge(number)
    return number


def stranger(place, number, **changes) -> Mission:
    """A mission that never was, on the issue `number`."""
    made = Mission(
        90,
        "f" * 16,
        "A title of theirs",
        "spelling",
        Action.OPEN_FIX,
        Tier.LOW,
        Status.IN_REVIEW,
        1,
        place.now,
        place.now,
        members=("e" * 16,),
        issue=number,
        branch="hers",
        head_sha="c" * 40,
        waiting_since=place.now,
    )
    return replace(made, **changes)


def escalated(report) -> bool:
    return next(line.status for line in report.missions if line.id == 90) is Status.ESCALATED


@pytest.mark.parametrize(
    "changes",
    [{}, {"status": Status.ESCALATED}, {"status": Status.FIXING, "stalled_cycles": 9}, {"status": Status.PARKED}],
)
def test_a_persons_issue_is_neither_remarked_on_nor_closed_because_some_pull_was_merged(place, changes):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late", "again")
    merged = merged_pull(harbour)
    before = issue(harbour, theirs)
    false = stranger(harbour, theirs, pull=merged, **changes)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    for _ in range(3):
        report, _ = harbour.cycle()
        untouched(harbour, theirs, before)
    assert changes or escalated(report)
    assert "people accepted" not in harbour.memory()


def test_a_forged_mission_is_told_of_and_a_person_is_asked(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    false = stranger(harbour, theirs)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    report, telling = harbour.cycle()
    assert escalated(report)
    assert len([line for line in telling.waiting if line.startswith("decide:")]) == 1
    assert f"issue #{theirs} does not belong to this mission" in harbour.memory()


def test_a_mission_of_ours_led_to_a_persons_issue_writes_nothing_there_and_gives_its_slot_back(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    before = issue(harbour, theirs)
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(state.missions[0], issue=theirs),)), ()))
    harbour.person().merge(state_of(harbour).missions[0].pull)
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    assert statuses(harbour.cycle(after=timedelta(days=8))[0]) == ["PARKED"]
    untouched(harbour, theirs, before)


@pytest.mark.parametrize("whose", ["a person's", "ours, of another mission"])
def test_an_issue_of_ours_is_not_closed_because_another_pull_was_merged(place, whose):
    harbour = place()
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    before = issue(harbour, mission.issue)
    if whose == "a person's":
        changed = replace(mission, pull=merged_pull(harbour), branch="hers")
    else:
        harbour.person().merge(mission.pull)
        changed = replace(mission, members=("e" * 16,))
    forge_memory(harbour, lambda state: (replace(state, missions=(changed,)), ()))
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    untouched(harbour, mission.issue, before)


def test_an_issue_that_a_person_labelled_is_not_closed_for_a_pull_of_ours(place):
    harbour = place()
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    harbour.person().merge(mission.pull)
    mara = harbour.person()
    hers = mara.create_issue("Add a chart of the springs")
    mara.label(hers, ("ralph:mission",))
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(mission, issue=hers),)), ()))
    harbour.cycle()
    assert issue(harbour, hers).state == "open"


def test_two_missions_of_one_number_stop_the_cycle_before_any_effect(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    before = issue(harbour, theirs)
    forge_memory(
        harbour,
        lambda state: (replace(state, missions=(replace(state.missions[0], issue=theirs), *state.missions)), ()),
    )
    with pytest.raises(UserError, match="two missions of one number"):
        harbour.cycle()
    untouched(harbour, theirs, before)


def test_a_person_makes_an_issue_a_missions_own_with_her_label_and_an_outsider_does_not(place):
    harbour = place(config=f"owners: [mara]\n{CALM}")
    harbour.cycle()
    theirs = harbour.person("passer-by").create_issue("The tables are late")
    false = stranger(harbour, theirs, status=Status.PLANNED)
    forge_memory(harbour, lambda state: (replace(state, missions=(*state.missions, false)), ()))
    harbour.person("tomas").label(theirs, ("ralph:mission",))
    assert escalated(harbour.cycle()[0])
    mara = harbour.person()
    mara.unlabel(theirs, ("ralph:mission",))
    mara.label(theirs, ("ralph:mission",))
    report, _ = harbour.cycle()
    assert not escalated(report)


def test_a_mission_that_a_person_made_ends_without_a_word_when_she_takes_her_label_off(place):
    harbour = place({"a.txt": "fine\n"})
    mara = harbour.person()
    hers = mara.create_issue("Add a chart of the springs")
    mara.label(hers, ("ralph:mission",))
    assert statuses(harbour.cycle()[0]) == ["PLANNED"]
    harbour.person().unlabel(hers, ("ralph:mission",))
    before = issue(harbour, hers)
    assert statuses(harbour.cycle()[0]) == ["REJECTED"]
    untouched(harbour, hers, before)
    assert state_of(harbour).missions == ()
