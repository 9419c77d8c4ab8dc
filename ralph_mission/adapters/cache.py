"""What is dear to find out again: a folder of ours with one JSON file per question, of which the last ones stay.

What cannot be read is as good as absent, and a folder that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralph_mission.adapters import files
from ralph_mission.values import dataclass

CAP = 64_000_000  # bytes of one answer


@dataclass(frozen=True, slots=True)
class FileCache:
    """`folder` None keeps nothing; `most` files stay."""

    folder: Path | None
    most: int = 20
    cap: int = CAP

    def get(self, name: str) -> Any:
        """What was kept by this name; None when there is nothing that can be read."""
        return None if self.folder is None else files.read_json(self.folder / f"{name}.json", self.cap)

    def put(self, name: str, value: object) -> None:
        """Keep it, as JSON."""
        if self.folder is not None:
            with suppress(OSError):
                files.write(files.own(self.folder) / f"{name}.json", json.dumps(value).encode(), lasting=False)

    def tidy(self) -> None:
        """Forget the oldest."""
        if self.folder is not None:
            with suppress(OSError):
                found = files.own(self.folder).glob("*.json")
                for old in sorted(found, key=lambda file: file.stat().st_mtime_ns)[: -self.most]:
                    old.unlink(missing_ok=True)


def cache_key(*parts: str) -> str:
    """A file's name for a question."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
