"""Missions that people made by labelling an issue: new ones, and those that memory lost. Pure.

A person's issue says nothing of a mission of ours; the open pull that an agent made for it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import belonging, coding
from ralph_mission.mission.effects import MARKER
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.lifecycle import MissionEvent, advance
from ralph_mission.mission.model import Action, Mission, Status, Tier
from ralph_mission.mission.step_yes import BY_HAND
from ralph_mission.mission.threads import Issue, Pull
from ralph_mission.mission.wording import plain

KIND = "human"
STANDING = (("ralph:parked", Status.PARKED), ("ralph:escalated", Status.ESCALATED))
"""Labels of ours on an issue that tell how its mission stands, whatever else there is."""
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def mission_of_issue(issue: Issue, number: int, cycle: int, now: datetime, agent: bool) -> Mission:
    """The mission that a person made of this issue; `agent`: whether one carries it out."""
    made = Mission(
        number, _key(issue, _times(issue)), plain(issue.title), KIND, Action.OPEN_PROPOSAL, Tier.HIGH,
        Status.DISCOVERED, cycle, now, now, issue=issue.number, last_action="a person made it a mission",
        next_step=coding.WAITS_FOR_AGENT if agent else BY_HAND,
    )  # fmt: skip  # one value
    return advance(made, MissionEvent.APPROVED, now)


def pulls_for(pulls: Iterable[Pull], us: int) -> Mapping[int, tuple[int, Pull]]:
    """Our newest open pull for each issue of a person, and the number of its mission; by the issue's number."""
    ours = (p for p in pulls if p.state == "open" and p.author.id == us and p.head.startswith(belonging.BRANCHES))
    said = ((_signature(pull)[1], pull) for pull in sorted(ours, key=lambda pull: pull.number))
    return {int(facts["issue"]): (int(facts["mission"]), pull) for facts, pull in said if _names_a_wish(facts)}


def found_again(made: Mission, number: int, issue: Issue, pull: Pull, authorised: frozenset[int]) -> Mission:
    """`made` of the same issue anew, as what it was: mission `number`, whose change is in this pull.

    It has the key it had, where the pull tells, so that nothing that was done for it is done again.
    """
    keys = (_key(issue, times) for times in range(1, _times(issue) + 1))
    key = next((key for key in keys if key_of(key, "open_pull") == _signature(pull)[0]), made.key)
    status = next((status for label, status in STANDING if label in issue.labels), Status.IN_REVIEW)
    found = replace(made, id=number, key=key, status=status, last_action="found again by its pull", next_step="")
    return caught_up(found, pull, authorised)


def caught_up(mission: Mission, pull: Pull, authorised: frozenset[int]) -> Mission:
    """The mission with its pull. A review of another commit than stands there now was answered, by a push.

    A commit of somebody else's is not taken for ours because memory is lost: then no head is known to be ours, which
    makes it stuck until a person has looked at it.
    """
    asked = [r for r in pull.reviews if r.state == "changes_requested" and r.author.id in authorised]
    earlier = [review for review in asked if review.sha != pull.head_sha]
    head = pull.head_sha if pull.commits and pull.own.issuperset(pull.commits) else ""
    return replace(
        mission, pull=pull.number, branch=pull.head, head_sha=head,
        base_sha=head,  # an answer needs nothing merged in
        rounds=len({review.sha for review in earlier}), answered_at=max((r.at for r in earlier), default=None),
    )  # fmt: skip  # one value


def _key(issue: Issue, times: int) -> str:
    return key_of("mission", "issue", str(issue.number), str(times))


def _times(issue: Issue) -> int:
    """How often somebody made it a mission."""
    return sum(event.added and event.label == "ralph:mission" for event in issue.events)


def _signature(pull: Pull) -> tuple[str, Mapping[str, str]]:
    """Key and facts of the marker that is the last line of a pull's text; one further up may be a quotation."""
    found = MARKER.fullmatch(pull.body.rstrip().rpartition("\n")[2].strip())
    return (found[1], belonging.facts_in(found[0])) if found else ("", {})


def _names_a_wish(facts: Mapping[str, str]) -> bool:
    numbers = (facts.get("mission", ""), facts.get("issue", ""))
    return facts.get("kind") == KIND and all(_NUMBER.fullmatch(number) for number in numbers)
