"""Which issue is next for the issue agent, who may ask for it, and what of it the agent is told. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ralph_mission.mission.coder.tasks import GUIDANCE
from ralph_mission.mission.findings.overlap import closes, recent
from ralph_mission.mission.issues.model import READY, TRIES, WORKING, GuidanceNote, WorkTask, agent_of
from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.model.ledger import WorkRecord
from ralph_mission.mission.model.mission import Mission
from ralph_mission.mission.model.threads import Actor, BodyEdit, Issue, Pull, ThreadComment
from ralph_mission.mission.proposals.wording import person_name


def why_not_yet(issue: Issue, record: WorkRecord | None, missions: Sequence[Mission], pulls: Sequence[Pull]) -> str:
    """Why an issue that is ready in a list is not looked at any closer, "" when it is. `pulls`: of other people."""
    if any(mission.issue == issue.number and mission.status.active for mission in missions):
        return "it is a mission's, and one of the two works on it"
    if record and record.state == "done":
        return f"its pull is #{record.pull}: say there what is missing"
    if record and (record.tries - record.spared >= TRIES or record.state == "failed"):
        return f"it had its {TRIES} tries: put what is left into a new issue"
    if WORKING in issue.labels:
        return f"it is labelled {WORKING} as well; if nobody is at it, take that off"
    covering = next((pull.number for pull in pulls if issue.number in closes(pull)), 0)
    return f"pull #{covering} is about to close it" if covering else ""


def calls(issue: Issue, agents: Collection[str]) -> tuple[str, ...]:
    """The labels on an issue that ask for work on it: `ralph-ready`, or one that names one of `agents`."""
    return tuple(label for label in sorted(issue.labels) if label == READY or agent_of(label) in agents)


def valid_label(issue: Issue, us: int, authorised: frozenset[int], agents: Collection[str]) -> str:
    """The label by which an authorised person asks for work: of several the newest that names an agent; "" for none."""
    valid = [label for label in calls(issue, agents) if _is_requested(issue, label, us, authorised)]
    return max(valid, key=lambda label: (label != READY, _set_at(issue, label)), default="")


def _is_requested(issue: Issue, label: str, us: int, authorised: frozenset[int]) -> bool:
    asker = approval.whose_wish(issue, label, us)
    return asker is not None and asker.id in authorised


def _set_at(issue: Issue, label: str) -> datetime:
    event = approval.standing_label(issue, label)
    return event.at if event else issue.created_at


def why_not(
    issue: Issue, us: int, authorised: frozenset[int], agents: Collection[str] = (), edits: Sequence[BodyEdit] = ()
) -> str:
    """Why an issue is not taken though it is ready; "" when it may be. `authorised`: whose words count.

    `edits`: who changed its text, where not everybody who may do that may decide too.
    """
    asking = calls(issue, agents)
    if issue.state != "open" or not asking:
        return f"it is not labelled {READY}, or no longer"
    if not valid_label(issue, us, authorised, agents):
        return f"nobody who may decide here set {' or '.join(asking)} on it"
    if issue.author.id not in authorised:
        return "its author has no say here, so its text is no order: write an issue of your own about it"
    if who := approval.find_altering_editor(edits, {*authorised, us}, approval.asked_at(issue, authorised, *asking)):
        return f"{person_name(who)} changed its text and has no say here: look at it, and set the label anew"
    return ""


def voices(issue: Issue, us: int, agents: Collection[str] = (), edits: Sequence[BodyEdit] = ()) -> frozenset[Actor]:
    """Everyone whose authority matters for taking it."""
    askers = {asker for label in calls(issue, agents) if (asker := approval.whose_wish(issue, label, us))}
    people = {issue.author, *(remark.author for remark in issue.remarks), *askers, *(edit.actor for edit in edits)}
    return frozenset(one for one in people if not one.is_bot and one.id != us)


def task_of(
    issue: Issue,
    us: int,
    authorised: frozenset[int],
    agents: Collection[str] = (),
    before: WorkRecord | None = None,
    some: bool = False,
) -> WorkTask:
    """The issue with what people wrote of it: guidance that is new stands apart, other commands are for us alone.

    `some`: not everybody who may edit a comment may decide. One that was edited since the label was set is left out.
    """
    until = approval.asked_at(issue, authorised, *calls(issue, agents)) if some else None
    told = [remark for remark in issue.remarks if remark.author.id in authorised]
    said = [remark for remark in told if approval.is_unaltered(remark, until)]
    altered = tuple(remark.author for remark in told if remark not in said)
    fresh = {remark.id: word for remark in said if (word := _word(remark, before))}
    call = valid_label(issue, us, authorised, agents)
    quoted = tuple(r for r in said if (not _command(r) or GUIDANCE.match(r.body)) and r.id not in fresh)
    others = tuple(label for label in calls(issue, agents) if label != call)
    return WorkTask(issue, quoted, call, others, tuple(fresh.values()), altered)


def _word(remark: ThreadComment, before: WorkRecord | None) -> GuidanceNote | None:
    """The guidance that a comment is, None when it is none or an earlier try was given it."""
    found, until = GUIDANCE.match(remark.body), before.guided_at if before else None
    text = remark.body[found.end() :].strip() if found else ""
    if not text or (until is not None and remark.created_at <= until):
        return None
    return GuidanceNote(person_name(remark.author), text, remark.created_at)


def _command(remark: ThreadComment) -> bool:
    return remark.body.lstrip().lower().startswith("/ralph")


def others(pulls: Sequence[Pull], us: int) -> tuple[Pull, ...]:
    """Pulls of other people that are open, or were merged a short time ago."""
    return recent(pulls, us)
