"""The life of a mission as a table, and how the forge's facts are read as its events.

    DISCOVERED -> PLANNED -> EXECUTING -> IN_REVIEW <-> FIXING -> COMPLETED

From any active state, a person's rejection leads to REJECTED and being stuck to ESCALATED; a proposal, pull request or
escalation that nobody answers, or that a person parks, leads to PARKED, until a person revives it. The state is derived
from the forge again in each cycle: `interpret_facts` looks at facts, never at what an earlier cycle believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.model.cycle import QUIET, Interpretation, MissionEvent, MissionFacts, PersonVerdict
from ralph_mission.mission.model.forge import Actor, Issue, Pull, Review
from ralph_mission.mission.model.mission import Action, FailureReason, Mission, Status, update_mission
from ralph_mission.mission.policy import name_needs

S = Status
STUCK_CYCLES = 3  # "3 cycles without progress or 3 equal failures"
MOST_TURNS = 6  # cycles that an agent may take for one change
ESCALATED_FOR = timedelta(days=7)
UNAPPROVED = (Status.DISCOVERED, Status.PARKED)
"""A mission that nobody approved yet."""
SET_ASIDE = frozenset({"ralph:parked", "ralph:escalated"})
UNANSWERED_FOR = timedelta(days=14)
PUBLISHED = "content:published"


_ACTIVE = tuple(status for status in Status if status.active)

TRANSITIONS: dict[tuple[Status, MissionEvent], Status] = {
    (S.DISCOVERED, MissionEvent.APPROVED): S.PLANNED,
    (S.DISCOVERED, MissionEvent.STARTED): S.EXECUTING,
    (S.PLANNED, MissionEvent.STARTED): S.EXECUTING,
    (S.PLANNED, MissionEvent.OFFERED): S.DISCOVERED,
    (S.EXECUTING, MissionEvent.OFFERED): S.DISCOVERED,
    (S.EXECUTING, MissionEvent.PULL_OPENED): S.IN_REVIEW,
    (S.IN_REVIEW, MissionEvent.CHANGES_REQUESTED): S.FIXING,
    (S.IN_REVIEW, MissionEvent.CHECKS_FAILED): S.FIXING,
    (S.FIXING, MissionEvent.REVISED): S.IN_REVIEW,
    (S.FIXING, MissionEvent.OFFERED): S.IN_REVIEW,
    (S.IN_REVIEW, MissionEvent.APPROVED): S.FIXING,
    (S.DISCOVERED, MissionEvent.UNANSWERED): S.PARKED,
    (S.IN_REVIEW, MissionEvent.UNANSWERED): S.PARKED,
    (S.ESCALATED, MissionEvent.UNANSWERED): S.PARKED,
    (S.PLANNED, MissionEvent.UNANSWERED): S.PARKED,
    (S.ESCALATED, MissionEvent.REVIVED): S.PLANNED,
    (S.ESCALATED, MissionEvent.PULL_OPENED): S.IN_REVIEW,
    (S.PARKED, MissionEvent.REVIVED): S.DISCOVERED,
    (S.PARKED, MissionEvent.PULL_OPENED): S.IN_REVIEW,
    (S.PARKED, MissionEvent.REFUSED): S.REJECTED,
    (S.PARKED, MissionEvent.MERGED): S.COMPLETED,
    (S.PARKED, MissionEvent.DONE): S.COMPLETED,
    (S.PARKED, MissionEvent.PUBLISHED): S.COMPLETED,
    (S.PARKED, MissionEvent.SOLVED): S.COMPLETED,
    (S.DISCOVERED, MissionEvent.SOLVED): S.COMPLETED,
    (S.PLANNED, MissionEvent.SOLVED): S.COMPLETED,
    (S.IN_REVIEW, MissionEvent.SOLVED): S.COMPLETED,
    (S.FIXING, MissionEvent.SOLVED): S.COMPLETED,
    (S.ESCALATED, MissionEvent.SOLVED): S.COMPLETED,
    (S.PARKED, MissionEvent.GONE): S.REJECTED,
    **{(status, MissionEvent.GONE): S.REJECTED for status in _ACTIVE},
    **{(status, MissionEvent.REFUSED): S.REJECTED for status in _ACTIVE},
    **{(status, MissionEvent.MERGED): S.COMPLETED for status in _ACTIVE},
    **{(status, MissionEvent.DONE): S.COMPLETED for status in _ACTIVE},
    **{(status, MissionEvent.PUBLISHED): S.COMPLETED for status in _ACTIVE},
    **{(status, MissionEvent.STUCK): S.ESCALATED for status in _ACTIVE if status is not S.ESCALATED},
}


NO_TRANSITION = (MissionEvent.MERGEABLE, MissionEvent.BEHIND)
"""Events that change no state by themselves: a merge follows, or the base is merged in."""


def advance(mission: Mission, event: MissionEvent, now: datetime) -> Mission:
    """The mission after an event. Raises ValueError if the table has no such transition."""
    try:
        status = TRANSITIONS[mission.status, event]
    except KeyError:
        raise ValueError(f"a mission that is {mission.status} cannot be {event}") from None
    return update_mission(mission, status=status, changed_at=now, stalled_cycles=0)


def allows(mission: Mission, event: MissionEvent) -> bool:
    """Whether the table has this transition."""
    return (mission.status, event) in TRANSITIONS


def interpret_facts(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    """Interpret the facts: the first event that applies and that the table allows.

    A refused approval is only reported if nothing else happened.
    """
    refused = QUIET
    for reader in (
        _read_published,
        _read_end,
        _read_parked,
        _read_offer,
        _read_pull,
        _read_solved,
        _read_issue,
        _read_patience,
    ):
        reading = reader(mission, facts, now)
        if reading.event and (reading.event in NO_TRANSITION or allows(mission, reading.event)):
            return reading
        if reading.verdict.rules and refused is QUIET:
            refused = Interpretation(None, reading.verdict, reading.words)
    return refused


def _read_published(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    """Our own label says everything was sent, though an interrupted run did not record it."""
    label = approval.standing_label(facts.issue, PUBLISHED) if facts.issue else None
    ours = mission.action is Action.PUBLISH and label is not None and label.actor.id == facts.us
    return Interpretation(MissionEvent.PUBLISHED) if ours else QUIET


def _read_end(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    issue, pull = facts.issue, facts.pull
    if pull and pull.state == "merged":
        verdict = PersonVerdict("approved", _who_merged(mission, facts, pull))
        return Interpretation(MissionEvent.MERGED, verdict, pull.merged_sha)
    if issue is None:
        what = "issue" if mission.issue else "pull request"
        return Interpretation(MissionEvent.GONE, words=f"its {what} was deleted")
    verdict = approval.on_issue(issue, mission, facts.authorised, facts.offered_at)
    if verdict.state == "rejected":
        return Interpretation(MissionEvent.REFUSED, verdict, verdict.words)
    closed: list[Issue | Pull] = [thing for thing in (pull, issue) if thing and thing.state == "closed"]
    # Of two, we may have closed one because of the other.
    closed.sort(key=lambda thing: thing.closed_by is None or thing.closed_by.id not in facts.authorised)
    return _interpret_closure(mission, facts, closed[0]) if closed else QUIET


def _who_merged(mission: Mission, facts: MissionFacts, pull: Pull) -> Actor | None:
    """Who merged it; for a merge of ours that an interrupted run did not record, whoever approved it."""
    if pull.merged_by is None or not pull.merged_by.is_bot:
        return pull.merged_by
    verdict = approval.on_pull(pull, mission, facts.authorised)
    return verdict.actor if verdict.state == "approved" else pull.merged_by


def _interpret_closure(mission: Mission, facts: MissionFacts, thing: Issue | Pull) -> Interpretation:
    closer = thing.closed_by
    if facts.solved and closer is not None and closer.id == facts.us and allows(mission, MissionEvent.SOLVED):
        return Interpretation(MissionEvent.SOLVED)  # we did, in a run that died before recording it
    if closer is None or closer.id not in facts.authorised:
        event = MissionEvent.UNANSWERED if allows(mission, MissionEvent.UNANSWERED) else MissionEvent.STUCK
        return Interpretation(event, words="closed by someone whose verdict does not count")
    reason = thing.state_reason if isinstance(thing, Issue) else ""
    # A proposal asks to be closed for a no, and GitHub's button gives a reason that nobody picked.
    refused = facts.present and mission.status in UNAPPROVED and reason == facts.usual_reason
    done = isinstance(thing, Issue) and (facts.solved or (reason == "completed" and not refused))
    event = MissionEvent.DONE if done and reason != "not_planned" else MissionEvent.REFUSED
    words = _last_words(thing, closer.id)
    return Interpretation(event, PersonVerdict("rejected", closer, words), words)


def _last_words(thing: Issue | Pull, author: int) -> str:
    """The closer's last comment: most people say why just before or after closing."""
    remarks = [remark.body for remark in thing.remarks if remark.author.id == author]
    return remarks[-1] if remarks else ""


