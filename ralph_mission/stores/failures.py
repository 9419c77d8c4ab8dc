"""How often the whole cycle failed in a row, kept beside the clone: the alarm must work when memory cannot be read.

Where: in what outlives a job, else in the git directory, beside `ralph/`: a link in the place of that folder is one of
the failures that must be counted. A clone that was deleted is another. A runner that is made anew for every job forgets
both, so there nothing can be counted from job to job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ralph_mission.flows.alarm import Episode
from ralph_mission.gateways import durable
from ralph_mission.stores import outliving

NAME = "failures.json"
_FIELDS = {"number": int, "identity": str, "count": int, "issue": int, "told": str, "doubt": int}


@dataclass(frozen=True, slots=True)
class FailureFile:
    """The counter of one repository; a file that is missing or broken is an episode that has not begun."""

    path: Path

    def read(self) -> Episode:
        """What was kept."""
        try:
            return _episode(json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return Episode()

    def write(self, episode: Episode) -> None:
        """Keep it, all at once. Raises OSError."""
        kept = asdict(episode) | {"since": episode.since.isoformat() if episode.since else None}
        durable.write(self.path, json.dumps(kept, indent=1).encode() + b"\n")


def place(common_dir: Path, environment: Mapping[str, str]) -> Path:
    """Where the counter of this repository is kept."""
    kept = outliving.folder(environment)
    return kept / NAME if kept else common_dir / f"ralph-{NAME}"


def _episode(kept: dict[str, Any]) -> Episode:
    if any(type(kept[name]) is not kind for name, kind in _FIELDS.items()):
        raise ValueError
    if min(kept[name] for name, kind in _FIELDS.items() if kind is int) < 0:
        raise ValueError
    since = datetime.fromisoformat(kept["since"]) if kept["since"] else None
    if since is not None and since.tzinfo is None:
        raise ValueError
    return Episode(since=since, **{name: kept[name] for name in _FIELDS})
