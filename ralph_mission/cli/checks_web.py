"""Whether each source of the web can be read now: one bounded look, as a cycle takes it, of which nothing is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config
    from ralph_mission.observers.web import Settings

AT_A_TIME = 4


def web(settings: Config, environment: Mapping[str, str]) -> list[Check]:
    """Ready, not configured, or broken and how to mend it: a line for each source."""
    if not settings.observers.web:
        return [Check("web", "note", "not configured", "to look at feeds and pages: observers.web in ralph.yml")]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda source: _source(source, environment), settings.observers.web))


def _source(settings: Settings, environment: Mapping[str, str]) -> Check:
    from ralph_mission.observers.web import Unset, build

    name = f"web {settings.name}"
    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        try:
            found = build(settings, environment=environment).try_out(Path(scratch), datetime.now(UTC))
        except Unset as unset:
            return Check(name, "note", unset.what, unset.next_step)
        except Trouble as trouble:
            return Check(name, "wrong", f"broken: {trouble.what}", mend(trouble))
    return Check(name, "ok", f"ready: {settings.kind}, {found}")
