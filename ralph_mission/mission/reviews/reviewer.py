"""Has an agent that did not make a pull request review it, by comments only.

Memory is held twice, briefly: to reserve money, and to post or edit the review. In between, a lock that dies with this
process keeps other processes of this clone from reviewing the same pull request.

Workflow runs for pull requests opened with the workflow's own token wait for a person, so a dispatch starts the review.
The request is in memory before it is sent; a crash in between loses one request, and any push makes another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from ralph_mission.errors import INTERRUPTED, Lost, Missing, UserError
from ralph_mission.loop.planning import ReviewerAnswer, ReviewFinding
from ralph_mission.mission import execute
from ralph_mission.mission.lifecycle.approval import may_decide
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.agent_job import AgentJob
from ralph_mission.mission.model.effects import Comment, Receipt, marker
from ralph_mission.mission.model.forge import Actor, Issue, Pull, ThreadComment
from ralph_mission.mission.model.ledger import SETTLED, CallRecord, MemoryBatch, Record, key_of
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Action
from ralph_mission.mission.model.proposal import Proposal
from ralph_mission.mission.proposals.wording import person_name
from ralph_mission.mission.reviews import review
from ralph_mission.mission.reviews.review import DiffLines, PostedReview, ReviewPoint
from ralph_mission.mission.transaction import (
    BRIEF,
    LONG,
    Busy,
    ExecutionRequest,
    ExecutionResult,
    Open,
    Sleep,
    Transaction,
    book_cost,
    execute_plan,
    run_transaction,
)
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words
from ralph_mission.values import dataclass

WHY = {
    "moved": "its head moved while it was read: run again",
    "unknown": "one was sent, and it is unknown whether it arrived: look at the pull request, then settle it with "
    "`ralph journal resolve`; `ralph journal` names its key",
}
FAILED = ("failed", "refused", "unknown", "moved")
"""Outcomes with exit code 1. All others except `interrupted` (130) have 0."""


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """The result. `outcome`: posted, edited, unchanged (our review says the same already), reviewed (this commit was
    reviewed before), closed, paused, skipped (no agent is configured), held (no money, or enough reviews), lost
    (another process is at it), moved (the head changed meanwhile), refused (by a rule), failed, unknown (it may or may
    not have been sent), interrupted.
    """

    outcome: str
    pull: int
    head: str = ""
    reason: str = ""
    url: str = ""
    points: tuple[ReviewPoint, ...] | None = None
    answer: ReviewerAnswer | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        return INTERRUPTED if self.outcome == "interrupted" else int(self.outcome in FAILED)


@dataclass(frozen=True, slots=True)
class StartedReview:
    """A review with reserved money; `before`: our review so far.

    `asking`: the comment that asks for it, on somebody else's pull request.
    """

    pull: Pull
    base: str
    task: Issue | None
    before: PostedReview
    usd: float
    at: datetime
    secrets: tuple[str, ...] = field(repr=False)
    asking: ThreadComment | None = None


@dataclass(frozen=True, slots=True)
class FinishedReading:
    """The reviewer's answer: `points` to post, or None, and then `outcome` says how it ended.

    `usd`: the cost, or the whole reserve if unknown. `dropped`: points that quoted nothing.
    """

    answer: ReviewerAnswer
    usd: float
    points: tuple[ReviewPoint, ...] | None = None
    outcome: str = "failed"
    dropped: int = 0


def read_posted_review(tx: Transaction, pull: Pull, at_head: bool = False) -> PostedReview:
    """Our review of the pull request (with `at_head`, the one at its head), by forge and memory."""
    key = review.review_key(pull.number, pull.head_sha if at_head else "")
    record = tx.records([key]).get(key)
    return review.find_posted_review(pull, record, tx.ports.forge.identity().id, key)


def finish_review(begun: StartedReview, read: FinishedReading, tx: Transaction) -> ReviewReport:
    """Post or edit the review, or send nothing; the unused reserve is refunded."""
    number = begun.pull.number
    booked = schedule.settle_reserve(begun.usd, begun.at, read.usd, tx.now)
    request = ExecutionRequest(f"review-{number}", f"review of #{number}", read.usd, booked)
    why = redact(read.answer.why, begun.secrets)
    report = ReviewReport(read.outcome, number, begun.pull.head_sha, why, "", read.points, read.answer)
    if read.points is None:
        return _unsent(tx, request, report)
    pull = tx.ports.forge.pull(number)
    text, before = review.review_body(pull, read.points), read_posted_review(tx, pull, begun.asking is not None)
    if outcome := _why_needless(begun, pull, before, text):
        return _unsent(tx, request, replace(report, outcome=outcome, reason=WHY.get(outcome, "")))
    plan = review.review_proposal(pull, text, before)
    if begun.asking:
        plan = review.asked_proposal(pull, read.points, person_name(begun.asking.author), read.dropped)
    execution = execute_plan(tx, request, plan)
    if execution.refused:
        rules = execution.decision.rules
        outcome = "paused" if "paused" in rules else "refused"
        return _unsent(tx, request, replace(report, outcome=outcome, reason=", ".join(rules)))
    return _review_report(report, execution, "edited" if before.id else "posted")


def _unsent(tx: Transaction, request: ExecutionRequest, report: ReviewReport) -> ReviewReport:
    book_cost(tx, f"{request.subject}: {report.outcome}", request.booked)
    return report


def _why_needless(begun: StartedReview, pull: Pull, before: PostedReview, text: str) -> str:
    """Why nothing needs to be sent, or ""."""
    if pull.state != "open":
        return "closed"
    if pull.head_sha != begun.pull.head_sha:
        return "moved"
    if before.doubt:
        return "unknown"
    if review.says_the_same(before, text):
        return "unchanged"
    return "reviewed" if before.head == pull.head_sha and before.body != begun.before.body else ""


def _review_report(report: ReviewReport, execution: ExecutionResult, done: str) -> ReviewReport:
    if execution.cut:
        return replace(report, outcome="paused")
    (receipt,) = execution.receipts.values()
    if receipt.status in SETTLED:
        return replace(report, outcome=done, url=receipt.url)
    why = f"{receipt.detail}; {WHY['unknown']}" if receipt.status == "unknown" else receipt.detail
    return replace(report, outcome=receipt.status, reason=why)


WRITTEN = ("posted", "edited")


@dataclass(frozen=True, slots=True)
class PullView:
    """What git shows of a pull request: its merge base, its diff, the lines in it, the guides of the base."""

    fork: str
    diff: str
    shown: DiffLines
    guides: str = ""


class PullReader(Protocol):
    """Has an agent review a pull request in a throw-away clone."""

    def check(self, stranger: bool) -> None:
        """Raise UserError if no session could run, or, for a `stranger`'s code, if it could do harm."""

    def look(self, base: str, head: str) -> PullView:
        """Read commit `head` relative to the tip `base` of its base branch. Raises UserError."""

    def read(self, job: AgentJob) -> ReviewerAnswer:
        """Get the reviewer's answer with its cost. Raises UserError before any session; an interrupt passes through."""


