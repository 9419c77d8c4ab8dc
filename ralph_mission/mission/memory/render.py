"""The memory file as text; `memory.parse` is the exact inverse.

Every field of ours stays on one line, escaped where it must be. Learnings and Do Not Repeat
are people's and written as they are, but for a backslash before a line that looks like one of
our own headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC

from ralph_mission.mission.memory import front_matter
from ralph_mission.mission.memory.front_matter import escape
from ralph_mission.mission.model.memory import (
    KEEP_COMPLETED,
    KEEP_ISSUES,
    KEEP_OBSERVATIONS,
    CompletedNote,
    CycleNote,
    IssueNote,
    Memory,
    MissionNote,
)
from ralph_mission.values import compile_regex

TITLE = "# Ralph Loop Memory"
ACTIVE = "## Active Missions"
COMPLETED = f"## Completed Missions (last {KEEP_COMPLETED})"
OBSERVATIONS = f"## Observations Log (last {KEEP_OBSERVATIONS} cycles)"
ISSUES = f"## Issues at Work (last {KEEP_ISSUES})"
LEARNINGS = "## Learnings"
MEASURED = "### Measured by Ralph"
DO_NOT_REPEAT = "## Do Not Repeat"
MEASURED_END = "<!-- Ralph rewrites the list above; what you write anywhere else in this section is kept -->"

BOUND = rf"(?:{re.escape(MEASURED)}|{re.escape(DO_NOT_REPEAT)})[ \t]*\r?$"
_LOOKALIKE = compile_regex(rf"^(\\*{BOUND})", re.MULTILINE)


def render_memory(memory: Memory) -> str:
    """The memory file. `parse` reads it back; raises nothing."""
    machine = "\n".join(
        [
            TITLE,
            "",
            ACTIVE,
            "",
            *(line for note in memory.active for line in _mission_lines(note)),
            COMPLETED,
            "",
            *(line for note in memory.completed for line in _completed_lines(note)),
            OBSERVATIONS,
            "",
            *(line for note in memory.observations for line in _cycle_lines(note)),
            *([ISSUES, ""] if memory.issues else []),
            *(line for note in memory.issues for line in _issue_lines(note)),
        ]
    )
    learnings = _LOOKALIKE.sub(r"\\\1", memory.learnings)
    ours = "".join(_line("-", line) + "\n" for line in memory.measured)
    body = (
        f"{machine}\n{LEARNINGS}\n{learnings}\n"
        f"{MEASURED}\n\n{ours}{MEASURED_END}\n\n{DO_NOT_REPEAT}\n{memory.do_not_repeat}"
    )
    return front_matter.join(memory.header, body)


def render_notes(completed: Iterable[CompletedNote], observations: Iterable[CycleNote]) -> str:
    """Notes as they stand in the memory file, for the archive; `parse_notes` reads them back."""
    lines = [line for note in completed for line in _completed_lines(note)]
    lines += [line for note in observations for line in _cycle_lines(note)]
    return "".join(f"{line}\n" for line in lines)


def trim_memory(memory: Memory) -> tuple[Memory, str]:
    """The memory within its bounds, and the text of what fell off: it belongs in the archive."""
    kept = replace(
        memory, completed=memory.completed[:KEEP_COMPLETED], observations=memory.observations[:KEEP_OBSERVATIONS]
    )
    return kept, render_notes(memory.completed[KEEP_COMPLETED:], memory.observations[KEEP_OBSERVATIONS:])


def _mission_lines(note: MissionNote) -> list[str]:
    return [
        _line(f"### Mission #{note.id}:", note.title),
        _line("- **Status:**", note.status),
        f"- **Issue:** {_number(note.issue)}",
        f"- **PR:** {_number(note.pull)}",
        f"- **Started:** cycle #{note.started_cycle}",
        _line("- **Last action:**", note.last_action),
        _line("- **Next step:**", note.next_step),
        "",
    ]


def _completed_lines(note: CompletedNote) -> list[str]:
    date = escape(note.date).replace("]", "\\x5d")
    return [
        _line(f"### [{date}] Mission:", note.title),
        f"- Cycles to complete: {note.cycles}",
        _line("- Outcome:", note.outcome),
        _line("- Learning:", note.learning),
        "",
    ]


def _cycle_lines(note: CycleNote) -> list[str]:
    return [
        f"### Cycle #{note.cycle} ({note.at.astimezone(UTC).isoformat()[:16]})",
        "- **Observed:**",
        *(_line("  -", item) for item in note.observed),
        "- **Actions:**",
        *(_line("  -", item) for item in note.actions),
        f"- **Urgency:** {note.urgency}",
        _line("- **Next cycle:**", note.next_cycle),
        "",
    ]


def _issue_lines(note: IssueNote) -> list[str]:
    return [
        _line(f"### Issue #{note.issue}:", note.title),
        _line("- **Status:**", note.state),
        f"- **Tries:** {note.tries}",
        f"- **PR:** {_number(note.pull)}",
        "",
    ]


def _line(head: str, text: str) -> str:
    return f"{head} {escape(text)}" if text else head


def _number(number: int) -> str:
    return f"#{number}" if number else "none"
