"""The way to a list of people's that is about to be written: a session may have made it lead elsewhere."""

from __future__ import annotations

from pathlib import Path

from ralph_mission.gateways.files import safe_paths
from ralph_mission.loop.model import PathChange

PUT_BACK = "put back"


def within(path: Path, root: Path) -> tuple[PathChange, ...]:
    """Have nothing on the way to `path` lead out of the work tree `root`; gives what is told of it.

    A person's own link is met before the first session, and refused (`Desk.exclusive`). Raises OSError.
    """
    return tuple(PathChange(name, "made a link", PUT_BACK) for name in safe_paths.keep_within(path, root))
