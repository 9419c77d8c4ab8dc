"""Who of a fleet is started, in which order, within which budget."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import (
    Booking,
    DailyBudget,
    FleetLimits,
    FleetState,
    FleetThread,
    RateLimit,
    RepositoryHeader,
    parse_state,
    render_state,
)
from ralph_mission.mission.fleet.plan import plan_fleet, settle_bookings
from ralph_mission.mission.model.mission import Urgency

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def header(name="acme/api", late=MINUTE, urgency=Urgency.LOW, **more):
    known = {"has_memory": True, "cycle": 7, "last_cycle_at": NOW - 6 * HOUR, "moved_at": NOW - 6 * HOUR}
    return RepositoryHeader(name, next_due_at=NOW - late, urgency=urgency, **(known | more))


def thread(at, created=NOW - 50 * HOUR, pull=False):
    return FleetThread(1, "a bug", at, created, pull)


def names(plan):
    return [one.name for one in plan.starts]


def started(headers, limits=FleetLimits(), state=FleetState(), now=NOW, **more):  # noqa: B008  # frozen
    return plan_fleet(headers, limits, state, now, **more)


def test_only_who_is_due_is_started():
    assert names(started([header("a/due"), header("a/later", -HOUR), header("a/off", paused=True)])) == ["a/due"]


def test_who_is_due_before_its_job_can_begin_does_not_wait_for_the_next_scan():
    assert names(started([header("a/now", -MINUTE), header("a/later", -2 * MINUTE)])) == ["a/now"]


def test_the_most_urgent_comes_first_and_the_longest_overdue_of_equal_urgency():
    headers = [
        header("a/low", 90 * MINUTE),
        header("a/high", MINUTE, Urgency.HIGH),
        header("a/older", 2 * MINUTE, Urgency.HIGH),
        header("a/medium", 5 * MINUTE, Urgency.MEDIUM),
    ]
    assert names(started(headers)) == ["a/older", "a/high", "a/medium", "a/low"]


def test_a_person_comes_before_everything_and_before_the_time():
    spoken = header("a/spoken", -HOUR, threads=(thread(NOW - MINUTE),))
    plan = started([header("a/high", HOUR, Urgency.HIGH), spoken])
    assert [(one.name, one.spoke) for one in plan.starts] == [("a/spoken", True), ("a/high", False)]


def test_what_was_said_while_a_cycle_was_at_work_is_heard_by_one_more():
    began, said = NOW - HOUR, (thread(NOW - HOUR + MINUTE),)
    ended = header(late=-HOUR, last_cycle_at=began, moved_at=began + 5 * MINUTE, threads=said)
    assert [one.spoke for one in started([ended]).starts] == [True]
    assert names(started([replace(ended, last_cycle_at=NOW - MINUTE)])) == []


def test_a_repository_without_memory_is_due_since_it_was_first_seen():
    fresh = RepositoryHeader("a/new")
    none = FleetLimits(parallel=0)
    first = started([fresh], none)
    assert first.state.new == {"a/new": NOW}
    later = started([fresh, header("a/low", 30 * MINUTE)], FleetLimits(), first.state, NOW + HOUR)
    assert names(later) == ["a/low", "a/new"]  # late by 90 minutes and by 60


def test_a_due_time_that_no_clock_of_today_can_have_set_is_due():
    assert names(started([header(late=-367 * 24 * HOUR)])) == ["acme/api"]
    assert names(started([header(late=-HOUR, last_cycle_at=NOW + 2 * HOUR)])) == ["acme/api"]


def test_a_schedule_of_its_own_with_long_pauses_is_kept():
    assert names(started([header(late=-20 * HOUR)])) == []


def test_nobody_starves_behind_repositories_that_are_always_urgent():
    one_job = FleetLimits(parallel=1, job_minutes=1)
    low, state, waited = header("a/low"), FleetState(), 0
    for scan in range(60):
        now = NOW + scan * 15 * MINUTE
        busy = [header(f"a/busy{n}", -(now - NOW) + n * MINUTE, Urgency.HIGH, cycle=scan) for n in range(9)]
        plan = plan_fleet([low, *busy], one_job, state, now)
        waited, state = scan, FleetState(plan.state.day)
        if "a/low" in names(plan):
            break
    assert waited <= 17  # two ranks of two hours


def test_what_is_under_way_is_not_started_again_by_a_gate_that_overlaps():
    first = started([header()])
    assert names(first) == ["acme/api"]
    again = started([header()], state=first.state, now=NOW + MINUTE)
    assert names(again) == [] and "not over yet" in again.waiting[0].reason


def test_a_cycle_that_ended_gives_back_what_it_did_not_use():
    limits = FleetLimits(fleet=DailyBudget(usd=10, pulls=1, minutes=50), job_minutes=45)
    state = started([header()], limits).state
    ended = header(late=-HOUR, cycle=8, moved_at=NOW + 3 * MINUTE)
    settled = settle_bookings(state, [ended], NOW + 5 * MINUTE)
    assert (settled.bookings, settled.minutes) == ({}, {"acme/api": 3})


def test_a_job_that_died_is_tried_again_after_its_time_and_then_ever_later():
    state, now, tries = FleetState(), NOW, []
    while now < NOW + 24 * HOUR:
        plan = started([header()], state=state, now=now)
        tries += [now - NOW for _ in plan.starts]
        state, now = plan.state, now + 15 * MINUTE
    assert tries[0] == timedelta(0)
    assert tries[1] <= 2 * HOUR
    assert 4 <= len(tries) <= 6
    assert "in a row without a result" in started([header()], state=state, now=now + HOUR).failing[0].reason


def test_one_that_cannot_be_reached_costs_one_line():
    gone = RepositoryHeader("a/gone", failure="it is archived")
    plan = started([gone, header()])
    assert names(plan) == ["acme/api"]
    assert [(one.name, one.reason) for one in plan.failing] == [("a/gone", "it is archived")]


def test_one_plan_starts_what_one_matrix_holds():
    plan = started([header(f"a/r{number}") for number in range(300)], FleetLimits(parallel=150))
    assert (len(plan.starts), plan.parallel) == (256, 150)


def test_no_more_run_at_a_time_than_parallel_over_all_runs():
    headers = [header(f"a/r{number:02}") for number in range(50)]
    first = started(headers[:6], FleetLimits(parallel=10))
    second = started(headers, FleetLimits(parallel=10), first.state, NOW + 15 * MINUTE)
    assert (len(first.starts), first.parallel) == (6, 10)
    assert (len(second.starts), second.parallel) == (8, 4)  # four at a time, and each waits for one at most


def test_long_late_comes_before_people_who_keep_speaking():
    one, state, quiet = FleetLimits(parallel=1), FleetState(), header("a/quiet", HOUR)
    for scan in range(40):
        now = NOW + scan * 15 * MINUTE
        said = (thread(now - MINUTE),)
        noisy = [header(f"a/n{n}", NOW - now - HOUR, cycle=scan, threads=said, moved_at=now) for n in range(8)]
        plan = plan_fleet([quiet, *noisy], one, state, now)
        state = FleetState(plan.state.day)
        if "a/quiet" in names(plan):
            break
    assert "a/quiet" in names(plan) and now - NOW <= 5 * HOUR


def test_the_first_word_that_waits_counts_and_not_the_last():
    first = header("a/b", -HOUR, threads=(thread(NOW - MINUTE), thread(NOW - 4 * HOUR)))
    other = header("a/a", -HOUR, threads=(thread(NOW - 3 * HOUR),))
    assert names(started([other, first])) == ["a/b", "a/a"]


@pytest.mark.parametrize("gone", [[], [RepositoryHeader("a/rich", "it is archived")], [header("a/rich", -9 * HOUR)]])
def test_what_a_repository_used_today_counts_when_it_cannot_be_read_any_more(gone):
    limits = FleetLimits(fleet=DailyBudget(usd=20, pulls=2))
    opened = tuple(thread(NOW, NOW, pull=True) for _ in range(2))
    rich = header("a/rich", -HOUR, spent_usd=19.0, threads=opened, last_cycle_at=NOW)
    state = parse_state(render_state(started([rich], limits).state))
    (start,) = started([*gone, header("a/new")], limits, state, NOW + HOUR).starts
    assert (start.usd_per_day, start.pulls) == (1, False)
    tomorrow = started([header("a/new")], limits, state, NOW + 24 * HOUR).starts
    assert (tomorrow[0].usd_per_day, tomorrow[0].pulls) == (2, True)


@pytest.mark.parametrize("there", [[], [RepositoryHeader("acme/api", "it does not exist")]])
def test_what_a_job_may_use_stays_booked_while_its_repository_is_missing(there):
    limits = FleetLimits(fleet=DailyBudget(usd=2, pulls=1, minutes=90), job_minutes=45)
    state = started([header()], limits).state
    soon = started([*there, header("a/new")], limits, state, NOW + 15 * MINUTE)
    assert [(one.usd_per_day, one.pulls) for one in soon.starts] == [(0, False)]
    back = started([header()], limits, settle_bookings(state, there, NOW + 15 * MINUTE), NOW + 30 * MINUTE)
    assert names(back) == [] and "not over yet" in back.waiting[0].reason
    later = settle_bookings(state, there, NOW + 3 * HOUR)
    assert (later.minutes, later.usd, later.pulls) == ({"acme/api": 45}, {"acme/api": 2}, {"acme/api": 1})
    assert all(one.minutes == 0 for one in later.bookings.values())


def test_money_that_a_dead_job_reserved_in_memory_is_not_given_back():
    limits = FleetLimits(fleet=DailyBudget(usd=2))
    state = started([header()], limits).state
    died = header(spent_usd=2.0)  # reserved before any of it is spent; the cycle never ended
    (again,) = started([died], limits, state, NOW + 3 * HOUR).starts
    assert again.usd_per_day == 2.0  # what its day had cost before, and nothing more
    refunded = started([header("a/b"), header(late=-HOUR)], limits, settle_bookings(state, [died], NOW + 3 * HOUR))
    assert [one.usd_per_day for one in refunded.starts] == [0]


def test_no_more_is_started_than_runners_get_through():
    headers = [header(f"a/r{number}") for number in range(50)]
    first = started(headers, FleetLimits(parallel=10))
    assert len(first.starts) == 20 and len(first.waiting) == 30
    assert started(headers, FleetLimits(parallel=10), first.state).starts == ()


def test_minutes_are_booked_whole_and_never_passed():
    limits = FleetLimits(fleet=DailyBudget(minutes=100), job_minutes=45)
    plan = started([header(f"a/r{number}") for number in range(5)], limits)
    assert len(plan.starts) == 2 and "minutes" in plan.waiting[0].reason


def test_a_repository_has_a_budget_of_its_own():
    limits = FleetLimits(each=DailyBudget(usd=3, pulls=2, minutes=60), job_minutes=45)
    opened = tuple(thread(NOW, NOW, pull=True) for _ in range(2))
    both = [header("a/a", spent_usd=2.5), header("a/b", threads=opened, last_cycle_at=NOW)]
    first, second = started(both, limits).starts
    assert (first.usd_per_day, first.pulls) == (3, True)
    assert (second.usd_per_day, second.pulls) == (2, False)
    used = FleetState("2026-05-04", {"a/a": 30})
    assert names(started([header("a/a")], limits, used)) == []


def test_money_that_is_used_up_stops_models_and_not_the_cycle():
    limits = FleetLimits(fleet=DailyBudget(usd=5))
    plan = started([header("a/a", spent_usd=4.0), header("a/b"), header("a/c")], limits)
    assert [one.usd_per_day for one in plan.starts] == [5, 0, 0]


def test_a_new_day_begins_with_what_is_still_under_way():
    limits = FleetLimits(fleet=DailyBudget(minutes=50), job_minutes=45)
    late = datetime(2026, 5, 4, 23, 50, tzinfo=UTC)
    state = started([header("a/a")], limits, now=late).state
    plan = started([header("a/a"), header("a/b")], limits, state, late + 20 * MINUTE)
    assert names(plan) == []


def test_the_rate_limit_is_kept_with_a_reserve():
    headers = [header(f"a/r{number}") for number in range(500)]
    many = FleetLimits(parallel=250)
    plan = started(headers, many, rate=RateLimit(5000, 5000))
    assert len(plan.starts) == 76  # of 13 requests each are a fifth of the hour's
    assert len(started(headers, many, rate=RateLimit(5000, 4000)).starts) == 0
    under_way = replace(plan.state, bookings={f"a/r{n}": Booking(NOW, 7, minutes=45) for n in range(30)})
    assert len(started(headers, many, under_way, rate=RateLimit(5000, 5000)).starts) == 46


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30),
    st.integers(0, 20),
    st.integers(0, 300),
)
def test_no_budget_is_ever_passed(repositories, usd, minutes):
    headers = [
        header(f"a/r{at}", spent_usd=float(spent), threads=tuple(thread(NOW, NOW, pull=True) for _ in range(opened)))
        for at, (spent, opened, _) in enumerate(repositories)
    ]
    limits = FleetLimits(fleet=DailyBudget(usd, 7, minutes), job_minutes=10)
    plan = started(headers, limits)
    spent = {one.name: one.spent_usd for one in headers}
    allowed = sum((one.usd_per_day or 0) - spent[one.name] for one in plan.starts)
    assert allowed <= max(0.0, usd - sum(spent.values())) + 1e-6
    assert sum(one.minutes for one in plan.starts) <= minutes
    assert sum(one.pulls for one in plan.starts) <= max(0, 7 - sum(len(one.threads) for one in headers))
    assert started(headers, limits, plan.state).starts == ()


def test_state_survives_as_text_and_what_is_none_is_refused():
    state = started([header(), RepositoryHeader("a/new")]).state
    assert parse_state(render_state(state)) == state
    with pytest.raises(UserError, match="cannot be read"):
        parse_state("{}")


def test_a_stranger_is_asked_once_and_a_no_is_final():
    limits = FleetLimits(onboard=True)
    new = RepositoryHeader("a/new", has_settings=False)
    asked = started([new], limits)
    assert [(one.name, one.onboard) for one in asked.starts] == [("a/new", True)]
    for state, words in (("open", "waits for somebody to merge"), ("closed", "are not asked again")):
        later = started([replace(new, onboarding=state)], limits, asked.state, NOW + 9 * HOUR)
        assert names(later) == [] and words in later.waiting[0].reason
        assert later.failing == () and dict(later.state.bookings) == {}
    on = started([replace(new, onboarding="merged", has_settings=True)], limits)
    assert [(one.name, one.onboard) for one in on.starts] == [("a/new", False)]


def test_who_is_looked_after_already_is_not_asked():
    limits = FleetLimits(onboard=True)
    known = (header("a/known", has_settings=False), RepositoryHeader("a/chose", has_settings=True))
    assert not any(one.onboard for one in started(known, limits).starts)
    assert not started([RepositoryHeader("a/new", has_settings=False)]).starts[0].onboard


def test_one_that_is_renamed_keeps_what_was_booked_and_used_there():
    before = started([header("acme/old", id=7)])
    plan = started([header("acme/new", id=7)], state=before.state, now=NOW + 15 * MINUTE)
    assert names(plan) == [] and [one.name for one in plan.waiting] == ["acme/new"] and plan.failing == ()
    ended = header("acme/new", id=7, cycle=8, moved_at=NOW + 5 * MINUTE, late=-6 * HOUR, spent_usd=0.5)
    later = started([ended], state=plan.state, now=NOW + 30 * MINUTE).state
    assert (dict(later.minutes), dict(later.usd), dict(later.bookings)) == ({"acme/new": 5}, {"acme/new": 0.5}, {})
    assert parse_state(render_state(later)) == later


def test_two_that_swap_their_names_swap_what_was_booked_too():
    before = started([header("acme/a", id=1), header("acme/b", -HOUR, id=2)])
    plan = started([header("acme/b", id=1), header("acme/a", id=2)], state=before.state)
    assert names(plan) == ["acme/a"] and [one.name for one in plan.waiting] == ["acme/b"]


def test_one_that_is_no_longer_listed_is_one_line_for_a_week_and_counts_today():
    limits = FleetLimits(fleet=DailyBudget(minutes=60))
    state = started([header("acme/a", id=1), header("acme/b", -HOUR, id=2)], limits).state
    plan = started([header("acme/b", id=2)], limits, state)
    assert [one.name for one in plan.failing] == ["acme/a"] and "no longer lists it" in plan.failing[0].reason
    assert names(plan) == []  # a's job may still be at work, and its 45 minutes are booked
    assert [one.name for one in started([header("acme/b", id=2)], limits, plan.state).failing] == ["acme/a"]
    week = started([header("acme/b", id=2)], limits, plan.state, now=NOW + timedelta(days=8))
    assert week.failing == () and "acme/a" not in week.state.bookings
    assert started([header("acme/a", id=1), header("acme/b", id=2)], limits, plan.state).failing == ()


def test_nobody_is_missing_where_a_list_could_not_be_read():
    state = started([header("acme/a", id=1), header("acme/b", id=2)]).state
    broken = RepositoryHeader("org:acme", "one of its repositories or more cannot be read")
    assert [one.name for one in started([header("acme/b", id=2), broken], state=state).failing] == ["org:acme"]
