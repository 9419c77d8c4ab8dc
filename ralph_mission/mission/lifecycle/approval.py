"""Whose yes counts, and for what. Pure: who may approve was asked of the forge before.

A yes counts when its author is an authorised person (numeric id, never a bot), when it is
newer than our line "proposal is now `<hash8>`", and when what stands there now is still
what the hash was made of; on a pull, when it was given at the commit that would be merged.
A yes that does not count is not ignored: it carries the rule that says why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from ralph_mission.mission.model.cycle import NO_VERDICT, PersonVerdict
from ralph_mission.mission.model.effects import MARKER, MergePull
from ralph_mission.mission.model.forge import Actor, BodyEdit, Issue, LabelEvent, Pull, Review, ThreadComment
from ralph_mission.mission.model.ledger import ChatYes
from ralph_mission.mission.model.mission import Action, Mission, Status, update_mission
from ralph_mission.values import compile_regex

APPROVED, REJECTED = "ralph:approved", "ralph:rejected"
CONTENT_APPROVED = "content:approved"
AGENT = "agent:"
"""Before the name of an agent: a label that asks for work by that agent. Only people set it."""
COMMAND = compile_regex(
    r"\A(?:[ \t]*\r?\n)* {0,3}/ralph[ \t]+(approve|reject|revise|park|retry)(?![\w-])[ \t]*(.*)", re.IGNORECASE
)
"""What begins a comment; indented further it is code, which somebody only shows."""
YES = compile_regex(r"\s*/ralph[ \t]+approve(?:[ \t]+`?(?P<hash>[0-9a-f]{8})`?)?\s*", re.IGNORECASE)
"""The whole of a comment that says yes: a question, a condition or a "not yet" behind the command makes it none."""
ASKED_LINE = compile_regex(r"^proposal is now `[0-9a-f]{8}`", re.MULTILINE)
SEAL = compile_regex(rf"\n+proposal is now `([0-9a-f]{{8}})`\n+(?:{MARKER.pattern})\s*\Z")
"""Our own end of a proposal: the line and our marker, and nothing after them."""


def content_hash(title: str, body: str) -> str:
    """Eight hex digits over a proposal's title and text.

    Our own end is left out where it is true; a word after it, or another hash in it, is an edit like any other.
    """
    return _whole_hash(title, body)[:8]


def about(mission: Mission, title: str, body: str) -> Mission:
    """The mission when it asks about this very text. Eight digits are for people: another text can have them."""
    whole = _whole_hash(title, body)
    return update_mission(mission, proposal_hash=whole[:8], proposal_sha256=whole)


def stands(issue: Issue, mission: Mission) -> bool:
    """Whether what the mission asked about is what its issue says now."""
    now = _whole_hash(issue.title, issue.body)
    return now[:8] == mission.question.proposal_hash and mission.question.proposal_sha256 in ("", now)


def _whole_hash(title: str, body: str) -> str:
    body = body.replace("\r\n", "\n")
    seal = SEAL.search(body)
    unsealed = _digest(title, body[: seal.start()]) if seal else ""
    return unsealed if seal and unsealed[:8] == seal[1] else _digest(title, body)


def _digest(title: str, text: str) -> str:
    normal = "\n".join(line.rstrip(" \t") for line in f"{title}\n\n{text}".strip().split("\n"))
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()


def on_issue(
    issue: Issue,
    mission: Mission,
    authorised: frozenset[int],
    offered_at: datetime | None = None,
    yes: Iterable[ChatYes] = (),
    edited_at: datetime | None = None,
) -> PersonVerdict:
    """The opinion on a proposal. A no wins over a yes; the newest counted one of its kind speaks.

    `offered_at` is when a change was shown that a yes has to be newer than. `yes`: those that owners gave in a chat.
    `edited_at` is when the text was changed by somebody without a say: a yes has to be newer, whatever memory says.
    """
    noes = [o for o in _noes(issue) if o.actor and o.actor.id in authorised]
    if noes:
        return noes[-1]
    since = _since(issue, mission, edited_at)
    if chats := said_in_chat(issue, mission, yes, offered_at, edited_at):
        return PersonVerdict("approved", Actor(0, f"an owner in the Telegram chat {chats[-1].chat}"))
    attempts = list(_approvals(issue, max(since, offered_at) if offered_at else since, mission))
    if not attempts:
        return NO_VERDICT
    counted = [actor for actor, _ in attempts if actor.id in authorised]
    rules = _objections(bool(counted), any(fresh for actor, fresh in attempts if actor.id in authorised))
    if not stands(issue, mission):
        rules = (*rules, "approval-content") if "approval-content" not in rules else rules
    actor = (counted or [attempts[-1][0]])[-1]
    return PersonVerdict("refused", actor, rules=rules) if rules else PersonVerdict("approved", actor)


def said_in_chat(
    issue: Issue,
    mission: Mission,
    yes: Iterable[ChatYes],
    offered_at: datetime | None = None,
    edited_at: datetime | None = None,
) -> tuple[ChatYes, ...]:
    """Those of `yes` that count, as for `on_issue`.

    A change in a remark is none of the text that a chat says yes to: a yes to it is given where it is shown.
    """
    since = _since(issue, mission, edited_at)
    return tuple(one for one in yes if offered_at is None and _counts_from_chat(one, issue, mission, since))


def yes_labels(mission: Mission, issue: Issue) -> tuple[str, ...]:
    """The labels that say yes to a mission's issue: of texts to publish, one of their own too.

    One that names an agent is a yes to a proposal, with that agent.
    """
    if mission.action is Action.PUBLISH:
        return (APPROVED, CONTENT_APPROVED)
    named = sorted(label for label in issue.labels if agent_of(label)) if mission.status is Status.DISCOVERED else ()
    return (APPROVED, *named)


def agent_of(label: str) -> str:
    """ "claude" for `agent:claude`; "" for a label that names no agent."""
    name = label.casefold()
    return name.removeprefix(AGENT) if name.startswith(AGENT) else ""


def agent_asked_for(issue: Issue, authorised: Collection[int]) -> str:
    """The agent of the newest label by which somebody who may decide chose one; "" where nobody did."""
    named = (standing_label(issue, label) for label in issue.labels if agent_of(label))
    events = [event for event in named if event and event.actor.id in authorised]
    return agent_of(max(events, key=lambda event: (event.at, event.label)).label) if events else ""


def on_offer(issue: Issue, mission: Mission, authorised: frozenset[int], offered_at: datetime | None) -> PersonVerdict:
    """The opinion on a change that a remark of ours shows: a yes is to that, whatever becomes of the issue's text."""
    return on_issue(issue, about(mission, issue.title, issue.body), authorised, offered_at)


