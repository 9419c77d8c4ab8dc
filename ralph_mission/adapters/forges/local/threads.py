"""Changes of issues and pull requests, and their form in the port. Pure: frozen values in, new ones out.

Every change has a later time than the one before, even if the clock goes back, so times show the order of comments by
people and the bot.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.adapters.forges.local.documents import LocalThread
from ralph_mission.mission.model.forge import Actor, Issue, LabelEvent, Pull, Review, ThreadComment

Sides = tuple[str, str, str]
"""Head, base and head commit of a pull request; all empty for an issue."""
NO_SIDES: Sides = ("", "", "")
TICK = timedelta(milliseconds=1)  # the resolution of our timestamps


def open_thread(
    number: int,
    title: str,
    body: str,
    author: Actor,
    labels: tuple[str, ...],
    now: datetime,
    sides: Sides = NO_SIDES,
) -> LocalThread:
    """A new issue, or a pull request between two `sides`; its labels are ordinary events."""
    at, (head, base, head_sha) = stamp(now), sides
    return LocalThread(
        number=number,
        title=title,
        body=body,
        author=author,
        created_at=at,
        updated_at=at,
        labels=tuple(dict.fromkeys(labels)),
        events=tuple(LabelEvent(label, author, at) for label in dict.fromkeys(labels)),
        head=head,
        base=base,
        head_sha=head_sha,
    )


def after(thread: LocalThread, now: datetime) -> datetime:
    """The time of the next change: `now`, or just after the last one if the clock is behind."""
    return max(stamp(now), thread.updated_at + TICK)


def stamp(now: datetime) -> datetime:
    """`now` in the resolution of our files."""
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def add_comment(thread: LocalThread, actor: Actor, body: str, now: datetime) -> LocalThread:
    """Add a comment, numbered after the highest so far."""
    at = after(thread, now)
    number = max((remark.id for remark in thread.remarks), default=0) + 1
    return replace(thread, remarks=(*thread.remarks, ThreadComment(number, actor, body, at, at)), updated_at=at)


def edit_text(thread: LocalThread, comment: int, body: str, now: datetime) -> LocalThread:
    """Replace a comment's text; 0 is the opening text."""
    at = after(thread, now)
    if comment == 0:
        return replace(thread, body=body, updated_at=at)
    remarks = tuple(replace(r, body=body, updated_at=at) if r.id == comment else r for r in thread.remarks)
    return replace(thread, remarks=remarks, updated_at=at)


def set_labels(
    thread: LocalThread, actor: Actor, now: datetime, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
) -> LocalThread:
    """Set and remove labels; each actual change is one event, anything else has no effect."""
    at = after(thread, now)
    gone = tuple(label for label in thread.labels if label in remove)
    new = tuple(label for label in dict.fromkeys(add) if label not in thread.labels)
    if not gone and not new:
        return thread
    events = (*(LabelEvent(n, actor, at, added=False) for n in gone), *(LabelEvent(n, actor, at) for n in new))
    labels = tuple(label for label in thread.labels if label not in gone) + new
    return replace(thread, labels=labels, events=(*thread.events, *events), updated_at=at)


def assign_people(thread: LocalThread, logins: tuple[str, ...], now: datetime) -> LocalThread:
    """Assign people who are not assigned so far."""
    new = tuple(login for login in dict.fromkeys(logins) if login not in thread.assignees)
    return replace(thread, assignees=thread.assignees + new, updated_at=after(thread, now)) if new else thread


def close_thread(thread: LocalThread, actor: Actor, reason: str, now: datetime) -> LocalThread:
    """Close without a merge."""
    at = after(thread, now)
    return replace(thread, state="closed", state_reason=reason, closed_by=actor, closed_at=at, updated_at=at)


def add_review(thread: LocalThread, actor: Actor, state: str, body: str, sha: str, now: datetime) -> LocalThread:
    """Add a review of commit `sha`."""
    at = after(thread, now)
    return replace(thread, reviews=(*thread.reviews, Review(actor, state, body, sha, at)), updated_at=at)


def edit_review(thread: LocalThread, review: int, body: str, now: datetime) -> LocalThread:
    """Replace a review's text; reviews are numbered from 1 in order."""
    reviews = tuple(replace(one, body=body) if n == review else one for n, one in enumerate(thread.reviews, 1))
    return replace(thread, reviews=reviews, updated_at=after(thread, now))


def mark_merged(thread: LocalThread, head_sha: str, merged_sha: str, actor: Actor | None, at: datetime) -> LocalThread:
    """Mark as merged at `head_sha` as commit `merged_sha`; `actor` None means unknown."""
    return replace(
        thread,
        state="merged",
        head_sha=head_sha,
        merging="",
        merged_sha=merged_sha,
        merged_by=actor,
        closed_by=actor,
        closed_at=at,
        updated_at=at,
    )


def issue(thread: LocalThread, url: str, details: bool) -> Issue:
    """The port's issue."""
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
    """The port's pull request, without git's part: touches and commits."""
    return Pull(
        number=thread.number,
        title=thread.title,
        body=thread.body,
        state=thread.state,
        author=thread.author,
        head=thread.head,
        head_sha=head_sha,
        base=thread.base,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        url=url,
        labels=frozenset(thread.labels),
        reviews=tuple(replace(one, id=n) for n, one in enumerate(thread.reviews, 1)) if details else (),
        remarks=thread.remarks if details else (),
        events=thread.events if details else (),
        merged_sha=thread.merged_sha,
        merged_by=thread.merged_by,
        closed_by=thread.closed_by,
        closed_at=thread.closed_at,
    )
