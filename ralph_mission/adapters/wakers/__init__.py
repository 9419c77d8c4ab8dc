"""The ways of being called again. All of them end in the same dispatch, and behind it in the same gate.

`dispatch` sends it; `timer` and `heartbeat` say what each way needs and whether it is set up.
"""

from __future__ import annotations

from ralph_mission.adapters.wakers import ways
from ralph_mission.adapters.wakers.ways import WakeFacts, Way

WAKERS: dict[str, Way] = {way.name: way for way in (ways.TIMER, ways.HEARTBEAT)}
"""Every way by its name in `schedule.wake`, the most punctual first."""


def best(facts: WakeFacts) -> Way | None:
    """What `wake: auto` takes: the most punctual way that is set up here; None when none is."""
    return next((way for way in WAKERS.values() if way.set_up(facts).ok), None)
