"""Where missions' clones are, and that they are gone when nobody works on missions any more."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ralph_mission.gateways.files import safe_paths
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.workspace.restore import remove_folder
from ralph_mission.stores import outliving

PLACE = "missions"


def clones(git: Git, environment: Mapping[str, str]) -> Path:
    """Where missions' clones are: below `.ralph/`, and where a runner clears that before each job, in what outlives it.

    There by the place of the checkout, whose objects they borrow: two runners may share it.
    """
    kept = outliving.folder(environment)
    beside = hashlib.sha256(os.fsencode(git.common_dir)).hexdigest()[:12]
    return kept / f"{PLACE}-{beside}" if kept else git.state_dir / PLACE


def abandon(git: Git, environment: Mapping[str, str]) -> None:
    """Remove all of them: the settings name no agent. What cannot be removed now is in nobody's way."""
    place = clones(git, environment)
    with suppress(OSError):
        if safe_paths.own(place).is_dir():
            remove_folder(os.fsencode(place))
