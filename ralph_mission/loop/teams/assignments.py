"""Parses a planner's or lead's assignments: tasks, and who owns which files. Anything unclear is refused, with the
reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from ralph_mission.loop.rules import scope
from ralph_mission.loop.rules.routing import ID
from ralph_mission.loop.rules.verdicts import FENCE
from ralph_mission.values import dataclass

MOST, MOST_GLOBS, LONGEST = 200, 200, 4_000
"""Limits: tasks or members; globs in all; characters of a description."""


class UnclearAssignment(ValueError):
    """An invalid assignment; the text tells its author why."""


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task with its owner (`""`: anybody), the files it may write, and its needs."""

    id: str
    title: str
    description: str = ""
    files: tuple[str, ...] = ()
    owner: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A teammate, and the files only they own."""

    name: str
    files: tuple[str, ...]


def parse_independent_tasks(payload: str) -> tuple[AssignedTask, ...]:
    """Tasks that can be built in parallel: `{"tasks": [{id, title, description, files}]}`. Raises UnclearAssignment."""
    pieces = _parse_pieces(parse_document(payload))
    for piece in pieces:
        _check_files(piece.id, piece.files)
    _require_apart([(piece.id, piece.files) for piece in pieces])
    return pieces


def parse_company(payload: str, reserved: Iterable[str]) -> tuple[tuple[Member, ...], tuple[AssignedTask, ...]]:
    """A team: `{"members": [{name, files}], "tasks": [{id, title, description, owner, needs}]}`. Raises
    UnclearAssignment."""
    value = parse_document(payload)
    members = tuple(Member(_read_id(row, "name"), _read_files(row)) for row in _read_rows(value, "members"))
    if not members:
        raise UnclearAssignment("there are no members")
    _require_distinct([member.name for member in members], "members")
    if clashes := {member.name for member in members} & set(reserved):
        raise UnclearAssignment(f"{', '.join(sorted(clashes))} is somebody else's name")
    for member in members:
        _check_files(member.name, member.files)
    _require_apart([(member.name, member.files) for member in members])
    return members, parse_delegated_tasks(value, members, ())


def parse_delegated_tasks(
    value: Mapping[str, Any], members: Sequence[Member], known: Iterable[str]
) -> tuple[AssignedTask, ...]:
    """The tasks in `value`, each owned by one of `members`, with ids not in `known`. Raises UnclearAssignment."""
    pieces, there = _parse_pieces(value), set(known)
    files = {member.name: member.files for member in members}
    _require_distinct([*there, *(piece.id for piece in pieces)], "tasks")
    there |= {piece.id for piece in pieces}
    for piece in pieces:
        if piece.owner not in files:
            raise UnclearAssignment(f"task {piece.id}: {piece.owner or 'nobody'} is not one of {', '.join(files)}")
        if unknown := [need for need in piece.needs if need not in there]:
            raise UnclearAssignment(f"task {piece.id} needs {', '.join(unknown)}, which is no task")
    if circle := _find_circle(pieces):
        raise UnclearAssignment(f"these tasks wait for each other: {', '.join(circle)}")
    return pieces


def parse_document(payload: str) -> Mapping[str, Any]:
    """The JSON object in a payload, alone or in a fence. Raises UnclearAssignment."""
    fenced = FENCE.search(payload)
    try:
        value = json.loads(fenced[1] if fenced else payload)
    except (ValueError, RecursionError):
        raise UnclearAssignment("the payload is not the requested JSON") from None
    if not isinstance(value, dict):
        raise UnclearAssignment("the payload is not a JSON object")
    return value


def _parse_pieces(value: Mapping[str, Any]) -> tuple[AssignedTask, ...]:
    pieces = tuple(
        AssignedTask(
            _read_id(row, "id"), _one_line_of(row, "title"), _text(row, "description"), _read_files(row),
            _text(row, "owner"),
            _list(row, "needs"),
        )
        for row in _read_rows(value, "tasks")
    )  # fmt: skip  # one value
    if not pieces:
        raise UnclearAssignment("there are no tasks")
    _require_distinct([piece.id for piece in pieces], "tasks")
    return pieces


def _find_circle(pieces: Sequence[AssignedTask]) -> tuple[str, ...]:
    """The tasks in cycles: what is left after repeatedly removing tasks without open needs."""
    waiting = {piece.id: piece.needs for piece in pieces}
    while free := [name for name, needs in waiting.items() if not waiting.keys() & set(needs)]:
        for name in free:
            del waiting[name]
    return tuple(waiting)


def _read_rows(value: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = value.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnclearAssignment(f"{name} is not a list of objects")
    if len(rows) > MOST:
        raise UnclearAssignment(f"{len(rows)} {name} are too many, {MOST} is the most")
    return rows


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise UnclearAssignment(f"{name} is not a text of at most {LONGEST} characters")
    return value.strip()


def _one_line_of(row: Mapping[str, Any], name: str) -> str:
    if not (text := " ".join(_text(row, name).split())):
        raise UnclearAssignment(f"a task has no {name}")
    return text


def _read_id(row: Mapping[str, Any], name: str) -> str:
    found = _text(row, name)
    if not ID.fullmatch(found):
        raise UnclearAssignment(f"{found[:70]!r} is no {name}: letters, digits, . _ -")
    return found


def _list(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UnclearAssignment(f"{name} is not a list of texts")
    return tuple(value)


def _read_files(row: Mapping[str, Any]) -> tuple[str, ...]:
    found = _list(row, "files")
    if why := next(filter(None, map(scope.wrong, found)), ""):
        raise UnclearAssignment(why)
    return tuple(map(scope.plain, found))


def _check_files(name: str, files: tuple[str, ...]) -> None:
    if not files:
        raise UnclearAssignment(f"{name} has no files: say which it may write")


def _require_distinct(names: Sequence[str], what: str) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UnclearAssignment(f"{what} with the same name: {', '.join(twice)}")


def _require_apart(owned: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    if sum(len(files) for _, files in owned) > MOST_GLOBS:
        raise UnclearAssignment(f"more than {MOST_GLOBS} globs: name folders")
    for (one, mine), (other, theirs) in combinations(owned, 2):
        if met := scope.meet(mine, theirs):
            raise UnclearAssignment(f"{one} and {other} would write the same files: {met[0]} and {met[1]}")
