"""Workflow runs on the default branch, and their failed jobs."""

from __future__ import annotations

from datetime import datetime

from ralph_mission.values import dataclass

PASSED = frozenset({"success"})
FAILED = frozenset({"failure", "timed_out", "startup_failure"})
WELL = frozenset({"success", "neutral", "skipped"})
"""How a check that does not stand in the way of a merge ends."""
HELD = "action_required"
"""The conclusion of a run that waits until a person lets it start."""
OWN = frozenset(
    f".github/workflows/ralph-{name}.yml" for name in ("loop", "work", "review", "publish", "fleet", "fleet-cycle")
)
"""The workflows that `ralph init` writes. Events of a pull request start some of them on the commit to be merged."""


def is_own(path: str) -> bool:
    """Whether a workflow is one of Ralph's own, by its path as GitHub tells it: perhaps with `@` and a ref."""
    return path.partition("@")[0] in OWN


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """The newest attempt of a workflow run. Names and paths are untrusted.

    `conclusion` is "" until it ends. A cancelled, skipped or waiting run neither passed nor failed.
    """

    id: int
    workflow: int
    name: str
    path: str  # of the workflow's file
    event: str  # what started it: push, schedule, workflow_dispatch, ...
    sha: str
    conclusion: str
    created_at: datetime
    started_at: datetime  # of this attempt
    url: str
    attempt: int = 1
    ended_at: datetime | None = None  # when it last changed, if it is over

    @property
    def passed(self) -> bool:
        """Whether it succeeded."""
        return self.conclusion in PASSED

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.conclusion in FAILED


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A failed job in one attempt of a run; `step` is its first failed step, "" if unknown.

    `log` is the job's output, as far as it could be read. Untrusted.
    """

    name: str
    step: str
    url: str
    log: str = ""
