"""Sources of signals. Observers change nothing, may fail alone, and are strangers to each other.

A new one is a module with `Settings` and `build`, and one line in `OBSERVERS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from ralph_mission.gateways.git import Git, GitError
from ralph_mission.mission.model import Sighting
from ralph_mission.mission.ports import Forge, Gaze, Observer
from ralph_mission.observers import code, commands, forge
from ralph_mission.observers.text import one_line
from ralph_mission.trouble import Trouble

REASON = 300  # characters
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Sources:
    """What observers may be given to look at; `cache` is a folder for what is dear to find out again."""

    git: Git
    forge: Forge
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """One kind of observer: what it is told by configuration, and how it is made."""

    settings: type[S]
    build: Callable[[S, Sources], Observer]


OBSERVERS: Mapping[str, Kind[Any]] = {
    "code": Kind(code.Settings, lambda settings, sources: code.build(settings, sources.git)),
    "commands": Kind(commands.Settings, lambda settings, sources: commands.build(settings, sources.git, sources.cache)),
    "forge": Kind(forge.Settings, lambda settings, sources: forge.build(settings, sources.forge)),
}
"""By key below `observers:` in ralph.yml; a key that holds a list makes one observer per item."""


def look(observer: Observer, gaze: Gaze) -> Sighting:
    """Ask one observer, timed. Whatever it raises, but an interrupt, makes it `unavailable`."""
    started = time.monotonic()
    try:
        seen = observer.observe(gaze)
    except (Exception, SystemExit) as error:
        seen = Sighting(observer.name, "unavailable", detail=reason(error), cursor=gaze.cursor)
    return replace(seen, seconds=round(time.monotonic() - started, 3))


def reason(error: BaseException) -> str:
    """Why an observer failed, on one line.

    Only our own errors are quoted. Any other may carry a connection string or a token in its
    text, so it is named by its type alone.
    """
    said = str(error) if isinstance(error, Trouble | GitError) else f"failed unexpectedly ({type(error).__name__})"
    return one_line(said, REASON)
