"""`ralph due`: whether a cycle is due, at minimal cost, as every wake runs it, many times an hour.

It reads the ref, then a cache in the git common directory keyed by object id, else one blob. A header in our form is
read with the standard library only, for a workflow's gate without an installation; only a person's different form needs
a YAML parser. The settings are only read for the longest pause if memory suggests a wrong clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.errors import UserError
from ralph_mission.mission import memory as layout
from ralph_mission.values import compile_regex, dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.git.git import Git
    from ralph_mission.adapters.git.remote import RepositoryPlace

_OID = compile_regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SCHEMA = 1  # as in `mission.model.memory`, whose import would cost more
_FRONT = compile_regex(rb"---\n((?:[a-z].*\n)+)(?:  - .*\n)*---\n")  # the cursors, which stand last, are left out
_FIELD = compile_regex(r"([a-z_]+): ?(.*)")
USUAL = timedelta(hours=6)  # `Rhythm().longest` of `mission.model.ledger`, whose import would cost too much
PAUSED = "not due: memory says paused"


@dataclass(frozen=True, slots=True)
class _Known:
    """The cached header of memory's head, by its object id."""

    next_due_at: datetime | None
    paused: bool
    last_cycle_at: datetime | None = None


def usual_longest() -> timedelta:
    """The default longest pause."""
    return USUAL


