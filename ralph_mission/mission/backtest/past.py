"""Issues, pull requests and workflow runs at a past time, and what people did about them later.

What was made later is not there, and what was closed, merged or finished later is still open. What today's lists do not
tell of then is left out, never guessed: labels, checks, conflicts, where the head of a pull stood. What was said before
`ForgeHistory.begin` is not read, so until something else is known a thread counts as active then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

from ralph_mission.errors import Missing
from ralph_mission.mission.backtest.follow import TrackedItem
from ralph_mission.mission.model.forge import (
    Actor,
    AlertKind,
    FailedJob,
    Issue,
    Pull,
    Pulse,
    Review,
    SecurityAlert,
    ThreadComment,
    WorkflowRun,
)
from ralph_mission.values import dataclass

OBSERVERS = ("forge", "ci", "alerts")
"""Observers that use this past, and whose findings it settles."""

Thread = TypeVar("Thread", Issue, Pull)


@dataclass(frozen=True, slots=True)
class ForgeHistory:
    """Issues and pull requests in their present form, by number, with comments since `begin`; runs, newest first.

    `whole`: threads with complete comments. `writers`: people who may write today.
    """

    begin: datetime
    issues: Mapping[int, Issue]
    pulls: Mapping[int, Pull]
    runs: tuple[WorkflowRun, ...] = ()
    alerts: Mapping[AlertKind, tuple[SecurityAlert, ...]] = field(default_factory=dict)
    whole: frozenset[int] = frozenset()
    writers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """An event of an issue or pull request: `closed`, `ready_for_review`, `convert_to_draft`, …"""

    name: str
    actor: Actor
    at: datetime


class HistoryDetails(Protocol):
    """Details beyond the lists, requested on demand. None: unavailable, or over the request limit."""

    def comments(self, number: int) -> tuple[ThreadComment, ...] | None:
        """A thread's comments."""

    def reviews(self, number: int) -> tuple[Review, ...] | None:
        """A pull request's reviews."""

    def events(self, number: int) -> tuple[ThreadEvent, ...] | None:
        """A thread's events, oldest first."""

    def failed_jobs(self, run: WorkflowRun) -> tuple[FailedJob, ...] | None:
        """An attempt's failed jobs."""


# --- as of then -----------------------------------------------------------------------


def thread_at(thread: Thread, begin: datetime, at: datetime) -> Thread | None:
    """An issue or pull request as it was; None before it was opened. Assignees and texts are today's."""
    if thread.created_at > at:
        return None
    remarks = tuple(remark for remark in thread.remarks if remark.created_at <= at)
    is_open = thread.closed_at is None or thread.closed_at > at
    return replace(
        thread,
        state="open" if is_open else thread.state,
        closed_at=None if is_open else thread.closed_at,
        closed_by=None if is_open else thread.closed_by,
        labels=frozenset(),
        events=(),
        remarks=remarks,
        updated_at=_last_activity(thread, remarks, begin, at),
    )


def _last_activity(thread: Issue | Pull, remarks: Sequence[ThreadComment], begin: datetime, at: datetime) -> datetime:
    if thread.updated_at <= at:
        return thread.updated_at
    known = max([thread.created_at, *(remark.created_at for remark in remarks)])
    return max(known, min(begin, at))


def run_at(run: WorkflowRun, at: datetime) -> WorkflowRun | None:
    """A run as it was: one that was tried again later counts as going on, since nothing records how it had ended."""
    if run.created_at > at:
        return None
    if run.started_at > at:
        return replace(run, conclusion="", attempt=1)
    return replace(run, conclusion="") if run.ended_at and run.ended_at > at else run


def was_draft(events: Iterable[ThreadEvent], today: bool, at: datetime) -> bool:
    """Whether a pull was a draft: what it was turned into next says what it was before."""
    later = (event.name for event in events if event.at > at)
    turn = next((name for name in later if name in ("ready_for_review", "convert_to_draft")), "")
    return turn == "ready_for_review" if turn else today


