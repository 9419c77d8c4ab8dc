"""What a forge's own automation did on the default branch: runs of workflows, and what of them failed."""

from __future__ import annotations

from datetime import datetime

from ralph_mission.values import dataclass

PASSED = frozenset({"success"})
FAILED = frozenset({"failure", "timed_out", "startup_failure"})
HELD = "action_required"
"""The conclusion of a run that waits until a person lets it start."""


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One run of a workflow, as its newest attempt stands. Names and paths are untrusted.

    `conclusion` is "" while it is not over. What was cancelled or skipped, or waits, neither passed nor failed.
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
    ended_at: datetime | None = None  # when it changed last, where it is over

    @property
    def passed(self) -> bool:
        """Whether everything in it that counts went well."""
        return self.conclusion in PASSED

    @property
    def failed(self) -> bool:
        """Whether something in it went wrong."""
        return self.conclusion in FAILED


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that failed in one attempt of a run; `step` is the first of its steps that did, "" where none is told.

    `log` is what the job printed, as far as it could be read: untrusted.
    """

    name: str
    step: str
    url: str
    log: str = ""
