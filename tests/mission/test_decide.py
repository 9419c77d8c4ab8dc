"""What counts as fresh: a standing brief waits while the one before is under way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.decide import (
    conflicting_fixes,
    failed_verifications,
    with_fresh_findings,
    with_held,
    without_retried,
)
from ralph_mission.mission.model.cycle import CycleSettings, ForgeSnapshot, Situation
from ralph_mission.mission.model.forge import Branch, Touch
from ralph_mission.mission.model.ledger import FindingRecord, HeldFix, OpenState
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import Status
from tests.mission.build import BASE, BOT, NOW, finding, mission, patch, pull

WORLD = ForgeSnapshot(BOT.id, Branch("main", BASE), ("main",), (), (), ())
SITUATION = Situation(7, "c7", NOW, CycleSettings(), Memory(Header()), OpenState(), WORLD)
THIS, NEXT = (
    finding(observer="briefs", kind="brief", essence=("mission", "tides"), occurrence=day)
    for day in ("2026-04-27", "2026-05-04")
)


@pytest.mark.parametrize("status", [Status.DISCOVERED, Status.IN_REVIEW, Status.PARKED])
def test_a_brief_does_not_come_again_while_the_one_before_waits_or_is_worked_on(status: Status) -> None:
    state = OpenState(missions=(mission(members=(THIS.fingerprint,), status=status),))
    begun = replace(SITUATION, findings=(NEXT,), state=state)
    assert with_fresh_findings(begun).fresh == ()
    assert with_fresh_findings(replace(begun, state=OpenState())).fresh == (NEXT,)


def test_a_brief_comes_again_after_the_one_before_was_done_but_not_after_a_no() -> None:
    done = FindingRecord(THIS.fingerprint, "brief", THIS.title, ("2026-04-27",), 6)
    situation = replace(SITUATION, findings=(THIS, NEXT), records={THIS.fingerprint: done})
    assert with_fresh_findings(situation).fresh == (NEXT,)
    refused = replace(done, verdict="rejected")
    assert with_fresh_findings(replace(situation, records={THIS.fingerprint: refused})).fresh == ()


def test_other_findings_do_not_wait_for_one_another() -> None:
    other = replace(NEXT, signal=replace(NEXT.signal, observer="database"))
    begun = OpenState(missions=(mission(members=(THIS.fingerprint,)),))
    assert with_fresh_findings(replace(SITUATION, findings=(other,), state=begun)).fresh == (other,)


@pytest.mark.parametrize(
    ("ran", "changed", "force", "held"),
    [
        (True, {}, False, True),
        (True, {"settings": CycleSettings(checks="others")}, False, False),
        (True, {"world": replace(WORLD, default=Branch("main", "another commit"))}, False, False),
        (True, {}, True, False),
        (False, {}, False, False),  # what could not be run is tried in each cycle
    ],
)
def test_a_fix_that_failed_its_checks_is_held_until_something_changed(ran, changed, force, held) -> None:
    tried = with_held(SITUATION, HeldFix("k", "Fix it", "why", ran=ran))
    kept = replace(tried.state, unverified=failed_verifications(tried))
    state = without_retried(replace(SITUATION, state=kept, **changed), force).state
    assert [one.key for one in state.held] == ["k"] * held


def test_a_fix_beside_an_open_pull_request_of_ours_names_what_it_waits_for() -> None:
    fix = finding(title="2 misspellings", path="docs/guide.md", patch=patch())
    ours = [pull(number=number, author=BOT, touches=(Touch("docs/guide.md", 2, 2),)) for number in (4, 9)]
    situation = replace(SITUATION, fresh=(fix, finding()), world=replace(WORLD, pulls=tuple(ours)))
    (line,) = conflicting_fixes(situation)
    assert line == "2 misspellings: would conflict with #4 and #9, so it waits until that is merged or closed"
    assert list(conflicting_fixes(replace(situation, world=WORLD))) == []


@pytest.mark.parametrize("whole", [False, True])
def test_a_fix_that_was_divided_stays_divided_when_a_person_asks_for_a_cycle(whole) -> None:
    members = (THIS.fingerprint, NEXT.fingerprint)
    tried = with_held(SITUATION, HeldFix("k", "Fix both", "why", members, whole=whole, ran=True))
    forced = without_retried(replace(tried, findings=(THIS, NEXT)), force=True).state
    assert [one.key for one in forced.held] == ([] if whole else ["k"])


def test_a_held_fix_whose_findings_are_gone_is_forgotten_and_checked_again_when_they_return() -> None:
    found = finding()
    tried = with_held(SITUATION, HeldFix("k", "Fix it", "why", (found.fingerprint,)))
    there = without_retried(replace(tried, findings=(found,)), force=False).state
    gone = without_retried(replace(tried, findings=()), force=False).state
    assert ([one.key for one in there.held], there.unverified) == (["k"], tried.state.unverified)
    assert (gone.held, gone.unverified) == ((), ())
