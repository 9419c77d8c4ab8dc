"""Keeps what a command said of a commit, so that an unchanged world costs nothing.

One JSON file per question; the last `KEPT` stay. What cannot be read is as good as absent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.observers.commands.results import Result

KEPT = 20
CAP = 64_000_000  # bytes of what one command said


def key(*parts: str) -> str:
    """A file name for a question."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def load(folder: Path | None, name: str) -> list[Result] | None:
    """The remembered results; None when there are none."""
    if folder is None:
        return None
    with suppress(TypeError):
        return [Result(**entry) for entry in files.read_json(folder / f"{name}.json", CAP)]
    return None


def save(folder: Path | None, name: str, results: Sequence[Result]) -> None:
    """Remember results, and forget the oldest. A folder that cannot be written is no error."""
    if folder is None:
        return
    with suppress(OSError):
        content = json.dumps([asdict(result) for result in results]).encode()
        files.write(files.own(folder) / f"{name}.json", content, lasting=False)
        for old in sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)[:-KEPT]:
            old.unlink(missing_ok=True)
