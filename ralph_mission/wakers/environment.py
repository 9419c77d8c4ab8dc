"""A job that waits behind an environment's wait timer and dispatches with the workflow's own token.

The wait is a setting of the environment, fixed and in whole minutes: one environment for each urgency.
"""

from __future__ import annotations

from ralph_mission.wakers.facts import Facts, Standing, Way

MINUTES = {"high": 15, "medium": 60, "low": 360}  # seed 003
SHORTEST, LONGEST = 1, 43_200  # minutes; GitHub's bounds for a wait timer


def name_of(urgency: str) -> str:
    """The environment behind which the wake of this urgency waits."""
    return f"ralph-wait-{urgency}"


def has_jobs(workflow: str) -> bool:
    """Whether a workflow's text has the jobs that wait."""
    return not _missing(workflow)


def _missing(workflow: str) -> list[str]:
    return [name for name in map(name_of, MINUTES) if name not in workflow]


def _set_up(facts: Facts) -> Standing:
    names = [name_of(urgency) for urgency in MINUTES]
    missing = _missing(facts.workflow)
    if missing:
        return Standing(False, f"no workflow here has a job in {', '.join(missing)}")
    if facts.environments is None:
        return Standing(True, "the workflow has the jobs; whether their environments wait, only GitHub can tell")
    hasty = [name for name in names if not facts.environments.get(name)]
    if hasty:
        return Standing(False, f"without a wait timer: {', '.join(hasty)}")
    return Standing(True, ", ".join(f"{name} waits {facts.environments[name]} min" for name in names))


WAY = Way(
    "environment",
    "three environments with wait timers (private repositories need a paid plan)",
    (".github/workflows/ralph-loop.yml",),
    _set_up,
)
