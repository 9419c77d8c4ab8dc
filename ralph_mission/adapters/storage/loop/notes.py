"""Notes for later sessions: `.ralph/agent/memories.md`, and `progress.txt` beside prd.json.

Agents add and search memories; people edit them. The progress log is append-only, and restored if a session truncated
or rewrote it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import PathChange, ProgressNotes
from ralph_mission.loop.prompt import situation
from ralph_mission.loop.prompt.situation import LoopMemory
from ralph_mission.loop.stories import judge as form
from ralph_mission.values import dataclass

CAP = 8 * 1024 * 1024
LENGTH, TAGS = 4000, 10
"""Limits of a memory: characters, and tags."""
NEWS = 50
"""Memories that one loop may add."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of a checkout; `folder` is its `.ralph`. Every call may raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "agent" / "memories.md"

    def text(self) -> str:
        """The file's text, or ""; invalid bytes are shown as such."""
        return (run_files.read(self.path, CAP) or b"").decode(errors="replace")

    def all(self) -> tuple[LoopMemory, ...]:
        """The memories, in the file's order."""
        return situation.parse_memories(self.text())

    def search(self, query: str) -> tuple[LoopMemory, ...]:
        """The memories that contain every word of the query."""
        return situation.find_memories(self.all(), query)

    def add(self, content: str, kind: str = "pattern", tags: Sequence[str] = ()) -> LoopMemory:
        """Add a memory. Raises UserError if its kind is unknown, it is empty or too long, or the file is full."""
        if kind not in situation.KINDS:
            raise UserError(f"{kind!r} is not a kind of memory", f"choose {', '.join(situation.KINDS)}")
        if not content.strip() or len(content) > LENGTH:
            raise UserError("a memory has some words and not a book", f"write at most {LENGTH:,} characters")
        names = tuple(filter(None, map(situation.tag, tags)))[:TAGS]
        with run_files.hold_file_lock(self.path):
            words = content.strip().encode("utf-8", "replace").decode()
            memory = LoopMemory(self._fresh(), words, kind, names, f"{self.now():%Y-%m-%d}")
            text = situation.insert_memory(self._whole(), memory).encode("utf-8", "surrogateescape")
            if len(text) > CAP:
                raise UserError(f"{self.path} would be larger than {CAP:,} bytes", "remove what is no longer needed")
            run_files.write(self.path, text)
        return memory

    def known(self, note: Callable[[str], None]) -> str:
        """As `text`, but "" for an unreadable file; `note` gets the reason."""
        try:
            return self.text()
        except UserError as problem:
            note(f"memories are left out: {problem.what}")
        except OSError as error:
            note(f"memories are left out: {self.path}: {(error.strerror or 'no reason given').lower()}")
        return ""

    def news(self, theirs: Memories, note: Callable[[str], None]) -> tuple[LoopMemory, ...]:
        """The new memories in another file, which sessions wrote. Too long or too many ones are left out and noted."""
        known = {memory.content for memory in situation.parse_memories(self.known(note))}
        found = {memory.content: memory for memory in situation.parse_memories(theirs.known(note))}
        new = [memory for content, memory in found.items() if content not in known]
        fitting = [memory for memory in new if len(memory.content) <= LENGTH]
        if left_out := len(new) - len(fitting[:NEWS]):
            note(f"{left_out} new memories are left out: at most {NEWS}, each of at most {LENGTH:,} characters")
        return tuple(fitting[:NEWS])

    def _fresh(self) -> str:
        ids, seconds = {memory.id for memory in self.all()}, int(self.now().timestamp())
        while (name := f"mem-{seconds}-{os.urandom(2).hex()}") in ids:
            pass
        return name

    def _whole(self) -> str:
        """The file's text, if it can be rewritten without changing a byte."""
        return (run_files.read(self.path, CAP) or b"").decode(errors="surrogateescape")


MAX_BYTES = 4_000_000
"""Of a larger log only both ends are read, and a session that made it so large is undone."""
GUIDES = ("AGENTS.md", "CLAUDE.md")
"""Files with patterns for people and other agents; read, never written."""


