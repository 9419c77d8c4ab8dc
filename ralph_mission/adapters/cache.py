"""A cache on disk: a folder with one JSON file per key; the newest ones stay.

Unreadable files count as absent, and an unwritable folder is not an error.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralph_mission.adapters import files
from ralph_mission.values import dataclass

CAP = 64_000_000  # bytes of a value


@dataclass(frozen=True, slots=True)
class FileCache:
    """`folder` None caches nothing; at most `most` files stay."""

    folder: Path | None
    most: int = 20
    cap: int = CAP

    def get(self, name: str) -> Any:
        """The stored value, or None."""
        return None if self.folder is None else files.read_json(self.folder / f"{name}.json", self.cap)

    def put(self, name: str, value: object) -> None:
        """Store a value as JSON."""
        if self.folder is not None:
            with suppress(OSError):
                files.write(files.own(self.folder) / f"{name}.json", json.dumps(value).encode(), lasting=False)

    def tidy(self) -> None:
        """Remove the oldest files."""
        if self.folder is not None:
            with suppress(OSError):
                found = files.own(self.folder).glob("*.json")
                for old in sorted(found, key=lambda file: file.stat().st_mtime_ns)[: -self.most]:
                    old.unlink(missing_ok=True)


def cache_key(*parts: str) -> str:
    """The file name for a key."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
