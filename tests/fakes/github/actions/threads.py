"""Issues, and what pulls share with them: text, labels, people, state, comments, history."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.fakes.github.nouns import Account, Comment, Event, PullPart, Thread
from tests.fakes.github.state import World

MENTION = re.compile(r"(?<![\w`@/.])@([A-Za-z0-9][A-Za-z0-9-]*(?:\[bot\])?)")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def record(world: World, thread: Thread, name: str, actor: Account, at: datetime, **fields: Any) -> Event:
    """A line of history."""
    event = Event(next(world.ids), thread.number, name, actor, at, lag=world.list_lag, **fields)
    world.events.append(event)
    thread.updated_at = at
    return event


def create(
    world: World,
    actor: Account,
    title: str,
    body: str | None,
    labels: Iterable[str] = (),
    pull: PullPart | None = None,
) -> Thread:
    """A new issue or pull. An empty body is no body, as GitHub keeps it."""
    at = world.clock.tick()
    thread = Thread(next(world.ids), world.number(), title, body or None, actor, at, at, pull=pull, lag=world.list_lag)
    world.threads[thread.number] = thread
    _label(world, actor, thread, labels, at)
    _mention(world, thread, body or "", at)
    return thread


def edit(world: World, actor: Account, thread: Thread, title: str | None = None, body: str | None = None) -> None:
    """Change the text; a new title is remembered as `renamed`."""
    at = world.clock.tick()
    if title is not None and title != thread.title:
        record(world, thread, "renamed", actor, at, extra={"rename": {"from": thread.title, "to": title}})
        thread.title = title
    if body is not None:
        thread.versions = [*(thread.versions or [thread.body or ""]), body]
        thread.body = body or None
        thread.edits.append((actor, at))
    thread.updated_at = at


def label(world: World, actor: Account, thread: Thread, names: Iterable[str]) -> None:
    """Set labels; those that are there already make no event."""
    _label(world, actor, thread, names, world.clock.tick())


def unlabel(world: World, actor: Account, thread: Thread, names: Iterable[str]) -> None:
    """Take labels off; those that are not there make no event."""
    at = world.clock.tick()
    for name in names:
        kept = world.label(name).name
        if kept in thread.labels:
            thread.labels.remove(kept)
            record(world, thread, "unlabeled", actor, at, label=kept)


def assign(world: World, actor: Account, thread: Thread, logins: Iterable[str]) -> None:
    """Make people responsible; who has no access is passed over, as GitHub does."""
    at = world.clock.tick()
    for account in [world.accounts.get(login.lower()) for login in logins]:
        if account and account.at_least("read") and account not in thread.assignees:
            thread.assignees.append(account)
            record(world, thread, "assigned", actor, at, assignee=account)


def close(
    world: World,
    actor: Account,
    thread: Thread,
    reason: str | None = "completed",
    at: datetime | None = None,
    commit_id: str | None = None,
) -> None:
    """Close; closing what is closed changes nothing but the reason of an issue."""
    at = at or world.clock.tick()
    if thread.pull is None and reason is not None:
        thread.state_reason = reason
    if thread.state == "closed":
        return
    thread.state, thread.closed_at, thread.closed_by = "closed", at, actor
    extra = {} if thread.pull else {"state_reason": thread.state_reason}
    record(world, thread, "closed", actor, at, commit_id=commit_id, extra=extra)


def reopen(world: World, actor: Account, thread: Thread) -> None:
    """Open again."""
    if thread.state == "open":
        return
    thread.state, thread.closed_at, thread.closed_by = "open", None, None
    thread.state_reason = None if thread.pull else "reopened"
    record(world, thread, "reopened", actor, world.clock.tick())


def delete(world: World, thread: Thread) -> None:
    """Gone for good: 410 from now on."""
    world.clock.tick()
    thread.deleted = True


def comment(world: World, actor: Account, thread: Thread, text: str) -> Comment:
    """A new comment."""
    at = world.clock.tick()
    made = Comment(next(world.ids), thread.number, actor, text, at, at, lag=world.list_lag)
    world.comments[made.id] = made
    thread.updated_at = at
    _mention(world, thread, text, at)
    return made


def edit_comment(world: World, made: Comment, text: str) -> None:
    """Change a comment's text."""
    made.body, made.updated_at = text, world.clock.tick()
    made.edited_at = made.updated_at


def delete_comment(world: World, actor: Account, made: Comment) -> None:
    """Remove a comment; history says so."""
    del world.comments[made.id]
    record(world, world.threads[made.number], "comment_deleted", actor, world.clock.tick())


def _mention(world: World, thread: Thread, text: str, at: datetime) -> None:
    """Whoever is named outside of code is told, and history says so."""
    named = {name.lower() for name in MENTION.findall(CODE.sub("", text))}
    for account in [world.accounts[name] for name in sorted(named) if name in world.accounts]:
        record(world, thread, "mentioned", account, at)
        record(world, thread, "subscribed", account, at)


def _label(world: World, actor: Account, thread: Thread, names: Iterable[str], at: datetime) -> None:
    for name in names:
        kept = world.label(name).name
        if kept not in thread.labels:
            thread.labels.append(kept)
            record(world, thread, "labeled", actor, at, label=kept)
