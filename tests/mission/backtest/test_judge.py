"""What a backtest comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.mission.backtest.follow import Ending, HistoryStep, ReportedItem, TrackedItem
from ralph_mission.mission.backtest.judge import (
    ItemFate,
    OpenedThread,
    RankedStep,
    ReplayedHistory,
    fate,
    judge_history,
    judge_kinds,
    judge_ranking,
    judge_thread,
    mean_place,
    ndcg,
    order_findings,
)
from ralph_mission.mission.model.mission import Finding, Severity, Signal

START = datetime(2026, 1, 5, tzinfo=UTC)
END = START + timedelta(days=365)


def item(
    days: float | None = None, ending: Ending = "fixed", kind: str = "todo", since: datetime = START, name: str = "a"
) -> TrackedItem:
    """One that ended after so many days, or never."""
    signal = Signal("code", kind, name, (name,), path=f"{name}.py", line=1)
    one = TrackedItem("code", kind, ReportedItem((name,), name, f"{name}.py", 1, name), signal, since)
    return one if days is None else replace(one, ending=ending, ended_at=since + timedelta(days=days))


@pytest.mark.parametrize(
    ("one", "became"),
    [
        (item(), ItemFate.STAYED),
        (item(10), ItemFate.FIXED),
        (item(343), ItemFate.FIXED),
        (item(10, "removed"), ItemFate.REMOVED),
        (item(10, "withdrawn"), ItemFate.WITHDRAWN),
        (item(since=END - timedelta(days=89)), ItemFate.YOUNG),
        (item(3, since=END - timedelta(days=89)), ItemFate.YOUNG),
        (item(since=END - timedelta(days=90)), ItemFate.STAYED),
    ],
)
def test_what_became_of_an_item_is_judged_when_ninety_days_have_passed(one: TrackedItem, became: ItemFate) -> None:
    assert fate(one, one.since, END) is became


def test_precision_leaves_out_what_is_young_or_gone_with_its_file() -> None:
    tracked = [item(5), item(7), item(), item(3, "removed"), item(3, "withdrawn"), item(since=END)]
    (record,) = judge_kinds(tracked, END)
    assert (record.precision, record.found, record.days) == (0.5, 6, 6.0)


def test_a_kind_that_people_hardly_ever_fix_is_to_be_watched_only() -> None:
    (record,) = judge_kinds([item(5), *(item(name=name) for name in "abcde")], END)
    assert record.watch_only


def test_one_file_full_of_them_is_too_little_to_say_so() -> None:
    (record,) = judge_kinds([item() for _ in range(30)], END)
    assert record.precision == 0 and not record.watch_only


def test_four_items_are_too_few_to_say_so() -> None:
    (record,) = judge_kinds([item(name=name) for name in "abcd"], END)
    assert record.precision == 0 and not record.watch_only


def test_a_kind_at_twenty_percent_stays_as_it_is() -> None:
    (record,) = judge_kinds([item(5), *(item(name=name) for name in "abcd")], END)
    assert record.precision == 0.2 and not record.watch_only


@pytest.mark.parametrize(
    ("items", "verdict"),
    [
        ([item(5), item(6)], "fixed"),
        ([item(5), item()], "partly"),
        ([item(), item()], "stayed"),
        ([item(5, "removed")], "removed"),
        ([item(since=END)], "too young"),
        ([], "counted"),
    ],
)
def test_a_thread_is_what_became_of_its_items(items: list[TrackedItem], verdict: str) -> None:
    at = items[0].since if items else START
    thread = OpenedThread(at, "c", "open-fix", "todo", "a title", "why", tuple(range(len(items))))
    assert judge_thread(thread, items, END).verdict == verdict


def test_gain_that_comes_first_is_worth_most() -> None:
    assert ndcg([1, 0, 0]) == 1
    assert ndcg([0, 0, 1]) == pytest.approx(0.5)
    assert (mean_place([1, 0, 0]), mean_place([0, 0, 1]), mean_place([0, 1, 0])) == (0, 1, 0.5)


def test_an_order_that_puts_first_what_people_fixed_wins() -> None:
    tracked = [item(5), item(), item()]
    steps = [RankedStep(START, {"ranking": ((0,), (1,), (2,)), "static": ((1,), (2,), (0,))})]
    ranking, static = judge_ranking(steps, tracked, END)
    assert (ranking.ndcg, ranking.place, static.place) == (1, 0, 1)


def test_a_step_at_which_everything_had_one_end_compares_nothing() -> None:
    steps = [RankedStep(START, {"ranking": ((0,), (1,))})]
    assert judge_ranking(steps, [item(5), item(6)], END) == ()


def test_what_is_there_is_ordered_by_the_thinker_by_age_and_by_kind() -> None:
    late = replace(item(name="late", since=START + timedelta(days=7)), kind="bug")
    late = replace(late, signal=replace(late.signal, kind="bug", severity=Severity.LOW))
    tracked = [late, item(name="early"), item(5, name="gone")]

    def backwards(findings: tuple[Finding, ...]) -> Iterable[str]:
        return [one.fingerprint for one in sorted(findings, key=lambda one: one.title, reverse=True)]

    step = order_findings(tracked, START + timedelta(days=8), backwards)
    assert step.orders == {"ranking": ((0,), (1,)), "chronological": ((1,), (0,)), "static": ((0,), (1,))}


def test_a_history_is_told_with_its_noise() -> None:
    steps = (HistoryStep(START, "a", 0), HistoryStep(START + timedelta(weeks=52), "b", 9))
    threads = tuple(
        OpenedThread(START, "a", "open-fix", "todo", name, "why", (place,)) for place, name in enumerate(("one", "two"))
    )
    report = judge_history(ReplayedHistory("r", steps, 9, (item(5), item()), threads, ()), 2.0)
    assert [thread.verdict for thread in report.threads] == ["fixed", "stayed"]
    assert (report.threads_a_week, report.noise_a_week) == (0.04, 0.02)
    assert [(week.found, week.fixed, week.stayed, week.threads) for week in report.weeks] == [
        (2, 1, 1, 2),
        (0, 0, 0, 0),
    ]
