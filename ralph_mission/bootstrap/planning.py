"""The composition root of a planning: the stories of a task, as the first part of the run that builds them."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.bootstrap import teams
from ralph_mission.bootstrap.asked import RunOptions, needs_planning, recall_planning
from ralph_mission.bootstrap.ground import open_checkout
from ralph_mission.bootstrap.loop import RunSetup, build_run
from ralph_mission.loop import planning, ralplan
from ralph_mission.loop.model import Prd
from ralph_mission.loop.order import RunResult
from ralph_mission.loop.ports import RunProgress
from ralph_mission.stores.loop import state
from ralph_mission.stores.loop.papers import FileArtifactStore
from ralph_mission.stores.loop.stories import Stories


def due(asked: RunOptions) -> RunOptions | None:
    """What a planner is to begin or to go on with, None when nobody has to plan."""
    root = open_checkout(asked.repo)[1]
    named = recall_planning(asked, root)
    return named if needs_planning(named, root) else None


def write_stories(
    asked: RunOptions, voice: RunProgress, follows: bool = False, replacing: bool = False
) -> tuple[RunSetup, RunResult]:
    """The stories written and checked, and what it was done with. Where a run `follows`, it goes on from the state
    that is left. Raises Trouble."""
    made = build_run(replace(asked, planning=True, worktree=False), voice)

    def read() -> tuple[Prd | None, str]:
        stories = Stories(made.root)
        return stories.read(), stories.complaint

    kind = made.order.kind if follows else ""
    return made, planning.plan_stories(planning.planning_spec(made.order), made.ports, read, kind, replacing)


def agree_on_plan(asked: RunOptions, voice: RunProgress) -> tuple[RunSetup, RunResult]:
    """Ralplan on a task. When the Critic approved, whoever continues the run writes stories from the plan. Raises
    Trouble."""
    made = build_run(replace(asked, planning=True, worktree=False), voice)
    account = teams.play(replace(made, order=replace(made.order, persistent=False)), "ralplan")
    if account.ending.reason == "complete":
        plan = FileArtifactStore(made.root / ".ralph").read(ralplan.PLAN)
        state.save(made.root, planning.state_after_agreement(account.state, plan))
    return made, account
