"""What came of bumps, as plain JSON and back: deriving lock files is dear, so one answer serves for a while."""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.gateways.packages.keeping import CachedAnswer
from ralph_mission.gateways.packages.model import Bump, Bumped
from ralph_mission.safety.patch import REGULAR, FileChange, Patch


def dump_bumps(bumped: Bumped, bumps: Sequence[Bump]) -> dict[str, object]:
    """The facts to keep; bumps by their place among `bumps`."""
    changes = bumped.patch.changes if bumped.patch else ()
    return {
        "changes": [[c.path, (c.old or b"").decode(), (c.new or b"").decode()] for c in changes],
        "done": [bumps.index(bump) for bump in bumped.done],
        "refused": [[bumps.index(bump), why] for bump, why in bumped.refused],
    }


def load_bumps(kept: CachedAnswer, commit: str, bumps: Sequence[Bump]) -> Bumped:
    """The same against `commit`, whose files are those that were asked about."""
    changes = tuple(
        FileChange(path, REGULAR, REGULAR, old.encode(), new.encode()) for path, old, new in kept.facts["changes"]
    )
    refused = tuple((bumps[place], why) for place, why in kept.facts["refused"])
    return Bumped(Patch(commit, changes) if changes else None, tuple(bumps[i] for i in kept.facts["done"]), refused)
