"""Two `ralph run --worktree` in one repository at the same time: neither undoes the other one's commits."""

from __future__ import annotations

from pathlib import Path

from tests.cli.loop_world import world
from tests.helpers import git

TAKING_TURNS = """
change()
commit(os.environ["RALPH_RUN_DIR"].split("build-")[1][0])
(here / f"{call}-done").touch()
while len(list(here.glob("*-done"))) < (call + 1) // 2 * 2:
    time.sleep(0.02)
"""


def test_loops_in_work_trees_leave_each_other_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent(TAKING_TURNS)
    both = {name: here.start(f"build {name}", "--worktree", "--max-iterations", "3", *agent) for name in "ab"}
    for name, process in both.items():
        _, err = process.communicate(timeout=100)
        assert process.returncode == 2 and "undone" not in err, err
        branch = git(here.repo, "for-each-ref", "--format=%(refname)", f"refs/heads/ralph-run/build-{name}-*")
        assert git(here.repo, "log", "--format=%s", branch).split() == [name, name, name, "Start"]
