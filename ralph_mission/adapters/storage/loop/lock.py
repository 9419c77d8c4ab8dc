"""One loop per checkout, in any mode, ours or another tool's; and whether an owner is proven dead.

An owner is `host:boot id:pid`, optionally with a name. An ended process or a reboot is proof; time is not, nor is
another host.

The lock is on the git directory, with a file in it that says who runs. Not on `.ralph/`: agents have deleted that while
their loop ran, and every `*.lock` below `.git`; a deletable lock lets a second loop in. The kernel releases the locks
when their holder dies.

`.omc/state/` has the state of oh-my-claudecode's modes. We write there only if the stories were found in `.omc/`, and
with our name, so that our own marker never stops us.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters import files
from ralph_mission.adapters.sandbox.inside import stat_fields
from ralph_mission.adapters.sandbox.process import end_orphans
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import RunState
from ralph_mission.safety.markdown import without_unseen
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.loop.prompt import session


def this_owner(environ: Mapping[str, str]) -> str:
    """The owner of claims made here: `RALPH_OWNER`, which a loop sets for each session, else the terminal's shell.

    Without either the command ends before the work begins, so its process proves nothing and is not named.
    """
    if owner := environ.get("RALPH_OWNER", "").strip():
        return owner
    return place(os.getsid(0) if _has_terminal() else None)


def place(pid: int | None) -> str:
    """The owner for `pid` on this machine; None for one that only ends with a reboot."""
    return f"{os.uname().nodename}:{files.boot_id()}:{pid or '-'}"


def dead(owner: str) -> bool:
    """Whether the owner is proven dead; False if unreadable."""
    host, _, rest = owner.partition(":")
    boot, _, process = rest.partition(":")
    if host != os.uname().nodename or not boot or not process:
        return False
    pid = process.partition(":")[0]
    return boot != files.boot_id() or (pid.isdecimal() and _has_ended(int(pid)))


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return stat_fields(pid)[:1] == [b"Z"]


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


LOCK = "ralph-running"
"""The lock file in a work tree's git directory; held, like that folder, while a loop runs."""
FORMER = "ralph-loop.lock"
"""The lock of the previous version, whose loops may run on during an upgrade."""
LONGEST_NOTE = 4096  # bytes
GLANCE = 0.05  # seconds to try a lock, as a check holds it for a moment


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder; `since`: ISO 8601, UTC."""

    mode: str = ""
    pid: int = 0
    since: str = ""

    def __str__(self) -> str:
        who = {"": "another loop", "loop": "a loop"}.get(self.mode, f"a {self.mode} loop")
        return f"{who}{f' (process {self.pid}, since {self.since})' if self.pid else ''}"


@contextmanager
def exclusive(git_dir: Path, root: Path, mode: str, now: datetime) -> Iterator[None]:
    """Hold the lock of the work tree `root` of `git_dir`. Raises UserError if another loop runs."""
    with _alone(git_dir), _open_note(git_dir, os.O_CREAT) as note:
        if former(git_dir):
            raise _busy(Holder())
        if not files.try_lock(note, GLANCE):
            raise _busy(_note(note))
        _end_left(_note(note))
        _refuse_others(root, now)
        os.ftruncate(note, 0)
        ours = Holder(mode, os.getpid(), now.isoformat(timespec="seconds"))
        os.pwrite(note, json.dumps(asdict(ours)).encode(), 0)
        yield
        os.ftruncate(note, 0)  # after a kill the note stays, and says whose leftovers there are


def holder(git_dir: Path) -> Holder | None:
    """Who runs a loop in this checkout right now, or None."""
    return _read_holder(git_dir) if is_held(git_dir) else None


def is_held(git_dir: Path) -> bool:
    """Whether a loop runs in the work tree of this git directory. The caller must not hold the lock."""
    return any(map(_is_held, (git_dir, git_dir / LOCK))) or former(git_dir)


def former(git_dir: Path) -> bool:
    """Whether a loop of the previous version runs."""
    return _is_held(git_dir / FORMER)


def clear(git_dir: Path) -> bool:
    """Remove a dead loop's note; False if there is none of ours. Only while no loop runs."""
    with suppress(OSError), _open_note(git_dir) as note:
        died = os.fstat(note).st_size > 0
        os.ftruncate(note, 0)
        return died
    return False


