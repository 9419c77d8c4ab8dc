"""Desks for tests: one work tree, one moment, and runs that were written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.loop.model.spec import LoopPreset, RunSpec
from ralph_mission.loop.model.state import CheckoutState, HatOutput, RunState, SessionCommit

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
FREE = RunSpec("build it", LoopPreset("loop"))
STORIES = RunSpec("build it", LoopPreset("prd", stories=True))
STANDING = CheckoutState("main", "abc", (SessionCommit("abc", "Start"),))
PRD = {
    "project": "Shop",
    "branchName": "ralph/shop",
    "userStories": [
        {"id": "US-1", "title": "Cart", "priority": 1, "passes": False},
        {"id": "US-2", "title": "Pay", "priority": 2, "passes": False},
    ],
}
Make = Callable[..., FileRunStore]


def begun(store: FileRunStore, spec: RunSpec = FREE) -> RunState:
    """A run of one session that was written down."""
    with store.exclusive(spec):
        now = replace(store.open(spec, NOON), iteration=1)
        store.snapshot()
        store.keep(now, HatOutput("ralph", 1, summary="did it"))
    return now
