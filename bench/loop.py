"""What a loop costs beside the work it does: `python -m bench.loop`. Medians, all from one run.

Each of our figures stands beside `python -c pass` and `git status`, taken in turns: the least that any call of a
command line costs here. A call of the Model Context Protocol is timed from its line to the answer's line, because
each agent has a client of its own; the official one in Python stands beside it. From Ctrl-C to the end of `ralph run`
there is nothing to stand beside.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from rich.console import Console

from bench.generated import generate
from bench.run import RALPH, Action, Comparison, _commands, _measure, _ralph, _report, _table, asked
from examples.unpack import unpack
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.storage.loop.tasks import Tasks
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.teams import play_run

TASKS = 100
"""On the list when the measuring begins; seed documents speak of 30 a night."""

SESSIONS, RUNS = 10, 5
WHO = "git -c user.name=Inge -c user.email=inge@slackwater.example"
AGENT = f"date +%s%N >> src/part1/notes.txt && git add src/part1/notes.txt && {WHO} commit --quiet --message Note"
"""The least that a session can be: one small commit."""

BUSY = "echo $$ > .ralph/busy; sleep 600"
DEAF = f"trap '' INT TERM; {BUSY}"
WORKING = {
    "an agent that ignores it": ("--command", DEAF),
    "a check that ignores it": (
        "--command",
        "date > note.txt; echo LOOP_COMPLETE",
        "--verify",
        f"test ! -e note.txt || ({DEAF})",
    ),
    "an agent that obeys": ("--command", BUSY),
}
"""What `ralph run` waits for when Ctrl-C comes. The check passes on the base, which is looked at before any session."""
PROMISED, PATIENCE = 2000, 60.0
"""Milliseconds from Ctrl-C to the end; seconds after which a benchmark gives up."""


def main(most: int = 200) -> int:
    """Run every comparison, at most so many rounds, and print the table; a missed target is said, not punished."""
    progress = Console(stderr=True)
    table = _table()
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder, serving(_checkout(Path(folder))) as comparisons:
        for comparison in comparisons:
            rounds = min(most, comparison.rounds)
            progress.print(f"{comparison.title}: {rounds} rounds …")
            _report(table, comparison, _measure(comparison, rounds))
        runs = min(most, RUNS)
        progress.print(f"around a session: {runs} runs of {SESSIONS} sessions …")
        _report(table, *_around(generate(Path(folder) / "large", datetime.now(UTC)), runs))
        progress.print(f"Ctrl-C: {runs} runs each …")
        _report(table, *_interrupts(Path(folder), runs))
    Console(width=120).print(table)
    return 0


@contextmanager
def serving(repo: Path) -> Iterator[Sequence[Comparison]]:
    """The comparisons, while two `ralph agent mcp` serve the checkout."""
    server = StdioServerParameters(command=str(RALPH), args=["agent", "mcp", "--repo", str(repo)], env=dict(os.environ))
    with (
        _asking(repo) as ask,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(server))) as client,
    ):

        def call(tool: str, **arguments: Any) -> Action:
            def action() -> None:
                answer = portal.call(client.call_tool, tool, arguments)
                if answer.is_error:
                    raise SystemExit(f"{tool}: {answer}")

            return action

        def both(what: str, tool: str, **arguments: Any) -> Comparison:
            asked = _beside(repo, what, tool, lambda: ask("tools/call", name=tool, arguments=arguments), 3, 200)
            return replace(asked, sides=dict(asked.sides) | {"by the official client": call(tool, **arguments)})

        yield [
            both("MCP: look", "work_list", ready=True),
            both("MCP: change", "work_add", title="One more"),
            both("MCP: say", "event_emit", topic="build.note"),
            _beside(
                repo,
                "command line: look",
                "ralph agent task list",
                _ralph(repo, "agent", "task", "list", "--ready"),
                60,
                20,
            ),
            _beside(
                repo,
                "command line: change",
                "ralph agent task add",
                _ralph(repo, "agent", "task", "add", "One more"),
                60,
                20,
            ),
            _beside(repo, "command line: say", "ralph agent emit", _ralph(repo, "agent", "emit", "build.note"), 60, 20),
        ]


@contextmanager
def _asking(repo: Path) -> Iterator[Callable[..., None]]:
    """A way to ask one `ralph agent mcp` line by line."""
    command = [str(RALPH), "agent", "mcp", "--repo", str(repo)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        asking, answers = process.stdin, process.stdout

        def send(**message: Any) -> None:
            asking.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            asking.flush()

        def ask(method: str, **params: Any) -> None:
            send(id=1, method=method, params=params)
            answer = json.loads(answers.readline())
            if "error" in answer or answer["result"].get("isError"):
                raise SystemExit(f"{method}: {answer}")

        ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"})
        send(method="notifications/initialized")
        yield ask
        asking.close()


def _around(repo: Path, runs: int) -> tuple[Comparison, dict[str, list[float]]]:
    """What the engine does around each session, in ms: a run's time without its agent's own, over its sessions."""
    alone = _commands(repo, *(("/bin/sh", "-c", AGENT),) * SESSIONS)
    measured = _beside(repo, "around a session, 5,200 files", "a run of ten", lambda: _run(repo), 150, runs)
    comparison = Comparison(measured.title, dict(measured.sides) | {"the agent alone": alone}, 150, "ms", runs)
    samples = _measure(comparison, runs)
    whole, own = samples.pop("a run of ten"), samples.pop("the agent alone")
    each = [(run - agent) / SESSIONS for run, agent in zip(whole, own, strict=True)]
    return comparison, {"ralph run, a session": each} | samples | {"the agent alone": [ms / SESSIONS for ms in own]}


def _run(repo: Path) -> None:
    account, _ = play_run(RunOptions(repo=repo, task="Take notes", command=AGENT, iterations=SESSIONS), _silent())
    if account.ending.reason != "iterations" or not all(output.commits for output in account.outputs):
        raise SystemExit(f"ralph run: {account.ending}")


def _interrupts(folder: Path, runs: int) -> tuple[Comparison, dict[str, list[float]]]:
    """From SIGINT to the end of the process, in ms; the first side is the one that the promise is about."""
    repo = folder / "interrupted"
    unpack(repo)
    samples = {name: [_interrupted(repo, options) for _ in range(runs)] for name, options in WORKING.items()}
    return Comparison("Ctrl-C while it waits for", {}, PROMISED, "ms", runs), samples


def _interrupted(repo: Path, options: Sequence[str]) -> float:
    busy = repo / ".ralph/workspace/tree/.ralph/busy"
    busy.unlink(missing_ok=True)
    process = subprocess.Popen([str(RALPH), "run", "Take notes", *options], cwd=repo,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip  # one call
    _until(busy.exists)
    start = time.perf_counter()
    process.send_signal(signal.SIGINT)
    code = process.wait(PATIENCE)
    took = (time.perf_counter() - start) * 1000
    if code != 130:
        raise SystemExit(f"ralph run: exit {code}")
    return took


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise SystemExit("ralph run: it never began")
        time.sleep(0.01)


def _silent() -> PlainRunProgress:
    return PlainRunProgress(io.StringIO(), ())


def _beside(repo: Path, title: str, name: str, action: Action, limit: float, rounds: int) -> Comparison:
    sides = {
        name: action,
        "python -c pass": _commands(repo, (sys.executable, "-c", "pass")),
        "git status": _commands(repo, ("git", "status", "--short")),
    }
    return Comparison(title, sides, limit, "ms", rounds)


def _checkout(folder: Path) -> Path:
    """The sample with a list of tasks."""
    unpack(folder / "sample")
    tasks = Tasks(folder / "sample" / ".ralph")
    for number in range(TASKS):
        tasks.add(f"Task {number}", description="what is to be done, in a sentence or two")
    return folder / "sample"


if __name__ == "__main__":
    sys.exit(main(asked(__doc__, "rounds", 200)))
