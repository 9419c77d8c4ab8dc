"""The composition root of the cycle's agent: the loop of `ralph run` in a mission's clone."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from ralph_mission.adapters.agents.clients import PRICED
from ralph_mission.adapters.fixers import settings as conventions
from ralph_mission.adapters.fixers.coder import LIMIT, AgentCoder, CoderRun
from ralph_mission.adapters.fixers.verify import Workbench
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.loop_voice import PlainRunProgress
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.app import clone_runs, hosting, sandboxes
from ralph_mission.app.clone_runs import CloneRun, CloneRunResult
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.reading import NAME
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop.cost import CostMeter
from ralph_mission.mission.model.cycle import AgentJob
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

    def play(self, folder: Path, commission: AgentJob) -> CoderRun:
        """As in `hands.coder.Play`."""
        meter = CostMeter(commission.usd, PRICED)
        try:
            voice = PlainRunProgress(sys.stderr, environment_secrets())
            came = clone_runs.play_in_clone(self.git, self._errand(folder, commission), meter, voice)
        except Exception as error:
            if not meter.begun:
                raise
            return _is_cut_off(error, meter)
        if came.account.ending.reason == "interrupted":
            raise KeyboardInterrupt
        code = LIMIT if came.away else came.account.ending.code  # nothing was wrong with the work
        return CoderRun(
            code, came.reason, came.words, came.learned, came.sessions, came.seconds, _usage_since(came, meter.usd)
        )

    def _errand(self, folder: Path, commission: AgentJob) -> CloneRun:
        planned = self.settings.hands.agent is not None and self.settings.hands.agent.plan == PATTERN
        guides = conventions.read(self.git, commission.default_sha or commission.base_sha)
        asked = RunOptions(
            folder, self._config(), "\n\n".join(filter(None, (commission.task, guides))),
            preset="" if planned else PRESET, pattern=PATTERN if planned else "", build=planned,
        )  # fmt: skip  # one command line
        sessions = self.settings.work.max_iterations
        return CloneRun(asked, commission.usd, commission.seconds, sessions, words=commission.guidance)

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


def _is_cut_off(error: Exception, meter: CostMeter) -> CoderRun:
    """What a loop came to that could not be brought to its end. What it may have cost is known all the same."""
    why = f"{error.what}; {error.next_step}" if isinstance(error, UserError) else type(error).__name__
    return CoderRun(1, f"it broke off: {why}", sessions=meter.begun, usage=Usage(meter.begun, cost_usd=meter.usd))


def _usage_since(came: CloneRunResult, usd: float) -> Usage:
    """What the sessions of this time took."""
    late, early = came.account.state.usage, came.before.usage if came.before else None
    return Usage(
        late.sessions - (early.sessions if early else 0),
        late.input_tokens - (early.input_tokens if early else 0),
        late.output_tokens - (early.output_tokens if early else 0),
        usd,
    )
