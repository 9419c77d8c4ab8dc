"""The composition root of `ralph publish`: memory, forge and networks as in a cycle."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph_mission.bootstrap.wanted import Doors, Wanted
from ralph_mission.flows.publish import Publisher
from ralph_mission.report.loop_voice import PlainLoopVoice


def publisher(wanted: Wanted, voice: PlainLoopVoice, spell: Callable[[str], str] = str) -> Publisher:
    """Everything the flow needs. Raises Trouble for a repository or a setting that cannot be used."""
    doors = Doors(wanted, voice, spell)
    doors.first()
    return Publisher(doors.house, time.sleep, voice.note)
