"""What the gate needs of a server's settings, with nothing checked out: where memory is, and the longest pause.

Read from the default branch; kept by its commit, so that a wake costs one more look at a ref and no more.
"""

from __future__ import annotations

import json
import posixpath
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.gateways.files import atomic, safe_paths
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.remote import Remote
from ralph_mission.stores import layout
from ralph_mission.stores.due import usual_longest
from ralph_mission.trouble import UserError

if TYPE_CHECKING:
    from ralph_mission.gateways.place import RepositoryPlace

NAME = "ralph.yml"


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Branch and path of memory, and the longest pause between two cycles."""

    branch: str = layout.BRANCH
    path: str = layout.MEMORY
    longest: timedelta = field(default_factory=usual_longest)


def on_server(place: RepositoryPlace, kept: Path, config: str | None) -> MemoryPlace:
    """What `config` (a path in the repository; `ralph.yml` without one) says on the default branch.

    Settings that cannot be read say nothing here: the cycle then says what is wrong. `kept` is the folder of the
    cache. Raises Trouble when the server cannot be asked.
    """
    path = posixpath.normpath(config or NAME)
    with tempfile.TemporaryDirectory(prefix="ralph-due-") as folder:
        here = Git(Path(folder), Path(folder), None)
        here.run("init", "--quiet", "--bare", folder)
        remote = Remote(here, place.git_url, place.token, keep=False)
        branch, oid = remote.default()
        said = read_cached(kept, oid, path)
        if said is None:
            within = not path.startswith(("../", "/")) and path != ".."  # elsewhere the server has nothing
            said = _parse(remote.peek(branch, path) if within else None)
            with suppress(OSError):  # a cache
                known = {"oid": oid, "config": path, "said": [said.branch, said.path, said.longest.total_seconds()]}
                atomic.write(safe_paths.own(kept) / "settings.json", json.dumps(known).encode())
    return said


def _parse(content: bytes | None) -> MemoryPlace:
    if content is None or (b"memory" not in content and b"schedule" not in content):
        return MemoryPlace()
    from ralph_mission.config.reading import load

    try:
        settings = load(content.decode("utf-8-sig"))
    except (UserError, UnicodeDecodeError):
        return MemoryPlace()
    return MemoryPlace(settings.memory.branch, settings.memory.path, settings.schedule.rhythm().longest)


def read_cached(kept: Path, oid: str, path: str) -> MemoryPlace | None:
    """What was read at this commit before, if anything."""
    try:
        known: dict[str, Any] = json.loads((kept / "settings.json").read_bytes())
        branch, memory, longest = known["said"]
        sound = (known["oid"], known["config"]) == (oid, path) and type(branch) is type(memory) is str
        return MemoryPlace(branch, memory, timedelta(seconds=longest)) if sound else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
