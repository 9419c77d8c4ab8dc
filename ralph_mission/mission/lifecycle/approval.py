"""Which approvals count, and for what. Pure: the forge was asked before who may approve.

An approval counts if its author is an authorised person (numeric id, never a bot), if it is newer than our line
"proposal is now `<hash8>`", and if the current text still has that hash; on a pull request, if it was given for the
commit that would be merged. An approval that does not count is not ignored: it carries the rule that says why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from ralph_mission.mission.lifecycle.comment_commands import DECIDING, read_command
from ralph_mission.mission.model.cycle import NO_VERDICT, PersonVerdict
from ralph_mission.mission.model.effects import MARKER, MergePull
from ralph_mission.mission.model.forge import Actor, BodyEdit, Issue, LabelEvent, Pull, Review, ThreadComment
from ralph_mission.mission.model.ledger import ChatYes
from ralph_mission.mission.model.mission import Action, Mission, Status, update_mission
from ralph_mission.values import compile_regex

APPROVAL_RULES = frozenset({"approval-author", "approval-content", "approval-head"})
"""Rules by which an approval does not count."""
APPROVED, REJECTED = "ralph:approved", "ralph:rejected"
CONTENT_APPROVED = "content:approved"
AGENT = "agent:"
"""Prefix of a label that asks for work by the named agent. Only people set it."""
YES = compile_regex(r"\s*/ralph[ \t]+approve(?:[ \t]+`?(?P<hash>[0-9a-f]{8})`?)?\s*", re.IGNORECASE)
"""The whole comment must match: a question, a condition or a "not yet" after the command makes it no approval."""
ASKED_LINE = compile_regex(r"^proposal is now `[0-9a-f]{8}`", re.MULTILINE)
DETAILS_END = "\n\n</details>"
SEAL = compile_regex(
    rf"\n+proposal is now `(?P<hash>[0-9a-f]{{8}})`(?P<end>{DETAILS_END})?\n+(?:{MARKER.pattern})\s*\Z"
)
"""Our own ending of a proposal: the line, at the end of the details or behind them, and our marker."""


def content_hash(title: str, body: str) -> str:
    """Eight hex digits over a proposal's title and text.

    Our own ending is left out if it is genuine; text after it, or another hash in it, is an edit like any other.
    """
    return _whole_hash(title, body)[:8]


def about(mission: Mission, title: str, body: str) -> Mission:
    """The mission, asking about exactly this text. Eight digits are for people; other texts may share them."""
    whole = _whole_hash(title, body)
    return update_mission(mission, proposal_hash=whole[:8], proposal_sha256=whole)


def stands(issue: Issue, mission: Mission) -> bool:
    """Whether the issue still shows what the mission asked about."""
    now = _whole_hash(issue.title, issue.body)
    return now[:8] == mission.question.proposal_hash and mission.question.proposal_sha256 in ("", now)


def _whole_hash(title: str, body: str) -> str:
    body = body.replace("\r\n", "\n")
    seal = SEAL.search(body)
    unsealed = _digest(title, body[: seal.start()] + (seal["end"] or "")) if seal else ""
    return unsealed if seal and unsealed[:8] == seal["hash"] else _digest(title, body)


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
    """The verdict on a proposal. A rejection beats an approval; of each, the newest valid one counts.

    `offered_at`: when a change was shown; approvals must be newer. `yes`: owners' approvals in a chat. `edited_at`:
    when an unauthorised person last edited the text; approvals must be newer, whatever memory says.
    """
    rejections = [o for o in _find_rejections(issue) if o.actor and o.actor.id in authorised]
    if rejections:
        return rejections[-1]
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
    """The approvals among `yes` that count, as for `on_issue`.

    A chat approves an issue's text. A change shown in a comment is approved where it is shown.
    """
    since = _since(issue, mission, edited_at)
    return tuple(one for one in yes if offered_at is None and _counts_from_chat(one, issue, mission, since))


def yes_labels(mission: Mission, issue: Issue) -> tuple[str, ...]:
    """The labels that approve a mission's issue; for texts to publish there is one of their own.

    A label that names an agent approves a proposal, with that agent.
    """
    if mission.action is Action.PUBLISH:
        return (APPROVED, CONTENT_APPROVED)
    named = (
        sorted(label for label in issue.labels if agent_of_label(label)) if mission.status is Status.DISCOVERED else ()
    )
    return (APPROVED, *named)


def agent_of_label(label: str) -> str:
    """ "claude" for `agent:claude`; "" for a label that names no agent."""
    name = label.casefold()
    return name.removeprefix(AGENT) if name.startswith(AGENT) else ""


def agent_asked_for(issue: Issue, authorised: Collection[int]) -> str:
    """The agent in the newest agent label set by an authorised person, or ""."""
    named = (standing_label(issue, label) for label in issue.labels if agent_of_label(label))
    events = [event for event in named if event and event.actor.id in authorised]
    return agent_of_label(max(events, key=lambda event: (event.at, event.label)).label) if events else ""


def on_offer(issue: Issue, mission: Mission, authorised: frozenset[int], offered_at: datetime | None) -> PersonVerdict:
    """The verdict on a change that our comment shows: approval is for that, whatever happens to the issue's text."""
    return on_issue(issue, about(mission, issue.title, issue.body), authorised, offered_at)


