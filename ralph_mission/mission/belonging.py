"""Whether what memory names on the forge is ours to write on. The forge says so, or it is not: memory proves nothing.

An issue is a mission's when our account wrote it and its marker names this very mission, or when an authorised
person put `ralph:mission` on it; a pull, when our account opened it from the mission's branch and it says the same,
and its issue is one that our account wrote, or a person's that the pull names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ralph_mission.mission import succession
from ralph_mission.mission.announced import announced_digests
from ralph_mission.mission.approval import standing_label
from ralph_mission.mission.effects import MARKER, fact
from ralph_mission.mission.ledger import EffectRecord, MonitorRecord, Record, key_of, monitor_key
from ralph_mission.mission.model import Mission
from ralph_mission.mission.threads import Issue, Pull, ThreadComment

_FACT = re.compile(r" ([a-z]+)=([^\s>]+)")
BRANCHES = "ralph/"


def facts_in(marker: str) -> dict[str, str]:
    """What one of our markers says besides its key."""
    return dict(_FACT.findall(marker.removesuffix("-->").partition(" key=")[2]))


def why_foreign(mission: Mission, issue: Issue | None, pull: Pull | None, us: int, authorised: frozenset[int]) -> str:
    """Why nothing may be written there on behalf of this mission, "" when both are its own."""
    written = issue is not None and issue.author.id == us and _names(issue.body, mission)
    if issue is not None and not written and not is_requested(issue, authorised):
        return f"issue #{issue.number} does not belong to this mission"
    borne_by_us = written or issue is None or _is_claimed(issue, us)
    if pull is not None and not _carries(pull, mission, us, named=not borne_by_us):
        return f"pull #{pull.number} does not belong to this mission"
    return ""


def is_requested(issue: Issue, authorised: frozenset[int]) -> bool:
    """Whether an authorised person set the `ralph:mission` that stands there."""
    label = standing_label(issue, "ralph:mission")
    return label is not None and label.actor.id in authorised


def _is_claimed(issue: Issue, us: int) -> bool:
    """Whether an issue that a person vouched for is of ours, with its marker edited away: no other mission's, then."""
    return issue.author.id == us and not any(_markers(issue.body))


def own_remark(mission: Mission, records: Mapping[str, Record], issue: Issue | None, us: int) -> int:
    """The number of the mission's standing remark; 0 when none of ours stands there. Memory's word without an issue."""
    if issue is None:
        return mission.comment
    keys = tuple(succession.successor_keys(succession.of_remark(mission.key), records))
    ours = [r.id for r in issue.remarks if r.author.id == us and any(found[1] in keys for found in _markers(r.body))]
    return mission.comment if mission.comment in ours else max(ours, default=0)


def is_list(issue: Issue, monitor: str, us: int) -> bool:
    """Whether this is the monitoring issue that `monitor` is the key of."""
    first = key_of(monitor, "open_issue")
    return issue.author.id == us and any(m[1] == first or _lists(m[0], monitor) for m in _markers(issue.body))


def _lists(marker: str, monitor: str) -> bool:
    """Whether a marker says that it is of a list of this kind: of a successor the kind alone tells."""
    said = facts_in(marker)
    return {*said} == {"kind"} and monitor_key(said["kind"]) == monitor


def true_list(record: Record, records: Mapping[str, Record], issues: Mapping[int, Issue], us: int) -> Record:
    """The record; of a list, without an open issue (`issues`, by number) that is none.

    Then it is the one that was opened last; if that is none any more either, a new one is needed.
    """
    if not isinstance(record, MonitorRecord) or _borne_out(record, issues, us):
        return record
    last = records.get(succession.latest(succession.of_list(record.kind), records))
    receipt = last.receipt if isinstance(last, EffectRecord) else None
    found = replace(record, issue=receipt.number if receipt else 0)
    return found if _borne_out(found, issues, us) else replace(record, issue=0)


def _borne_out(record: MonitorRecord, issues: Mapping[int, Issue], us: int) -> bool:
    return record.issue not in issues or is_list(issues[record.issue], record.key, us)


def own_change(mission: Mission, issue: Issue | None, us: int) -> ThreadComment | None:
    """Our newest remark that names a change made for this mission. One that was edited since says nothing."""
    shown = [r for r in (issue.remarks if issue else ()) if r.author.id == us and r.created_at == r.updated_at]
    return next((r for r in reversed(shown) if _shows(r.body, mission)), None)


def change_remark(mission: Mission, digests: Iterable[str]) -> str:
    """The key of the remark that names these: another change, another remark."""
    return key_of(mission.key, "change", *sorted(digests))


def _shows(body: str, mission: Mission) -> bool:
    named = announced_digests(body, False) or announced_digests(body, True)
    return bool(named) and any(found[1] == change_remark(mission, named) for found in _markers(body))


def own_pull(mission: Mission, pull: Pull | None, us: int) -> Pull | None:
    """The pull if it says by itself, and not only by the issue it is for, that it is this mission's."""
    return pull if pull is not None and _carries(pull, mission, us, named=True) else None


def _carries(pull: Pull, mission: Mission, us: int, named: bool) -> bool:
    ours = pull.author.id == us and pull.head.startswith(BRANCHES) and pull.head == mission.branch
    return ours and _names(pull.body, mission, named)


def _names(body: str, mission: Mission, named: bool = False) -> bool:
    """Whether a marker in it tells of this mission: its number, its kind, its findings; `named`: its issue too."""
    said = facts_of(mission)
    whole = said | {"issue": str(mission.issue)}
    return any(facts_in(found[0]) in ((whole,) if named else (said, whole)) for found in _markers(body))


def facts_of(mission: Mission) -> dict[str, str]:
    """What a marker says of a mission, so that it is found without memory."""
    said = {
        "mission": str(mission.id),
        "kind": fact(mission.kind),
        "finding": ",".join(mission.members),
    }
    return {name: value for name, value in said.items() if value}


def _markers(body: str) -> Iterable[re.Match[str]]:
    return MARKER.finditer(body)
