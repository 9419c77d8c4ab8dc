"""The composition root of the cycle's agent: the loop of `ralph run` in a mission's clone."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ralph_mission.agents.registry import PRICED
from ralph_mission.bootstrap import bridging, cages
from ralph_mission.bootstrap.asked import Asked
from ralph_mission.bootstrap.bridging import Came, Errand
from ralph_mission.bootstrap.clones import clones
from ralph_mission.bootstrap.known import known_secrets
from ralph_mission.config import NAME, Config
from ralph_mission.gateways.git import Git
from ralph_mission.hands import conventions
from ralph_mission.hands.coder import LIMIT, AgentCoder, Played
from ralph_mission.hands.verify import Workbench
from ralph_mission.loop.metering import Meter
from ralph_mission.mission.commissions import Commission
from ralph_mission.mission.model import Usage
from ralph_mission.mission.ports import Verification
from ralph_mission.report.loop_voice import PlainLoopVoice
from ralph_mission.safety.patch import Patch
from ralph_mission.stores.loop import files
from ralph_mission.trouble import Trouble

PRESET, PATTERN = "issue", "ralplan"


def coder(git: Git, settings: Config, config: Path | None, head: str) -> AgentCoder:
    """The agent of the settings as hands of the cycle; they are those of the file `config` or of the commit `head`."""
    place = clones(git, os.environ)
    return AgentCoder(git, place, Player(git, settings, config, head, place).play, partial(_checked, git, settings))


def _checked(git: Git, settings: Config, patch: Patch) -> Verification:
    hands = settings.hands
    bench = Workbench(git, hands.verify, hands.verify_timeout, partial(cages.of_patches, settings))
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        return bench.verify(patch, scratch)


@dataclass(frozen=True, slots=True)
class Player:
    """`hands.coder.Play` by the loop engine."""

    git: Git
    settings: Config
    config: Path | None
    head: str
    place: Path

    def play(self, folder: Path, commission: Commission) -> Played:
        """As in `hands.coder.Play`."""
        meter = Meter(commission.usd, PRICED)
        try:
            voice = PlainLoopVoice(sys.stderr, known_secrets())
            came = bridging.play(self.git, self._errand(folder, commission), meter, voice)
        except Exception as error:
            if not meter.begun:
                raise
            return _broken_off(error, meter)
        if came.account.ending.reason == "interrupted":
            raise KeyboardInterrupt
        code = LIMIT if came.away else came.account.ending.code  # nothing was wrong with the work
        return Played(code, came.reason, came.words, came.learned, came.sessions, came.seconds, _spent(came, meter.usd))

    def _errand(self, folder: Path, commission: Commission) -> Errand:
        planned = self.settings.hands.agent is not None and self.settings.hands.agent.plan == PATTERN
        guides = conventions.read(self.git, commission.default_sha or commission.base_sha)
        asked = Asked(
            folder, self._config(), "\n\n".join(filter(None, (commission.task, guides))),
            preset="" if planned else PRESET, pattern=PATTERN if planned else "", build=planned,
        )  # fmt: skip  # one command line
        sessions = self.settings.work.max_iterations
        return Errand(asked, commission.usd, commission.seconds, sessions, words=commission.guidance)

    def _config(self) -> Path:
        """The settings of the cycle, never those of the clone: what is made there does not say how it is made."""
        if self.config is not None:
            return self.config.absolute()
        here = self.git.work_tree / NAME if self.git.work_tree and not self.head else None
        if here and here.exists():
            return here
        named = f"{self.head or 'HEAD'}:{NAME}"
        files.write(self.place / NAME, self.git.blobs([named]).get(named, b""))
        return self.place / NAME


def _broken_off(error: Exception, meter: Meter) -> Played:
    """What a loop came to that could not be brought to its end. What it may have cost is known all the same."""
    why = f"{error.what}; {error.next_step}" if isinstance(error, Trouble) else type(error).__name__
    return Played(1, f"it broke off: {why}", sessions=meter.begun, usage=Usage(meter.begun, cost_usd=meter.usd))


def _spent(came: Came, usd: float) -> Usage:
    """What the sessions of this time took."""
    late, early = came.account.state.usage, came.before.usage if came.before else None
    return Usage(
        late.sessions - (early.sessions if early else 0),
        late.input_tokens - (early.input_tokens if early else 0),
        late.output_tokens - (early.output_tokens if early else 0),
        usd,
    )
