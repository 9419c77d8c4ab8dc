"""The composition root of `ralph publish`: memory, forge and networks as in a cycle."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph_mission.bootstrap.wanted import AppFactory, ServiceOptions
from ralph_mission.flows.publish import PublishSetup
from ralph_mission.report.loop_voice import PlainRunProgress


def publisher(wanted: ServiceOptions, voice: PlainRunProgress, spell: Callable[[str], str] = str) -> PublishSetup:
    """Everything the flow needs. Raises Trouble for a repository or a setting that cannot be used."""
    doors = AppFactory(wanted, voice, spell)
    doors.first()
    return PublishSetup(doors.house, time.sleep, voice.note)