def due_fast(
    repo_dir: Path,
    now: datetime,
    branch: str = layout.BRANCH,
    path: str = layout.MEMORY,
    longest: Callable[[], timedelta] = usual_longest,
) -> tuple[bool, datetime | None, str]:
    """(due, when next, why). Unreadable memory is due: the cycle then reports the problem.

    `longest`: the configured longest pause. Raises UserError if `repo_dir` is not a repository.
    """
    common, git = _common(Path(repo_dir))
    oid = _loose(common, branch)
    if oid is None:
        git = git or _open(repo_dir)
        oid = git.try_text("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    if not oid:
        return True, None, "due: there is no memory yet"
    known = _read_cache(common, oid, path)
    if known is None:
        known = _read(git or _open(repo_dir), oid, path)
        if known is None:
            return True, None, "due: memory cannot be read"
        _remember(common, oid, path, known)
    return _decide_due(known, now, longest)


def due_on_server(
    place: RepositoryPlace,
    folder: Path,
    now: datetime,
    branch: str = layout.BRANCH,
    path: str = layout.MEMORY,
    longest: Callable[[], timedelta] = usual_longest,
) -> tuple[bool, datetime | None, str]:
    """The same for a server's memory branch, with or without a clone; `folder`: the cache folder.

    Reads the ref; the file is only fetched if the branch moved. Raises UserError.
    """
    from ralph_mission.adapters.git.remote import Remote

    with Remote.without_clone(place) as remote:
        oid = remote.head(branch)
        if not oid:
            return True, None, "due: there is no memory yet"
        known = _read_cache(folder, oid, path)
        if known is None:
            known = _header(remote.peek(branch, path))
            if known is None:
                return True, None, "due: memory cannot be read"
            _remember(folder, oid, path, known)
    return _decide_due(known, now, longest)


def due_by_text(text: str | None, now: datetime, longest: Callable[[], timedelta]) -> tuple[bool, datetime | None, str]:
    """The same for a memory file that was already read, or None."""
    if text is None:
        return True, None, "due: there is no memory yet"
    known = _header(text.encode())
    return _decide_due(known, now, longest) if known else (True, None, "due: memory cannot be read")


def last_cycle_at(text: str) -> datetime | None:
    """The start of the last cycle, from a memory file, or None."""
    known = _header(text.encode())
    return known.last_cycle_at if known else None


def _decide_due(known: _Known, now: datetime, longest: Callable[[], timedelta]) -> tuple[bool, datetime | None, str]:
    due_at = known.next_due_at
    if known.paused:
        return False, due_at, PAUSED
    if due_at is None:
        return True, None, "due: no time is set"
    if now >= due_at:
        return True, due_at, f"due since {due_at:%Y-%m-%dT%H:%MZ}"
    if _may_be_misdated(known, due_at, now):
        from ralph_mission.mission.memory.schedule import is_misdated

        if is_misdated(due_at, now, longest()):
            return True, due_at, f"due: no pause lasts until {due_at:%Y-%m-%dT%H:%MZ}, so a clock was ahead"
    return False, due_at, f"not due until {due_at:%Y-%m-%dT%H:%MZ}"


def _may_be_misdated(known: _Known, due_at: datetime, now: datetime) -> bool:
    """Whether to read the settings: the last cycle is in the future, or the wait is unusually long."""
    last = known.last_cycle_at
    return last is None or last > now or due_at - now > USUAL


def _common(directory: Path) -> tuple[Path, Git | None]:
    """The git common directory; by git itself unless this is the top of a plain checkout."""
    plain = directory / ".git"
    if (plain / "HEAD").is_file() and not (plain / "commondir").exists():
        return plain, None
    git = _open(directory)
    return git.common_dir, git


def _open(directory: Path) -> Git:
    from ralph_mission.adapters.git.git import Git

    return Git.open(Path(directory))


def _loose(common: Path, branch: str) -> str | None:
    """The branch's commit, "" if missing; None if only git can read it (reftable, symbolic refs)."""
    if (common / "reftable").exists():
        return None
    try:
        oid = (common / "refs" / "heads" / branch).read_text().strip()
        return oid if _OID.fullmatch(oid) else None
    except (FileNotFoundError, NotADirectoryError):
        return _packed_ref(common, f"refs/heads/{branch}")
    except (OSError, UnicodeDecodeError):
        return None


def _packed_ref(common: Path, ref: str) -> str | None:
    try:
        for line in (common / "packed-refs").read_text("utf-8", "surrogateescape").split("\n"):
            oid, _, name = line.partition(" ")
            if name == ref:
                return oid if _OID.fullmatch(oid) else None
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    return ""


def _read_cache(common: Path, oid: str, path: str) -> _Known | None:
    try:
        document = json.loads((common / "ralph" / "due.json").read_bytes())
        if (document["oid"], document["path"]) != (oid, path) or type(document["paused"]) is not bool:
            return None
        when, last = (_parse_moment(document[name]) for name in ("next_due_at", "last_cycle_at"))
        return _Known(when, document["paused"], last)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _parse_moment(text: str | None) -> datetime | None:
    """Raises ValueError for a moment without a time zone."""
    when = datetime.fromisoformat(text) if text else None
    if when and not when.tzinfo:
        raise ValueError(text)
    return when


def _remember(common: Path, oid: str, path: str, known: _Known) -> None:
    from ralph_mission.adapters import files

    when, last = (moment and moment.isoformat() for moment in (known.next_due_at, known.last_cycle_at))
    document = {"oid": oid, "path": path, "next_due_at": when, "last_cycle_at": last, "paused": known.paused}
    with suppress(OSError):  # just a cache: a read-only repository is read again
        files.write(files.own(common / "ralph") / "due.json", json.dumps(document).encode())


def _read(git: Git, oid: str, path: str) -> _Known | None:
    name = f"{oid}:{path}"
    return _header(git.blobs([name]).get(name))


def _header(content: bytes | None) -> _Known | None:
    """The header, or None if unreadable; without a YAML parser also if not in our form."""
    if content is None:
        return None
    if known := _as_written(content):
        return known
    try:
        from ralph_mission.mission.memory.text import peek

        header = peek(content)
    except (UserError, ImportError):
        return None
    return _Known(header.next_due_at, header.paused, header.last_cycle_at)


def written_fields(content: bytes) -> dict[str, str]:
    """The fields of a header in the form of `mission.memory.front_matter`, one plain line each.

    Empty for anything else.
    """
    found = _FRONT.match(content)
    lines = [_FIELD.fullmatch(line) for line in found[1].decode("utf-8", "replace").splitlines()] if found else []
    fields = {line[1]: line[2] for line in lines if line}
    return fields if len(fields) == len(lines) and fields.get("schema") == str(SCHEMA) else {}


def _as_written(content: bytes) -> _Known | None:
    fields = written_fields(content)
    paused = {"true": True, "false": False}.get(fields.get("paused", ""))
    if paused is None:
        return None
    try:
        moments = [None if (text := fields[name]) == "null" else text for name in ("next_due_at", "last_cycle_at")]
        when, last = map(_parse_moment, moments)
    except (KeyError, ValueError):
        return None
    return _Known(when, paused, last)