@dataclass(frozen=True, slots=True)
class ReviewSetup:
    """What a review needs. `say` reports to a person; `usd`: the most a review may cost."""

    opened: Open
    reader: PullReader
    sleep: Sleep
    say: Callable[[str], None]
    usd: float


def review_once(reviewer: ReviewSetup, number: int, force: bool = False) -> ReviewReport:
    """Review a pull request, unless its head was reviewed before; `force` reviews one of ours again.

    Raises UserError: usage for somebody else's pull request that nobody asked about, Missing if there is none.
    """
    with ExitStack() as stack:
        try:
            begun = run_transaction(
                reviewer.opened, reviewer.sleep, partial(_begin, reviewer, number, force, stack), BRIEF
            )
        except Busy as busy:
            return ReviewReport("lost", number, reason=f"{busy.what}; {busy.next_step}")
        if isinstance(begun, ReviewReport):
            return begun
        end = partial(finish_review, begun, _read_pull(reviewer, begun))
        return run_transaction(reviewer.opened, reviewer.sleep, end, LONG)


def review_lines(report: ReviewReport) -> Iterator[str]:
    """The report for people."""
    sentences = {
        "posted": "reviewed", "edited": "reviewed again: the one review there is was edited",
        "unchanged": "the review says the same already: nothing was sent", "closed": "it is not open",
        "reviewed": "this commit was reviewed already (--force reads it again)", "paused": "paused",
    }  # fmt: skip  # one table
    where = f"#{report.pull}" + (f" at {report.head[:12]}" if report.head else "")
    why = sentences.get(report.outcome) or f"{report.outcome}: {report.reason}"
    found = f", {len(report.points)} points" if report.points is not None and report.outcome in WRITTEN else ""
    yield f"{where}: {why}{found}{f', {report.url}' if report.url else ''}"


