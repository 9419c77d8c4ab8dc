"""Whose yes counts, and for what. Pure: who may approve was asked of the forge before.

A yes counts when its author is an authorised person (numeric id, never a bot), when it is
newer than our line "proposal is now `<hash8>`", and when what stands there now is still
what the hash was made of; on a pull, when it was given at the commit that would be merged.
A yes that does not count is not ignored: it carries the rule that says why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.mission.effects import MARKER, MergePull
from ralph_mission.mission.model import Actor, Issue, LabelEvent, Mission, Pull, Remark, Review

APPROVED, REJECTED = "ralph:approved", "ralph:rejected"
COMMAND = re.compile(r"\A(?:[ \t]*\r?\n)* {0,3}/ralph[ \t]+(approve|reject)(?![\w-])[ \t]*(.*)", re.IGNORECASE)
"""What begins a comment; indented further it is code, which somebody only shows."""
LINE = re.compile(r"^proposal is now `[0-9a-f]{8}`", re.MULTILINE)
SEAL = re.compile(rf"\n+proposal is now `([0-9a-f]{{8}})`\n+(?:{MARKER.pattern})\s*\Z")
"""Our own end of a proposal: the line and our marker, and nothing after them."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What people said last. `state`: none, approved, changes, rejected, or refused with `rules`."""

    state: str = "none"
    actor: Actor | None = None
    words: str = ""
    rules: tuple[str, ...] = ()


NONE = Opinion()


def content_hash(title: str, body: str) -> str:
    """Eight hex digits over a proposal's title and text.

    Our own end is left out where it is true; a word after it, or another hash in it, is an edit like any other.
    """
    body = body.replace("\r\n", "\n")
    seal = SEAL.search(body)
    if seal and _digest(title, body[: seal.start()]) == seal[1]:
        return seal[1]
    return _digest(title, body)


def _digest(title: str, text: str) -> str:
    normal = "\n".join(line.rstrip(" \t") for line in f"{title}\n\n{text}".strip().split("\n"))
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def on_issue(issue: Issue, mission: Mission, authorised: frozenset[int]) -> Opinion:
    """The opinion on a proposal. A no wins over a yes; the newest counted one of its kind speaks."""
    noes = [o for o in _noes(issue) if o.actor and o.actor.id in authorised]
    if noes:
        return noes[-1]
    attempts = list(_approvals(issue, _asked_at(issue, mission)))
    if not attempts:
        return NONE
    counted = [actor for actor, _ in attempts if actor.id in authorised]
    rules = _objections(bool(counted), any(fresh for actor, fresh in attempts if actor.id in authorised))
    if content_hash(issue.title, issue.body) != mission.proposal_hash:
        rules = (*rules, "approval-content") if "approval-content" not in rules else rules
    actor = (counted or [attempts[-1][0]])[-1]
    return Opinion("refused", actor, rules=rules) if rules else Opinion("approved", actor)


def on_pull(pull: Pull, mission: Mission, authorised: frozenset[int]) -> Opinion:
    """The opinion on a pull: any authorised person's standing request for changes beats every approval."""
    standing = _standing(pull.reviews)
    changes = [r for r in standing if r.state == "changes_requested" and r.author.id in authorised]
    if changes:
        return Opinion("changes", changes[-1].author, changes[-1].body)
    approvals = [r for r in standing if r.state == "approved"]
    if not approvals:
        return NONE
    counted = [r for r in approvals if r.author.id in authorised]
    at_head = [r for r in counted if r.sha == pull.head_sha]
    if at_head and pull.head_sha == mission.head_sha:
        return Opinion("approved", at_head[-1].author, at_head[-1].sha)
    rule = "approval-author" if not counted else "foreign-commit" if at_head else "approval-head"
    return Opinion("refused", (counted or approvals)[-1].author, rules=(rule,))


def merge_objection(pull: Pull, merge: MergePull, may_approve: Callable[[Actor], bool]) -> str:
    """The rule that a merge runs into at this moment, "" when the yes it rests on still stands.

    Asked right before merging: an approval may have been dismissed, a head or base changed, since it was judged.
    """
    if pull.head_sha != merge.head_sha:
        return "approval-head"
    if merge.base and pull.base != merge.base:
        return "approval-content"
    if not merge.approver:
        return ""
    standing = [review for review in _standing(pull.reviews) if may_approve(review.author)]
    approved = any(r.author.id == merge.approver and r.state == "approved" for r in standing)
    if any(r.state == "changes_requested" for r in standing) or not approved:
        return "approval-author"
    at_head = any(r.author.id == merge.approver and r.sha == merge.head_sha for r in standing)
    return "" if at_head else "approval-head"


def voices(issue: Issue | None, pull: Pull | None) -> frozenset[Actor]:
    """Everyone whose authority matters for these two; the forge is asked about each once."""
    people: set[Actor | None] = set()
    for thing in (issue, pull):
        if thing is not None:
            people.update(event.actor for event in thing.events)
            people.update(remark.author for remark in thing.remarks if COMMAND.match(remark.body))
            people.add(thing.closed_by)
    if pull is not None:
        people.update(review.author for review in pull.reviews)
    return frozenset(person for person in people if person is not None and not person.is_bot)


def standing_label(issue: Issue, label: str) -> LabelEvent | None:
    """Who set the label that stands there now: not somebody who set it once and took it off again."""
    events = sorted((event for event in issue.events if event.label == label), key=lambda event: event.at)
    return events[-1] if events and events[-1].added and label in issue.labels else None


def _objections(counted: bool, fresh: bool) -> tuple[str, ...]:
    if not counted:
        return ("approval-author",)
    return () if fresh else ("approval-content",)


def _asked_at(issue: Issue, mission: Mission) -> datetime:
    """When the newest line that names the hash was posted, all by the forge's own clock.

    The issue was opened with the first; the plan to post another counts where the posting is in doubt.
    """
    ours = [r.created_at for r in issue.remarks if r.author.id == issue.author.id and LINE.search(r.body)]
    return max([issue.created_at, *ours, *([mission.proposal_at] if mission.proposal_at else [])])


def _approvals(issue: Issue, since: datetime) -> Iterable[tuple[Actor, bool]]:
    """Each attempt at approval: who, and whether it is newer than the proposal's line and still what was said."""
    if event := standing_label(issue, APPROVED):
        yield event.actor, event.at > since
    for remark in issue.remarks:
        if _command(remark) == "approve":
            yield remark.author, since < remark.created_at == remark.updated_at


def _noes(issue: Issue) -> Iterable[Opinion]:
    if event := standing_label(issue, REJECTED):
        yield Opinion("rejected", event.actor)
    for remark in issue.remarks:
        if _command(remark) == "reject":
            match = COMMAND.match(remark.body)
            yield Opinion("rejected", remark.author, match.group(2).strip() if match else "")


def _command(remark: Remark) -> str:
    match = COMMAND.match(remark.body)
    return match.group(1).lower() if match and not remark.author.is_bot else ""


def _standing(reviews: Iterable[Review]) -> list[Review]:
    """The last verdict of each author; comments change nothing, a dismissal takes the verdict away."""
    last: dict[int, Review] = {}
    for review in sorted(reviews, key=lambda r: r.at):
        if review.state != "commented":
            last[review.author.id] = review
    return sorted((r for r in last.values() if r.state != "dismissed"), key=lambda r: r.at)
