"""`ralph watch`: cycles whenever one is due, in the foreground, for a server without GitHub Actions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralph_mission.cli.gate import Plain, ask
from ralph_mission.cli.options import at_repository
from ralph_mission.cli.typed import type_commands
from ralph_mission.cli.wiring import household
from ralph_mission.gateways.git import Git

if TYPE_CHECKING:
    from ralph_mission.mission.account import CycleReport


@click.command()
@at_repository
@click.option("--once", is_flag=True, help="End after one cycle, which starts when it is due; fail when it fails.")
def watch(repo: Path, config: Path | None, once: bool) -> None:
    """Keep cycling: wait until a cycle is due, run it, wait again. Ctrl-C or SIGTERM ends it (exit code 130).

    Memory says when; it is read again every minute. After a failure the pause grows from 1 to 60 minutes.
    """
    from ralph_mission.bootstrap.stand_ins import SystemClock
    from ralph_mission.config.reading import read
    from ralph_mission.flows.watch import WatchSetup
    from ralph_mission.flows.watch import watch_cycles as keep_watch

    for warning in read(Git.open(repo), config).warnings:  # a mistake in the settings ends it here
        _say(f"note: {warning}", repo)
    asked = Plain(str(repo), str(config) if config else None)
    cycle: Callable[[], CycleReport] = partial(_cycle, repo, config)
    keep_watch(WatchSetup(SystemClock(), time.sleep, partial(ask, asked), cycle, partial(_say, repo=repo)), once)


def _cycle(repo: Path, config: Path | None) -> CycleReport:
    """One cycle with the settings of this moment. It wakes nobody: who watches looks for itself."""
    from ralph_mission.bootstrap.cycle import refuse_links
    from ralph_mission.bootstrap.stand_ins import NobodyToWake
    from ralph_mission.mission.cycle import CycleRequest, run_cycle

    house = household(repo, config)
    refuse_links(house.git)
    ports = replace(house.ports, waker=NobodyToWake())
    report, _ = run_cycle(ports, house.charter, CycleRequest(trigger="watch"), house.secrets)
    return report


def _say(line: str, repo: Path) -> None:
    from ralph_mission.safety.text import sanitise  # what is wrong may quote anything

    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    click.echo(f"{stamp} {sanitise(type_commands(' '.join(line.split()), repo), 'log')}")
