"""The memory file as text, under fixed headings: rendering and parsing lose nothing. Its position, and who moved it.

Each of our fields is on one line, escaped where necessary. Everything above `## Learnings` is ours: a line that we
would not have written is an error that names it. Learnings and Do Not Repeat belong to people and are kept as they are,
except for a backslash before a line that looks like one of our headings. Parsing takes linear time and space, and the
size of the text is capped.

Rollbacks are refused, people's edits are welcome. Author names prove nothing here. A position is trusted because it was
stored outside the branch; a change on top of it is a person's because of *what* it touches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from ralph_mission.errors import UserError
from ralph_mission.mission.memory import front_matter
from ralph_mission.mission.memory.front_matter import escape, memory_error, unescape
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.mission.model.memory import (
    KEEP_COMPLETED,
    KEEP_ISSUES,
    KEEP_OBSERVATIONS,
    CompletedNote,
    CycleNote,
    Header,
    IssueNote,
    Memory,
    MissionNote,
)
from ralph_mission.mission.model.mission import Status, Urgency
from ralph_mission.safety.front_matter import BOUNDARY
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
T = TypeVar("T")
NEXT = "look at it with `ralph memory verify`, then run `ralph memory recover`"


def render_memory(memory: Memory) -> str:
    """The memory file. `parse_memory` reads it back; raises nothing."""
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
    """Notes as in the memory file, for the archive; `parse_notes` reads them back."""
    lines = [line for note in completed for line in _completed_lines(note)]
    lines += [line for note in observations for line in _cycle_lines(note)]
    return "".join(f"{line}\n" for line in lines)


def trim_memory(memory: Memory) -> tuple[Memory, str]:
    """The memory within its bounds, and the text of what was trimmed, for the archive."""
    rest = replace(
        memory, completed=memory.completed[:KEEP_COMPLETED], observations=memory.observations[:KEEP_OBSERVATIONS]
    )
    return rest, render_notes(memory.completed[KEEP_COMPLETED:], memory.observations[KEEP_OBSERVATIONS:])


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


MAX_BYTES = 1024 * 1024
REQUIRED = (TITLE, ACTIVE, COMPLETED, OBSERVATIONS)

_CONFLICT = compile_regex(r"^(?:<{7}|\|{7}|>{7})(?: .*)?\r?$", re.MULTILINE)
_ESCAPED_LOOKALIKE = compile_regex(rf"^\\(\\*{BOUND})", re.MULTILINE)
_OURS = compile_regex(rf"(?:[ \t]*\r?\n)*((?:-(?: .*)?\n)*)(?:[ \t]*\r?\n)*(?:{re.escape(MEASURED_END)}[ \t]*\r?\n)?")
_BULLET = compile_regex(r"- (?:\*\*)?([A-Z][A-Za-z ]*):(?:\*\*)?(?: (.*))?")
_ITEM = compile_regex(r"  -(?: (.*))?")
_MISSION = compile_regex(r"### Mission #(\d{1,18}):(?: (.*))?")
_FINISHED = compile_regex(r"### \[([^\]]*)\] Mission:(?: (.*))?")
_ISSUE = compile_regex(r"### Issue #(\d{1,18}):(?: (.*))?")
_CYCLE = compile_regex(r"### Cycle #(\d{1,18}) \(([^)]*)\)")


def parse_memory(data: str | bytes) -> Memory:
    """The value of a memory file, CRLF or not. Raises UserError that names the line."""
    text = _decode(data)
    front = front_matter.split(text)
    return replace(_parse_body(text, front.body, front.body_line), header=front_matter.read(front))


def parse_sections(data: str | bytes) -> Memory:
    """Parse everything below the front matter, with an empty header. Raises UserError."""
    text = _decode(data)
    fences = [found.end() for found in BOUNDARY.finditer(text)][:2]
    start = fences[-1] if fences else 0
    return _parse_body(text, text[start:], text.count("\n", 0, start) + 1)


def _parse_body(text: str, body: str, first_line: int) -> Memory:
    machine, people = _split_people(body)
    learnings, measured, do_not_repeat = _people(people, "\r\n" if text.startswith("---\r\n") else "\n")
    active, completed, observations, *issues = _sections(machine, first_line)
    return Memory(
        header=Header(),
        active=tuple(_mission(entry) for entry in active),
        completed=tuple(_parse_completed(entry) for entry in completed),
        observations=tuple(_cycle(entry) for entry in observations),
        issues=tuple(_issue(entry) for section in issues for entry in section),
        learnings=learnings,
        measured=measured,
        do_not_repeat=do_not_repeat,
    )


def peek(data: str | bytes) -> Header:
    """The header alone. Raises UserError."""
    return front_matter.read(front_matter.split(_decode(data)))


def people_sections(data: str | bytes) -> tuple[str, str] | None:
    """(Learnings, Do Not Repeat) of a file whose machine part may be damaged; None if they are too."""
    try:
        text = _decode(data)
        learnings, _, do_not_repeat = _people(_split_people(text)[1], "\r\n" if text.startswith("---\r\n") else "\n")
    except UserError:
        return None
    return learnings, do_not_repeat


def parse_notes(text: str) -> tuple[tuple[CompletedNote, ...], tuple[CycleNote, ...]]:
    """The notes that `render_notes` wrote, possibly many times. Raises UserError."""
    entries = list(_entries(((number, line.rstrip(" \t\r")) for number, line in enumerate(text.split("\n"), 1))))
    completed = tuple(_parse_completed(entry) for entry in entries if _FINISHED.fullmatch(entry.heading))
    return completed, tuple(_cycle(entry) for entry in entries if not _FINISHED.fullmatch(entry.heading))


def _decode(data: str | bytes) -> str:
    if len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise memory_error(f"is larger than {MAX_BYTES // 1024} KiB")
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise memory_error("is not valid UTF-8", error.object[: error.start].count(b"\n") + 1) from None
    if text.startswith("\ufeff"):
        raise memory_error("starts with a byte order mark", 1)
    for what, at in (("holds a NUL character", text.find("\0")), ("is a conflict marker", _conflict(text))):
        if at >= 0:
            raise memory_error(what, text.count("\n", 0, at) + 1)
    return text


def _conflict(text: str) -> int:
    match = _CONFLICT.search(text)
    return match.start() if match else -1


def _split_people(body: str) -> tuple[str, str]:
    """Split into our part above `## Learnings` and people's part below."""
    match = re.search(rf"^{LEARNINGS}[ \t]*\r?\n", body, re.MULTILINE)
    if match is None:
        raise memory_error(f"is cut short: the section `{LEARNINGS}` is missing")
    return body[: match.start()], body[match.end() :]