def _read_parked(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    """Whether a person parked it since it was last requested."""
    commands = approval.find_commands(facts.issue, "park", facts.authorised) if facts.issue else ()
    if not commands or facts.issue is None:
        return QUIET
    last = max(commands, key=lambda command: command.created_at)
    asked_at = approval.asked_at(facts.issue, facts.authorised, "ralph:mission", approval.APPROVED)
    approvals = (one.at for one in _approvals(facts))
    if last.created_at < max([asked_at, *_calls_back(facts.issue, facts.authorised), *approvals]):
        return QUIET
    return Interpretation(MissionEvent.UNANSWERED, PersonVerdict("rejected", last.author), "a person set it aside")


def _read_offer(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    """Approval of an answer that is shown but not pushed, if nobody reviewed or pushed anything since."""
    issue, pull = facts.issue, facts.pull
    if not (mission.review.offered_until and issue and pull and pull.state == "open" and facts.offered):
        return QUIET
    if pull.head_sha != mission.head_sha or approval.on_pull(pull, mission, facts.authorised).state == "changes":
        return QUIET
    verdict = approval.on_offer(issue, mission, facts.authorised, facts.offered_at)
    if verdict.state == "approved":
        event = MissionEvent.PULL_OPENED if mission.status is S.PARKED else MissionEvent.APPROVED
        return Interpretation(event, verdict)
    # An older approval was for something else.
    return Interpretation(None, verdict) if "approval-author" in verdict.rules else QUIET


def _read_pull(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    pull = facts.pull
    if pull is None:
        return QUIET
    if mission.status is S.EXECUTING:
        return Interpretation(MissionEvent.PULL_OPENED)
    verdict = approval.on_pull(pull, mission, facts.authorised)
    if pull.head_sha != mission.head_sha:
        words = "someone else pushed to our branch" if pull.head_sha else "our branch was deleted"
        rules = tuple(dict.fromkeys(("foreign-commit", *verdict.rules)))
        return Interpretation(MissionEvent.STUCK, PersonVerdict("refused", verdict.actor, rules=rules), words)
    untold = bool(pull.failed) and not any(line.endswith(checks_failed(pull)) for line in mission.story)
    if verdict.state == "approved" and not (untold and mission.progress.failure):  # perhaps no check is required
        return _read_approved(mission, facts, verdict, now)
    if verdict.state == "changes":
        return Interpretation(MissionEvent.CHANGES_REQUESTED, verdict, verdict.words)
    if untold and mission.status is S.IN_REVIEW:
        return Interpretation(MissionEvent.CHECKS_FAILED)
    return Interpretation(None, verdict) if verdict.rules else QUIET


def checks_failed(pull: Pull) -> str:
    """The line for its story, once for each head."""
    return f"checks failed at `{pull.head_sha[:8]}`"


def _read_approved(mission: Mission, facts: MissionFacts, verdict: PersonVerdict, now: datetime) -> Interpretation:
    set_aside = bool(_read_parked(mission, facts, now).event) or _hopeless(mission)
    is_open = facts.pull is not None and facts.pull.state == "open"
    if not is_open or (set_aside and not _is_approved_since(mission, facts)):
        return QUIET
    behind = mission.progress.failure_reason is FailureReason.BEHIND
    return Interpretation(MissionEvent.BEHIND if behind else MissionEvent.MERGEABLE, verdict)


def _is_approved_since(mission: Mission, facts: MissionFacts) -> bool:
    """Whether the mission was set aside, and its head approved once more after that."""
    if mission.status not in (S.PARKED, S.ESCALATED):
        return False
    since = _set_aside_at(mission, facts.issue)
    return any(one.at > since for one in _approvals(facts) if one.sha == mission.head_sha)


def _approvals(facts: MissionFacts) -> Iterator[Review]:
    """The approving reviews of its pull request by authorised people, of any commit."""
    reviews = facts.pull.reviews if facts.pull else ()
    return (one for one in reviews if one.state == "approved" and one.author.id in facts.authorised)


def _read_solved(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    """Whether its findings are gone. People close a change that they requested or pushed to themselves."""
    pull = facts.pull
    ours = pull is None or (not mission.issue and pull.head_sha == mission.head_sha)
    return Interpretation(MissionEvent.SOLVED) if facts.solved and ours else QUIET


def _hopeless(mission: Mission) -> bool:
    """Whether trying again will not help."""
    return mission.progress.failures >= STUCK_CYCLES or mission.progress.failure_reason is FailureReason.NEEDS_PERSON


def _read_issue(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    issue = facts.issue
    if issue is None or mission.status not in (S.DISCOVERED, S.PARKED, S.ESCALATED):
        return QUIET
    if mission.status is not S.DISCOVERED and _is_revived(issue, mission, facts.authorised):
        return Interpretation(MissionEvent.PULL_OPENED if facts.pull else MissionEvent.REVIVED)
    if facts.pull or not mission.question.proposal_hash or _refused_by_networks(mission):
        return QUIET
    verdict = approval.on_issue(issue, mission, facts.authorised, facts.offered_at, facts.yes, facts.edited_at)
    if verdict.state == "approved" and mission.status is S.DISCOVERED:
        return Interpretation(MissionEvent.APPROVED, verdict)
    if verdict.state == "approved":
        return Interpretation(MissionEvent.REVIVED, verdict) if _said_since(issue, mission, facts) else QUIET
    return Interpretation(None, verdict) if verdict.rules else QUIET


def _said_since(issue: Issue, mission: Mission, facts: MissionFacts) -> bool:
    """Whether it was approved after the mission was set aside: an older approval was acted on, in vain.

    Chat approvals are compared with those known then, as a chat has another clock than the forge. If none was known,
    any valid one is new.
    """
    said_at = approval.asked_at(issue, facts.authorised, *approval.yes_labels(mission, issue))
    since = _set_aside_at(mission, issue)
    heard_at = mission.question.heard_at or (None if mission.question.seen_at else since)
    chats = approval.said_in_chat(issue, mission, facts.yes, facts.offered_at, facts.edited_at)
    return said_at > since or any(heard_at is None or chat.at > heard_at for chat in chats)


def _set_aside_at(mission: Mission, issue: Issue | None) -> datetime:
    """The newest activity that was seen as the mission was set aside, by the forge: no answer is lost that came before
    our label. If earlier versions noted none, when the label was set."""
    events = issue.events if issue else ()
    put_at = max((event.at for event in events if event.added and event.label in SET_ASIDE), default=None)
    return mission.question.seen_at or put_at or mission.changed_at


def _refused_by_networks(mission: Mission) -> bool:
    """Whether the current approval was acted on already, in vain: then it does not revive the mission."""
    return mission.action is Action.PUBLISH and mission.status is S.ESCALATED


def _is_revived(issue: Issue, mission: Mission, authorised: frozenset[int]) -> bool:
    """Whether a person set `ralph:mission` again, removed our parked or escalated label, or asked for it."""
    since = _set_aside_at(mission, issue)
    return any(at > since for at in _calls_back(issue, authorised))


def brought_back(issue: Issue, authorised: frozenset[int], us: int) -> bool:
    """Whether a person did so since we last set it aside, by the forge's own events: memory does not decide this."""
    put = max((e.at for e in issue.events if e.added and e.label in SET_ASIDE and e.actor.id == us), default=None)
    return put is not None and any(at >= put for at in _calls_back(issue, authorised))


def _calls_back(issue: Issue, authorised: frozenset[int]) -> Iterator[datetime]:
    """When people revived a mission: by `ralph:mission`, by removing a label of ours, by `/ralph retry`."""
    yield from (command.created_at for command in approval.find_commands(issue, "retry", authorised))
    for event in issue.events:
        label = event.label == "ralph:mission" if event.added else event.label in SET_ASIDE
        if label and event.actor.id in authorised:
            yield event.at


def _read_patience(mission: Mission, facts: MissionFacts, now: datetime) -> Interpretation:
    if mission.status is S.ESCALATED and now - mission.changed_at >= ESCALATED_FOR:
        return Interpretation(MissionEvent.UNANSWERED, words="no answer to the escalation for 7 days")
    waiting = mission.question.waiting_since or mission.changed_at
    for_a_person = mission.status is S.PLANNED and waits_for_person(mission, facts)
    if (mission.status in (S.DISCOVERED, S.IN_REVIEW) or for_a_person) and now - waiting >= UNANSWERED_FOR:
        return Interpretation(MissionEvent.UNANSWERED, words="no answer for 14 days")
    if mission.status in (S.PLANNED, S.EXECUTING, S.FIXING) and mission.progress.stalled_cycles >= STUCK_CYCLES:
        refused = mission.progress.refused
        lasting = [rule for rule in refused if not rule.endswith("-cap")]  # no cycle lifted a cap
        needs = name_needs(lasting or ("kind-tier",))
        rules = f": what was to be sent needs {needs}" if refused else ""
        return Interpretation(MissionEvent.STUCK, words=f"{STUCK_CYCLES} cycles without progress{rules}")
    if mission.progress.turns >= MOST_TURNS and mission.status is not S.ESCALATED:
        words = f"an agent did not finish it in {mission.progress.turns} cycles"
        return Interpretation(MissionEvent.STUCK, words=words)
    if _hopeless(mission) and mission.status is not S.ESCALATED:
        return Interpretation(MissionEvent.STUCK, words=_why_hopeless(mission))
    return QUIET


def waits_for_person(mission: Mission, facts: MissionFacts) -> bool:
    """Whether only a person can continue: there is no agent, and nothing is about to be sent."""
    return not facts.coder and not mission.pending


def _why_hopeless(mission: Mission) -> str:
    if mission.progress.failures >= STUCK_CYCLES:
        return f"failed {mission.progress.failures} times: {mission.progress.failure}"
    return mission.progress.failure
