"""Which pulls the review is still woken for, and that its wakes are those of the day."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.ledger import CallRecord
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.reviews import review
from tests.mission.build import BOT, HEAD, MARA, NOW, pull

OURS = pull(author=BOT, head="ralph/issue-7", head_sha=HEAD)
TODAY = NOW.date().isoformat()


@pytest.mark.parametrize(
    "changes", [{"author": MARA}, {"head": "feature"}, {"head": "x/ralph/y"}, {"state": "closed"}, {"state": "merged"}]
)
def test_only_open_pulls_of_ours_are_called_for(changes: dict[str, object]) -> None:
    assert review.our_open_pulls([OURS], BOT.id) == (OURS,)
    assert review.our_open_pulls([replace(OURS, **changes)], BOT.id) == ()  # type: ignore[arg-type]  # fields of a pull


def test_a_head_is_called_for_once_and_a_new_one_again() -> None:
    called = review.record_call(OURS, {}, NOW)
    known = {called.key: called}
    assert review.pulls_to_call([OURS], {}) == (OURS,)
    assert review.pulls_to_call([OURS], known) == ()
    pushed = replace(OURS, head_sha="d" * 40)
    assert review.pulls_to_call([pushed], known) == (pushed,)


def test_what_was_refused_is_called_for_again_and_not_for_ever() -> None:
    records: dict[str, CallRecord] = {}
    for tries in range(1, review.TRIES + 1):
        assert review.pulls_to_call([OURS], records) == (OURS,)
        called = review.record_call(OURS, records, NOW)
        assert called.tries == tries
        (refused,) = review.mark_refused([called], [called.key])
        records = {refused.key: refused}
    assert review.pulls_to_call([OURS], records) == ()


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 48])
def test_a_day_has_no_more_calls_than_its_share_whoever_else_was_granted_one(limit: int) -> None:
    header: Header | None = replace(Header(), today=TODAY, dispatches=1)
    calls = 0
    while header := review.count_wake(header, NOW, limit):
        calls += 1
        assert calls < 100
    assert calls == max(0, limit - schedule.repeats(limit) - 1)


def test_cycles_and_calls_share_one_count() -> None:
    header = replace(Header(), today=TODAY, dispatches=35)
    more = review.count_wake(header, NOW, 48)
    assert more is not None and more.dispatches == 36
    assert review.count_wake(more, NOW, 48) is None
    assert schedule.count_granted_wakes(more, TODAY, 48) == (36, False)


def test_a_new_day_begins_at_the_wake_it_owes_and_without_yesterdays_money() -> None:
    yesterday = replace(
        Header(), today=(NOW - timedelta(days=1)).date().isoformat(), dispatches=36, spend_usd=9.0, wake=False
    )
    more = review.count_wake(yesterday, NOW, 48)
    assert more is not None
    assert (more.today, more.dispatches, more.spend_usd) == (TODAY, 2, 0.0)
    assert schedule.may_wake(yesterday, TODAY) and schedule.may_wake(more, TODAY), "the day owes one as before"


def test_what_was_spent_today_stays_spent() -> None:
    more = review.count_wake(replace(Header(), today=TODAY, spend_usd=3.5), NOW, 48)
    assert more is not None and more.spend_usd == 3.5


def test_a_call_that_was_refused_is_repeated_a_few_times_only():
    ours = pull(head="ralph/x")
    key = review.call_key(ours)
    record = CallRecord(key, ours.number, ours.head_sha, review.TRIES, NOW, refused=True)
    assert review.pulls_to_call([ours], {key: replace(record, tries=1)}) == (ours,)
    assert review.pulls_to_call([ours], {key: record}) == ()
