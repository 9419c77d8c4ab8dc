"""How many issues may be left: set, or learned from what people take and refuse."""

from __future__ import annotations

import pytest

from ralph_mission.loop.convergence import AcceptanceVerdict, read_verdicts, threshold


def verdicts(kind: str, *said: tuple[int, bool]) -> tuple[AcceptanceVerdict, ...]:
    return tuple(AcceptanceVerdict(kind, left, accepted) for left, accepted in said)


def test_a_refactoring_may_leave_one_suggestion_and_nothing_else_may() -> None:
    assert threshold("refactor", {}, ()) == 1
    assert threshold("plan-build-review", {}, ()) == 0


def test_what_is_set_goes_before_what_is_learned() -> None:
    seen = verdicts("debug", *[(5, True)] * 9)
    assert threshold("debug", {"debug": 2}, seen) == 2
    assert threshold("debug", {"debug": 0}, seen) == 0
    assert threshold("debug", {"debug": "learn"}, seen) == threshold("debug", "learn", seen) == 5


def test_two_verdicts_teach_nothing_and_three_do() -> None:
    assert threshold("debug", {}, verdicts("debug", (2, True), (2, True))) == 0
    assert threshold("debug", {}, verdicts("debug", (2, True), (2, True), (2, True))) == 2


@pytest.mark.parametrize(("accepted", "refused", "learned"), [(3, 0, 2), (2, 1, 2), (3, 2, 0), (5, 3, 2), (4, 3, 0)])
def test_the_mean_of_the_posterior_has_to_be_at_least_six_tenths(accepted: int, refused: int, learned: int) -> None:
    seen = verdicts("debug", *[(2, True)] * accepted, *[(2, False)] * refused)
    assert threshold("debug", {}, seen) == learned  # (1 + a) / (2 + a + r): 3/5 is enough, 4/7 and 5/9 are not


def test_who_takes_more_takes_fewer_and_who_refuses_fewer_refuses_more() -> None:
    assert threshold("debug", {}, verdicts("debug", (1, True), (2, True), (3, True))) == 1
    seen = verdicts("debug", *[(4, True)] * 3, *[(1, False)] * 5)
    assert threshold("debug", {}, seen) == 0


def test_a_default_that_people_refuse_is_dropped() -> None:
    assert threshold("refactor", {}, verdicts("refactor", *[(1, False)] * 3)) == 0


def test_accepting_clean_work_says_nothing_against_the_default() -> None:
    assert threshold("refactor", {}, verdicts("refactor", *[(0, True)] * 5)) == 1


def test_one_kinds_verdicts_do_not_teach_another() -> None:
    assert threshold("debug", {}, verdicts("refactor", *[(3, True)] * 5)) == 0


def test_records_that_are_none_are_left_out() -> None:
    good = {"kind": "debug", "left": 2, "accepted": True}
    bad = [{}, None, "x", {**good, "left": True}, {**good, "left": -1}, {**good, "accepted": 1}, {**good, "kind": 3}]
    assert read_verdicts([good, *bad]) == (AcceptanceVerdict("debug", 2, True),)