# --- beginning ------------------------------------------------------------------------


def _begin(
    reviewer: ReviewSetup, number: int, force: bool, stack: ExitStack, tx: Transaction
) -> StartedReview | ReviewReport:
    stack.pop_all().close()  # of an attempt that lost a race
    forge, us = tx.ports.forge, tx.ports.forge.identity().id
    pull = forge.pull(number)
    why, asking = review.why_not_ours(pull, us), None
    if why and (asking := review.find_asking(pull, partial(_may_decide, tx))) is None:
        what, hint = f"pull request #{number} is not one that Ralph made: {why}", "comment `/ralph review` there first"
        raise UserError(what, hint, usage=True)
    before = read_posted_review(tx, pull, asking is not None)
    if waits := _waits(tx, pull, before, force and asking is None):
        return waits
    if asking and review.count_reviews(pull, us) >= review.MOST_REVIEWS:
        return ReviewReport("held", number, pull.head_sha, f"it has had {review.MOST_REVIEWS} reviews")
    try:
        reviewer.reader.check(asking is not None and not forge.may_approve(pull.author))
    except UserError as problem:
        if asking is None:
            raise
        return _decline(tx, pull, asking, problem)
    if not stack.enter_context(tx.store.at_work(number)):
        return ReviewReport("lost", number, pull.head_sha, "another process here is at it")
    usd = schedule.allowance(tx.memory.header, tx.now, tx.settings.limits, reviewer.usd)
    if usd <= 0:
        why = schedule.describe_spent(tx.memory.header, tx.now, tx.settings.limits)
        return ReviewReport("held", number, pull.head_sha, why)
    default = forge.default_branch()
    base = default.sha if pull.base == default.name else forge.branch(pull.base)
    begun = StartedReview(pull, base, _task(tx, pull, us), before, usd, tx.now, tx.secrets, asking)
    book_cost(tx, f"reviews #{number}", usd)
    return begun


def _may_decide(tx: Transaction, person: Actor) -> bool:
    return may_decide(person, tx.settings.owners, tx.ports.forge.may_approve)


def _decline(tx: Transaction, pull: Pull, asking: ThreadComment, problem: UserError) -> ReviewReport:
    """Tell whoever asked, once, why there is no review and how to get one."""
    key = key_of("review", str(pull.number), "declined", str(asking.id))
    line = f"No agent reviews this: {inline_words(f'{problem.what}; {problem.next_step}', 400)}."
    comment = Comment(key, pull.number, f"{redact(line, tx.secrets)}\n\n{marker(key)}")
    plan = Proposal(key, Action.ANSWER, review.KIND, f"review of #{pull.number}", (comment,))
    name = f"review-{pull.number}"
    execute_plan(tx, ExecutionRequest(name, f"review of #{pull.number}: declined"), plan)
    return ReviewReport("failed", pull.number, pull.head_sha, f"{problem.what}; {problem.next_step}")


def _waits(tx: Transaction, pull: Pull, before: PostedReview, force: bool) -> ReviewReport | None:
    """Why no model is called, or None."""
    if execute.is_stopped(tx.ports):
        return ReviewReport("paused", pull.number, pull.head_sha)
    if pull.state != "open":
        return ReviewReport("closed", pull.number, pull.head_sha)
    if before.doubt:
        return ReviewReport("unknown", pull.number, pull.head_sha, WHY["unknown"])
    return ReviewReport("reviewed", pull.number, pull.head_sha) if before.head == pull.head_sha and not force else None


def _task(tx: Transaction, pull: Pull, us: int) -> Issue | None:
    """The issue the pull request was made for, if we or an authorised person wrote it."""
    forge, number = tx.ports.forge, review.find_task(pull, tx.state.missions)
    try:
        issue = forge.issue(number) if number else None
    except Missing:
        return None
    if issue is None or issue.author.id == us:
        return issue
    return issue if _may_decide(tx, issue.author) else None


# --- reading --------------------------------------------------------------------------