class ProgressLog:
    """The log of a run, in `folder`; `root` is the work tree. `complaint`: of the last reading."""

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        self.path = folder / "progress.txt"
        self.root = root or folder
        self._top = self.root if folder.is_relative_to(self.root) else folder
        self.complaint = ""
        self._before: str | None = None

    def read(self) -> ProgressNotes:
        """Read the log's notes, with the patterns of AGENTS.md and CLAUDE.md; remembers the log."""
        self.complaint = ""
        text = self._remember()
        found = form.notes(text if text is not None else self._before or "")
        guides = (pattern for name in GUIDES for pattern in form.patterns(_guide(self.root / name, self.root)))
        patterns = tuple(dict.fromkeys((*found.patterns, *guides)))
        return ProgressNotes(patterns, found.learnings, found.last_completed)

    def restore(self) -> tuple[PathChange, ...]:
        """Restore what was lost since the last reading, keeping additions. Raises OSError."""
        if not self._before:
            return ()
        after = self._read_log() or ""
        if _size(self.path) > MAX_BYTES >= len(self._before):
            after = ""
        if not form.has_lost_entries(self._before, after):
            return ()
        text, links = form.restore_entries(self._before, after), run_files.within(self.path, self.root)
        run_files.write(self.path, text.encode())
        self._before = text
        how = "shortened" if after else "deleted"
        return (*links, PathChange(self._name(), how, "the log is only ever added to; its past is back"))

    def append(self, entry: str, now: datetime) -> tuple[PathChange, ...]:
        """Append an entry, on disk on return, after restoring the log; returns what was restored.

        Raises OSError.
        """
        restored = self.restore()
        if not self._is_plain():
            restored = (*restored, *self.begin(now))
        descriptor = files.within(self.path, self._top, os.O_RDWR | os.O_APPEND)
        try:
            files.append(descriptor, run_files.line_end(descriptor) + entry.encode(), self.path)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._remember()
        return restored

    def begin(self, now: datetime) -> tuple[PathChange, ...]:
        """Start a new log with only its head; returns links that had led its folder elsewhere. Raises OSError."""
        links = run_files.within(self.path, self.root)
        run_files.write(self.path, form.header(now).encode())
        self._before = None
        return links

    def text(self) -> str:
        """The whole log, or ""."""
        return self._read_log() or ""

    def _remember(self) -> str | None:
        """Remember the current log as its past; a partly read huge one does not count."""
        text = self._read_log()
        if text is not None:
            self._before = None if _size(self.path) > MAX_BYTES else text
        return text

    def _is_plain(self) -> bool:
        """Whether there is a plain file, not an agent's link."""
        try:
            os.close(files.within(self.path, self._top))
        except PermissionError as error:
            return error.errno == errno.EACCES  # reported by the reader
        except OSError:
            return False
        return True

    def _read_log(self) -> str | None:
        if not self._is_plain():
            return None
        try:
            if _size(self.path) > MAX_BYTES:
                self.complaint = f"{self._name()} is larger than {MAX_BYTES} bytes; its middle is not read"
            return _ends(self.path, self._top)
        except OSError as error:
            self.complaint = f"{self._name()} cannot be read ({(error.strerror or 'no reason given').lower()})"
            return None

    def _name(self) -> str:
        inside = self.path.is_relative_to(self.root)
        return self.path.relative_to(self.root).as_posix() if inside else str(self.path)


def _guide(path: Path, top: Path) -> str:
    """The text of a file in the work tree `top`, or ""."""
    with suppress(OSError):
        return _ends(path, top)
    return ""


def _ends(path: Path, top: Path) -> str:
    """The text of a file; of a huge one, its beginning and end. Raises OSError, also for a link out of `top`."""
    with open(files.within(path, top), "rb") as file:
        raw = file.read(MAX_BYTES)
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raw = raw[: MAX_BYTES // 2] + b"\n"
            file.seek(-MAX_BYTES // 2, os.SEEK_END)
            raw += file.read(MAX_BYTES // 2)
    return raw.decode("utf-8", "replace")


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