def on_pull(pull: Pull, mission: Mission, authorised: frozenset[int]) -> PersonVerdict:
    """The opinion on a pull: any authorised person's standing request for changes beats every approval.

    One that was answered, by a push or by what is on offer, waits for its author; only what is newer asks for more.
    """
    standing = _standing(pull.reviews)
    changes = [r for r in standing if r.state == "changes_requested" and r.author.id in authorised]
    if changes:
        until = mission.review.offered_until or mission.review.answered_at
        fresh = [r for r in changes if until is None or r.at > until]
        return PersonVerdict("changes", fresh[-1].author, fresh[-1].body) if fresh else NO_VERDICT
    approvals = [r for r in standing if r.state == "approved"]
    if not approvals:
        return NO_VERDICT
    counted = [r for r in approvals if r.author.id in authorised]
    at_head = [r for r in counted if r.sha == pull.head_sha]
    if at_head and pull.head_sha == mission.head_sha:
        return PersonVerdict("approved", at_head[-1].author, at_head[-1].sha)
    rule = "approval-author" if not counted else "foreign-commit" if at_head else "approval-head"
    return PersonVerdict("refused", (counted or approvals)[-1].author, rules=(rule,))


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


def may_decide(person: Actor, owners: Collection[str], may_approve: Callable[[Actor], bool]) -> bool:
    """Whether this person's word counts: an owner where some are named, with write access, never a bot."""
    named = {owner.casefold() for owner in owners}
    return not person.is_bot and (not named or person.login.casefold() in named) and may_approve(person)


def who_asked(issue: Issue, label: str, us: int) -> Actor | None:
    """Who wanted the label that stands there; what we only gave back is the request of whoever had set it before us."""
    event = standing_label(issue, label)
    if event is None or event.actor.id != us:
        return event.actor if event else None
    events = sorted((e for e in issue.events if e.label == label and e.actor.id != us), key=lambda e: e.at)
    return events[-1].actor if events and events[-1].added else None


