"""What configures agents, at the top of a checkout where they look for it: what git was told to ignore is there too."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator

from ralph_mission.gateways.checkout_kept import PUT_BACK, remove
from ralph_mission.loop.model import Change
from ralph_mission.safety.paths import configures_agents


def put_away(top: str, known: Container[str]) -> tuple[Change, ...]:
    """Remove what is not among the paths `known`, by links nowhere else; gives what it was."""
    found = tuple(path for name in sorted(os.listdir(top)) if configures_agents(name) for path in _below(top, name))
    gone = tuple(path for path in found if path not in known)
    for path in gone:
        remove(f"{top}/{path}")
    return tuple(Change(path, "added", PUT_BACK) for path in gone)


def _below(top: str, path: str) -> Iterator[str]:
    """The files at `path` or in it; a link is one, and so is a folder with nothing in it or that nobody may enter."""
    where = f"{top}/{path}"
    try:
        inner = sorted(os.listdir(where)) if os.path.isdir(where) and not os.path.islink(where) else []
    except OSError:
        inner = []
    if not inner:
        yield path
    for name in inner:
        yield from _below(top, f"{path}/{name}")
