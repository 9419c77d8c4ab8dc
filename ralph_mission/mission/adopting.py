"""Missions that people made by labelling an issue, and those of theirs that memory lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import approval, belonging, wishes
from ralph_mission.mission.deciding import CycleSettings
from ralph_mission.mission.facts import authorised_among
from ralph_mission.mission.ledger import OpenState
from ralph_mission.mission.model import Mission
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.mission.threads import Issue, Pull


def adopt(
    ports: CyclePorts,
    charter: CycleSettings,
    state: OpenState,
    issues: Iterable[Issue],
    lost: Mapping[int, tuple[int, Pull]],
    cycle: int,
    now: datetime,
) -> Iterable[Mission]:
    """Missions that an authorised person made by labelling an issue; anyone else's label is ignored.

    One whose pull is open (`lost`, by issue) is no new one: it goes on where it was.
    """
    ours, taken = ({m.issue for m in state.missions}, {m.id for m in state.missions})
    number = max([state.next_mission, *(id + 1 for id in taken), *(id + 1 for id, _ in lost.values())])
    for issue in issues:
        if "ralph:mission" not in issue.labels or issue.number in ours:
            continue
        full = ports.forge.issue(issue.number)
        authorised = authorised_among(ports, charter, full, None)
        made = wishes.mission_of_issue(full, number, cycle, now, ports.coder is not None)
        if not _still_wanted(full, authorised) or approval.on_issue(full, made, authorised).state == "rejected":
            continue
        before, pull = lost.get(issue.number, (0, None))
        if pull is None or before in taken:
            yield made
            number += 1
        else:
            yield _found_again(ports, charter, made, before, full, ports.forge.pull(pull.number))
            taken.add(before)


def _found_again(
    ports: CyclePorts, charter: CycleSettings, made: Mission, number: int, issue: Issue, pull: Pull
) -> Mission:
    found = wishes.found_again(made, number, issue, pull, authorised_among(ports, charter, issue, pull))
    return replace(found, comment=belonging.own_remark(found, {}, issue, ports.forge.identity().id))


def _still_wanted(issue: Issue, authorised: frozenset[int]) -> bool:
    """Whether an authorised person set the label that stands there, and not before it was parked and forgotten."""
    wish = approval.standing_label(issue, "ralph:mission")
    parked = approval.standing_label(issue, "ralph:parked")
    return wish is not None and wish.actor.id in authorised and (parked is None or wish.at > parked.at)
