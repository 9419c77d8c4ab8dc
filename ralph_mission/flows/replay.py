"""Decide a recorded cycle again: the same inputs must give the same decisions."""

from __future__ import annotations

from collections.abc import Sequence

from ralph_mission.mission.deciding import Situation, decide
from ralph_mission.mission.proposal import Decision
from ralph_mission.safety.secrets import strip_known


def differences(situation: Situation, recorded: Sequence[Decision], secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How today's decisions differ from the recorded ones, one line each; empty when they are the same.

    A recording does without the values that the runner knows, so both are compared without them.
    """
    now = {decision.proposal.key: strip_known(decision, secrets) for decision in decide(situation, secrets).decisions}
    then = {decision.proposal.key: strip_known(decision, secrets) for decision in recorded}
    lines = [_difference(key, then.get(key), now.get(key)) for key in dict.fromkeys((*then, *now))]
    return tuple(line for line in lines if line)


def _difference(key: str, then: Decision | None, now: Decision | None) -> str:
    if then is None or now is None:
        decision, word = (now, "was not decided then") if then is None else (then, "is not decided now")
        assert decision is not None
        return f"{key} {decision.proposal.title}: {word}"
    if then == now:
        return ""
    before, after = _decision_text(then), _decision_text(now)
    return f"{key} {then.proposal.title}: {before} then, {after} now" if before != after else f"{key}: worded otherwise"


def _decision_text(decision: Decision) -> str:
    return f"{decision.verdict} ({', '.join(decision.rules) or 'no rule'})"
