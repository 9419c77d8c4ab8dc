"""The work that an agent is asked for, on a mission, an issue or a review, and what came of it. Nouns only."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import Literal

from ralph_mission.mission.model.mission import Usage
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass

LIMIT = 2
"""The exit code of a loop that hit a limit; it can be resumed."""


@dataclass(frozen=True, slots=True)
class RedCheck:
    """A check that fails on the base already. `said`: the first lines of its output that say why.
    `broken`: why no change to the code can fix it (its program or packages are missing, it times out), "" if one may.
    `complaints`: how often it reports each problem, to see whether a change makes it worse; so do its exit code and
    the number of failures that it counts, 0 if it counts none.
    """

    command: str
    said: str = ""
    broken: str = ""
    complaints: tuple[tuple[str, int], ...] = ()
    code: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class BaseChecks:
    """The repository's checks on the commit that work starts from: which fail, and how many pass.

    `problem`: why they could not run at all.
    """

    red: tuple[RedCheck, ...] = ()
    green: int = 0
    problem: str = ""

    @property
    def comparable(self) -> tuple[RedCheck, ...]:
        """The red checks whose failures can be compared with those of a change."""
        return tuple(check for check in self.red if not check.broken)

    @property
    def tolerable(self) -> tuple[RedCheck, ...]:
        """Those of them that may stay red with an automatic change: they report what is wrong, and either count it,
        which shows that they ran to their end, or other checks pass."""
        return tuple(check for check in self.comparable if check.complaints and (self.green or check.failures))


JobOutcome = Literal["made", "goes on", "failed", "held"]


@dataclass(frozen=True, slots=True)
class AgentJob:
    """One piece of work in a clone of `base_sha`, for at most `usd` and `seconds`; `task` is what the agent reads.

    `number` is that of the mission, issue or pull request. `default_sha`: the commit whose guides and agent settings
    apply, if another one. `agent`: the one a label names. `guidance`: what people said since the last session.

    Work on a mission can be resumed: the same number, `round` (0 for the change itself, n for the answer to the nth
    review), `subject` (a digest of the issue's text) and `attempt` (failures so far) is the same work. `answers`: when
    the newest review that it answers was written. `red`: failing checks that do not block it unless they get worse.
    `bug`: it only counts once its own test shows the bug.
    """

    number: int
    title: str
    base_sha: str
    task: str
    usd: float
    seconds: float = inf
    branch: str = ""
    default_sha: str = ""
    agent: str = ""
    guidance: tuple[str, ...] = ()
    round: int = 0
    subject: str = ""
    attempt: int = 0
    answers: datetime | None = None
    red: tuple[RedCheck, ...] = ()
    bug: bool = False


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of a job. `made`: there is a change. `goes on`: unfinished, can be resumed. `held`: not begun.

    `mission` is the job's number. `reason` is why it is not finished, in our words; `words` are the agent's last ones.
    `guided_at`: the newest guidance that it was given, `answered_at`: the newest review, both by the forge's clock.
    `code` is the exit code of its loop; `away`: the agent could not be reached, which is no fault of the work.
    `standing`: checks that were red before and still are. `blocked`: what a person has to do before it can
    begin. `proof`: what the runs of its test showed of a bug, or why nobody could look; `unseen`: no test
    of it showed the bug.
    """

    mission: int
    outcome: JobOutcome
    reason: str = ""
    patch: Patch | None = None
    words: str = ""
    learned: tuple[str, ...] = ()
    sessions: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    progressed: bool = False
    guided_at: datetime | None = None
    answered_at: datetime | None = None
    code: int = 0
    run_id: str = ""
    away: bool = False
    standing: tuple[str, ...] = ()
    blocked: str = ""
    proof: str = ""
    unseen: bool = False

    @property
    def usd(self) -> float:
        """What it cost."""
        return self.usage.cost_usd


def job_outcome(code: int) -> JobOutcome:
    """The outcome of a job by the exit code of its loop."""
    return "made" if code == 0 else "goes on" if code == LIMIT else "failed"


def failed_job(job: AgentJob, reason: str, usage: Usage = Usage(), code: int = 1) -> AgentResult:
    """A job that produced nothing."""
    return AgentResult(job.number, "failed", reason, sessions=usage.model_calls, usage=usage, code=code)


def broken_job(job: AgentJob, error: Exception) -> AgentResult:
    """A job that failed unexpectedly. Its cost is unknown, so everything reserved counts as spent."""
    return failed_job(job, f"it failed unexpectedly ({type(error).__name__})", Usage(cost_usd=job.usd))