def _read_pull(reviewer: ReviewSetup, begun: StartedReview) -> FinishedReading:
    pull, title = begun.pull, review.review_title(begun.pull)
    reviewer.say(f"#{pull.number} {title}: reviewing {pull.head_sha[:12]}")
    try:
        view = reviewer.reader.look(begun.base, pull.head_sha)
        material = review.review_material(
            pull, begun.task, view.diff, view.fork, view.guides, begun.secrets, view.shown, begun.asking
        )
        job = AgentJob(pull.number, title, pull.head_sha, material, begun.usd, default_sha=view.fork)
        answer = reviewer.reader.read(job)
    except KeyboardInterrupt:
        return FinishedReading(ReviewerAnswer(None, "interrupted"), begun.usd, outcome="interrupted")
    except UserError as problem:  # before any session
        return FinishedReading(ReviewerAnswer(None, f"{problem.what}; {problem.next_step}"), 0.0)
    except Exception as error:  # whatever it is, its cost is booked
        return FinishedReading(
            ReviewerAnswer(None, f"it failed unexpectedly ({type(error).__name__}: {error})"), begun.usd
        )
    usd = answer.usage.cost_usd or 0.0
    if answer.found is None:
        return FinishedReading(answer, usd)
    found = tuple(map(_point, answer.found))
    points = review.quoted_points(found, view.diff) if begun.asking else review.place_points(found, view.shown)
    dropped = len(found) - len(points)
    return FinishedReading(answer, usd, review.redact_points(points, begun.secrets), dropped=dropped)


def _point(found: ReviewFinding) -> ReviewPoint:
    issue = found.issue
    return ReviewPoint(issue.severity, issue.message, issue.file, issue.line, issue.kind, found.suggestion, found.quote)


Call = Callable[[int], Receipt]
"""Requests the review of a pull request by its number; `failed` says why. Never raises UserError."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """The pull requests whose review was started, and why not the others. `refusal`: what GitHub refused, and why."""

    pulls: tuple[int, ...] = ()
    reason: str = ""
    refusal: str = ""


def call_due_reviews(opened: Open, sleep: Sleep, send: Call) -> CallReport:
    """Start the review of each of our pull requests whose head has none requested. Raises UserError."""
    try:
        return run_transaction(opened, sleep, partial(_call, send), BRIEF)
    except Busy as busy:
        return CallReport(reason=f"{busy.what}; the next cycle wakes it")


def _call(send: Call, tx: Transaction) -> CallReport:
    if tx.past is None or execute.is_stopped(tx.ports):
        return CallReport(reason="paused" if tx.past else "nothing was proposed yet")
    forge = tx.ports.forge
    pulls = review.our_open_pulls(forge.pulls(), forge.identity().id)
    known = tx.records([review.call_key(pull) for pull in pulls])
    waiting = review.pulls_to_call(pulls, known)
    header, granted = _grant_calls(tx, waiting)
    remark = f"today's wakes are used up, {len(waiting) - len(granted)} wait" if len(granted) < len(waiting) else ""
    if not granted:
        return CallReport(reason=remark or "no pull request waits for a review to be started")
    records = [review.record_call(pull, known, tx.now) for pull in granted]
    tx = _write_calls(tx, header, records, f"ralph: wakes the review of {len(records)}")
    return _send_calls(tx, records, send, remark)


def _grant_calls(tx: Transaction, waiting: Sequence[Pull]) -> tuple[Header, list[Pull]]:
    """The pull requests that get one of today's wakes, and the header that counts them."""
    header, granted = tx.memory.header, list[Pull]()
    for pull in waiting:
        more = review.count_wake(header, tx.now, tx.settings.limits.dispatches_per_day)
        if more is None:
            break
        header = more
        granted.append(pull)
    return header, granted


def _send_calls(tx: Transaction, records: Sequence[CallRecord], send: Call, remark: str) -> CallReport:
    receipts = {record.key: send(record.pull) for record in records}
    failed = [key for key, receipt in receipts.items() if receipt.status == "failed"]
    if failed:
        _note(tx, review.mark_refused(records, failed))
    woken = tuple(record.pull for record in records if record.key not in failed)
    return CallReport(woken, remark, receipts[failed[0]].detail if failed else "")


def _note(tx: Transaction, records: Sequence[CallRecord]) -> None:
    try:
        _write_calls(tx, tx.memory.header, records, f"ralph: {len(records)} reviews could not be woken")
    except Lost:
        return  # memory was written meanwhile: these requests count as sent, and a push makes others


def _write_calls(tx: Transaction, header: Header, records: Sequence[Record], subject: str) -> Transaction:
    return tx.publish(MemoryBatch(replace(tx.memory, header=header), tx.state, tuple(records), subject))
