"""How long the action takes on a warm runner before it asks whether a cycle is due.

python -m tests.action.warm [REPEATS]       median and slowest, in milliseconds
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.action.runner import Runner, bare_environment, release


def warm_start(repeats: int = 20) -> list[float]:
    """Seconds of the action's first step, each time as a process of its own, on a runner that ran it before."""
    with tempfile.TemporaryDirectory(prefix="ralph-warm-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        runner = Runner(home, release(Path(folder) / "action"))
        runner.seed()
        return [_once(runner, Path(folder)) for _ in range(repeats)]


def _once(runner: Runner, folder: Path) -> float:
    environment = bare_environment(
        runner.home,
        RUNNER_TOOL_CACHE=str(runner.tools),
        RUNNER_TEMP=str(folder),
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
        RALPH_MODE="cycle",
        RALPH_STAGED="false",
        RALPH_FORCE="false",
    )
    began = time.perf_counter()
    subprocess.run(["bash", str(runner.action / "scripts" / "action" / "prepare.sh")], env=environment, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    times = warm_start(*map(int, sys.argv[1:2]))
    print(f"warm start: {statistics.median(times) * 1000:.0f} ms, at most {max(times) * 1000:.0f} ms, of {len(times)}")
