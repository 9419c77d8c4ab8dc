"""A forge as it stood then: nothing of what came later shows, and what nobody can know of then is not told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.errors import Missing
from ralph_mission.mission.backtest.follow import TrackedItem, items_of
from ralph_mission.mission.backtest.judge import ItemFate, fate
from ralph_mission.mission.backtest.past import ForgeHistory, PastForge, ThreadEvent, settle
from ralph_mission.mission.model.forge import Actor, FailedJob, Issue, Pull, Review, ThreadComment, WorkflowRun
from ralph_mission.mission.model.mission import Quote, Signal

START = datetime(2026, 1, 5, tzinfo=UTC)
ANN, MARA, BOT = Actor(1, "ann"), Actor(2, "mara"), Actor(3, "stale[bot]", is_bot=True)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def make_comment(number: float, author: Actor = MARA) -> ThreadComment:
    return ThreadComment(int(number * 100), author, "words", day(number), day(number))


def issue(number: int = 1, opened: float = 0, closed: float | None = None, last: float = 300, *remarks: ThreadComment):
    ended = None if closed is None else day(closed)
    state = "open" if closed is None else "closed"
    return Issue(
        number, "a title", "words", state, ANN, day(opened), day(last), "", closed_at=ended, remarks=tuple(remarks)
    )


def pull(number: int = 9, state: str = "open", closed: float | None = None, draft: bool = False) -> Pull:
    ended = None if closed is None else day(closed)
    told = {"closed_at": ended, "draft": draft}
    return Pull(number, "a title", "", state, ANN, "", "", "", day(0), day(300), "", **told)


def run(number: int, conclusion: str, at: float, took: float = 0.1, event: str = "push", **rest: object) -> WorkflowRun:
    return WorkflowRun(
        number,
        7,
        "ci",
        "ci.yml",
        event,
        f"sha{number}",
        conclusion,
        day(at),
        day(at),
        "",
        ended_at=day(at + took),
        **rest,
    )


@dataclass
class KnownDetails:
    """Details that are had, by number; of any other nothing is known."""

    said: Mapping[int, tuple[ThreadComment, ...]] = field(default_factory=dict)
    reviewed: Mapping[int, tuple[Review, ...]] = field(default_factory=dict)
    happened: Mapping[int, tuple[ThreadEvent, ...]] = field(default_factory=dict)

    def comments(self, number: int) -> tuple[ThreadComment, ...] | None:
        return self.said.get(number)

    def reviews(self, number: int) -> tuple[Review, ...] | None:
        return self.reviewed.get(number)

    def events(self, number: int) -> tuple[ThreadEvent, ...] | None:
        return self.happened.get(number)

    def failed_jobs(self, run: WorkflowRun) -> tuple[FailedJob, ...] | None:
        return None


def history(*threads: Issue | Pull, runs: tuple[WorkflowRun, ...] = (), begin: float = -60) -> ForgeHistory:
    issues = {one.number: one for one in threads if isinstance(one, Issue)}
    pulls = {one.number: one for one in threads if isinstance(one, Pull)}
    newest = tuple(sorted(runs, key=lambda one: one.created_at, reverse=True))
    return ForgeHistory(day(begin), issues, pulls, newest, whole=frozenset((*issues, *pulls)))


def then(at: float, known: ForgeHistory, told: KnownDetails | None = None) -> PastForge:
    return PastForge(known, told or KnownDetails(), lambda: day(at))


# --- as of then -----------------------------------------------------------------------


def test_an_issue_is_there_from_its_day_on_and_open_until_it_is_closed() -> None:
    known = history(issue(opened=2, closed=10))
    assert [len(then(at, known).issues()) for at in (1, 2, 9, 10)] == [0, 1, 1, 0]
    (seen,) = then(9, known).issues()
    assert (seen.state, seen.closed_at) == ("open", None)


def test_the_last_activity_of_then_is_the_last_word_of_then() -> None:
    known = history(issue(1, 0, None, 300, make_comment(3), make_comment(20)))
    seen = then(10, known).issue(1)
    assert seen.updated_at == day(3) and [one.created_at for one in seen.remarks] == [day(3)]


def test_what_is_quiet_since_then_was_quiet_since_its_last_activity() -> None:
    assert then(50, history(issue(last=4))).issues()[0].updated_at == day(4)


def test_what_was_said_before_the_beginning_is_not_known_so_nothing_was_quiet_before_it() -> None:
    assert then(50, history(issue(), begin=30)).issues()[0].updated_at == day(30)


def test_labels_of_today_are_not_those_of_then() -> None:
    known = history(replace(issue(), labels=frozenset({"bug"})))
    assert then(5, known).issues()[0].labels == frozenset()


def test_a_thread_of_which_not_everything_is_known_is_not_read() -> None:
    known = replace(history(issue()), whole=frozenset())
    with pytest.raises(Missing):
        then(5, known).issue(1)
    assert then(5, known, KnownDetails(said={1: (make_comment(2),)})).issue(1).remarks == (make_comment(2),)


def test_a_pull_that_was_merged_later_is_open() -> None:
    known, told = history(pull(state="merged", closed=10)), KnownDetails(reviewed={9: ()}, happened={9: ()})
    assert then(9, known, told).pull(9).state == "open"
    assert then(10, known).pulls() == ()


def test_a_pull_has_the_reviews_of_then_and_stands_at_what_they_are_about() -> None:
    reviews = (Review(MARA, "dismissed", "", "a", day(2)), Review(MARA, "approved", "", "b", day(8)))
    told = KnownDetails(reviewed={9: reviews}, happened={9: ()})
    seen = then(5, history(pull()), told).pull(9)
    assert [(one.state, one.sha) for one in seen.reviews] == [("commented", "a")] and seen.head_sha == "a"


def test_a_pull_was_a_draft_until_it_was_made_ready() -> None:
    told = KnownDetails(reviewed={9: ()}, happened={9: (ThreadEvent("ready_for_review", ANN, day(6)),)})
    assert [then(at, history(pull()), told).pull(9).draft for at in (5, 7)] == [True, False]


def test_a_pull_whose_reviews_cannot_be_had_is_not_read() -> None:
    with pytest.raises(Missing):
        then(5, history(pull())).pull(9)


def test_a_run_goes_on_until_it_is_over() -> None:
    known = history(runs=(run(1, "failure", 3, took=2),))
    assert [[one.conclusion for one in then(at, known).workflow_runs()] for at in (2, 4, 5)] == [[], [""], ["failure"]]
    assert then(4, known).workflow_runs(ended="failure") == ()


def test_how_an_earlier_try_of_a_run_ended_is_not_told() -> None:
    again = replace(run(1, "success", 3), attempt=2, started_at=day(8), ended_at=day(8.1))
    assert [one.conclusion for one in then(5, history(runs=(again,))).workflow_runs()] == [""]


def test_runs_are_told_newest_first_and_no_more_than_asked() -> None:
    known = history(runs=(run(1, "success", 1), run(2, "success", 2), run(3, "success", 3)))
    assert [one.id for one in then(2.5, known).workflow_runs(most=5)] == [2, 1]
    assert [one.id for one in then(9, known).workflow_runs(7, "push", most=1)] == [3]


def test_the_pulse_counts_what_happened_until_then() -> None:
    known = history(issue(1, 1, closed=3), issue(2, 2), issue(3, 9), pull(state="merged", closed=4))
    beat = then(5, known).pulse(day(0))
    assert (beat.opened, beat.closed, len(beat.merged), beat.stars) == (2, 1, 1, None)


# --- what became of it ----------------------------------------------------------------


def item(kind: str, number: int, at: float = 20) -> TrackedItem:
    signal = Signal("forge", kind, "a title", (kind, str(number)), author="ann", reference=number)
    return TrackedItem("forge", kind, items_of(signal)[0], signal, day(at))


def red(of: WorkflowRun, at: float) -> TrackedItem:
    essence, quotes = ("broken-build", of.path, f"run {of.id}"), (Quote("test", run=of.id),)
    signal = Signal("ci", "broken-build", "main is red", essence, path=of.path, quotes=quotes)
    return TrackedItem("ci", "broken-build", items_of(signal)[0], signal, day(at))


def became(one: TrackedItem, known: ForgeHistory, told: KnownDetails | None = None) -> ItemFate:
    (settled,) = settle([one], known, told or KnownDetails())
    return fate(settled, settled.since, day(300))


CLOSED = {1: (ThreadEvent("closed", MARA, day(30)),)}


@pytest.mark.parametrize(
    ("thread", "happened", "fixed"),
    [
        (issue(1, 0, None, 300, make_comment(30)), {}, True),
        (issue(1, 0, None, 300, make_comment(51)), {}, False),  # too late
        (issue(1, 0, None, 300, make_comment(10)), {}, False),  # before it was told
        (issue(1, 0, None, 300, make_comment(30, ANN)), {}, False),  # its own author
        (issue(1, 0, None, 300, make_comment(30, BOT)), {}, False),
        (issue(closed=30), CLOSED, True),
        (issue(closed=30), {1: (ThreadEvent("closed", BOT, day(30)),)}, False),
        (issue(), {}, False),
    ],
)
def test_a_stale_issue_is_fixed_when_a_person_answers_or_closes_it_within_a_month(
    thread: Issue, happened: Mapping[int, tuple[ThreadEvent, ...]], fixed: bool
) -> None:
    end = ItemFate.FIXED if fixed else ItemFate.STAYED
    assert became(item("stale-issue", 1), history(thread), KnownDetails(happened=happened)) is end


def test_what_was_closed_by_nobody_knows_whom_is_not_judged() -> None:
    assert became(item("stale-issue", 1), history(issue(closed=30))) is ItemFate.UNKNOWN
    assert became(item("pull-waiting", 9), history(pull())) is ItemFate.UNKNOWN


def test_a_waiting_pull_is_fixed_when_it_is_merged_or_reviewed() -> None:
    assert became(item("pull-waiting", 9), history(pull(state="merged", closed=25))) is ItemFate.FIXED
    told = KnownDetails(reviewed={9: (Review(MARA, "commented", "", "a", day(22)),)})
    assert became(item("pull-waiting", 9), history(pull()), told) is ItemFate.FIXED
    assert became(item("pull-waiting", 9), history(pull()), KnownDetails(reviewed={9: ()})) is ItemFate.STAYED


def test_a_likely_duplicate_is_fixed_by_closing_it_alone() -> None:
    assert became(item("triage", 1), history(issue(1, 0, None, 300, make_comment(30)))) is ItemFate.STAYED
    assert became(item("triage", 1), history(issue(closed=30)), KnownDetails(happened=CLOSED)) is ItemFate.FIXED


@pytest.mark.parametrize(
    ("later", "fixed"),
    [
        (run(2, "success", 24), True),
        (run(2, "success", 28), False),  # after more than a week
        (run(2, "success", 24, event="schedule"), False),  # runs other jobs
        (run(2, "failure", 24), False),
        (run(1, "success", 19, took=5), True),  # the very run, tried again
    ],
)
def test_a_red_build_is_fixed_when_it_is_green_again_within_a_week(later: WorkflowRun, fixed: bool) -> None:
    broken = run(1, "failure", 19)
    known = history(runs=(later,) if later.id == 1 else (broken, later))
    assert became(red(broken, 20), known) is (ItemFate.FIXED if fixed else ItemFate.STAYED)


def test_what_is_told_no_more_though_nobody_did_it_is_withdrawn() -> None:
    gone = replace(item("stale-issue", 1), ending="fixed", ended_at=day(27))
    assert became(gone, history(issue())) is ItemFate.WITHDRAWN


def test_a_week_is_enough_to_judge_a_build_and_a_month_an_issue() -> None:
    assert fate(red(run(1, "failure", 1), 20), day(20), day(27)) is ItemFate.STAYED
    assert fate(item("stale-issue", 1), day(20), day(49)) is ItemFate.YOUNG


def test_what_fails_by_chance_ends_by_itself_and_is_not_followed() -> None:
    assert items_of(Signal("ci", "flaky-check", "x", ("flaky-check", "ci.yml", "test", "x"), path="ci.yml")) == ()