def _people(text: str, eol: str) -> tuple[str, tuple[str, ...], str]:
    """(learnings, measured, do not repeat); text below our list is added to the learnings above it."""
    last = re.search(rf"^{DO_NOT_REPEAT}[ \t]*\r?(?:\n|\Z)", text, re.MULTILINE)
    if last is None:
        raise memory_error(f"is cut short: the section `{DO_NOT_REPEAT}` is missing")
    above, do_not_repeat = text[: last.start()], text[last.end() :]
    ours = re.search(rf"^{MEASURED}[ \t]*\r?\n", above, re.MULTILINE)
    if ours is None:
        return _ESCAPED_LOOKALIKE.sub(r"\1", above.removesuffix(eol)), (), do_not_repeat
    learnings = above[: ours.start()].removesuffix(eol)
    list_ = _OURS.match(above, ours.end())
    lines, end = (list_[1], list_.end()) if list_ else ("", ours.end())
    learnings = _ESCAPED_LOOKALIKE.sub(r"\1", _join_people(learnings, above[end:], eol))
    return learnings, tuple(unescape(line[2:].rstrip(" \t\r")) for line in lines.split("\n") if line), do_not_repeat


def _join_people(learnings: str, below: str, eol: str) -> str:
    if not below.strip():
        return learnings
    between = "" if not learnings or learnings.endswith("\n") else eol
    return learnings + between + below.removesuffix(eol)


