"""What an agent is asked to do, and what came of it. Nouns only."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ralph_mission.mission.model.mission import Usage
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class AgentJob:
    """One mission's work for an agent, in a clone of `base_sha`, for at most `usd` and `seconds`.

    `round` is 0 for the change itself, n for the answer to the nth review; `subject` is a digest of the issue's text.
    The same mission, round, subject and `attempt` (failures so far) is the same work: what was begun is gone on with,
    in its clone. `guidance` is what people said since the last time.
    """

    mission: int
    round: int
    title: str
    branch: str
    base_sha: str
    task: str
    usd: float
    seconds: float
    guidance: tuple[str, ...] = ()
    subject: str = ""
    attempt: int = 0
    default_sha: str = ""  # where the default branch stands, whose guides and agents' settings count
    answers: datetime | None = None  # when the newest review was written that is answered by it


@dataclass(frozen=True, slots=True)
class AgentResult:
    """What came of a commission: `made` is a change, `goes on` is not finished and can be gone on with.

    `held` was not begun; `reason` is why it is not finished, in our words; `words` are the agent's last ones.
    `guided_at`: the newest guidance that it was given, `answered_at`: the newest review, both by the forge's clock.
    """

    mission: int
    outcome: Literal["made", "goes on", "failed", "held"]
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
