"""What all sessions of a run share below `.ralph/`: kept at hand, and back where a session destroyed it.

Agents delete `.ralph/`, and make links of what stands in it.
"""

from __future__ import annotations

from pathlib import Path

from ralph_mission.gateways.files import safe_paths
from ralph_mission.loop.model import PathChange
from ralph_mission.stores.loop import files
from ralph_mission.stores.loop.ways import PUT_BACK

TASKS = "agent/tasks.jsonl"
OURS = ("agent/memories.md", TASKS, "loop/guidance.jsonl")
"""Files below `.ralph/` that no session may take away."""
SCRATCHPAD = "agent/scratchpad.md"
HELD_BYTES = 32 * 1024 * 1024  # bytes of one that are kept at hand


class Shared:
    """The shared files of one `home`, `.ralph`: `hold` what stands, `restore` it after a session."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._held: dict[str, bytes] = {}

    def hold(self) -> None:
        """Keep at hand what stands there now."""
        for name in OURS:
            if (found := safe_paths.content(self._home / name, HELD_BYTES)) is not None and len(found) < HELD_BYTES:
                self._held[name] = found

    def forget(self, *names: str) -> None:
        """These, or all where none is named, are gone by our own deed: nothing puts them back."""
        for name in names or OURS:
            self._held.pop(name, None)

    def unstrange(self) -> tuple[PathChange, ...]:
        """What stands in the place of such a file and is none of ours goes away, unread."""
        wrong = [name for name in (*OURS, SCRATCHPAD) if not safe_paths.plain(self._home / name)]
        for name in wrong:
            files.remove(self._home / name)
        return tuple(PathChange(f".ralph/{name}", "made no file of its own", PUT_BACK) for name in wrong)

    def restore(self) -> tuple[PathChange, ...]:
        """What is gone stands again as it was held."""
        gone = [name for name in self._held if not (self._home / name).exists()]
        for name in gone:
            files.write(self._home / name, self._held[name])
        return tuple(PathChange(f".ralph/{name}", "deleted", "it is every session's; it is back") for name in gone)