@contextmanager
def _alone(git_dir: Path) -> Iterator[None]:
    """Lock by the folder, removing anything but a note: a session may have put anything there."""
    folder = os.open(git_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # folders cannot be locked on NFS; there only the note counts, and stays
            if not files.try_lock(folder, GLANCE):
                raise _busy(_read_holder(git_dir))
            _clear_way(git_dir)
        yield
    finally:
        os.close(folder)


def _clear_way(git_dir: Path) -> None:
    try:
        with _open_note(git_dir):
            pass
    except FileNotFoundError:
        pass
    except OSError:
        run_files.remove(git_dir / LOCK)


@contextmanager
def _open_note(git_dir: Path, flags: int = 0) -> Iterator[int]:
    """Open the note without following links. Raises OSError, with the whole path."""
    place = git_dir / LOCK
    try:
        descriptor = files.open_plain(place, git_dir, os.O_RDWR | flags)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_held(place: Path) -> bool:
    with suppress(OSError):
        return files.is_held(place)
    return False


def _read_holder(git_dir: Path) -> Holder:
    with suppress(OSError), _open_note(git_dir) as note:
        return _note(note)
    return Holder()  # a session removed the note


def _end_left(died: Holder) -> None:
    """End processes that a killed loop left running, as they would write beside the next one."""
    owner = place(died.pid)
    if died.pid and dead(owner):
        end_orphans(f"RALPH_OWNER={owner}")


def _busy(holder: Holder) -> UserError:
    return UserError(f"{holder} works in this checkout", "wait for it, or end it with: ralph agent cancel")


def _refuse_others(root: Path, now: datetime) -> None:
    found = next(active(root, now), None)
    if found:
        hint = f"cancel it there (/oh-my-claudecode:cancel); if nothing runs, delete {found.path}"
        raise UserError(f"{found.mode} is active in this checkout, says {found.path}", hint)


def _note(descriptor: int) -> Holder:
    """Parse a note, which a session may have overwritten; None if invalid."""
    with suppress(ValueError, TypeError, RecursionError):
        note = Holder(**json.loads(os.pread(descriptor, LONGEST_NOTE, 0)))
        if (type(note.mode), type(note.pid), type(note.since)) == (str, int, str):
            return replace(note, mode=_line(note.mode), since=_line(note.since))
    return Holder()


def _line(text: str) -> str:
    """Text on one line, without control or invisible characters."""
    return " ".join(without_unseen(text).split())


FOLDER = ".omc/state"
MARKER, HANDOFF, PROMPT = "ralph-fresh-state.json", "ralph-fresh-handoff.json", "iteration-prompt.txt"
MODES = ("autopilot", "ultrapilot", "swarm", "pipeline", "ralph", "ralph-fresh")
STALE = timedelta(hours=1)
"""An older marker is of a crashed session: oh-my-claudecode's own threshold."""
BY = "ralph-mission"
CAP = 1_000_000


@dataclass(frozen=True, slots=True)
class Mode:
    """Another mode that claims to be active, and its file (a path in the work tree)."""

    mode: str
    path: str


def active(root: Path, now: datetime) -> Iterator[Mode]:
    """Other active modes in this checkout. Stale or unreadable markers are ignored."""
    for mode in MODES:
        for path in _markers(root, mode):
            document = _document(root, path)
            if document.get("active") is True and document.get("by") != BY and not _stale(path, now):
                yield Mode(mode, path.relative_to(root).as_posix())


def left_by_others(root: Path) -> session.Left | None:
    """Another tool's unfinished run to continue, or None. Raises UserError if it names no task."""
    from ralph_mission.loop.prompt import session

    document = _document(root, root / FOLDER / HANDOFF)
    if not document or document.get("by") == BY:
        return None
    found = session.read_handoff(document)
    return None if found.completed else found


def mirror(root: Path, state: RunState, document: Mapping[str, Any], active: bool) -> None:
    """Write state and handoff where the other tool expects them. Raises OSError."""
    from ralph_mission.loop.prompt import session

    _write_mirror(root, root / FOLDER / MARKER, {**session.marker(state, active), "by": BY})
    _write_mirror(root, root / FOLDER / HANDOFF, {**document, "by": BY})


def brief(root: Path, prompt: str) -> None:
    """Write the prompt of the session that is about to start. Raises OSError."""
    _write_inside(root, root / FOLDER / PROMPT, prompt.encode("utf-8", "replace"))


def inactive(root: Path) -> bool:
    """Mark our run as over and remove the prompt; False if we had written nothing. Raises OSError."""
    path = root / FOLDER / MARKER
    document = _document(root, path)
    if document.get("by") != BY or document.get("active") is not True:
        return False
    _write_mirror(root, path, {**document, "active": False})
    run_files.remove(root / FOLDER / PROMPT)
    return True


def _markers(root: Path, mode: str) -> list[Path]:
    name = f"{mode}-state.json"
    places = (root / FOLDER / name, root / ".omc" / name)
    return [place for place in places if place.is_file()] + sorted((root / FOLDER / "sessions").glob(f"*/{name}"))


def _stale(path: Path, now: datetime) -> bool:
    return now - datetime.fromtimestamp(path.stat().st_mtime, UTC) > STALE


def _document(root: Path, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(run_files.read(path, CAP, root) or b"{}")
    except (OSError, ValueError, RecursionError, UserError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_mirror(root: Path, path: Path, document: Mapping[str, Any]) -> None:
    _write_inside(root, path, json.dumps(document, indent=2).encode() + b"\n")


def _write_inside(root: Path, path: Path, content: bytes) -> None:
    """Write within the work tree only, as a session may have left a link."""
    files.keep_within(path, root)
    run_files.write(path, content)
