"""`.ralph/loop/signal`: one word from a person to the running loop."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ralph_mission.loop.items import StopSignal
from ralph_mission.stores.loop import files
from ralph_mission.trouble import UserError

WORDS: dict[str, StopSignal] = {word: word for word in get_args(StopSignal) if word}


def read(folder: Path) -> StopSignal:
    """What was asked; "" for nothing and for anything that is not one of the words. `folder` is `.ralph`."""
    try:
        word = files.read(_path(folder), 64) or b""
    except UserError:
        return ""
    return WORDS.get(word.decode(errors="replace").strip(), "")


def write(folder: Path, signal: StopSignal) -> None:
    """Ask the running loop. Raises OSError."""
    files.write(_path(folder), f"{signal}\n".encode())


def clear(folder: Path) -> None:
    """Forget what was asked: it was heard, or a new run begins. Raises OSError."""
    files.remove(_path(folder))


def _path(folder: Path) -> Path:
    return folder / "loop" / "signal"
