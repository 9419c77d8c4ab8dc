"""What GitHub notices when branches move: heads of pulls, merges by hand, closing keywords."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from tests.fakes.github.actions import threads
from tests.fakes.github.bare import NOBODY, Signature
from tests.fakes.github.nouns import Account, Thread
from tests.fakes.github.state import World

CLOSING = re.compile(r"(?i)(?<![\w`])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:([\w.-]+/[\w.-]+))?#(\d+)\b")


def follow(world: World, actor: Account) -> dict[str, str]:
    """Bring every open pull up to where the branches are now; `actor` is who gets the blame."""
    heads = world.bare.heads()
    if heads != world.heads:
        world.heads, world.pushed_at = heads, world.clock.present()
    for thread in list(world.threads.values()):
        if thread.pull and thread.state == "open" and not thread.deleted:
            _follow(world, actor, thread, heads)
    return heads


def _follow(world: World, actor: Account, thread: Thread, heads: dict[str, str]) -> None:
    pull = thread.pull
    assert pull
    tip, base = heads.get(pull.head, ""), heads.get(pull.base, "")
    if not base:
        threads.close(world, actor, thread, None)
    elif not tip:
        at = world.clock.tick()
        threads.record(world, thread, "head_ref_deleted", actor, at)
        threads.close(world, actor, thread, None, at)
    else:
        if tip != pull.head_sha:
            _move(world, actor, thread, tip)
        if base != pull.base_sha and world.bare.is_ancestor(tip, base):
            _merged_by_hand(world, actor, thread, tip)
        else:
            pull.base_sha = base


def _move(world: World, actor: Account, thread: Thread, tip: str) -> None:
    pull = thread.pull
    assert pull
    at = world.clock.tick()
    if not world.bare.is_ancestor(pull.head_sha, tip):
        threads.record(world, thread, "head_ref_force_pushed", actor, at, commit_id=tip)
    pull.head_sha, pull.lag, thread.updated_at = tip, world.mergeable_lag, at
    world.bare.set_ref(f"refs/pull/{thread.number}/head", tip)
    _dismiss_stale(world, thread)


def _dismiss_stale(world: World, thread: Thread) -> None:
    assert thread.pull
    if any(rules.dismiss_stale for rules in world.rules_of(thread.pull.base)):
        for review in world.reviews.values():
            if review.number == thread.number and review.state == "APPROVED":
                review.state = "DISMISSED"


def _merged_by_hand(world: World, actor: Account, thread: Thread, tip: str) -> None:
    """Somebody pushed the pull's commits to the base: GitHub calls that merged."""
    mark_merged(world, actor, thread, tip, world.clock.tick())


def mark_merged(world: World, actor: Account, thread: Thread, sha: str, at: datetime) -> None:
    """Everything that being merged means, but for the commit itself."""
    pull = thread.pull
    assert pull
    pull.merged_at, pull.merged_by, pull.merge_sha = at, actor, sha
    threads.record(world, thread, "merged", actor, at, commit_id=sha)
    threads.close(world, actor, thread, None, at)
    if pull.base == world.default_branch:
        close_by_text(world, actor, [thread.body or ""], at, None)


def close_by_text(world: World, actor: Account, texts: Iterable[str], at: datetime, commit: str | None) -> None:
    """Close the issues that a text which reached the default branch says it closes."""
    for where, number in (match.groups() for text in texts for match in CLOSING.finditer(text)):
        issue = world.threads.get(int(number))
        if issue and not issue.pull and not issue.deleted and (where or world.full_name) == world.full_name:
            threads.close(world, actor, issue, "completed", at, commit)


def after_push(world: World, actor: Account, before: dict[str, str], after: dict[str, str]) -> None:
    """What follows a push: pulls move, and commits that are new on the default branch may close issues."""
    old, new = before.get(world.default_branch, ""), after.get(world.default_branch, "")
    follow(world, actor)
    if old and new and old != new:
        for sha in world.bare.between(old, new):
            close_by_text(world, actor, [world.bare.commit(sha).message], world.clock.present(), sha)


def rename_default(world: World, actor: Account, new: str) -> None:
    """Another name for the default branch: open pulls onto it and its protection follow, open pulls from it close."""
    old, tip = world.default_branch, follow(world, actor)[world.default_branch]
    if not world.bare.set_ref(f"refs/heads/{new}", tip, NOBODY):
        raise ValueError(f"git has a branch {new!r} already, or may not have one")
    world.bare.run("symbolic-ref", "HEAD", f"refs/heads/{new}")
    world.bare.delete_ref(f"refs/heads/{old}")
    world.default_branch = new
    if old in world.protections:
        world.protections[new] = world.protections.pop(old)
    for thread in world.threads.values():
        if thread.pull and thread.pull.base == old and thread.state == "open" and not thread.deleted:
            thread.pull.base = new
            threads.record(world, thread, "base_ref_changed", actor, world.clock.tick())
    follow(world, actor)


def signature(account: Account, at: datetime) -> Signature:
    """As GitHub signs for an account that hides its address."""
    return Signature(account.login, f"{account.id}+{account.login}@users.noreply.github.com", at)
