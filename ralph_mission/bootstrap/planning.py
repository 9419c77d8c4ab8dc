"""The composition root of a planning: the stories of a task, as the first part of the run that builds them."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.bootstrap import teams
from ralph_mission.bootstrap.asked import Asked, recalled, unplanned
from ralph_mission.bootstrap.ground import open_checkout
from ralph_mission.bootstrap.loop import Bench, bench
from ralph_mission.loop import planning, ralplan
from ralph_mission.loop.model import Prd
from ralph_mission.loop.order import Account
from ralph_mission.loop.ports import Voice
from ralph_mission.stores.loop import state
from ralph_mission.stores.loop.papers import Papers
from ralph_mission.stores.loop.stories import Stories


def due(asked: Asked) -> Asked | None:
    """What a planner is to begin or to go on with, None when nobody has to plan."""
    root = open_checkout(asked.repo)[1]
    named = recalled(asked, root)
    return named if unplanned(named, root) else None


def planned(asked: Asked, voice: Voice, follows: bool = False, replacing: bool = False) -> tuple[Bench, Account]:
    """The stories written and checked, and what it was done with. Where a run `follows`, it goes on from the state
    that is left. Raises Trouble."""
    made = bench(replace(asked, planning=True, worktree=False), voice)

    def read() -> tuple[Prd | None, str]:
        stories = Stories(made.root)
        return stories.read(), stories.complaint

    kind = made.order.kind if follows else ""
    return made, planning.plan(planning.order(made.order), made.ports, read, kind, replacing)


def agreed(asked: Asked, voice: Voice) -> tuple[Bench, Account]:
    """Ralplan on a task. When the Critic approved, whoever continues the run writes stories from the plan. Raises
    Trouble."""
    made = bench(replace(asked, planning=True, worktree=False), voice)
    account = teams.play(replace(made, order=replace(made.order, persistent=False)), "ralplan")
    if account.ending.reason == "complete":
        plan = Papers(made.root / ".ralph").read(ralplan.PLAN)
        state.save(made.root, planning.agreed(account.state, plan))
    return made, account
