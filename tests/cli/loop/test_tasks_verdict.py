"""`ralph verdict`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

from ralph_mission.adapters.storage.loop import state
from tests.adapters.storage.loop.test_verdicts import RUN
from tests.helpers import cli_here, make_repo


def test_a_verdict_is_kept_and_the_next_threshold_knows_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shop", {"a.txt": "a\n"})
    state.save(repo, RUN)
    done = cli_here("verdict", "accept", "--json", repo=repo)
    assert (done.code, json.loads(done.out)) == (
        0,
        {"run": RUN.run_id, "kind": "refactor", "left": 1, "accepted": True},
    )
    assert json.loads((repo / ".ralph/loop/verdicts.jsonl").read_text())["left"] == 1


def test_a_verdict_on_no_run_is_wrong_usage_of_a_loop_command(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shop", {"a.txt": "a\n"})
    done = cli_here("verdict", "reject", repo=repo)
    assert done.code == 64 and "no run" in done.err