def on_pull(pull: Pull, mission: Mission, authorised: frozenset[int]) -> PersonVerdict:
    """The verdict on a pull request: any authorised person's standing request for changes beats every approval.

    Once answered, by a push or an offered change, a request waits for its author; only newer reviews ask for more.
    """
    reviews = _standing(pull.reviews)
    changes = [r for r in reviews if r.state == "changes_requested" and r.author.id in authorised]
    if changes:
        until = mission.review.offered_until or mission.review.answered_at
        fresh = [r for r in changes if until is None or r.at > until]
        return PersonVerdict("changes", fresh[-1].author, fresh[-1].body) if fresh else NO_VERDICT
    approvals = [r for r in reviews if r.state == "approved"]
    if not approvals:
        return NO_VERDICT
    counted = [r for r in approvals if r.author.id in authorised]
    at_head = [r for r in counted if r.sha == pull.head_sha]
    if at_head and pull.head_sha == mission.head_sha:
        return PersonVerdict("approved", at_head[-1].author, at_head[-1].sha)
    rule = "approval-author" if not counted else "foreign-commit" if at_head else "approval-head"
    return PersonVerdict("refused", (counted or approvals)[-1].author, rules=(rule,))


def merge_objection(pull: Pull, merge: MergePull, may_approve: Callable[[Actor], bool]) -> str:
    """The rule a merge violates right now, or "" if its approval still stands.

    Called right before merging: since the decision an approval may have been dismissed, or head or base changed.
    """
    if pull.head_sha != merge.head_sha:
        return "approval-head"
    if merge.base and pull.base != merge.base:
        return "approval-content"
    if not merge.approver:
        return ""
    reviews = [review for review in _standing(pull.reviews) if may_approve(review.author)]
    approved = any(r.author.id == merge.approver and r.state == "approved" for r in reviews)
    if any(r.state == "changes_requested" for r in reviews) or not approved:
        return "approval-author"
    at_head = any(r.author.id == merge.approver and r.sha == merge.head_sha for r in reviews)
    return "" if at_head else "approval-head"


def who_stops(pull: Pull, merge: MergePull, may_approve: Callable[[Actor], bool]) -> Actor | None:
    """Who may write and asks for changes, though the approval of a merge stands: no owner, where owners are named."""
    reviews = [review for review in _standing(pull.reviews) if may_approve(review.author)]
    approved = any(r.author.id == merge.approver and r.state == "approved" for r in reviews)
    return next((r.author for r in reviews if approved and r.state == "changes_requested"), None)


def list_deciders(issue: Issue | None, pull: Pull | None) -> frozenset[Actor]:
    """Everyone whose permission matters for these two; the forge is asked about each once."""
    people: set[Actor | None] = set()
    for thing in (issue, pull):
        if thing is not None:
            people.update(event.actor for event in thing.events)
            people.update(remark.author for remark in thing.remarks if read_command(remark.body)[0] in DECIDING)
            people.add(thing.closed_by)
    if pull is not None:
        people.update(review.author for review in pull.reviews)
    return frozenset(person for person in people if person is not None and not person.is_bot)


def standing_label(issue: Issue, label: str) -> LabelEvent | None:
    """The event that set the current label (not one that was taken off again)."""
    events = sorted((event for event in issue.events if event.label == label), key=lambda event: event.at)
    return events[-1] if events and events[-1].added and label in issue.labels else None


def may_decide(person: Actor, owners: Collection[str], may_approve: Callable[[Actor], bool]) -> bool:
    """Whether a person is authorised: has write access, is an owner if owners are configured, is not a bot."""
    named = {owner.casefold() for owner in owners}
    return not person.is_bot and (not named or person.login.casefold() in named) and may_approve(person)