@dataclass(slots=True)
class _Entry:
    """One `###` block: its heading, its bullets, and the items below each of them."""

    line: int
    heading: str
    values: dict[str, str] = field(default_factory=dict)
    items: dict[str, list[str]] = field(default_factory=dict)


def _sections(machine: str, first: int) -> list[list[_Entry]]:
    required = iter(REQUIRED)
    groups: list[list[tuple[int, str]]] = []
    for number, raw in enumerate(machine.split("\n"), first):
        line = raw.rstrip(" \t\r")  # a field never ends in them, as they are escaped
        if line.startswith(("# ", "## ")):
            expected = next(required, LEARNINGS)
            if line != expected and not (line == ISSUES and len(groups) == len(REQUIRED)):
                raise memory_error(f"`{expected}` should stand here", number)
            groups.append([])
        elif line and not groups:
            raise memory_error(f"`{TITLE}` should stand here", number)
        elif line:
            groups[-1].append((number, line))
    missing = next(required, "")
    if missing:
        raise memory_error(f"is cut short: `{missing}` is missing")
    if groups[0]:
        raise memory_error(f"`{ACTIVE}` should stand here", groups[0][0][0])
    return [list(_entries(group)) for group in groups[1:]]


def _entries(lines: Iterable[tuple[int, str]]) -> Iterator[_Entry]:
    entry: _Entry | None = None
    last = ""
    for number, line in lines:
        if line.startswith("### "):
            if entry:
                yield entry
            entry, last = _Entry(number, line), ""
        elif entry and (match := _BULLET.fullmatch(line)) and match[1] not in entry.values:
            last = match[1]
            entry.values[last], entry.items[last] = match[2] or "", []
        elif entry and last and (match := _ITEM.fullmatch(line)):
            entry.items[last].append(unescape(match[1] or ""))
        elif line:
            raise memory_error("Ralph would not have written this line", number)
    if entry:
        yield entry


def _mission(entry: _Entry) -> MissionNote:
    match = _heading(_MISSION, entry)
    return MissionNote(
        id=int(match[1]),
        title=unescape(match[2] or ""),
        status=Status(_value(entry, "Status", "|".join(Status))),
        issue=_reference(entry, "Issue"),
        pull=_reference(entry, "PR"),
        started_cycle=int(_value(entry, "Started", r"cycle #\d{1,18}")[7:]),
        last_action=unescape(_value(entry, "Last action")),
        next_step=unescape(_value(entry, "Next step")),
    )


def _parse_completed(entry: _Entry) -> CompletedNote:
    match = _heading(_FINISHED, entry)
    return CompletedNote(
        date=unescape(match[1]),
        title=unescape(match[2] or ""),
        cycles=int(_value(entry, "Cycles to complete", r"\d{1,18}")),
        outcome=unescape(_value(entry, "Outcome")),
        learning=unescape(_value(entry, "Learning")),
    )


