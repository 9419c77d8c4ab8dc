"""The files that say what a run may do. No session writes them, and a restart obeys no others than the run began with.

Sessions are kept from them by scope (`Order.protected`), as far as git sees them; bytes find what git was told to
ignore.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.stores.loop import files
from ralph_mission.trouble import UserError

LONGEST = 4 * 1024 * 1024  # bytes of one of them


@dataclass(frozen=True, slots=True)
class ControlFiles:
    """Settings and objective (`named`, absolute, there or not), and hat files, a glob below `root`."""

    root: Path
    named: tuple[Path, ...]
    hats: str = ""

    @property
    def globs(self) -> tuple[str, ...]:
        """What is inside of the work tree, as gitignore patterns."""
        inside = (path.relative_to(self.root).as_posix() for path in self.named if path.is_relative_to(self.root))
        plain = [re.sub(r"([][\\*?!# ])", r"\\\1", name) for name in inside]
        return tuple(f"/{glob}" for glob in dict.fromkeys((*plain, self.hats)) if glob)

    def read(self) -> Mapping[Path, bytes | None]:
        """What they hold now; None: nothing that can be read as a file."""
        listed = sorted(self.root.glob(self.hats)) if self.hats else []
        return {path: _content(path) for path in (*self.named, *listed)}


def require_unaltered(obeyed: ControlFiles, before: Mapping[Path, bytes | None]) -> None:
    """Raises Trouble when one of them is not as it was `before`, whoever changed it."""
    now = obeyed.read()
    altered = sorted(path.name for path in now.keys() | before.keys() if now.get(path) != before.get(path))
    if altered:
        what = f"changed while the run was going, so nothing starts by it: {', '.join(dict.fromkeys(altered))}"
        raise UserError(what, "look at it, then run again with --continue")


def _content(path: Path) -> bytes | None:
    try:
        return files.read_named(path, LONGEST)
    except (UserError, OSError):
        return None
