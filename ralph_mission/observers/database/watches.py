"""The kinds of watches: what each asks, and what it makes of the answer. Pure: rows and a state in, facts out.

wanted = target(watch, database.describe())
answers = {name: database.rows(query) for name, query in plan(wanted, state, now).items()}
outcome = judge(wanted, answers, state, now)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.gateways.database.queries import Query
from ralph_mission.observers.database import listing, moving, standing
from ralph_mission.observers.database.found import Answers, WatchOutcome
from ralph_mission.observers.database.state import WatchState
from ralph_mission.observers.database.targets import Target


@dataclass(frozen=True, slots=True)
class Sort:
    """One kind of watch. `complete`: what it found is all there is now, not only what is new."""

    plan: Callable[[Target, WatchState, datetime], dict[str, Query]]
    judge: Callable[[Target, Answers, WatchState, datetime], WatchOutcome]
    complete: bool = True


SORTS: Mapping[str, Sort] = {
    "change": Sort(moving.plan, moving.judge),
    "new_since": Sort(listing.plan_new, listing.judge_new, complete=False),
    "top": Sort(listing.plan_top, listing.judge_top),
    "threshold": Sort(standing.plan_threshold, standing.judge_threshold),
    "outlier": Sort(standing.plan_outlier, standing.judge_outlier),
    "missing": Sort(standing.plan_missing, standing.judge_missing),
    "where": Sort(listing.plan_where, listing.judge_where),
}


def plan(target: Target, state: WatchState, now: datetime) -> dict[str, Query]:
    """What has to be asked, by names that `judge` knows."""
    return SORTS[target.watch.sort].plan(target, state, now)


def judge(target: Target, answers: Answers, state: WatchState, now: datetime) -> WatchOutcome:
    """What was found, what to remember, and what could not be judged and why."""
    return SORTS[target.watch.sort].judge(target, answers, state, now)
