"""Whether what memory names on the forge is ours to write on. The forge says so, or it is not: memory proves nothing.

An issue is a mission's when our account wrote it and its marker names this very mission, or when an authorised
person put `ralph:mission` on it; a pull, when our account opened it from the mission's branch and it says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ralph_mission.mission.approval import standing_label
from ralph_mission.mission.effects import MARKER
from ralph_mission.mission.ledger import MonitorRecord, key_of
from ralph_mission.mission.model import Issue, Mission, Pull

_FACT = re.compile(r" ([a-z]+)=([^\s>]+)")
BRANCHES = "ralph/"


def facts_in(marker: str) -> dict[str, str]:
    """What one of our markers says besides its key."""
    return dict(_FACT.findall(marker.removesuffix("-->").partition(" key=")[2]))


def why_foreign(mission: Mission, issue: Issue | None, pull: Pull | None, us: int, authorised: frozenset[int]) -> str:
    """Why nothing may be written there on behalf of this mission, "" when both are its own."""
    written = issue is not None and issue.author.id == us and _names(issue.body, mission)
    if issue is not None and not written and not wished(issue, authorised):
        return f"issue #{issue.number} does not belong to this mission"
    borne_by_us = written or issue is None  # on an issue of a person's no pull of ours can be
    if pull is not None and not (borne_by_us and _carries(pull, mission, us)):
        return f"pull #{pull.number} does not belong to this mission"
    return ""


def wished(issue: Issue, authorised: frozenset[int]) -> bool:
    """Whether an authorised person set the `ralph:mission` that stands there."""
    label = standing_label(issue, "ralph:mission")
    return label is not None and label.actor.id in authorised


def own_remark(mission: Mission, issue: Issue, us: int) -> int:
    """The number of the mission's standing remark; 0 when what memory takes for it is not ours."""
    key = key_of(mission.key, "comment", "standing")
    ours = (r.id for r in issue.remarks if r.author.id == us and key in (found[1] for found in _markers(r.body)))
    return mission.comment if mission.comment in ours else 0


def is_list(issue: Issue, monitor: str, us: int) -> bool:
    """Whether this is the monitoring issue that `monitor` is the key of."""
    return issue.author.id == us and key_of(monitor, "open_issue") in (found[1] for found in _markers(issue.body))


def borne_out(record: object, issues: Mapping[int, Issue], us: int) -> bool:
    """Whether a record may be believed: it names no open issue (`issues`, by number) as a list that is none."""
    if not isinstance(record, MonitorRecord) or record.issue not in issues:
        return True
    return is_list(issues[record.issue], record.key, us)


def _carries(pull: Pull, mission: Mission, us: int) -> bool:
    ours = pull.author.id == us and pull.head.startswith(BRANCHES) and pull.head == mission.branch
    return ours and _names(pull.body, mission)


def _names(body: str, mission: Mission) -> bool:
    """Whether a marker in it tells of this mission: its number, its kind, its findings."""
    said = {
        "mission": str(mission.id),
        "kind": re.sub(r"[\s<>]", "", mission.kind),
        "finding": ",".join(mission.members),
    }
    return any(facts_in(found[0]) == said for found in _markers(body))


def _markers(body: str) -> Iterable[re.Match[str]]:
    return MARKER.finditer(body)
