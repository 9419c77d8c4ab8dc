"""Reads GitHub's JSON into mission models. An unexpected shape is a UserError about GitHub, never a KeyError.

A null user is the ghost account, for people who left. Times have a resolution of one second; the growing id orders
events within one. GitHub ignores the case of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasPath,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Actor, Issue, LabelEvent, Pull, Review, ThreadComment

PURPLE, BLUE, GREEN, RED, GREY, YELLOW = "5319e7", "1d76db", "0e8a16", "b60205", "cfd3d7", "fbca04"

LABELS: dict[str, tuple[str, str]] = {
    "ralph:mission": (PURPLE, "Ralph works on this; set it to ask for it"),
    "ralph:auto-fix": (BLUE, "A small fix that Ralph made on its own"),
    "ralph:research": (BLUE, "An idea that Ralph looked into"),
    "ralph:content": (BLUE, "A text that Ralph wants to publish"),
    "ralph:approved": (GREEN, "Yes: Ralph may do what is proposed here"),
    "ralph:rejected": (RED, "No: Ralph does not ask for this again"),
    "ralph:escalated": (RED, "Ralph is stuck here and needs a person"),
    "ralph:parked": (GREY, "Ralph has set this aside; remove this label to bring it back"),
    "content:review": (YELLOW, "A text that waits for a person's eye"),
    "content:approved": (GREEN, "This text may be published"),
    "content:published": (GREY, "This text was published"),
    "agent:claude": (PURPLE, "An agent may implement this; people set it"),
    "ralph-ready": (GREEN, "Specified well enough for an agent"),
    "ralph-working": (YELLOW, "An agent is at work here"),
    "ralph-failed": (RED, "An agent tried this and gave up"),
}
"""Colour and description by name."""

_OURS = {name.casefold(): name for name in LABELS}


def canonical(name: str) -> str:
    """A label's name in our spelling, whatever its case."""
    return _OURS.get(name.casefold(), name)


def shape(name: str) -> dict[str, str]:
    """A label's properties."""
    color, description = LABELS.get(name, (GREY, ""))
    return {"name": name, "color": color, "description": description}


NEWCOMERS = ("FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR")
"""Associations of people whose commits GitHub has seen nowhere, or not here."""
GHOST = Actor(10137, "ghost")

T = TypeVar("T")
Stamp = Annotated[AwareDatetime, AfterValidator(lambda at: at.astimezone(UTC))]


class WireModel(BaseModel):
    """JSON; only the fields named here are read."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


def at(default: Any, *path: str) -> Any:
    """A field that GitHub has below others."""
    return Field(default, validation_alias=AliasPath(*path))


class UserWire(WireModel):
    """An account."""

    id: int
    login: str
    type: str = ""


class OwnedWire(WireModel):
    """What an account opened or wrote."""

    user: UserWire | None


class Named(WireModel):
    """An object with a name."""

    name: str | None = None  # GitHub's own description allows a label without one


class ThreadWire(OwnedWire):
    """The common fields of issues and pull requests."""

    number: int
    title: str
    body: str | None = None
    state: Literal["open", "closed"]
    labels: tuple[Named | str, ...] = ()
    created_at: Stamp
    updated_at: Stamp
    closed_at: Stamp | None = None
    html_url: str
    draft: bool = False
    author_association: str = ""


class IssueWire(ThreadWire):
    """An issue, or a pull request as one, as listed or read alone."""

    node_id: str = ""
    state_reason: str | None = None
    assignees: tuple[UserWire, ...] | None = None
    closed_by: UserWire | None = None
    comments: int | None = None
    pull_request: dict[str, Any] | None = None


class Home(WireModel):
    """A branch's repository."""

    id: int


class Side(WireModel):
    """Head or base of a pull request. `repo` is null after a fork was deleted."""

    ref: str
    sha: str
    label: str | None = None
    repo: Home | None = None


class PullWire(ThreadWire):
    """A pull request, as listed; fields that only a single read has are None or "" otherwise."""

    merged_at: Stamp | None = None
    merged_by: UserWire | None = None
    merge_commit_sha: str | None = None
    mergeable_state: str = ""
    head: Side
    base: Side

    @property
    def status(self) -> str:
        """open | closed | merged."""
        return "merged" if self.merged_at else self.state

    @property
    def ours(self) -> bool:
        """Whether its head is a branch of this repository, not of a fork."""
        return self.head.repo is not None and self.head.repo == self.base.repo


class CommentWire(OwnedWire):
    """A comment. `unedited`: never edited, though GitHub shows an update just after its creation."""

    id: int
    node_id: str = ""
    body: str | None = None
    created_at: Stamp
    updated_at: Stamp
    html_url: str = ""
    issue_url: str = ""
    author_association: str = ""
    unedited: bool = False  # our own field, from GraphQL

    @property
    def thread(self) -> int:
        """The number of its issue or pull request, or 0."""
        number = self.issue_url.rpartition("/")[2]
        return int(number) if number.isdigit() else 0


class EventWire(WireModel):
    """A line of an issue's history."""

    id: int
    event: str
    actor: UserWire | None = None
    created_at: Stamp
    label: Named | None = None


class ReviewWire(OwnedWire):
    """A review; a pending one has no time, and is still private."""

    id: int
    node_id: str = ""
    state: str
    body: str | None = None
    commit_id: str | None = None
    submitted_at: Stamp | None = None
    html_url: str = ""


