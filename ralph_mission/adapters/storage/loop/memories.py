"""`.ralph/agent/memories.md`: what sessions leave for all later ones. Agents add and search; people edit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.adapters.storage.loop import files
from ralph_mission.errors import UserError
from ralph_mission.loop.prompt import situation
from ralph_mission.loop.prompt.situation import LoopMemory
from ralph_mission.values import dataclass

CAP = 8 * 1024 * 1024
LENGTH, TAGS = 4000, 10
"""Characters of one memory, and how many tags it may have."""
NEWS = 50
"""That one loop may bring: what is worth knowing always is less."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of one checkout; `folder` is its `.ralph`. Every call may raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "agent" / "memories.md"

    def text(self) -> str:
        """The file as it is, "" when there is none; bytes that are no text are shown as such."""
        return (files.read(self.path, CAP) or b"").decode(errors="replace")

    def all(self) -> tuple[LoopMemory, ...]:
        """The memories, in the file's order."""
        return situation.parse_memories(self.text())

    def search(self, query: str) -> tuple[LoopMemory, ...]:
        """Those that hold every word of the query."""
        return situation.find_memories(self.all(), query)

    def add(self, content: str, kind: str = "pattern", tags: Sequence[str] = ()) -> LoopMemory:
        """Remember something. Raises UserError for an unknown kind, nothing, a book, and a file that is full."""
        if kind not in situation.KINDS:
            raise UserError(f"{kind!r} is no kind of memory", f"choose {', '.join(situation.KINDS)}")
        if not content.strip() or len(content) > LENGTH:
            raise UserError("a memory has some words and not a book", f"write at most {LENGTH:,} characters")
        names = tuple(filter(None, map(situation.tag, tags)))[:TAGS]
        with files.hold_file_lock(self.path):
            words = content.strip().encode("utf-8", "replace").decode()
            memory = LoopMemory(self._fresh(), words, kind, names, f"{self.now():%Y-%m-%d}")
            text = situation.insert_memory(self._whole(), memory).encode("utf-8", "surrogateescape")
            if len(text) > CAP:
                raise UserError(
                    f"{self.path} would be larger than {CAP:,} bytes", "take out what nobody needs any more"
                )
            files.write(self.path, text)
        return memory

    def known(self, note: Callable[[str], None]) -> str:
        """The same as `text`, but nothing of a file that cannot be read: `note` is told why."""
        try:
            return self.text()
        except UserError as trouble:
            note(f"memories are left out: {trouble.what}")
        except OSError as error:
            note(f"memories are left out: {self.path}: {(error.strerror or 'no reason given').lower()}")
        return ""

    def news(self, theirs: Memories, note: Callable[[str], None]) -> tuple[LoopMemory, ...]:
        """What another file, which sessions wrote, remembers more. What is too long or too much is left out and noted,
        so that no memory costs the work of whoever had it."""
        known = {memory.content for memory in situation.parse_memories(self.known(note))}
        found = {memory.content: memory for memory in situation.parse_memories(theirs.known(note))}
        new = [memory for content, memory in found.items() if content not in known]
        fitting = [memory for memory in new if len(memory.content) <= LENGTH]
        if left_out := len(new) - len(fitting[:NEWS]):
            note(f"{left_out} new memories are left out: at most {NEWS}, each of at most {LENGTH:,} characters")
        return tuple(fitting[:NEWS])

    def _fresh(self) -> str:
        taken, seconds = {memory.id for memory in self.all()}, int(self.now().timestamp())
        while (name := f"mem-{seconds}-{os.urandom(2).hex()}") in taken:
            pass
        return name

    def _whole(self) -> str:
        """The file so that writing it again changes no byte of it."""
        return (files.read(self.path, CAP) or b"").decode(errors="surrogateescape")
