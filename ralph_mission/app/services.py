"""The common start of `ralph work`, `ralph review` and `ralph publish`: memory and forge as in a cycle.

The composition root of `ralph publish`: memory, forge and networks as in a cycle.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.storage.memory.recordings import keep_out_of_git
from ralph_mission.app.cycle import App, build_app, refuse_links
from ralph_mission.loop.model.spec import RunWatch
from ralph_mission.mission.publishing.publish_now import PublishSetup
from ralph_mission.mission.transaction import TransactionContext
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """One command line: the repository, its settings, and the host of its issues."""

    repo: Path = Path()
    config: Path | None = None
    forge: str = "auto"


@dataclass(frozen=True, slots=True)
class AgentServiceOptions(ServiceOptions):
    """One that runs an agent; empty texts and None mean: as in the settings."""

    agent: str = ""
    command: str = ""
    model: str = ""
    runtime: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class AppFactory:
    """Opens memory and forge again for each step; `first` is for what does not change meanwhile."""

    options: ServiceOptions
    progress: PlainRunProgress
    spell: Callable[[str], str] = str

    def first(self) -> App:
        """The first one, after showing its warnings. Raises UserError for invalid settings."""
        first = self._opened()
        refuse_links(first.git)
        for warning in first.config.warnings:
            self.progress.note(f"note: {warning}")
        keep_out_of_git(first.git)
        return first

    def context(self) -> TransactionContext:
        """For a step. Raises UserError."""
        app = self._opened()
        return TransactionContext(app.ports, app.settings, app.secrets)

    def _opened(self) -> App:
        options = self.options
        return build_app(
            options.repo, options.config, options.forge, progress=NotingProgress(self.progress), spell=self.spell
        )


@dataclass(frozen=True, slots=True)
class NotingProgress:
    """A cycle's progress, as lines of a loop's progress."""

    progress: PlainRunProgress

    @property
    def watch(self) -> RunWatch:
        """The loop's own."""
        return self.progress.watch

    def phase(self, name: str, note: str = "") -> None:
        """Nothing: there is one phase."""

    def note(self, text: str) -> None:
        """A line."""
        self.progress.note(text)


def publisher(options: ServiceOptions, progress: PlainRunProgress, spell: Callable[[str], str] = str) -> PublishSetup:
    """Everything the flow needs. Raises UserError for an unusable repository or setting."""
    factory = AppFactory(options, progress, spell)
    factory.first()
    return PublishSetup(factory.context, time.sleep, progress.note)
