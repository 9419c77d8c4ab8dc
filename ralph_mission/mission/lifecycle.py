"""The life of a mission as a table, and how the forge's facts are read as its events.

    DISCOVERED -> PLANNED -> EXECUTING -> IN_REVIEW <-> FIXING -> COMPLETED

From any active state a person's no leads to REJECTED and being stuck to ESCALATED; a
proposal or pull that nobody answers, or an escalation nobody takes up, leads to PARKED,
from where a person's label brings it back. The state is re-derived from the forge each
cycle: `read` looks at facts, never at what an earlier cycle believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from ralph_mission.mission import approval
from ralph_mission.mission.approval import NONE, Opinion
from ralph_mission.mission.ledger import BEHIND, NEEDS_PERSON
from ralph_mission.mission.model import Actor, Issue, Mission, Pull, Status

S = Status
STUCK_CYCLES = 3  # "3 cycles without progress or 3 equal failures"
ESCALATED_FOR = timedelta(days=7)
UNANSWERED_FOR = timedelta(days=14)


class Event(StrEnum):
    """What can happen to a mission."""

    APPROVED = "approved"  # a person said yes to the proposal
    STARTED = "started"  # hands have begun
    PULL_OPENED = "pull opened"
    CHANGES_REQUESTED = "changes requested"
    REVISED = "revised"  # the review was answered with a push
    MERGEABLE = "approved at its head"  # no transition of its own: merging follows
    BEHIND = "behind its base"  # nor has this: the base is merged in, and the review asked for again
    MERGED = "merged"
    DONE = "done by a person"
    REFUSED = "refused"  # a person said no
    STUCK = "stuck"
    UNANSWERED = "unanswered"
    GONE = "gone"  # somebody deleted the issue: nobody's verdict, but nothing is left to work on
    REVIVED = "revived"


_ACTIVE = tuple(status for status in Status if status.active)

TRANSITIONS: dict[tuple[Status, Event], Status] = {
    (S.DISCOVERED, Event.APPROVED): S.PLANNED,
    (S.DISCOVERED, Event.STARTED): S.EXECUTING,
    (S.PLANNED, Event.STARTED): S.EXECUTING,
    (S.EXECUTING, Event.PULL_OPENED): S.IN_REVIEW,
    (S.IN_REVIEW, Event.CHANGES_REQUESTED): S.FIXING,
    (S.FIXING, Event.REVISED): S.IN_REVIEW,
    (S.DISCOVERED, Event.UNANSWERED): S.PARKED,
    (S.IN_REVIEW, Event.UNANSWERED): S.PARKED,
    (S.ESCALATED, Event.UNANSWERED): S.PARKED,
    (S.ESCALATED, Event.REVIVED): S.PLANNED,
    (S.ESCALATED, Event.PULL_OPENED): S.IN_REVIEW,
    (S.PARKED, Event.REVIVED): S.DISCOVERED,
    (S.PARKED, Event.PULL_OPENED): S.IN_REVIEW,
    (S.PARKED, Event.REFUSED): S.REJECTED,
    (S.PARKED, Event.MERGED): S.COMPLETED,
    (S.PARKED, Event.DONE): S.COMPLETED,
    (S.PARKED, Event.GONE): S.REJECTED,
    **{(status, Event.GONE): S.REJECTED for status in _ACTIVE},
    **{(status, Event.REFUSED): S.REJECTED for status in _ACTIVE},
    **{(status, Event.MERGED): S.COMPLETED for status in _ACTIVE},
    **{(status, Event.DONE): S.COMPLETED for status in _ACTIVE},
    **{(status, Event.STUCK): S.ESCALATED for status in _ACTIVE if status is not S.ESCALATED},
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What the forge says of one mission now, and which ids may decide."""

    issue: Issue | None  # None: it was deleted
    pull: Pull | None
    authorised: frozenset[int]
    foreign: str = ""  # why what memory names is not this mission's; then nothing is written there
    announced: frozenset[str] = frozenset()  # digests of what our own issue says will be sent
    offered: frozenset[str] = frozenset()  # and of what it says would be sent after a yes


@dataclass(frozen=True, slots=True)
class Reading:
    """The facts, read: what happened, who said what, which rules a refused yes ran into."""

    event: Event | None = None
    opinion: Opinion = NONE
    words: str = ""


QUIET = Reading()


def advance(mission: Mission, event: Event, now: datetime) -> Mission:
    """The mission after an event. Raises ValueError when the table has no such step."""
    try:
        status = TRANSITIONS[mission.status, event]
    except KeyError:
        raise ValueError(f"a mission that is {mission.status} cannot be {event}") from None
    return replace(mission, status=status, changed_at=now, stalled_cycles=0)


def allows(mission: Mission, event: Event) -> bool:
    """Whether the table has this step."""
    return (mission.status, event) in TRANSITIONS


def read(mission: Mission, facts: Facts, now: datetime) -> Reading:
    """What the facts mean for this mission: the first thing that applies and that the table allows.

    A yes that was refused is told only when nothing else happened.
    """
    refused = QUIET
    for reader in (_read_end, _read_pull, _read_issue, _read_patience):
        reading = reader(mission, facts, now)
        if reading.event in (Event.MERGEABLE, Event.BEHIND) or (reading.event and allows(mission, reading.event)):
            return reading
        if reading.opinion.rules and refused is QUIET:
            refused = Reading(None, reading.opinion, reading.words)
    return refused


