"""Effects as values: what would be done to the outside world, before any of it is done.

The union is closed. Repeatable effects have a natural key and can be redone safely; send-once
effects have none and are sent at most once (one whose fate is unknown is never resent). Titles
and bodies are final: what is judged is what is sent. The one thing filled in later is the
number of an issue or pull that another effect of the same action creates, written as a `Ref` in a field and as
`Ref.token` in a text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal

from ralph_mission.mission.model.forge import OUTBOX, Post, Touch
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.safety.patch import FileDelta
from ralph_mission.values import compile_regex, dataclass

MARKER = compile_regex(r"<!-- ralph:v1 key=([0-9a-f]{8,64})(?: [a-z]+=[^\s>]+)* -->")


@dataclass(frozen=True, slots=True)
class Ref:
    """The number that the effect with `key` will be given by the forge."""

    key: str

    @property
    def token(self) -> str:
        """How the number is written in a text until it is known."""
        return f"#{{{self.key}}}"


Number = int | Ref


@dataclass(frozen=True, slots=True)
class OpenIssue:
    """Sent once. The body ends with our marker, which is how a lost answer is found again."""

    key: str
    title: str
    body: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PushBranch:
    """Repeatable. One new commit on `branch`; a deterministic one, so a redo is the same.

    Without `onto` the branch is created at a commit on `base_sha`. With it, the branch stands at commit
    `onto` and follows: `base_sha` is merged in where it is not there yet (never rebased), then `files`.
    `message` names `issue`, the mission's (0 in records of earlier versions).
    """

    key: str
    branch: str
    base_sha: str
    message: str
    date: datetime
    files: tuple[FileDelta, ...]
    onto: str = ""
    issue: Number = 0


@dataclass(frozen=True, slots=True)
class OpenPull:
    """Repeatable, by its branch: one pull per head, closed ones included. Without an `issue` its mission lives in it.

    `patch_ids` and `touches` say what it changes, so that a person's pull that does the same is recognised when this
    is sent at last (none in records of earlier versions).
    """

    key: str
    title: str
    body: str
    head: str
    base: str
    issue: Number
    labels: tuple[str, ...] = ()
    patch_ids: tuple[str, ...] = ()
    touches: tuple[Touch, ...] = ()


@dataclass(frozen=True, slots=True)
class MergePull:
    """Repeatable. Merge `pull` only while its head is exactly `head_sha`.

    `base` is the branch that was approved to be merged into, `approver` the account id whose approval was
    counted: both are looked at again in the moment of merging ("" and 0 in records of earlier versions).
    """

    key: str
    pull: int
    head_sha: str
    method: str
    message: str
    base: str = ""
    approver: int = 0


@dataclass(frozen=True, slots=True)
class LeaveQueue:
    """Repeatable. Take `pull` out of the merge queue that we put it into."""

    key: str
    pull: int


@dataclass(frozen=True, slots=True)
class CloseIssue:
    """Repeatable. `reason` is completed or not_planned."""

    key: str
    issue: int
    reason: str


@dataclass(frozen=True, slots=True)
class ClosePull:
    """Repeatable. Close without merging; its branch goes too while it stands at `head_sha` ("": it stays).

    With `head_sha` a pull that is over already, merged or closed by somebody, loses its branch alone.
    """

    key: str
    pull: int
    head_sha: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """Sent once. A remark on an issue or pull; the body ends with our marker."""

    key: str
    issue: Number
    body: str


@dataclass(frozen=True, slots=True)
class EditComment:
    """Repeatable. Replace the text of our own remark; `comment` 0 is the issue's opening text."""

    key: str
    issue: int
    comment: int
    body: str


@dataclass(frozen=True, slots=True)
class Label:
    """Repeatable. Set and take off labels, and assign people, on an issue or pull."""

    key: str
    issue: Number
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    assign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LineComment:
    """What a review says about a line, on the changed side of the pull's diff."""

    path: str
    line: int
    body: str


@dataclass(frozen=True, slots=True)
class PostReview:
    """Sent once. A review of `pull` at commit `head_sha` that comments, never decides; its body ends with a marker."""

    key: str
    pull: int
    head_sha: str
    body: str
    lines: tuple[LineComment, ...] = ()


