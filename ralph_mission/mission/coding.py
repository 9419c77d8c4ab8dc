"""Missions that an agent carries out: which of them wait for one, and what it is told and given. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from ralph_mission.mission import coding_text
from ralph_mission.mission.approval import content_hash, is_unaltered
from ralph_mission.mission.commissions import CodingTask
from ralph_mission.mission.lifecycle import MissionFacts
from ralph_mission.mission.model import Action, Limits, Mission, Status
from ralph_mission.mission.threads import Actor, Issue, Pull, Review, ThreadComment
from ralph_mission.mission.wording import person_name

WAITS = (Status.PLANNED, Status.EXECUTING, Status.FIXING)
ROUNDS = 3
"""Reviews of one pull that are answered; then a person has to (design: at most 3 rounds, then escalate)."""
GUIDANCE = re.compile(r"\A(?:[ \t]*\r?\n)* {0,3}/ralph[ \t]+guidance(?![\w-])[ \t]*", re.IGNORECASE)
WAITS_FOR_AGENT = "An agent goes on with it in the next cycle."
ALTERED = "{} changed its text and has no say here: look at it, and set `ralph:mission` anew"
REWORDED = "somebody else changed what {} wrote in a review: say it in a new one"
NO_ORDER = "its author has no say here, so its text is no order: say in a comment of your own what is to be done"


@dataclass(frozen=True, slots=True)
class CodingBudget:
    """What agents may still cost: money within this cycle and this day, and seconds."""

    usd: float
    seconds: float


def waits(mission: Mission, facts: MissionFacts) -> bool:
    """Whether an agent is to go on with it: approved or asked for, and nothing that was made is on its way."""
    if (
        not facts.coder
        or facts.foreign
        or mission.status not in WAITS
        or mission.pending
        or is_review_answered(mission, facts)
    ):
        return False
    if mission.action is Action.PUBLISH:
        return False
    return facts.issue is not None and facts.issue.state == "open" and not why_not(mission, facts)


def is_review_answered(mission: Mission, facts: MissionFacts) -> bool:
    """Whether nothing is left to answer of a review that is being answered: it was pushed, or taken back."""
    return mission.status is Status.FIXING and not mission.pending and not _requested_reviews(mission, facts)


def why_not(mission: Mission, facts: MissionFacts) -> str:
    """Why an agent cannot be told what to do, "" when it can."""
    asked = _requested_reviews(mission, facts) if mission.status is Status.FIXING else []
    if asked and not review_of(mission, facts):
        return REWORDED.format(person_name(asked[-1].author))
    if facts.issue and (_is_trusted_text(facts.issue, facts) or find_guidance(facts)):
        return ""
    return ALTERED.format(person_name(facts.altered)) if facts.altered else NO_ORDER


def list_speakers(issue: Issue | None, pull: Pull | None) -> frozenset[Actor]:
    """Everyone whose words an agent would read, if they are authorised."""
    things = [thing for thing in (issue, pull) if thing is not None]
    people = {remark.author for thing in things for remark in thing.remarks} | {thing.author for thing in things}
    return frozenset(one for one in people if not one.is_bot)


def purse(limits: Limits, spent_cycle: float, spent_day: float, seconds: float) -> CodingBudget:
    """What is left of the ceilings."""
    return CodingBudget(max(0.0, min(limits.usd_per_cycle - spent_cycle, limits.usd_per_day - spent_day)), seconds)


def commission(mission: Mission, facts: MissionFacts, base_sha: str, learnings: str, left: CodingBudget) -> CodingTask:
    """The work that is next for a mission that waits. `base_sha`: where the default branch stands."""
    issue = facts.issue
    assert issue is not None
    return CodingTask(
        mission=mission.id,
        round=mission.rounds + 1 if mission.status is Status.FIXING else 0,
        title=mission.title,
        branch=mission.branch or branch(mission),
        base_sha=mission.head_sha if mission.status is Status.FIXING else base_sha,
        task=task_for(mission, facts, learnings),
        usd=left.usd,
        seconds=left.seconds,
        guidance=tuple(said for _, said in guidance(mission, facts)),
        attempt=mission.failures,
        default_sha=base_sha,
        answers=answered_until(facts) if mission.status is Status.FIXING else None,
        subject=content_hash(issue.title, issue.body if _is_trusted_text(issue, facts) else ""),
    )


def branch(mission: Mission) -> str:
    """The branch that the change of an agent is pushed to."""
    return f"ralph/mission-{mission.id}-{mission.key[:8]}"


def task_for(mission: Mission, facts: MissionFacts, learnings: str) -> str:
    """What the agent is asked for. Only what we and authorised people wrote is quoted."""
    assert facts.issue is not None
    body = facts.issue.body if _is_trusted_text(facts.issue, facts) else None
    review = review_of(mission, facts) if mission.status is Status.FIXING else ()
    return coding_text.task_prompt(mission, facts.issue, body, find_guidance(facts), review, learnings)


def review_of(mission: Mission, facts: MissionFacts) -> tuple[tuple[Actor, str], ...]:
    """What authorised reviewers asked for since the last answer, in words of their own, oldest first."""
    return tuple((r.author, r.body) for r in _requested_reviews(mission, facts) if r.id not in facts.reworded)


def _requested_reviews(mission: Mission, facts: MissionFacts) -> list[Review]:
    reviews = facts.pull.reviews if facts.pull else ()
    asked = [r for r in reviews if r.state in ("changes_requested", "commented") and r.author.id in facts.authorised]
    fresh = [r for r in asked if mission.answered_at is None or r.at > mission.answered_at]
    return sorted(fresh, key=lambda r: r.at)


def answered_until(facts: MissionFacts) -> datetime | None:
    """When the newest review was written that is answered now."""
    reviews = facts.pull.reviews if facts.pull else ()
    return max((r.at for r in reviews if r.author.id in facts.authorised), default=None)


def guidance(mission: Mission, facts: MissionFacts) -> tuple[tuple[datetime, str], ...]:
    """What people who may told the next session, by `/ralph guidance` or in a chat, and no session was told yet."""
    remarks = [remark for thing in (facts.issue, facts.pull) if thing for remark in thing.remarks]
    said = [(r.created_at, GUIDANCE.sub("", r.body).strip()) for r in _of_people(remarks, facts) if _guides(r)]
    said += [(one.at, one.words) for one in facts.guidance]
    fresh = (one for one in said if one[1] and (mission.guided_at is None or one[0] > mission.guided_at))
    return tuple(sorted(fresh))


def _is_trusted_text(issue: Issue, facts: MissionFacts) -> bool:
    """Whether the issue's own text counts: we wrote it, or somebody who may decide did, and nobody else since."""
    return facts.altered is None and (issue.author.id == facts.us or issue.author.id in facts.authorised)


def find_guidance(facts: MissionFacts) -> tuple[ThreadComment, ...]:
    """What authorised people remarked on the issue; guidance is given once, and commands are none.

    Where the issue's own text is no order, their guidance is a part of the order, which each session is told.
    """
    remarks = _of_people(facts.issue.remarks if facts.issue else (), facts)
    words = (remark for remark in remarks if not remark.body.lstrip().lower().startswith("/ralph"))
    if facts.issue is None or _is_trusted_text(facts.issue, facts):
        return tuple(words)
    orders = (replace(one, body=GUIDANCE.sub("", one.body)) for one in remarks if _guides(one))
    said = (*words, *(order for order in orders if order.body.strip()))
    return tuple(sorted(said, key=lambda remark: remark.created_at))


def _of_people(remarks: Iterable[ThreadComment], facts: MissionFacts) -> list[ThreadComment]:
    people = (r for r in remarks if r.author.id in facts.authorised and not r.author.is_bot)
    return [remark for remark in people if is_unaltered(remark, facts.asked_at)]


def _guides(remark: ThreadComment) -> bool:
    return GUIDANCE.match(remark.body) is not None
