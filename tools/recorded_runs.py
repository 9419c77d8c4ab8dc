"""What the observer of CI would have said of a recorded history: `python -m tools.recorded_runs CLONE BRANCH FILE...`.

Each FILE holds a reply of GitHub about workflow runs (`{"workflow_runs": [...]}`), as some repositories commit it. The
observer looks after each run that ended, with only what had happened until then; the commits are in CLONE. Jobs are
rarely recorded, so failures have no step here.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from ralph_mission.adapters.forges.github.builds import own_runs
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.ci import build
from ralph_mission.config.observers import CiSettings
from ralph_mission.mission.model.builds import FailedJob, WorkflowRun
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read_runs(files: list[Path], branch: str) -> list[WorkflowRun]:
    """The branch's own runs in these replies, each once, oldest first."""
    listed: list[dict[str, Any]] = []
    for file in files:
        raw = file.read_bytes()
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        reply = json.loads(COLOUR.sub("", text))
        listed += reply["workflow_runs"] if isinstance(reply, dict) else reply
    runs = {(run.id, run.attempt): run for run in own_runs(listed, branch)}
    return sorted(runs.values(), key=lambda run: (run.created_at, run.id))


@dataclass
class RecordedRuns:
    """A forge that knows nothing but runs, as they were at `now`."""

    runs: list[WorkflowRun]
    now: datetime

    def workflow_runs(
        self, workflow: int = 0, event: str = "", failed: bool = False, most: int = 100
    ) -> tuple[WorkflowRun, ...]:
        """As in the port."""
        found = [run for run in reversed(self.runs) if run.ended_at and run.ended_at <= self.now]
        wanted = [run for run in found if workflow in (0, run.workflow) and event in ("", run.event)]
        return tuple(run for run in wanted if run.failed or not failed)[:most]

    def failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """None were recorded."""
        return ()

    def test_reports(self, run: WorkflowRun) -> tuple[bytes, ...]:
        """None were recorded."""
        return ()


def replay(git: Git, branch: str, runs: list[WorkflowRun]) -> None:
    """Print each finding once, when it comes, and how many runs were looked at."""
    forge, cursor, told = RecordedRuns(runs, datetime.min), "", set[tuple[str, ...]]()
    over = sorted((run for run in runs if run.ended_at), key=lambda run: cast(datetime, run.ended_at))
    for run in over:
        assert run.ended_at is not None
        forge.now = run.ended_at
        context = ObservationContext(Branch(branch, run.sha), run.ended_at, None, cursor, "")
        seen = build(CiSettings(), cast(Forge, forge), git).observe(context)
        cursor = seen.cursor
        now = {signal.essence: signal for signal in seen.signals}
        for essence in now.keys() - told:
            print(f"{run.ended_at:%Y-%m-%d %H:%M} {now[essence].kind}: {now[essence].title}")
        for essence in told - now.keys():
            print(f"{run.ended_at:%Y-%m-%d %H:%M} over: {essence[1]}")
        told = set(now)
    print(f"{len(over)} runs, {sum(run.failed for run in over)} failed, {sum(run.passed for run in over)} passed")


if __name__ == "__main__":
    clone, name, *paths = sys.argv[1:]
    replay(Git.open(Path(clone)), name, read_runs([Path(path) for path in paths], name))
