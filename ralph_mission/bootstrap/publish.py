"""The composition root of `ralph publish`: memory, forge and networks as in a cycle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.bootstrap.cycle import build
from ralph_mission.bootstrap.work import Noting
from ralph_mission.flows.publish import Publisher
from ralph_mission.flows.strokes import House
from ralph_mission.report.loop_voice import PlainLoopVoice
from ralph_mission.stores.recordings import keep_out_of_git


@dataclass(frozen=True, slots=True)
class Wanted:
    """One command line of `ralph publish`."""

    repo: Path = Path()
    config: Path | None = None
    forge: str = "auto"


def publisher(wanted: Wanted, voice: PlainLoopVoice, spell: Callable[[str], str] = str) -> Publisher:
    """Everything the flow needs. Raises Trouble for a repository or a setting that cannot be used."""

    def house() -> House:
        made = build(wanted.repo, wanted.config, wanted.forge, voice=Noting(voice), spell=spell)
        return House(made.ports, made.store, made.charter, made.secrets)

    first = build(wanted.repo, wanted.config, wanted.forge, voice=Noting(voice), spell=spell)
    for warning in first.config.warnings:
        voice.note(f"note: {warning}")
    keep_out_of_git(first.git)
    return Publisher(house, time.sleep, voice.note)
