"""Missions that ended well and whose kind the owners want announced: findings like any other, of typed facts alone.

What is announced is remembered in `OpenState.finished` with the merge itself, so not before it is a fact; once the
finding is known it is forgotten there, so not twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from ralph_mission.mission.findings import identify
from ralph_mission.mission.kinds import lookup
from ralph_mission.mission.ledger import FinishedMission
from ralph_mission.mission.model import Finding, Mission, Signal, Status

KIND = "completed"
STALE = timedelta(days=7)  # later than that nobody wants to hear of it
OBSERVER = "missions"


def announceable(
    ended: Iterable[Mission], kinds: Collection[str], cycle: int, now: datetime
) -> tuple[FinishedMission, ...]:
    """What is to be announced of missions that ended in this cycle."""
    return tuple(
        FinishedMission(
            mission.id, mission.key, mission.kind, mission.pull, now, _days(mission, now), _cycles(mission, cycle)
        )
        for mission in ended
        if mission.status is Status.COMPLETED and mission.outcome == "merged" and mission.kind in kinds
    )


def _days(mission: Mission, now: datetime) -> int:
    return max(0, (now - mission.started_at).days)


def _cycles(mission: Mission, cycle: int) -> int:
    return max(1, cycle - mission.started_cycle + 1)


def finished_findings(finished: Iterable[FinishedMission]) -> tuple[Finding, ...]:
    """What was finished, as seen by nobody but us. Facts: mission, what, pull, days, cycles."""
    return identify(map(_signal, finished))


def _signal(one: FinishedMission) -> Signal:
    what = lookup(one.kind).noun
    facts = (("mission", one.mission), ("what", what), ("pull", one.pull), ("days", one.days), ("cycles", one.cycles))
    title = f"Mission {one.mission} is merged: {what}"
    return Signal(OBSERVER, KIND, title, (one.key,), confidence=1.0, reference=one.pull, facts=facts)


def still_waiting(
    finished: Iterable[FinishedMission], waiting: Collection[str], now: datetime
) -> tuple[FinishedMission, ...]:
    """What is yet to be announced: the owner has words for it (`waiting`, fingerprints), and it is no old news."""
    return tuple(
        one for one in finished if now - one.at < STALE and finished_findings((one,))[0].fingerprint in waiting
    )
