"""The position of memory, and who moved it: rollbacks are refused, people's edits are welcome.

Author names prove nothing here. A position is trusted because it was stored outside the branch; a change on top of it
is a person's because of *what* it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import Anchor, Memory

T = TypeVar("T")
NEXT = "look at it with `ralph memory verify`, then run `ralph memory recover`"


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
