"""How long to wait after a turn that the provider, not the work, made fail. A time-out is neither: never waited for."""

from __future__ import annotations

from ralph_mission.loop.model import AgentTurn
from ralph_mission.loop.order import RunLimits

FIRST_LIMIT = 60.0  # seconds: providers count requests and tokens by the minute


def wait(limits: RunLimits, turn: AgentTurn, attempt: int) -> float | None:
    """Seconds until the same session is tried again, None when it is not; `attempt` counts from 1.

    The provider's own word on a limit is obeyed up to `longest_wait`; without one the wait doubles. A fault
    is tried again `retries` times. A limit is waited for as long as the run may run.
    """
    if turn.failure == "rate_limit":
        return min(turn.retry_after or FIRST_LIMIT * 2 ** min(attempt - 1, 10), limits.longest_wait)
    if turn.failure == "server" and attempt <= limits.retries:
        return max(turn.retry_after, limits.retry_pause)
    return None
