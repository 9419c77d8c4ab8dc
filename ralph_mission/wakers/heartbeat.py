"""GitHub's cron: every 15 minutes the gate is asked. Late under load, sometimes dropped, always there in the end."""

from __future__ import annotations

import re

from ralph_mission.wakers.facts import WakeFacts, Way, WaySetUp

_CRON = re.compile(r"^\s*-\s*cron:\s*\S", re.M)


def _heartbeat_set_up(facts: WakeFacts) -> WaySetUp:
    if not facts.workflow:
        return WaySetUp(False, "no workflow here listens to ralph-loop-trigger")
    crons = len(_CRON.findall(facts.workflow))
    lines = "no cron line" if not crons else "1 cron line" if crons == 1 else f"{crons} cron lines"
    return WaySetUp(crons > 0, f"{lines} in the workflow")


HEARTBEAT = Way(
    "heartbeat",
    "the workflow on the default branch; nothing else",
    (".github/workflows/ralph-loop.yml",),
    _heartbeat_set_up,
)
