"""What a review of a pull of ours decides: whether it is ours to review, which review is ours, what is sent. Pure.

There is one review of ours on a pull, for ever: posted once, edited since. Its marker names the commit that was read
and how often it was written, so that no text of it is ever the same as one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ralph_mission.mission.belonging import BRANCHES, facts_in
from ralph_mission.mission.effects import MARKER, EditReview, PostReview, marker
from ralph_mission.mission.ledger import SETTLED, EffectRecord, Record, key_of
from ralph_mission.mission.model import Action, Mission
from ralph_mission.mission.proposal import Proposal
from ralph_mission.mission.threads import Pull, Review
from ralph_mission.safety.secrets import redact

KIND = "review"
FOR_ISSUE = re.compile(r"ralph/issue-([0-9]{1,9})(?:-|$)")
"""How the issue agent names its branches."""
MOST = 30
"""Points that a review shows, the gravest first."""

Gravity = Literal["critical", "major", "minor"]
GRAVEST: tuple[Gravity, ...] = ("critical", "major", "minor")
DiffLines = Mapping[str, Sequence[tuple[int, int]]]
"""The files of a diff, and which of their lines it shows: first and last, of the changed side."""


@dataclass(frozen=True, slots=True)
class ReviewPoint:
    """One thing that a reviewer found. `file` "" and `line` 0: it stands nowhere in the diff."""

    gravity: Gravity
    what: str
    file: str = ""
    line: int = 0
    kind: str = ""
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class PostedReview:
    """Our review of a pull as it stands. `id` 0: there is none yet; `head` is the commit that was read.

    `doubt`: one was sent, and nobody can tell whether it arrived.
    """

    id: int = 0
    body: str = ""
    head: str = ""
    round: int = 0
    doubt: bool = False


def why_not_ours(pull: Pull, us: int) -> str:
    """Why a pull is not one that Ralph made, "" when it is: by account, branch and marker."""
    if pull.author.id != us:
        return "another account opened it"
    if not pull.head.startswith(BRANCHES):
        return f"its branch is not below {BRANCHES}"
    return "" if MARKER.search(pull.body) else "its text does not carry Ralph's marker"


def task_of(pull: Pull, missions: Iterable[Mission]) -> int:
    """The number of the issue that a pull of ours was made for, 0 when nobody knows."""
    named = FOR_ISSUE.match(pull.head)
    known = (mission.issue for mission in missions if mission.pull == pull.number)
    return next(known, int(named[1]) if named else 0)


# --- our review -----------------------------------------------------------------------


def review_key(pull: int) -> str:
    """The key of the one review of a pull."""
    return key_of("review", str(pull))


def find_posted_review(pull: Pull, record: Record | None, us: int) -> PostedReview:
    """Our review as the pull shows it; what only memory knows of, a list may be late with."""
    for review in reversed(pull.reviews):
        if (
            review.author.id == us
            and review.state == "commented"
            and _markers(review)[-1:] == [review_key(pull.number)]
        ):
            return _read(review)
    if not isinstance(record, EffectRecord) or record.receipt is None:
        return PostedReview()
    sent = record.receipt.number if record.state in SETTLED else 0
    return PostedReview(id=sent, round=1, doubt=not sent) if record.state in (*SETTLED, "unknown") else PostedReview()


def _markers(review: Review) -> list[str]:
    found: list[str] = MARKER.findall(review.body)
    return found


def _read(review: Review) -> PostedReview:
    facts = facts_in([found[0] for found in MARKER.finditer(review.body)][-1])
    rounds = re.fullmatch("[0-9]{1,9}", facts.get("round", ""))
    return PostedReview(review.id, review.body, facts.get("head", ""), int(rounds[0]) if rounds else 1)


def sign_text(pull: Pull, text: str, before: PostedReview) -> str:
    """The text with our marker, as the review that follows `before`."""
    return f"{text}\n\n{marker(review_key(pull.number), head=pull.head_sha, round=str(before.round + 1))}"


def says_the_same(before: PostedReview, text: str) -> bool:
    """Whether the review says this already."""
    return bool(before.id) and plain_body(before.body) == text.strip()


def plain_body(body: str) -> str:
    """The text of a review without our marker."""
    return MARKER.sub("", body).replace("\r\n", "\n").strip()


def review_proposal(pull: Pull, text: str, before: PostedReview) -> Proposal:
    """The one effect that makes our review say `text`, as policy judges it."""
    body = sign_text(pull, text, before)
    effect: PostReview | EditReview = PostReview(review_key(pull.number), pull.number, pull.head_sha, body)
    if before.id:
        effect = EditReview(key_of("review", str(pull.number), "edit", body), pull.number, before.id, body)
    return Proposal(effect.key, Action.ANSWER, KIND, f"review of #{pull.number}", (effect,))


# --- points ---------------------------------------------------------------------------


def place_points(points: Iterable[ReviewPoint], shown: DiffLines) -> tuple[ReviewPoint, ...]:
    """The points, gravest first, each at a place that the diff shows or at none."""
    return tuple(
        sorted((_place_point(point, shown) for point in points), key=lambda point: GRAVEST.index(point.gravity))
    )


def _place_point(point: ReviewPoint, shown: DiffLines) -> ReviewPoint:
    file = point.file.removeprefix("./")
    if file not in shown:
        return replace(point, file="", line=0)
    there = any(first <= point.line <= last for first, last in shown[file])
    return replace(point, file=file, line=point.line if there else 0)


def redact_points(points: Iterable[ReviewPoint], secrets: tuple[str, ...]) -> tuple[ReviewPoint, ...]:
    """The points without a secret in any of their texts."""
    return tuple(
        replace(
            point,
            what=redact(point.what, secrets),
            file=redact(point.file, secrets),
            kind=redact(point.kind, secrets),
            suggestion=redact(point.suggestion, secrets),
        )
        for point in points
    )


def gravest(points: Sequence[ReviewPoint]) -> Gravity | None:
    """How grave the worst of them is, None without any."""
    return next((gravity for gravity in GRAVEST if any(point.gravity == gravity for point in points)), None)