def who_asked(issue: Issue, label: str, us: int) -> Actor | None:
    """Who asked for the current label. If we only restored it, that is whoever had set it before us."""
    event = standing_label(issue, label)
    if event is None or event.actor.id != us:
        return event.actor if event else None
    events = sorted((e for e in issue.events if e.label == label and e.actor.id != us), key=lambda e: e.at)
    return events[-1].actor if events and events[-1].added else None


def asked_at(issue: Issue, authorised: Collection[int], *labels: str) -> datetime:
    """When an authorised person last asked for something, by one of these labels or an approval; else when it was
    opened.

    A comment that was edited since does not count: anybody may have edited it.
    """
    set_ = [e.at for e in issue.events if e.added and e.label in labels and e.actor.id in authorised]
    remarks = (r for r in issue.remarks if r.author.id in authorised and r.created_at == r.updated_at)
    yes = [remark.created_at for remark in remarks if _command(remark) == "approve" and YES.fullmatch(remark.body)]
    return max([issue.created_at, *set_, *yes])


def find_altering_editor(edits: Iterable[BodyEdit], authorised: Collection[int], since: datetime) -> Actor | None:
    """Who edited an issue's title or text, since it was requested, without being authorised."""
    return next((e.actor for e in edits if e.at >= since and e.actor.id not in authorised), None)


def is_unaltered(remark: ThreadComment, until: datetime | None) -> bool:
    """Whether a comment certainly says what its author wrote: an edit after `until` may be anybody's.

    None: everyone who may edit may also decide.
    """
    return until is None or remark.created_at == remark.updated_at or remark.updated_at < until


def find_commands(issue: Issue, verb: str, authorised: Collection[int]) -> tuple[ThreadComment, ...]:
    """Unedited comments by which authorised people gave a command: `/ralph park`, `/ralph retry`."""
    remarks = (
        remark for remark in issue.remarks if remark.author.id in authorised and remark.created_at == remark.updated_at
    )
    return tuple(remark for remark in remarks if _command(remark) == verb)


def _objections(counted: bool, fresh: bool) -> tuple[str, ...]:
    if not counted:
        return ("approval-author",)
    return () if fresh else ("approval-content",)


def _counts_from_chat(yes: ChatYes, issue: Issue, mission: Mission, since: datetime) -> bool:
    """Whether it names the current text, which is the one asked about, and was given since."""
    meant = yes.issue == issue.number and yes.hash == mission.question.proposal_hash
    return meant and stands(issue, mission) and yes.at > since


def _since(issue: Issue, mission: Mission, edited_at: datetime | None) -> datetime:
    """What an approval must be newer than: our line, and the last edit by an unauthorised person."""
    return max(_asked_at(issue, mission), edited_at or issue.created_at)


def _asked_at(issue: Issue, mission: Mission) -> datetime:
    """When the newest line with the hash was posted, by the forge's clock.

    The issue itself has the first one. If a later posting is in doubt, the time it was planned counts.
    """
    ours = [r.created_at for r in issue.remarks if r.author.id == issue.author.id and ASKED_LINE.search(r.body)]
    planned = mission.question.proposal_at
    return max([issue.created_at, *ours, *([planned] if planned else [])])


def _approvals(issue: Issue, since: datetime, mission: Mission) -> Iterable[tuple[Actor, bool]]:
    """Each attempted approval: by whom, and whether it is newer than the proposal's line and unedited.

    A comment may name the text by its hash; with any other words it approves nothing.
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


def _find_rejections(issue: Issue) -> Iterable[PersonVerdict]:
    if event := standing_label(issue, REJECTED):
        yield PersonVerdict("rejected", event.actor)
    for remark in issue.remarks:
        if _command(remark) == "reject":
            yield PersonVerdict("rejected", remark.author, _words(remark))


def _command(remark: ThreadComment) -> str:
    return "" if remark.author.is_bot else read_command(remark.body)[0]


def _words(remark: ThreadComment) -> str:
    """The rest of the command's line."""
    return read_command(remark.body)[1].partition("\n")[0].strip()


def _standing(reviews: Iterable[Review]) -> list[Review]:
    """Each author's latest verdict; comments do not change it, a dismissal removes it."""
    last: dict[int, Review] = {}
    for review in sorted(reviews, key=lambda r: r.at):
        if review.state != "commented":
            last[review.author.id] = review
    return sorted((r for r in last.values() if r.state != "dismissed"), key=lambda r: r.at)
