"""The composition root of the cycle's agent: the loop of `ralph run` in a mission's clone."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from ralph_mission.adapters.agents.clients import PRICED
from ralph_mission.adapters.fixers.coder import AgentCoder, read_conventions
from ralph_mission.adapters.fixers.verify import Workbench
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.loop_voice import PlainRunProgress
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.app import clone_runs, hosting, sandboxes
from ralph_mission.app.clone_runs import CloneRun
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.reading import NAME
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop.cost import CostMeter
from ralph_mission.mission.model.agent_job import INTERRUPTED, AgentJob, AgentResult, failed_job
from ralph_mission.mission.model.mission import Usage
from ralph_mission.mission.model.proposal import PatchVerification
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass

PRESET, PATTERN = "issue", "ralplan"


def coder(git: Git, settings: Config, config: Path | None, head: str) -> AgentCoder:
    """The agent of the settings as hands of the cycle; they are those of the file `config` or of the commit `head`."""
    place = hosting.mission_clones(git, os.environ)
    return AgentCoder(
        git, place, LoopCoder(git, settings, config, head, place).play, partial(_check_patch, git, settings)
    )


def _check_patch(git: Git, settings: Config, patch: Patch) -> PatchVerification:
    hands = settings.hands
    bench = Workbench(git, hands.verify, hands.verify_timeout, partial(sandboxes.patch_sandbox, settings))
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        return bench.verify(patch, scratch)


@dataclass(frozen=True, slots=True)
class LoopCoder:
    """`hands.coder.Play` by the loop engine."""

    git: Git
    settings: Config
    config: Path | None
    head: str
    place: Path

    def play(self, folder: Path, job: AgentJob) -> AgentResult:
        """As in `fixers.coder.Play`."""
        meter = CostMeter(job.usd, PRICED)
        try:
            voice = PlainRunProgress(sys.stderr, environment_secrets())
            made = clone_runs.play_in_clone(self.git, self._clone_run(folder, job), meter, voice)
        except Exception as error:
            if not meter.begun:
                raise
            why = f"{error.what}; {error.next_step}" if isinstance(error, UserError) else type(error).__name__
            return failed_job(job, f"it broke off: {why}", Usage(meter.begun, cost_usd=meter.usd))
        if made.code == INTERRUPTED:
            raise KeyboardInterrupt
        return replace(made, outcome="goes on") if made.away else made  # nothing was wrong with the work

    def _clone_run(self, folder: Path, job: AgentJob) -> CloneRun:
        planned = self.settings.hands.agent is not None and self.settings.hands.agent.plan == PATTERN
        guides = read_conventions(self.git, job.default_sha or job.base_sha)
        asked = RunOptions(
            folder, self._config(), "\n\n".join(filter(None, (job.task, guides))),
            preset="" if planned else PRESET, pattern=PATTERN if planned else "", build=planned,
        )  # fmt: skip  # one command line
        return CloneRun(job, asked, self.settings.work.max_iterations)

    def _config(self) -> Path:
        """The settings of the cycle, never those of the clone: what is made there does not say how it is made."""
        if self.config is not None:
            return self.config.absolute()
        here = self.git.work_tree / NAME if self.git.work_tree and not self.head else None
        if here and here.exists():
            return here
        named = f"{self.head or 'HEAD'}:{NAME}"
        run_files.write(self.place / NAME, self.git.blobs([named]).get(named, b""))
        return self.place / NAME
