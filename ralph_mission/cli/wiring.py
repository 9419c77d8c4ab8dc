"""Where commands meet the composition root: how each gets what it works with."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.cli.command_hints import spell
from ralph_mission.errors import UserError

if TYPE_CHECKING:
    from ralph_mission.app.cycle import App
    from ralph_mission.mission.model.cycle import CycleReport, CycleSummary, Trigger
    from ralph_mission.mission.model.ledger import MemorySnapshot
    from ralph_mission.mission.ports import CycleProgress

TRIGGERS: dict[str, Trigger] = {"schedule": "cron", "workflow_dispatch": "manual", "repository_dispatch": "dispatch"}
"""What started the cycle, by the event that GitHub Actions names."""


def household(
    repo: Path,
    config: Path | None = None,
    forge: str = "auto",
    *,
    staged: bool = False,
    now: datetime | None = None,
    voice: CycleProgress | None = None,
) -> App:
    """Everything that a command may touch. Raises UserError for a repository or a setting that cannot be used."""
    from ralph_mission.app.cycle import build_app

    return build_app(repo, config, forge, staged=staged, now=now, voice=voice, spell=partial(spell, repo=repo))


def recollection(house: App) -> MemorySnapshot:
    """What memory says now. Raises UserError when there is none yet."""
    recalled = house.store.recall()
    if recalled is None:
        refuse_if_elsewhere(house)
        raise UserError("ralph has no memory of this repository yet", "run: ralph cycle")
    return recalled


def refuse_if_elsewhere(house: App) -> None:
    """Raises UserError when there is no memory here because it is on the server that this clone came from."""
    branch = house.config.memory.branch
    if house.github is None and house.git.resolve(f"refs/remotes/origin/{branch}"):
        what = f"ralph's memory of this repository is on its server (origin/{branch})"
        mend = "to read it there: forge: {kind: github} in ralph.yml, with GITHUB_TOKEN and GITHUB_REPOSITORY set"
        raise UserError(what, mend, usage=True)


def run_cycle(house: App, *, staged: bool, force: bool) -> tuple[CycleReport, CycleSummary]:
    """One cycle, asked for on the command line or by an event of GitHub Actions. Raises UserError."""
    from ralph_mission.app.cycle import refuse_links
    from ralph_mission.mission import cycle

    if not staged:
        refuse_links(house.git)
    trigger = TRIGGERS.get(os.environ.get("GITHUB_EVENT_NAME", ""), "cli")
    request = cycle.CycleRequest(trigger=trigger, staged=staged, force=force)
    return cycle.run_cycle(house.ports, house.charter, request, house.secrets)


def decide_again(house: App, cycle_id: str) -> list[str]:
    """How today's decisions on a recorded cycle differ from those of then. Raises UserError when it is not recorded."""
    from ralph_mission.mission.model.cycle import Situation
    from ralph_mission.mission.operations.control import differences

    recorded = dict(house.recordings.load(cycle_id))
    situation, decisions = recorded.get("situation"), recorded.get("decisions")
    if not isinstance(situation, Situation) or not isinstance(decisions, tuple):
        raise UserError(f"cycle {cycle_id} ended before it had decided anything", "replay another one")
    return list(differences(situation, decisions, house.secrets))