class LineWire(WireModel):
    """A comment on a line of a pull request, part of a review."""

    id: int
    pull_request_review_id: int | None = None
    path: str
    line: int | None = None
    original_line: int | None = None
    body: str | None = None


class RuleWire(WireModel):
    """A ruleset's rule for a branch."""

    type: str
    parameters: dict[str, Any] | None = None
    ruleset_id: int | None = None
    ruleset_source: str = ""


def read(kind: type[T], data: Any) -> T:
    """JSON as one of the types above, or a tuple of them. Raises UserError for anything else."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # every type is hashable
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        what = f"GitHub's answer is not what it should be ({getattr(kind, '__name__', kind)}: {where}: {first['msg']})"
        raise UserError(what, "look at the API's address; the next wake tries again", who="forge") from None


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def actor(user: UserWire | None) -> Actor:
    """The account as an actor."""
    if user is None:
        return GHOST
    return Actor(user.id, user.login, user.type == "Bot" or user.login.casefold().endswith("[bot]"))


def names(labels: Iterable[Named | str]) -> frozenset[str]:
    """The labels' names, ours in our spelling."""
    texts = [label if isinstance(label, str) else label.name for label in labels]
    return frozenset(canonical(name) for name in texts if name)


def issue(wire: IssueWire, remarks: tuple[ThreadComment, ...] = (), events: tuple[LabelEvent, ...] = ()) -> Issue:
    """An issue."""
    closed = wire.state == "closed"
    return Issue(
        number=wire.number,
        title=wire.title,
        body=wire.body or "",
        state=wire.state,
        author=actor(wire.user),
        created_at=wire.created_at,
        updated_at=wire.updated_at,
        url=wire.html_url,
        labels=names(wire.labels),
        assignees=tuple(user.login for user in wire.assignees or ()),
        state_reason=_reason(wire) if closed else "",
        closed_by=actor(wire.closed_by) if closed and wire.closed_by else None,
        closed_at=wire.closed_at if closed else None,
        remarks=remarks,
        events=events,
    )


def pull(wire: PullWire, reviews: tuple[Review, ...] = ()) -> Pull:
    """A pull request without details from git and other requests. A fork's branch includes its owner."""
    return Pull(
        number=wire.number,
        title=wire.title,
        body=wire.body or "",
        state=wire.status,
        author=actor(wire.user),
        head=wire.head.ref if wire.ours else wire.head.label or f"unknown:{wire.head.ref}",
        head_sha=wire.head.sha,
        base=wire.base.ref,
        created_at=wire.created_at,
        updated_at=wire.updated_at,
        url=wire.html_url,
        labels=names(wire.labels),
        merged_sha=(wire.merge_commit_sha or "") if wire.merged_at else "",
        merged_by=actor(wire.merged_by) if wire.merged_at and wire.merged_by else None,
        closed_at=wire.merged_at or wire.closed_at,
        draft=wire.draft,
        newcomer=wire.author_association in NEWCOMERS,
        reviews=reviews,
    )


def remarks(wires: Iterable[CommentWire]) -> tuple[ThreadComment, ...]:
    """Comments, oldest first."""
    ordered = sorted(wires, key=lambda wire: (wire.created_at, wire.id))
    return tuple(
        ThreadComment(w.id, actor(w.user), w.body or "", w.created_at, w.created_at if w.unedited else w.updated_at)
        for w in ordered
    )


def events(wires: Iterable[EventWire]) -> tuple[LabelEvent, ...]:
    """Labels set and removed, oldest first."""
    ordered = sorted(wires, key=lambda wire: (wire.created_at, wire.id))
    return tuple(
        LabelEvent(canonical(wire.label.name or ""), actor(wire.actor), wire.created_at, wire.event == "labeled")
        for wire in ordered
        if wire.label and wire.event in ("labeled", "unlabeled")
    )


def reviews(wires: Iterable[ReviewWire], lines: Sequence[LineWire] = ()) -> tuple[Review, ...]:
    """Submitted reviews, oldest first; each one's line comments follow its text."""
    handed = [(wire.submitted_at, wire) for wire in wires if wire.submitted_at and wire.state != "PENDING"]
    ordered = sorted(handed, key=lambda pair: (pair[0], pair[1].id))
    return tuple(
        Review(actor(w.user), w.state.lower(), _words(w, lines), w.commit_id or "", at, w.id) for at, w in ordered
    )


def _words(wire: ReviewWire, lines: Sequence[LineWire]) -> str:
    comments = [one for one in lines if one.pull_request_review_id == wire.id]
    quoted = (f"{one.path}:{one.line or one.original_line or 0}: {one.body or ''}" for one in comments)
    return "\n\n".join(filter(None, (wire.body or "", *quoted)))


def _reason(wire: IssueWire) -> str:
    # `duplicate` means it is not done; the mission's model has two reasons.
    return {"completed": "completed", None: "", "": ""}.get(wire.state_reason, "not_planned")


def spoken(reason: object) -> str:
    """GitHub's reason, as words: FAILED_CHECKS, failed_checks."""
    return str(reason or "").replace("_", " ").lower()[:100]


def moment(text: object) -> datetime | None:
    """A cached time, None if missing or unreadable."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
