"""One standing issue for each kind that is watched, with a line for each finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ralph_mission.mission import succession, wording
from ralph_mission.mission.draft_parts import DraftContext, subject_of
from ralph_mission.mission.effects import EditComment, Effect, OpenIssue
from ralph_mission.mission.ledger import MonitorRecord, Record, key_of, monitor_key
from ralph_mission.mission.model import Action, Finding
from ralph_mission.mission.ports import RankedFinding
from ralph_mission.mission.proposal import Proposal

KEPT_LINES = 100  # of a monitoring issue


def lists(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Iterable[Proposal]:
    """The list of their kind, opened or edited, with the lines that it has not yet."""
    record = desk.records.get(monitor_key(thought.kind))
    before = record if isinstance(record, MonitorRecord) else None
    fresh = [line for line in map(wording.monitor_line, members) if not before or line not in before.lines]
    lines = (*fresh, *(before.lines if before else ()))[:KEPT_LINES]
    total = max((before.total if before else 0) + len(fresh), len(lines))
    effect = _monitor_effect(thought.kind, lines, total, members, before.issue if before else 0, desk.records)
    after = MonitorRecord(monitor_key(thought.kind), thought.kind, before.issue if before else 0, lines, total)
    title = f"{wording.monitor_title(thought.kind)}: {len(members)} new"
    return (
        Proposal(
            subject_of("monitor", thought.kind, members),
            Action.MONITOR,
            thought.kind,
            title,
            (effect,),
            tuple(members),
            monitor=after,
            why=thought.why,
            score=thought.score,
        ),
    )


def _monitor_effect(
    kind: str, lines: Sequence[str], total: int, members: Sequence[Finding], issue: int, records: Mapping[str, Record]
) -> Effect:
    line = succession.of_list(kind)
    opened = succession.latest(line, records) if issue else succession.upcoming(line, records)
    body = wording.monitor_body(kind, lines, total, members, opened)
    if not issue:
        return OpenIssue(opened, wording.monitor_title(kind), body, ())
    slot = key_of(*sorted(f"{m.fingerprint} {m.signal.occurrence}" for m in members))
    return EditComment(key_of(monitor_key(kind), "edit_comment", slot), issue, 0, body)
