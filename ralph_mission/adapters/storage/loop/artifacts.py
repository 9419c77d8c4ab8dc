"""Files below `.ralph/` that a story of several hats keeps: a plan, whose files are whose, how far it is."""

from __future__ import annotations

from pathlib import Path

from ralph_mission.adapters.storage.loop import files
from ralph_mission.values import dataclass

CAP = 4 * 1024 * 1024  # bytes of one of them


@dataclass(frozen=True, slots=True)
class FileArtifactStore:
    """`ports.ArtifactStore` in `folder`, the `.ralph` of a checkout. Raises UserError for what is no file, OSError."""

    folder: Path

    def read(self, name: str) -> str:
        """What stands there, "" when there is none."""
        return (files.read(self.folder / name, CAP) or b"").decode("utf-8", "replace")

    def write(self, name: str, text: str) -> None:
        """Put `text` there, durably and all at once."""
        files.write(self.folder / name, text.encode("utf-8", "replace"))