def asked_at(issue: Issue, authorised: Collection[int], *labels: str) -> datetime:
    """When an authorised person last asked for something, by one of these labels or a yes; else when it was opened.

    A comment that was edited since is no yes: anybody may have made it one.
    """
    set_ = [e.at for e in issue.events if e.added and e.label in labels and e.actor.id in authorised]
    said = (r for r in issue.remarks if r.author.id in authorised and r.created_at == r.updated_at)
    yes = [remark.created_at for remark in said if _command(remark) == "approve" and YES.fullmatch(remark.body)]
    return max([issue.created_at, *set_, *yes])


def find_altering_editor(edits: Iterable[BodyEdit], authorised: Collection[int], since: datetime) -> Actor | None:
    """Who changed an issue's title or text, since it was asked for, without a say."""
    return next((e.actor for e in edits if e.at >= since and e.actor.id not in authorised), None)


def is_unaltered(remark: ThreadComment, until: datetime | None) -> bool:
    """Whether a remark says what its author said: any other edit than one from before `until` may be anybody's.

    None: whoever may edit it may decide too.
    """
    return until is None or remark.created_at == remark.updated_at or remark.updated_at < until


def ordered(issue: Issue, verb: str, authorised: Collection[int]) -> tuple[ThreadComment, ...]:
    """The comments, never edited, by which people who may decide gave an order: `/ralph park`, `/ralph retry`."""
    said = (one for one in issue.remarks if one.author.id in authorised and one.created_at == one.updated_at)
    return tuple(one for one in said if _command(one) == verb)


def _objections(counted: bool, fresh: bool) -> tuple[str, ...]:
    if not counted:
        return ("approval-author",)
    return () if fresh else ("approval-content",)


def _counts_from_chat(yes: ChatYes, issue: Issue, mission: Mission, since: datetime) -> bool:
    """Whether it names the very text that stands there, which is what was asked about, and was given since."""
    meant = yes.issue == issue.number and yes.hash == mission.question.proposal_hash
    return meant and stands(issue, mission) and yes.at > since


def _since(issue: Issue, mission: Mission, edited_at: datetime | None) -> datetime:
    """What a yes has to be newer than: our line, and the last edit by somebody without a say."""
    return max(_asked_at(issue, mission), edited_at or issue.created_at)


def _asked_at(issue: Issue, mission: Mission) -> datetime:
    """When the newest line that names the hash was posted, all by the forge's own clock.

    The issue was opened with the first; the plan to post another counts where the posting is in doubt.
    """
    ours = [r.created_at for r in issue.remarks if r.author.id == issue.author.id and ASKED_LINE.search(r.body)]
    planned = mission.question.proposal_at
    return max([issue.created_at, *ours, *([planned] if planned else [])])


def _approvals(issue: Issue, since: datetime, mission: Mission) -> Iterable[tuple[Actor, bool]]:
    """Each attempt at approval: who, and whether it is newer than the proposal's line and still what was said.

    A comment may name the text that it means by its hash; with any other words it is no yes to anything.
    """
    current = mission.question.proposal_hash
    for label in yes_labels(mission, issue):
        if event := standing_label(issue, label):
            yield event.actor, event.at > since
    for remark in issue.remarks:
        if _command(remark) == "approve":
            yes = YES.fullmatch(remark.body)
            meant = yes is not None and (yes["hash"] or current).lower() == current
            yield remark.author, meant and since < remark.created_at == remark.updated_at


def _noes(issue: Issue) -> Iterable[PersonVerdict]:
    if event := standing_label(issue, REJECTED):
        yield PersonVerdict("rejected", event.actor)
    for remark in issue.remarks:
        if _command(remark) == "reject":
            yield PersonVerdict("rejected", remark.author, _words(remark))


def _command(remark: ThreadComment) -> str:
    match = COMMAND.match(remark.body)
    return match.group(1).lower() if match and not remark.author.is_bot else ""


def _words(remark: ThreadComment) -> str:
    match = COMMAND.match(remark.body)
    return match.group(2).strip() if match else ""


def _standing(reviews: Iterable[Review]) -> list[Review]:
    """The last verdict of each author; comments change nothing, a dismissal takes the verdict away."""
    last: dict[int, Review] = {}
    for review in sorted(reviews, key=lambda r: r.at):
        if review.state != "commented":
            last[review.author.id] = review
    return sorted((r for r in last.values() if r.state != "dismissed"), key=lambda r: r.at)
