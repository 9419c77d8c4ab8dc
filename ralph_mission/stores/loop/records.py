"""`.ralph/loop/runs/<run>/session-NNNN.json`: what each session did, tried and was refused.

Sessions may write there. The running loop holds what it wrote, and puts it back when a later session has other ideas.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ralph_mission.loop.model import HatOutput, PathChange
from ralph_mission.stores.loop import files, state
from ralph_mission.stores.loop.ways import PUT_BACK

HELD = 1_000
"""Of the latest sessions; a persistent loop has ten times as many."""


@dataclass(slots=True)
class Records:
    """The records of one work tree that this process wrote. May raise OSError."""

    root: Path
    _held: dict[Path, bytes] = field(default_factory=dict)

    def keep(self, run_id: str, output: HatOutput) -> None:
        """Write the record of a session, for good."""
        place, content = state.keep_output(self.root, run_id, output)
        self._held[place] = content
        if len(self._held) > HELD:
            del self._held[next(iter(self._held))]

    def restore(self) -> tuple[PathChange, ...]:
        """Put back what is not as it was written, and tell."""
        return tuple(
            self._again(place, content) for place, content in self._held.items() if not _stands(place, content)
        )

    def _again(self, place: Path, content: bytes) -> PathChange:
        how = "modified" if os.path.lexists(place) else "deleted"
        files.write(place, content)
        return PathChange(place.relative_to(self.root).as_posix(), how, PUT_BACK)


def _stands(place: Path, content: bytes) -> bool:
    """Whether this very file holds that, read without waiting and by no link."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        alike = stat.S_ISREG(found.st_mode) and found.st_size == len(content)
        return alike and os.pread(descriptor, len(content), 0) == content
    finally:
        os.close(descriptor)
