"""`.omc/state/`: what oh-my-claudecode's modes say of themselves there, and what we tell them.

Its files are read as others wrote them. We write there only where the stories were found in `.omc/`, and what we write
names us, so that our own marker never stops us.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.storage.loop import files
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import RunState
from ralph_mission.loop.prompt import session
from ralph_mission.values import dataclass

FOLDER = ".omc/state"
MARKER, HANDOFF, PROMPT = "ralph-fresh-state.json", "ralph-fresh-handoff.json", "iteration-prompt.txt"
MODES = ("autopilot", "ultrapilot", "swarm", "pipeline", "ralph", "ralph-fresh")
STALE = timedelta(hours=1)
"""A marker that nobody touched for so long is of a session that crashed: oh-my-claudecode's own threshold."""
BY = "ralph-mission"
CAP = 1_000_000


@dataclass(frozen=True, slots=True)
class Mode:
    """Another mode that says it is active, and in which file (a path in the work tree)."""

    mode: str
    path: str


def active(root: Path, now: datetime) -> Iterator[Mode]:
    """The other modes that work in this checkout. What is stale, or cannot be read, holds nobody up."""
    for mode in MODES:
        for path in _markers(root, mode):
            said = _document(root, path)
            if said.get("active") is True and said.get("by") != BY and not _stale(path, now):
                yield Mode(mode, path.relative_to(root).as_posix())


def left_by_others(root: Path) -> session.Left | None:
    """What a run of others left to go on from; None when there is nothing, or it is complete. Raises UserError when it
    names no task."""
    said = _document(root, root / FOLDER / HANDOFF)
    if not said or said.get("by") == BY:
        return None
    found = session.read_handoff(said)
    return None if found.completed else found


def mirror(root: Path, state: RunState, document: Mapping[str, Any], active: bool) -> None:
    """Write the state and the handoff where the other tool looks for them. Raises OSError."""
    _write(root, root / FOLDER / MARKER, {**session.marker(state, active), "by": BY})
    _write(root, root / FOLDER / HANDOFF, {**document, "by": BY})


def brief(root: Path, prompt: str) -> None:
    """The prompt of the session that is about to start. Raises OSError."""
    _write_inside(root, root / FOLDER / PROMPT, prompt.encode("utf-8", "replace"))


def inactive(root: Path) -> bool:
    """Say that our run is over, and take the prompt away; False when we had said nothing. Raises OSError."""
    path = root / FOLDER / MARKER
    said = _document(root, path)
    if said.get("by") != BY or said.get("active") is not True:
        return False
    _write(root, path, {**said, "active": False})
    files.remove(root / FOLDER / PROMPT)
    return True


def _markers(root: Path, mode: str) -> list[Path]:
    name = f"{mode}-state.json"
    places = (root / FOLDER / name, root / ".omc" / name)
    return [place for place in places if place.is_file()] + sorted((root / FOLDER / "sessions").glob(f"*/{name}"))


def _stale(path: Path, now: datetime) -> bool:
    return now - datetime.fromtimestamp(path.stat().st_mtime, UTC) > STALE


def _document(root: Path, path: Path) -> dict[str, Any]:
    try:
        said = json.loads(files.read(path, CAP, root) or b"{}")
    except (OSError, ValueError, RecursionError, UserError):
        return {}
    return said if isinstance(said, dict) else {}


def _write(root: Path, path: Path, document: Mapping[str, Any]) -> None:
    _write_inside(root, path, json.dumps(document, indent=2).encode() + b"\n")


def _write_inside(root: Path, path: Path, content: bytes) -> None:
    """Where a session may have left a link: ours is written in the work tree, or not at all."""
    safe_paths.keep_within(path, root)
    files.write(path, content)
