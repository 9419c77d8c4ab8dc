"""A cycle at a glance: what came of it, why, what waits for whom, and what to type next.

At most 40 rows of 80 columns, whatever happened, and complete without colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ralph_mission.mission.account import CycleReport, Telling
from ralph_mission.mission.model import Verdict
from ralph_mission.report.lines import capped, counted, indented, safe, shorten, spell, stamp, told

ROWS = 40
SAYINGS = {
    "done": "done",
    "not_due": "not due yet: nothing was looked at (--force runs it anyway)",
    "lost": "another runner has this cycle: nothing was done",
    "paused": "paused: nothing was done (ralph resume)",
    "failed": "failed",
}
SHOWN = {"open_issue": "opened issue", "open_pull": "opened pull request", "merge_pull": "merged",
         "close_issue": "closed issue", "close_pull": "closed pull request", "comment": "commented"}  # fmt: skip
"""Effects that people notice; a branch or a label belongs to one of these."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its lines; `room` is the most rows the lines may take."""

    heading: str
    lines: tuple[str, ...]
    room: int
    where: str = "ralph status"


def summary(report: CycleReport, telling: Telling, heading: Callable[[str], str] = str) -> str:
    """The text; `heading` may add colour to headings."""
    parts = [heading(shorten(_first(report)))]
    for section in _sections(report, telling):
        if section.lines:
            parts += [heading(section.heading), *capped(section.lines, section.room, section.where)]
    return "\n".join([*parts, _next(report)])


def _first(report: CycleReport) -> str:
    staged = " (staged: nothing was changed)" if report.staged else ""
    took = spell(report.finished_at - report.started_at)
    return f"cycle {report.cycle}: {SAYINGS[report.outcome]}{staged}, {took}"


def _sections(report: CycleReport, telling: Telling) -> Sequence[Section]:
    # Rooms and headings add up to 38 rows; the first and the last line make 40.
    return (
        Section("seen", tuple(_seen(report)), 4, "ralph cycle --json"),
        Section("would be done" if report.staged else "done", tuple(_deeds(report)), 6, "ralph journal"),
        Section("why", tuple(told(telling.why)), 5, "ralph cycle --json"),
        Section("held back", tuple(told(telling.held or _verdicts(report))), 5, "ralph cycle --json"),
        Section("waiting for you", tuple(f"  {safe(line)}" for line in telling.waiting), 7),
        Section("note", tuple(told(telling.remarks)), 4),
    )


def _seen(report: CycleReport) -> list[str]:
    if not report.observers:
        return []
    new = sum(not finding.known for finding in report.findings)
    lines = [f"{counted(len(report.findings), 'finding')}, {new} new, by {counted(len(report.observers), 'observer')}"]
    lines += [f"{line.name}: {line.status}, {line.detail or 'no reason given'}"
              for line in report.observers if line.status == "unavailable"]  # fmt: skip
    return indented(lines)


def _deeds(report: CycleReport) -> list[str]:
    lines = []
    for effect in report.effects:
        doubtful = effect.status in ("failed", "unknown")
        if effect.kind in SHOWN or doubtful:
            said = f"{SHOWN.get(effect.kind, effect.kind)}{f' ({effect.status})' if doubtful else ''}"
            lines.append(f"{said} {effect.url or effect.key}")
    return indented(lines)


def _verdicts(report: CycleReport) -> list[str]:
    stopped = [line for line in report.decisions if line.verdict is not Verdict.ALLOW]
    counted = Counter((line.kind, line.verdict.value, ", ".join(line.rules)) for line in stopped)
    return [f"{count} x {kind}: {verdict} ({rules})" for (kind, verdict, rules), count in counted.items()]


def _next(report: CycleReport) -> str:
    if report.next_due_at is None:
        return "next: whenever you run ralph cycle"
    pause = report.next_due_at - report.finished_at
    when = f"in {spell(pause)}" if pause.total_seconds() > 0 else "now"
    return f"next: {when}, {stamp(report.next_due_at)} (urgency {report.urgency.value})"