def _cycle(entry: _Entry) -> CycleNote:
    match = _heading(_CYCLE, entry)
    try:
        at = datetime.strptime(match[2], "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise memory_error("this is not a time", entry.line) from None
    return CycleNote(
        cycle=int(match[1]),
        at=at,
        observed=_list(entry, "Observed"),
        actions=_list(entry, "Actions"),
        urgency=Urgency(_value(entry, "Urgency", "|".join(Urgency))),
        next_cycle=unescape(_value(entry, "Next cycle")),
    )


def _issue(entry: _Entry) -> IssueNote:
    match = _heading(_ISSUE, entry)
    return IssueNote(
        issue=int(match[1]),
        title=unescape(match[2] or ""),
        state=_value(entry, "Status", r"working|waiting|failed|done"),
        tries=int(_value(entry, "Tries", r"\d{1,18}")),
        pull=_reference(entry, "PR"),
    )


def _heading(pattern: re.Pattern[str], entry: _Entry) -> re.Match[str]:
    match = pattern.fullmatch(entry.heading)
    if match is None:
        raise memory_error("Ralph would not have written this heading", entry.line)
    return match


def _value(entry: _Entry, name: str, pattern: str = "(?s:.*)") -> str:
    value = entry.values.get(name)
    if value is None or not re.fullmatch(pattern, value):
        raise memory_error(f"{name} is missing below it or cannot be read", entry.line)
    return value


def _list(entry: _Entry, name: str) -> tuple[str, ...]:
    _value(entry, name, "")
    return tuple(entry.items[name])


def _reference(entry: _Entry, name: str) -> int:
    value = _value(entry, name, r"none|#\d{1,18}")
    return 0 if value == "none" else int(value[1:])


def refuse(what: str) -> UserError:
    """The error of a memory branch that is not as we left it."""
    return UserError(what, NEXT)


def check_position(
    position: Anchor | None, anchors: Iterable[Anchor | None], contains: Callable[[str], bool] | None = None
) -> None:
    """Raise UserError if memory at `position` (None: there is none) is behind any anchor.

    `contains` says whether a commit is the position's own or one of its ancestors; if it cannot tell, lineage and
    serial decide.
    """
    for anchor in anchors:
        if anchor is not None:
            _check(position, anchor, contains)


def _check(position: Anchor | None, anchor: Anchor, contains: Callable[[str], bool] | None) -> None:
    if position is None:
        raise refuse(f"the memory branch is missing, though it had reached serial {anchor.serial}")
    if position.lineage != anchor.lineage:
        raise refuse(f"the memory branch belongs to another lineage ({position.lineage!r}, not {anchor.lineage!r})")
    if position.serial < anchor.serial:
        raise refuse(f"memory was rolled back from serial {anchor.serial} to {position.serial}")
    if contains is not None and not contains(anchor.oid):
        raise refuse(f"the history of the memory branch was rewritten: it lacks {anchor.oid[:10]}")


def people_edits(before: Memory, after: Memory) -> tuple[str, ...] | None:
    """What people changed, in words; None if something that is not theirs changed too."""
    if _machine(before) != _machine(after):
        return None
    edits = [
        _difference("Learnings", before.learnings, after.learnings),
        _difference("Measured by Ralph", "\n".join(before.measured), "\n".join(after.measured)),
        _difference("Do Not Repeat", before.do_not_repeat, after.do_not_repeat),
    ]
    if before.header.paused != after.header.paused:
        edits.append("paused" if after.header.paused else "no longer paused")
    return tuple(line for line in edits if line)


def merge_edits(ours: Memory, before: Memory, theirs: Memory) -> Memory:
    """`ours` with a person's changes from `before` to `theirs`.

    A line that a person added to our measured list becomes theirs; changes to our own lines there are dropped, as the
    next cycle measures again.
    """
    mine = {line for line in theirs.measured if line not in before.measured}
    learnings = _newer(ours.learnings, before.learnings, theirs.learnings)
    paused = _newer(ours.header.paused, before.header.paused, theirs.header.paused)
    return replace(
        ours,
        header=replace(ours.header, paused=paused),
        learnings=_with_lines(learnings, [line for line in theirs.measured if line in mine]),
        do_not_repeat=_newer(ours.do_not_repeat, before.do_not_repeat, theirs.do_not_repeat),
    )


def with_people_of(ours: Memory, theirs: Memory) -> Memory:
    """`ours` with people's sections and `paused` from `theirs`."""
    header = replace(ours.header, paused=theirs.header.paused)
    return replace(ours, header=header, learnings=theirs.learnings, do_not_repeat=theirs.do_not_repeat)


def _machine(memory: Memory) -> Memory:
    header = replace(memory.header, paused=False)
    return replace(memory, header=header, learnings="", measured=(), do_not_repeat="")


def _newer(ours: T, before: T, theirs: T) -> T:
    return ours if theirs == before else theirs


def _with_lines(text: str, lines: list[str]) -> str:
    gap = "" if not lines or not text or text.endswith("\n") else "\n"
    return text + gap + "".join(f"- {line}\n" for line in lines)


def _difference(name: str, before: str, after: str) -> str:
    if before == after:
        return ""
    import difflib  # most cycles find no edits

    signs = [line[:2] for line in difflib.ndiff(before.splitlines(), after.splitlines())]
    added, removed = signs.count("+ "), signs.count("- ")
    if not added and not removed:
        return f"{name}: line ends changed"
    return f"{name}: {added} added, {removed} removed"