def _read_end(mission: Mission, facts: Facts, now: datetime) -> Reading:
    issue, pull = facts.issue, facts.pull
    if pull and pull.state == "merged":
        return Reading(Event.MERGED, Opinion("approved", _who_merged(mission, facts, pull)), pull.merged_sha)
    if issue is None:
        return Reading(Event.GONE, words="its issue was deleted")
    said = approval.on_issue(issue, mission, facts.authorised)
    if said.state == "rejected":
        return Reading(Event.REFUSED, said, said.words)
    closed: list[Issue | Pull] = [thing for thing in (pull, issue) if thing and thing.state == "closed"]
    # Of two, one may have been closed by us, because of the other.
    closed.sort(key=lambda thing: thing.closed_by is None or thing.closed_by.id not in facts.authorised)
    return _closed(mission, facts, closed[0]) if closed else QUIET


def _who_merged(mission: Mission, facts: Facts, pull: Pull) -> Actor | None:
    """A person; behind a merge of ours, of which an interrupted run did not tell, stands whoever approved it."""
    if pull.merged_by is None or not pull.merged_by.is_bot:
        return pull.merged_by
    opinion = approval.on_pull(pull, mission, facts.authorised)
    return opinion.actor if opinion.state == "approved" else pull.merged_by


def _closed(mission: Mission, facts: Facts, thing: Issue | Pull) -> Reading:
    closer = thing.closed_by
    if closer is None or closer.id not in facts.authorised:
        return Reading(
            Event.UNANSWERED if allows(mission, Event.UNANSWERED) else Event.STUCK,
            words="closed by someone whose verdict does not count",
        )
    done = isinstance(thing, Issue) and thing.state_reason == "completed"
    words = _last_words(thing, closer.id)
    return Reading(Event.DONE if done else Event.REFUSED, Opinion("rejected", closer, words), words)


def _last_words(thing: Issue | Pull, author: int) -> str:
    """What the closer wrote last: most people say why just before or after they close."""
    said = [remark.body for remark in thing.remarks if remark.author.id == author]
    return said[-1] if said else ""


def _read_pull(mission: Mission, facts: Facts, now: datetime) -> Reading:
    pull = facts.pull
    if pull is None:
        return QUIET
    if mission.status is S.EXECUTING:
        return Reading(Event.PULL_OPENED)
    opinion = approval.on_pull(pull, mission, facts.authorised)
    if pull.head_sha != mission.head_sha:
        words = "someone else pushed to our branch" if pull.head_sha else "our branch was deleted"
        rules = tuple(dict.fromkeys(("foreign-commit", *opinion.rules)))
        return Reading(Event.STUCK, Opinion("refused", opinion.actor, rules=rules), words)
    if opinion.state == "approved":
        return _read_approved(mission, opinion)
    if opinion.state == "changes":
        return Reading(Event.CHANGES_REQUESTED, opinion, opinion.words)
    return Reading(None, opinion) if opinion.rules else QUIET


def _read_approved(mission: Mission, opinion: Opinion) -> Reading:
    if _hopeless(mission):
        return QUIET
    return Reading(Event.BEHIND if mission.failure.startswith(BEHIND) else Event.MERGEABLE, opinion)


def _hopeless(mission: Mission) -> bool:
    """Whether trying once more will not help."""
    return mission.failures >= STUCK_CYCLES or mission.failure.startswith(NEEDS_PERSON)


def _read_issue(mission: Mission, facts: Facts, now: datetime) -> Reading:
    issue = facts.issue
    if issue is None or mission.status not in (S.DISCOVERED, S.PARKED, S.ESCALATED):
        return QUIET
    if mission.status is not S.DISCOVERED and _revived(issue, mission, facts.authorised):
        return Reading(Event.PULL_OPENED if facts.pull else Event.REVIVED)
    if facts.pull or not mission.proposal_hash:
        return QUIET
    opinion = approval.on_issue(issue, mission, facts.authorised)
    if opinion.state == "approved":
        return Reading(Event.APPROVED if mission.status is S.DISCOVERED else Event.REVIVED, opinion)
    return Reading(None, opinion) if opinion.rules else QUIET


def _revived(issue: Issue, mission: Mission, authorised: frozenset[int]) -> bool:
    """A person set `ralph:mission` again, or took our parked or escalated label off, after we put it there."""
    ours = {"ralph:parked", "ralph:escalated"}
    put = [event.at for event in issue.events if event.added and event.label in ours]  # by the forge's clock
    since = max(put, default=mission.changed_at)
    return any(
        event.actor.id in authorised
        and event.at >= since
        and ((event.added and event.label == "ralph:mission") or (not event.added and event.label in ours))
        for event in issue.events
    )


def _read_patience(mission: Mission, facts: Facts, now: datetime) -> Reading:
    if mission.status is S.ESCALATED and now - mission.changed_at >= ESCALATED_FOR:
        return Reading(Event.UNANSWERED, words="nobody took up the escalation for 7 days")
    waiting = mission.waiting_since or mission.changed_at
    if mission.status in (S.DISCOVERED, S.IN_REVIEW) and now - waiting >= UNANSWERED_FOR:
        return Reading(Event.UNANSWERED, words="nobody answered for 14 days")
    if mission.status in (S.PLANNED, S.EXECUTING, S.FIXING) and mission.stalled_cycles >= STUCK_CYCLES:
        return Reading(Event.STUCK, words=f"{STUCK_CYCLES} cycles without progress")
    if _hopeless(mission) and mission.status is not S.ESCALATED:
        return Reading(Event.STUCK, words=_why_hopeless(mission))
    return QUIET


def _why_hopeless(mission: Mission) -> str:
    if mission.failures >= STUCK_CYCLES:
        return f"failed {mission.failures} times: {mission.failure.removeprefix(NEEDS_PERSON)}"
    return mission.failure.removeprefix(NEEDS_PERSON)