@dataclass(frozen=True, slots=True)
class EditReview:
    """Repeatable. Replace the text of our own review, by its number."""

    key: str
    pull: int
    review: int
    body: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Sent once, but for the outbox, where a file is named by the key. One post on one network, sent at most once.

    `finding` and `occurrence` are what it tells of, "" where a mission stands behind it.
    """

    key: str
    post: Post
    finding: str = ""
    occurrence: str = ""

    @property
    def network(self) -> str:
        """Where it goes."""
        return self.post.network


Effect = (
    OpenIssue
    | PushBranch
    | OpenPull
    | MergePull
    | LeaveQueue
    | CloseIssue
    | ClosePull
    | Comment
    | EditComment
    | Label
    | PostReview
    | EditReview
    | Publish
)

KINDS: dict[type, str] = {
    OpenIssue: "open_issue",
    PushBranch: "push_branch",
    OpenPull: "open_pull",
    MergePull: "merge_pull",
    LeaveQueue: "leave_queue",
    CloseIssue: "close_issue",
    ClosePull: "close_pull",
    Comment: "comment",
    EditComment: "edit_comment",
    Label: "label",
    PostReview: "review",
    EditReview: "edit_review",
    Publish: "publish",
}
AT_MOST_ONCE = (OpenIssue, Comment, PostReview)
"""What the forge holds with our marker and without a natural key."""


Fate = Literal["done", "adopted", "failed", "unknown", "staged"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of an effect.

    `status`: done, adopted (it was there already and is ours), failed (it did not happen),
    unknown (it may have happened; never resent), staged (nothing was done). `detail` is for people, `reason` tells
    what is done next about a failure. Of a post `at` is when it was sent, and
    `wait` for how many seconds its network wants to be left alone.
    """

    key: str
    status: Fate
    number: int = 0
    url: str = ""
    sha: str = ""
    detail: str = ""
    at: datetime | None = None
    wait: float = 0.0
    reason: FailureReason | None = None

    @property
    def explanation(self) -> str:
        """Why it failed, for people."""
        return f"{self.reason}: {self.detail}" if self.reason else self.detail

    @property
    def not_attempted(self) -> bool:
        """Whether it failed without being tried, or waits for what was ordered."""
        return self.status == "failed" and self.reason in (FailureReason.NOT_ATTEMPTED, FailureReason.QUEUED)

    @property
    def not_before(self) -> datetime | None:
        """Until when its network wants to be left alone; None where it did not say."""
        return self.at + timedelta(seconds=self.wait) if self.at and self.wait > 0 else None


def skip_effect(key: str, why: str, reason: FailureReason = FailureReason.NOT_ATTEMPTED) -> Receipt:
    """The receipt of an effect that was not tried."""
    return Receipt(key, "failed", detail=why, reason=reason)


def kind_of(effect: Effect) -> str:
    """The effect's name in reports and journals."""
    return KINDS[type(effect)]


def opens_mission(effect: Effect) -> bool:
    """Whether it opens what a mission lives in: an issue, or the pull of a fix that asks nobody."""
    return isinstance(effect, OpenIssue) or (isinstance(effect, OpenPull) and not effect.issue)


def at_most_once(effect: Effect) -> bool:
    """Whether nothing but a receipt proves that it was done, so that doubt is never resolved by doing it again."""
    return isinstance(effect, AT_MOST_ONCE) or (isinstance(effect, Publish) and effect.network != OUTBOX)


def marker(key: str, **facts: str) -> str:
    """The hidden line by which we find our own work again. Facts help `memory recover`."""
    extra = "".join(f" {name}={text}" for name, value in facts.items() if (text := fact(value)))
    return f"<!-- ralph:v1 key={key}{extra} -->"


def fact(value: str) -> str:
    """A value as a marker can say it: nothing ends the line, no reader would miss it, no bot or runner obeys it."""
    return re.sub(r"[^A-Za-z0-9_.,:+/=-]", "", value)


def resolve(effect: Effect, numbers: dict[str, int]) -> Effect:
    """`effect` with every `Ref` and its token replaced by the number the forge gave.

    Raises KeyError when a number is not known yet: the effect must then not be sent.
    """
    issue = getattr(effect, "issue", None)
    if not isinstance(issue, Ref):
        return effect
    number = numbers[issue.key]
    changes: dict[str, Any] = {"issue": number}
    if isinstance(effect, OpenPull | Comment):
        changes["body"] = effect.body.replace(issue.token, f"#{number}")
    if isinstance(effect, PushBranch):
        changes["message"] = effect.message.replace(issue.token, f"#{number}")
    return replace(effect, **changes)