class PastForge:
    """The forge for observers, as of `now`."""

    def __init__(self, history: ForgeHistory, details: HistoryDetails, now: Callable[[], datetime]) -> None:
        self.history, self.details, self.now = history, details, now

    def identity(self) -> Actor:
        """No real account: Ralph's own comments are not in the history."""
        return Actor(0, "nobody")

    def may_approve(self, actor: Actor) -> bool:
        """Whether this person may write today: past permissions are unknown."""
        return actor.id in self.history.writers and not actor.is_bot

    def is_ready(self, number: int) -> bool:
        """Never: past obstacles to a merge are unknown."""
        return False

    def issues(self, state: str = "open", labels: Sequence[str] = ()) -> tuple[Issue, ...]:
        """Past issues, without labels."""
        return () if labels else tuple(self._threads(self.history.issues, state))

    def pulls(self, state: str = "open") -> tuple[Pull, ...]:
        """Past pull requests, without reviews."""
        return tuple(self._threads(self.history.pulls, state))

    def _threads(self, every: Mapping[int, Thread], state: str) -> Iterator[Thread]:
        at = self.now()
        for one in every.values():
            is_open = one.closed_at is None or one.closed_at > at
            if state == "all" or (state == "open") == is_open:
                thread = thread_at(one, self.history.begin, at)
                if thread:
                    yield thread

    def issue(self, number: int) -> Issue:
        """With all comments until then. Raises Missing, also if they are unknown."""
        return self._in_full(self.history.issues, number)

    def pull(self, number: int) -> Pull:
        """With reviews and all comments until then. Raises Missing, also if they are unknown.

        The verdict of a dismissed review is unknown, and where the head stood is known only from a review of it.
        """
        thread, at = self._in_full(self.history.pulls, number), self.now()
        reviews, events = self.details.reviews(number), self.details.events(number)
        if reviews is None or events is None:
            raise _unknown(number)
        then = [review for review in reviews if review.at <= at]
        visible = tuple(
            replace(review, state="commented") if review.state == "dismissed" else review for review in then
        )
        return replace(
            thread,
            reviews=visible,
            head_sha=visible[-1].sha if visible else "",
            draft=was_draft(events, thread.draft, at),
        )

    def _in_full(self, every: Mapping[int, Thread], number: int) -> Thread:
        if one := every.get(number):
            remarks = one.remarks if number in self.history.whole else self.details.comments(number)
            full = replace(one, remarks=remarks) if remarks is not None else None
            if full and (thread := thread_at(full, self.history.begin, self.now())):
                return thread
        raise _unknown(number)

    def pulse(self, since: datetime, few: int = 0) -> Pulse:
        """Merged, opened and closed threads from `since` to then; past stars are unknown."""
        at = self.now()
        issues = self.history.issues.values()
        return Pulse(
            merged=tuple(pull for pull in self.pulls("closed") if pull.merged_after(since)),
            opened=sum(since < issue.created_at <= at for issue in issues),
            closed=sum(issue.closed_at is not None and since < issue.closed_at <= at for issue in issues),
        )

    def workflow_runs(
        self, workflow: int = 0, event: str = "", ended: str = "", most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        """As in the port."""
        at = self.now()
        runs = (
            run
            for one in self.history.runs
            if workflow in (0, one.workflow) and event in ("", one.event) and (run := run_at(one, at))
        )
        return tuple(islice((run for run in runs if ended in ("", run.conclusion)), most))

    def security_alerts(self, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
        """As in the port."""
        found, at = self.history.alerts.get(kind), self.now()
        return None if found is None else tuple(one for one in found if _was_open(one, at))

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """The failed jobs, without logs, which expire."""
        return self.details.failed_jobs(run) or ()

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        """None: they expire."""
        return ()


def _was_open(alert: SecurityAlert, at: datetime) -> bool:
    begun = alert.created_at is not None and alert.created_at <= at
    return begun and (alert.closed_at is None or alert.closed_at > at)


def _unknown(number: int) -> Missing:
    return Missing(f"what stood in #{number} is not known", "look at it on the forge")


# --- what became of it ----------------------------------------------------------------


def settle(tracked: Sequence[TrackedItem], history: ForgeHistory, details: HistoryDetails) -> tuple[TrackedItem, ...]:
    """The items, those of `OBSERVERS` with the moment at which people did what they are about.

    What is reported no more although nobody did anything is withdrawn; where details cannot be had, nobody knows.
    """
    return tuple(_settled(entry, history, details) if entry.observer in OBSERVERS else entry for entry in tracked)


def _settled(entry: TrackedItem, history: ForgeHistory, details: HistoryDetails) -> TrackedItem:
    if entry.observer == "alerts":
        return _closed_alerts(entry, history)
    if entry.observer == "ci":
        green = _green_again(entry, history.runs)
        at, commit = (green.ended_at or green.started_at, green.sha) if green else (None, "")
    else:
        at, commit = _done_at(entry, history, details), ""
    if at:
        return replace(entry, ending="fixed", ended_at=at, commit=commit)
    if entry.observer == "forge" and not _is_known(entry.signal.reference, history, details):
        return replace(entry, ending="unknown", commit="")
    return replace(entry, ending="withdrawn", commit="") if entry.ending else entry


def _closed_alerts(entry: TrackedItem, history: ForgeHistory) -> TrackedItem:
    """An alert, or all of a rule: fixed when the last of them was, withdrawn if people dismissed every one."""
    of_secret, which = entry.signal.essence[0] == "secret-scanning", entry.signal.essence[1]
    listed = history.alerts.get("secret" if of_secret else "code", ())
    about = [one for one in listed if which == (str(one.number) if of_secret else one.rule)]
    open_then = [one for one in about if _was_open(one, entry.since)]
    ends = [one.closed_at for one in open_then if one.closed_at]
    if not open_then or len(ends) < len(open_then):
        return replace(entry, ending="", ended_at=None, commit="")
    if all(one.dismissed for one in open_then):
        return replace(entry, ending="withdrawn", ended_at=max(ends), commit="")
    return replace(entry, ending="fixed", ended_at=max(ends), commit="")


def _green_again(entry: TrackedItem, runs: Sequence[WorkflowRun]) -> WorkflowRun | None:
    """The failed workflow's first passing run: by the same event, by hand, or on the same commit."""
    last = next((quote.run for quote in entry.signal.quotes if quote.run), 0)
    red = next((run for run in runs if run.id == last), None)
    passed = [
        run
        for run in runs
        if red
        and run.passed
        and run.workflow == red.workflow
        and run.created_at >= red.created_at
        and (run.event in (red.event, "workflow_dispatch") or run.sha == red.sha)
        and (run.ended_at or run.started_at) > entry.since
    ]
    return min(passed, key=lambda run: run.ended_at or run.started_at, default=None)


def _done_at(entry: TrackedItem, history: ForgeHistory, details: HistoryDetails) -> datetime | None:
    """When a person answered, reviewed or closed it; for a likely duplicate and a trace only closing counts."""
    number = entry.signal.reference
    thread = history.issues.get(number) or history.pulls.get(number)
    if thread is None:
        return None
    done = [at for at in (_closed_at(thread, details),) if at]
    if entry.kind != "triage":
        remarks: list[ThreadComment | Review] = list(thread.remarks)
        remarks += (details.reviews(number) or ()) if number in history.pulls else ()
        answers = (word for word in remarks if not word.author.is_bot)
        done += (
            word.at if isinstance(word, Review) else word.created_at
            for word in answers
            if word.author.login != entry.signal.author
        )
    return min((at for at in done if at > entry.since), default=None)


def _is_known(number: int, history: ForgeHistory, details: HistoryDetails) -> bool:
    """Whether the people who closed and reviewed it are known."""
    thread = history.issues.get(number) or history.pulls.get(number)
    closed = thread is not None and thread.state == "closed"
    reviewed = number not in history.pulls or details.reviews(number) is not None
    return reviewed and not (closed and details.events(number) is None)


def _closed_at(thread: Issue | Pull, details: HistoryDetails) -> datetime | None:
    """When it was merged, or closed by a person; also None if that is unknown."""
    if thread.state == "merged" or thread.closed_at is None:
        return thread.closed_at
    closings = [event for event in details.events(thread.number) or () if event.name == "closed"]
    return thread.closed_at if closings and not closings[-1].actor.is_bot else None
