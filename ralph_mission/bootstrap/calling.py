"""The composition root of waking the review: memory and forge as in a cycle, and whoever may dispatch."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

from ralph_mission.bootstrap.cycle import build_app
from ralph_mission.bootstrap.hosting import poster
from ralph_mission.flows.calling import CallReport, call_due_reviews
from ralph_mission.flows.strokes import TransactionContext
from ralph_mission.gateways.place import place
from ralph_mission.wakers.dispatch import DispatchWaker
from ralph_mission.wakers.review import by_dispatch


def call_reviews(repo: Path, config: Path | None, now: datetime | None = None) -> CallReport:
    """Wake the review of our pulls, where a dispatch is what wakes it. Raises Trouble."""
    first = build_app(repo, config, "github", now=now)
    account = first.forge.identity().login
    standing = by_dispatch(first.config.schedule.review, account, first.git.work_tree)
    if not standing.ok:
        return CallReport(reason=standing.reason)

    def opened() -> TransactionContext:
        house = build_app(repo, config, "github", now=now)
        return TransactionContext(house.ports, house.store, house.charter, house.secrets)

    where = place(os.environ)
    return call_due_reviews(opened, time.sleep, DispatchWaker(where.repository, poster(where)).review)
