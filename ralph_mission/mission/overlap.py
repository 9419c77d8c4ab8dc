"""Whether people are already at work on the lines that a finding is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from ralph_mission.mission.model import Finding, Pull
from ralph_mission.safety.edits import edits

RECENTLY = timedelta(days=14)  # a pull merged within it still covers what it touched


def others(pulls: Iterable[Pull], bot: int, now: datetime) -> tuple[Pull, ...]:
    """Pulls of anybody but us that are open or were merged recently."""
    return tuple(pull for pull in pulls if pull.author.id != bot and (pull.state == "open" or _recent(pull, now)))


def touches(pull: Pull, finding: Finding) -> bool:
    """Whether a pull changes a line that the finding stands on or that its own patch changes."""
    lines = [*_changed_lines(finding), *([finding.signal.line] if finding.signal.line else [])]
    return any(
        touch.path == finding.signal.path and any(touch.first <= line <= touch.last for line in lines)
        for touch in pull.touches
    )


def untouched(findings: Iterable[Finding], pulls: Iterable[Pull]) -> tuple[Finding, ...]:
    """The findings without those that a pull touches, so that one of them does not hold up the rest of its kind.

    A kind that is touched everywhere stays as it is: whoever judges it says why it waits.
    """
    findings, pulls = tuple(findings), tuple(pulls)
    free = [finding for finding in findings if not any(touches(pull, finding) for pull in pulls)]
    kinds = {finding.kind for finding in free}
    return tuple(finding for finding in findings if finding in free or finding.kind not in kinds)


def _recent(pull: Pull, now: datetime) -> bool:
    return pull.state == "merged" and now - pull.updated_at < RECENTLY


def _changed_lines(finding: Finding) -> Iterator[int]:
    """1-based lines of the old file that the finding's own patch changes."""
    for change in finding.signal.patch.changes if finding.signal.patch else ():
        for edit in edits(change.old or b"", change.new or b""):
            yield from range(edit.start + 1, edit.start + 1 + max(edit.delete, 1))
