"""An issue or a pull as it is kept, and what can happen to it. Pure: frozen values in, new ones out.

Every change is stamped later than the one before, whatever the clock says, so the order
in which people and the bot spoke can be read from the times.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.mission.model.forge import Actor, Issue, LabelEvent, Pull, Review, ThreadComment
from ralph_mission.values import dataclass

TICK = timedelta(milliseconds=1)  # the resolution of our time stamps


@dataclass(frozen=True, slots=True)
class PullChange:
    """What a pull has beyond an issue. `merging` is the commit of a merge under way, "" otherwise."""

    head: str
    base: str
    head_sha: str  # where the head was when the pull was opened; where it ended once it is not open
    reviews: tuple[Review, ...] = ()
    merging: str = ""
    merged_sha: str = ""
    merged_by: Actor | None = None


@dataclass(frozen=True, slots=True)
class LocalThread:
    """One file: an issue, or a pull when it has a `change`."""

    number: int
    title: str
    body: str
    author: Actor
    created_at: datetime
    updated_at: datetime
    state: str = "open"  # open | closed | merged
    state_reason: str = ""
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    closed_by: Actor | None = None
    closed_at: datetime | None = None
    events: tuple[LabelEvent, ...] = ()
    remarks: tuple[ThreadComment, ...] = ()
    change: PullChange | None = None

    @property
    def kind(self) -> str:
        """The word for people, and (with an s) the folder it is kept in."""
        return "pull" if self.change else "issue"


def open_thread(
    number: int, title: str, body: str, author: Actor, labels: tuple[str, ...], change: PullChange | None, now: datetime
) -> LocalThread:
    """A new issue, or a pull when there is a `change`; its labels are events like any other."""
    at = stamp(now)
    events = tuple(LabelEvent(label, author, at) for label in dict.fromkeys(labels))
    return LocalThread(
        number, title, body, author, at, at, labels=tuple(dict.fromkeys(labels)), events=events, change=change
    )


def after(thread: LocalThread, now: datetime) -> datetime:
    """The stamp of the next change: `now`, or just after the last one when the clock is behind it."""
    return max(stamp(now), thread.updated_at + TICK)


def stamp(now: datetime) -> datetime:
    """`now` to the resolution of our files."""
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def add_comment(thread: LocalThread, actor: Actor, body: str, now: datetime) -> LocalThread:
    """With one more remark, numbered after the highest so far."""
    at = after(thread, now)
    number = max((remark.id for remark in thread.remarks), default=0) + 1
    return replace(thread, remarks=(*thread.remarks, ThreadComment(number, actor, body, at, at)), updated_at=at)


def edit_text(thread: LocalThread, comment: int, body: str, now: datetime) -> LocalThread:
    """With the text of one remark replaced; 0 is the opening text."""
    at = after(thread, now)
    if comment == 0:
        return replace(thread, body=body, updated_at=at)
    remarks = tuple(replace(r, body=body, updated_at=at) if r.id == comment else r for r in thread.remarks)
    return replace(thread, remarks=remarks, updated_at=at)


def set_labels(
    thread: LocalThread, actor: Actor, now: datetime, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> LocalThread:
    """With labels set and taken off; each real change is one event, and nothing else changes anything."""
    at = after(thread, now)
    gone = tuple(label for label in thread.labels if label in remove)
    new = tuple(label for label in dict.fromkeys(add) if label not in thread.labels)
    if not gone and not new:
        return thread
    events = (*(LabelEvent(n, actor, at, added=False) for n in gone), *(LabelEvent(n, actor, at) for n in new))
    labels = tuple(label for label in thread.labels if label not in gone) + new
    return replace(thread, labels=labels, events=(*thread.events, *events), updated_at=at)


def assign_people(thread: LocalThread, logins: tuple[str, ...], now: datetime) -> LocalThread:
    """With people assigned who were not yet."""
    new = tuple(login for login in dict.fromkeys(logins) if login not in thread.assignees)
    return replace(thread, assignees=thread.assignees + new, updated_at=after(thread, now)) if new else thread


def close_thread(thread: LocalThread, actor: Actor, reason: str, now: datetime) -> LocalThread:
    """Closed without a merge."""
    at = after(thread, now)
    return replace(thread, state="closed", state_reason=reason, closed_by=actor, closed_at=at, updated_at=at)


def keep_head(thread: LocalThread, head_sha: str) -> LocalThread:
    """A pull that is no longer open remembers where its head was."""
    assert thread.change
    return replace(thread, change=replace(thread.change, head_sha=head_sha or thread.change.head_sha))


def add_review(thread: LocalThread, actor: Actor, state: str, body: str, sha: str, now: datetime) -> LocalThread:
    """With one more review of commit `sha`."""
    assert thread.change
    at = after(thread, now)
    reviews = (*thread.change.reviews, Review(actor, state, body, sha, at))
    return replace(thread, change=replace(thread.change, reviews=reviews), updated_at=at)


def edit_review(thread: LocalThread, review: int, body: str, now: datetime) -> LocalThread:
    """With the text of one review replaced; reviews are numbered from 1 in the order they were given."""
    assert thread.change
    reviews = tuple(
        replace(one, body=body) if number == review else one for number, one in enumerate(thread.change.reviews, 1)
    )
    return replace(thread, change=replace(thread.change, reviews=reviews), updated_at=after(thread, now))


def mark_merged(thread: LocalThread, head_sha: str, merged_sha: str, actor: Actor | None, at: datetime) -> LocalThread:
    """Merged at `head_sha` as commit `merged_sha`; nobody knows by whom when `actor` is None."""
    assert thread.change
    change = replace(thread.change, head_sha=head_sha, merging="", merged_sha=merged_sha, merged_by=actor)
    return replace(thread, state="merged", change=change, closed_by=actor, closed_at=at, updated_at=at)


def issue(thread: LocalThread, url: str, details: bool) -> Issue:
    """As the port tells it."""
    return Issue(
        number=thread.number,
        title=thread.title,
        body=thread.body,
        state=thread.state,
        author=thread.author,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        url=url,
        labels=frozenset(thread.labels),
        assignees=thread.assignees,
        state_reason=thread.state_reason,
        closed_by=thread.closed_by,
        closed_at=thread.closed_at,
        remarks=thread.remarks if details else (),
        events=thread.events if details else (),
    )


def pull(thread: LocalThread, url: str, head_sha: str, details: bool) -> Pull:
    """As the port tells it, but for what only git knows: touches and commits."""
    change = thread.change
    assert change
    return Pull(
        number=thread.number,
        title=thread.title,
        body=thread.body,
        state=thread.state,
        author=thread.author,
        head=change.head,
        head_sha=head_sha,
        base=change.base,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        url=url,
        labels=frozenset(thread.labels),
        reviews=tuple(replace(one, id=n) for n, one in enumerate(change.reviews, 1)) if details else (),
        remarks=thread.remarks if details else (),
        events=thread.events if details else (),
        merged_sha=change.merged_sha,
        merged_by=change.merged_by,
        closed_by=thread.closed_by,
        closed_at=thread.closed_at,
    )
