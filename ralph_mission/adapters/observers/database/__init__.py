"""Observes rows of a database: what changed, what is new, what is out of bounds, what stopped coming.

The core is pure: `targets` finds a watch's names in a database, `watches` turns rows into facts, `state` is what is
remembered. `observer` asks, through `gateways.database`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.database.observer import DatabaseObserver, DatabaseUnset
from ralph_mission.config.database import DatabaseSettings

__all__ = ["DatabaseObserver", "DatabaseSettings", "DatabaseUnset", "build"]


def build(settings: DatabaseSettings, git: Git, environment: Mapping[str, str] = os.environ) -> DatabaseObserver:
    """The observer; nothing is opened before it looks."""
    return DatabaseObserver(settings, git, environment)
