"""How an agent says something to the loop: apart from how it is heard, because it is said often."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.stores.loop import files


def append_event(
    folder: Path, topic: str, payload: str = "", hat: str = "", iteration: int = 0, at: datetime | None = None
) -> None:
    """Append one line for the loop to hear. `folder` is `.ralph`. Raises OSError and Trouble."""
    said: dict[str, Any] = {"topic": topic, "payload": payload}
    said |= {"ts": (at or datetime.now(UTC)).isoformat(), "hat": hat, "iteration": iteration}
    line = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
    files.append(path_of(folder), line, lasting=False)  # a machine that goes down takes the session with it


def path_of(folder: Path) -> Path:
    """Where agents say their events."""
    return folder / "agent" / "said.jsonl"
