"""Ourselves as processes: each ends by itself, and none outlives its time."""

from __future__ import annotations

from pathlib import Path

from ralph_mission.adapters.sandbox.ourselves import OwnProcess, run_side_by_side
from tests.helpers import make_repo


def test_processes_end_each_by_itself_and_in_time(tmp_path: Path) -> None:
    ended: dict[str, int] = {}
    jobs = [
        OwnProcess("wrong", ("no-such-command",), {}, 60.0),
        OwnProcess("late", ("watch", "--repo", str(make_repo(tmp_path / "late"))), {}, 0.0),
        OwnProcess("well", ("schema", "config"), {}, 60.0),
    ]
    run_side_by_side(jobs, 2, lambda job, code, said, seconds: ended.update({job.name: code}))
    assert ended == {"wrong": 2, "late": -1, "well": 0}
