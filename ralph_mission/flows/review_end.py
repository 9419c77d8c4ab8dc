"""How a review ends: posted, edited, or not sent, and the money that was set aside for it settled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from ralph_mission.flows.carrying import ExecutionRequest, ExecutionResult, book_cost, execute_plan
from ralph_mission.flows.strokes import Transaction
from ralph_mission.loop.reviewing import ReviewerAnswer
from ralph_mission.mission import review, review_text, spending
from ralph_mission.mission.ledger import NEEDS_PERSON, NOT_ATTEMPTED, SETTLED
from ralph_mission.mission.review import PostedReview, ReviewPoint
from ralph_mission.mission.threads import Issue, Pull
from ralph_mission.safety.secrets import redact

WHY = {
    "moved": "its head moved while it was read: run again",
    "unknown": "one was sent, and nobody can tell whether it arrived: look at the pull, then settle it with "
    "`ralph journal resolve`; `ralph journal` names its key",
}
FAILED = ("failed", "refused", "unknown", "moved")
"""Outcomes with exit code 1. Every other one but `interrupted` (130) ends with 0."""


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """What came of it. `outcome`: posted, edited, unchanged (our review says the same already), reviewed (this commit
    was read before), closed, paused, held (no money), lost (somebody else is at it), moved (the head did, meanwhile),
    refused (by a rule), failed, unknown (nobody can tell whether it was posted), interrupted.
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
        return 130 if self.outcome == "interrupted" else int(self.outcome in FAILED)


@dataclass(frozen=True, slots=True)
class StartedReview:
    """A review whose money is set aside; `before` is our review as it stood."""

    pull: Pull
    base: str
    task: Issue | None
    before: PostedReview
    usd: float
    at: datetime
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FinishedReading:
    """What the reviewer said: `points` as they are posted, None without an answer; then `outcome` says how it ended.

    `usd` is what it cost; all that was set aside when nobody can tell.
    """

    answer: ReviewerAnswer
    usd: float
    points: tuple[ReviewPoint, ...] | None = None
    outcome: str = "failed"


def standing(this: Transaction, pull: Pull) -> PostedReview:
    """Our review of the pull, as forge and memory know it."""
    key = review.review_key(pull.number)
    record = this.house.store.records([key], this.past).get(key)
    return review.find_posted_review(pull, record, this.ports.forge.identity().id)


def finish_review(begun: StartedReview, read: FinishedReading, this: Transaction) -> ReviewReport:
    """Post or edit the review, or send nothing; what was set aside and not spent is given back."""
    number = begun.pull.number
    booked = spending.settle_reserve(begun.usd, begun.at, read.usd, this.now)
    errand = ExecutionRequest(f"review-{number}", f"review of #{number}", read.usd, booked)
    why = redact(read.answer.why, begun.secrets)
    report = ReviewReport(read.outcome, number, begun.pull.head_sha, why, "", read.points, read.answer)
    if read.points is None:
        return _unsent(this, errand, report)
    pull = this.ports.forge.pull(number)
    text, before = review_text.review_body(pull, read.points), standing(this, pull)
    if outcome := _needless(begun, pull, before, text):
        return _unsent(this, errand, replace(report, outcome=outcome, reason=WHY.get(outcome, "")))
    carried = execute_plan(this, errand, review.review_proposal(pull, text, before))
    if carried.refused:
        rules = carried.decision.rules
        outcome = "paused" if "paused" in rules else "refused"
        return _unsent(this, errand, replace(report, outcome=outcome, reason=", ".join(rules)))
    return _review_report(report, carried, "edited" if before.id else "posted")


def _unsent(this: Transaction, errand: ExecutionRequest, report: ReviewReport) -> ReviewReport:
    book_cost(this, f"{errand.told}: {report.outcome}", errand.booked)
    return report


def _needless(begun: StartedReview, pull: Pull, before: PostedReview, text: str) -> str:
    """Why nothing is sent, "" when something is."""
    if pull.state != "open":
        return "closed"
    if pull.head_sha != begun.pull.head_sha:
        return "moved"
    if before.doubt:
        return "unknown"
    if review.says_the_same(before, text):
        return "unchanged"
    return "reviewed" if before.head == pull.head_sha and before.body != begun.before.body else ""


def _review_report(report: ReviewReport, carried: ExecutionResult, done: str) -> ReviewReport:
    if carried.cut:
        return replace(report, outcome="paused")
    (receipt,) = carried.receipts.values()
    if receipt.status in SETTLED:
        return replace(report, outcome=done, url=receipt.url)
    why = receipt.detail.removeprefix(NOT_ATTEMPTED).removeprefix(NEEDS_PERSON)
    return replace(
        report, outcome=receipt.status, reason=f"{why}; {WHY['unknown']}" if receipt.status == "unknown" else why
    )
