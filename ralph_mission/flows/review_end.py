"""How a review ends: posted, edited, or not sent, and the money that was set aside for it settled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from ralph_mission.flows.carrying import Carried, Errand, book, carry
from ralph_mission.flows.strokes import Stroke
from ralph_mission.loop.reviewing import Answer
from ralph_mission.mission import review, review_text, spending
from ralph_mission.mission.ledger import NEEDS_PERSON, NOT_ATTEMPTED, SETTLED
from ralph_mission.mission.model import Issue, Pull
from ralph_mission.mission.review import Point, Standing
from ralph_mission.safety.secrets import redact

WHY = {
    "moved": "its head moved while it was read: run again",
    "unknown": "one was sent, and nobody can tell whether it arrived: look at the pull, then settle it with "
    "`ralph journal resolve`; `ralph journal` names its key",
}
FAILED = ("failed", "refused", "unknown", "moved")
"""Outcomes with exit code 1. Every other one but `interrupted` (130) ends with 0."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. `outcome`: posted, edited, unchanged (our review says the same already), reviewed (this commit
    was read before), closed, paused, held (no money), lost (somebody else is at it), moved (the head did, meanwhile),
    refused (by a rule), failed, unknown (nobody can tell whether it was posted), interrupted.
    """

    outcome: str
    pull: int
    head: str = ""
    reason: str = ""
    url: str = ""
    points: tuple[Point, ...] | None = None
    answer: Answer | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        return 130 if self.outcome == "interrupted" else int(self.outcome in FAILED)


@dataclass(frozen=True, slots=True)
class Begun:
    """A review whose money is set aside; `before` is our review as it stood."""

    pull: Pull
    base: str
    task: Issue | None
    before: Standing
    usd: float
    at: datetime
    secrets: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """What the reviewer said: `points` as they are posted, None without an answer; then `outcome` says how it ended.

    `usd` is what it cost; all that was set aside when nobody can tell.
    """

    answer: Answer
    usd: float
    points: tuple[Point, ...] | None = None
    outcome: str = "failed"


def standing(this: Stroke, pull: Pull) -> Standing:
    """Our review of the pull, as forge and memory know it."""
    key = review.key(pull.number)
    record = this.house.store.records([key], this.past).get(key)
    return review.standing(pull, record, this.ports.forge.identity().id)


def finish(begun: Begun, read: Read, this: Stroke) -> Report:
    """Post or edit the review, or send nothing; what was set aside and not spent is given back."""
    number = begun.pull.number
    booked = spending.settled(begun.usd, begun.at, read.usd, this.now)
    errand = Errand(f"review-{number}", f"review of #{number}", read.usd, booked)
    why = redact(read.answer.why, begun.secrets)
    report = Report(read.outcome, number, begun.pull.head_sha, why, "", read.points, read.answer)
    if read.points is None:
        return _unsent(this, errand, report)
    pull = this.ports.forge.pull(number)
    text, before = review_text.body(pull, read.points), standing(this, pull)
    if outcome := _needless(begun, pull, before, text):
        return _unsent(this, errand, replace(report, outcome=outcome, reason=WHY.get(outcome, "")))
    carried = carry(this, errand, review.proposal(pull, text, before))
    if carried.refused:
        rules = carried.decision.rules
        outcome = "paused" if "paused" in rules else "refused"
        return _unsent(this, errand, replace(report, outcome=outcome, reason=", ".join(rules)))
    return _told(report, carried, "edited" if before.id else "posted")


def _unsent(this: Stroke, errand: Errand, report: Report) -> Report:
    book(this, f"{errand.told}: {report.outcome}", errand.booked)
    return report


def _needless(begun: Begun, pull: Pull, before: Standing, text: str) -> str:
    """Why nothing is sent, "" when something is."""
    if pull.state != "open":
        return "closed"
    if pull.head_sha != begun.pull.head_sha:
        return "moved"
    if before.doubt:
        return "unknown"
    if review.same(before, text):
        return "unchanged"
    return "reviewed" if before.head == pull.head_sha and before.body != begun.before.body else ""


def _told(report: Report, carried: Carried, done: str) -> Report:
    if carried.cut:
        return replace(report, outcome="paused")
    (receipt,) = carried.receipts.values()
    if receipt.status in SETTLED:
        return replace(report, outcome=done, url=receipt.url)
    why = receipt.detail.removeprefix(NOT_ATTEMPTED).removeprefix(NEEDS_PERSON)
    return replace(
        report, outcome=receipt.status, reason=f"{why}; {WHY['unknown']}" if receipt.status == "unknown" else why
    )
