"""What we cost around a session of a real agent: `python -m bench.agents`. Medians and ratios, all from one run.

The clients ask a scripted model on loopback, once as a person starts them and once by `ralph run`, in turns. Their
programs are those of `make test-real`, and nothing is downloaded here. With `--cold`, setting them up is measured too,
in a folder of its own: that downloads them once more (about 420 MB).
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench.loop import _silent
from bench.run import Action, Comparison, _measure, _report, _table
from ralph_mission.adapters.agents.claude import QUIET
from ralph_mission.adapters.agents.client import SessionPlace
from ralph_mission.adapters.agents.clients import CLIENTS
from ralph_mission.adapters.sandbox.isolation import Level, missing_bwrap
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.teams import play_run
from ralph_mission.loop.model.state import Hat, Session
from tests.fakes.model.script import Reply, say
from tests.fakes.model.server import ScriptedModel
from tests.helpers import make_repo
from tests.real.clients import MODELS, PLACE, PROGRAMS, environment, seen, settings, shell

ROOT = Path(__file__).resolve().parent.parent
SESSIONS, ROUNDS = 2, 5
WORK = "date +%s%N > note.txt"
"""The least that a session can be: one tool call that changes a file, and a word."""
ALONE = "the client alone"
BUNDLED = PLACE / "claude_agent_sdk" / "_bundled" / "claude"
LIMITS = {"claude": 2.5, "codex": 2.0}
"""How many times as long a session by us may take whose model answers at once; real ones answer for minutes. A second
of Claude Code's is the import of its library, which has a row of its own."""
LIBRARY = f"import sys; sys.path.append({str(PLACE)!r}); import claude_agent_sdk"
INSTALLED_IN = 200  # ms to find that everything is there
NEEDED = ("scripts", "tests/real/node", "requirements-claude.lock", "requirements-prisma.lock")
"""What setting them up reads."""


def main(most: int = ROUNDS, cold: bool = False) -> int:
    """Run every comparison, at most so many rounds, and print the table; a missed target is said, not punished.

    `cold`: download the clients, to measure that.
    """
    progress = Console(stderr=True)
    if not (PLACE / "installed").exists():
        progress.print("agents: not measured, their programs are not in .venv/node: make test-real installs them")
        return 0
    table = _table()
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as folder:
        Path(folder).chmod(0o711)
        for name in LIMITS:
            progress.print(f"a session of {name}: {most} rounds of {SESSIONS} …")
            _report(table, *around(name, Path(folder), most))
        if cold:
            progress.print("setting up the clients, cold: about 420 MB …")
            if setting := set_up(Path(folder) / "cold", most):
                _report(table, *setting)
            else:
                progress.print("setting up: not measured, it did not come to an end (see above)")
    Console(width=120).print(table)
    return 0


def around(name: str, folder: Path, rounds: int) -> tuple[Comparison, dict[str, list[float]]]:
    """A session by us at `env` and at the strongest level here, beside the client alone; ms of one session each."""
    script = [shell(name, WORK), say("Done.")]
    levels: tuple[Level, ...] = ("env",) if missing_bwrap()[0] else ("env", "bwrap")
    with asking(script * (SESSIONS * (rounds + 1) * (len(levels) + 1))) as model:
        runs = [_run(name, folder / f"{name}-{level}", level) for level in levels]
        first, *others = [(f"ralph run, {level}", run) for level, run in zip(levels, runs, strict=True)]
        library = {"its library's import": _importing} if name == "claude" else {}
        sides = dict([first, (ALONE, _alone(name, folder / f"{name}-alone", model)), *others]) | library
        comparison = Comparison(f"a session of {name}", sides, LIMITS[name], "ratio", rounds)
        samples = _measure(comparison, rounds)
    return comparison, {side: [ms / SESSIONS for ms in took] for side, took in samples.items()}


@contextmanager
def asking(script: list[Reply]) -> Iterator[ScriptedModel]:
    """A model, with our own environment leading to it."""
    before = dict(os.environ)
    with ScriptedModel(script) as model:
        os.environ.update(environment(model))
        try:
            yield model
        finally:
            os.environ.clear()
            os.environ.update(before)
    if model.refused or not model.said_all:
        raise SystemExit(f"the model was asked otherwise than planned: {model.refused[:3]}")


def set_up(folder: Path, rounds: int) -> tuple[Comparison, dict[str, list[float]]] | None:
    """What `make test-real` does before its tests: the first time, and when everything is there; None if it failed."""
    for name in NEEDED:
        place, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        _ = shutil.copytree(place, copy) if place.is_dir() else shutil.copy(place, copy)
    shutil.copytree(ROOT / ".venv" / "bin", folder / ".venv" / "bin", symlinks=True)
    shutil.copy(ROOT / ".venv" / "pyvenv.cfg", folder / ".venv")
    (folder / ".venv" / "lib").symlink_to(ROOT / ".venv" / "lib")
    command = (sys.executable, str(folder / "scripts" / "node.py"))
    start = time.perf_counter()
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        return None
    cold = (time.perf_counter() - start) * 1000
    warm = Comparison("setting up the clients", {"warm": lambda: subprocess.run(command, check=True)}, INSTALLED_IN,
                      "ms", rounds)  # fmt: skip  # one value
    return warm, {**_measure(warm, rounds), "cold, with its downloads": [cold]}


def _run(name: str, folder: Path, level: Level) -> Action:
    repo = make_repo(folder, {"README.md": "# Shop\n", "ralph.yml": settings(name, level)})
    order = RunOptions(
        repo=repo, task="Take notes", agent=name, command=shlex.join(PROGRAMS[name]), iterations=SESSIONS
    )

    def run() -> None:
        account, _ = play_run(order, _silent())
        if account.ending.reason != "iterations" or any(output.failure for output in account.outputs):
            raise SystemExit(f"ralph run: {account.ending}, {account.outputs}")

    return run


def _importing() -> None:
    for _ in range(SESSIONS):
        subprocess.run((sys.executable, "-I", "-c", LIBRARY), check=True)


def _alone(name: str, folder: Path, model: ScriptedModel) -> Action:
    """The client with the same prompt, as its manual calls it."""
    repo, home, scratch = make_repo(folder / "tree", {"README.md": "# Shop\n"}), folder / "home", folder / "scratch"
    home.mkdir()
    scratch.mkdir()
    places = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(scratch)}

    def run() -> None:
        for _ in range(SESSIONS):
            subprocess.run(_line(name, repo, home, model), input="Take notes", text=True, cwd=repo, check=True,
                           capture_output=True, env={**places, **QUIET, **seen(model)})  # fmt: skip  # one call

    return run


def _line(name: str, repo: Path, home: Path, model: ScriptedModel) -> tuple[str, ...]:
    if name == "claude":
        options = ("-p", "--output-format", "json", "--model", MODELS[name], "--allowedTools", "Bash")
        return (str(BUNDLED), *options)
    session = Session(Hat("builder"), 1, "Take notes", str(home), MODELS[name])
    env: Mapping[str, str] = seen(model)
    return (*PROGRAMS[name], *CLIENTS[name].invocation(session, SessionPlace(repo, home, env)).arguments)


def parse_arguments() -> tuple[int, bool]:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"at most so many (default: {ROUNDS})")
    words.add_argument("--cold", action="store_true", help="download the clients too (420 MB), and time that")
    given = words.parse_args()
    return max(1, given.rounds), given.cold


if __name__ == "__main__":
    sys.exit(main(*parse_arguments()))
