"""What is measured, by which command, and the file that keeps what it gave: with the commit, the day and the time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.figures import Told

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "figures"
PYTEST = ("-m", "pytest", "-q", "-n", "3")
CRASH = (*PYTEST, "-m", "crash")
AGENTS = tuple(
    f"tests/crash/test_{what}.py"
    for what in (
        "issue_agent_deaths",
        "issue_agent_races",
        "review_deaths",
        "coding_agent_deaths",
        "work_to_merge_deaths",
    )
)
SUITES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "crash-deaths": (*CRASH, "tests/crash/test_cases.py", "-k", "death_at_any_call"),
        "crash-faults": (*CRASH, "tests/crash/test_cases.py", "-k", "sort_of"),
        "crash-recoveries": (*CRASH, "tests/crash/test_recoveries.py"),
        "pairs": (*CRASH, "tests/crash/test_pairs.py"),
        "races": (*CRASH, "tests/crash/test_races.py", "tests/crash/test_interleavings.py"),
        "soak": (*CRASH, "tests/crash/test_soak.py"),
        "lives": (*CRASH, "tests/protocol"),
        "agents": (*CRASH, *AGENTS, "tests/integration/test_fleet_deaths.py", "tests/cli", "tests/adapters/storage"),
        "model": (*PYTEST, "-m", "not crash and not long", "tests/protocol"),
        "attacks": (*PYTEST, "-m", "(attack or benign) and not real and not crash"),
        "real": (*PYTEST, "-m", "real", "tests/real/test_canaries.py", "tests/real/test_malicious_model.py"),
        "guards": ("-m", "tests.guards", "--jobs", "2"),
        "load": ("-m", "bench.load"),
        "proof": ("-m", "bench.proof"),
    }
)
"""By name: the arguments of Python. Each takes `--figures FILE`. `make crash` runs the first eight as one; `real`
needs what `make test-real` installs, `proof` clones of real repositories."""
GENERATED = ("tools/trust/figures", "tools/trust/evidence.md", "docs/trust.md")
"""What a measurement itself writes: it makes no checkout another one."""
DIRTY = "-dirty"
"""After a commit: something else than it was measured."""


@dataclass(frozen=True)
class Measured:
    """What a suite gave: tables of figures, and where and when that was."""

    name: str
    command: str
    commit: str
    day: str
    minutes: float
    tables: Told


def measure(name: str) -> Measured:
    """Run a suite to its end. Raises CalledProcessError when it fails: figures of a failed run are not published.

    What was another commit when it came to its end was none all the way through.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        measured, begun = commit(ROOT), time.monotonic()
        subprocess.run([sys.executable, *SUITES[name], "--figures", str(file)], cwd=ROOT, check=True)
        minutes = round((time.monotonic() - begun) / 60, 1)
        told = json.loads(file.read_text())
    if commit(ROOT) != measured:
        measured = f"{measured.removesuffix(DIRTY)}{DIRTY}"
    made = Measured(name, command(name), measured, datetime.now(UTC).date().isoformat(), minutes, told)
    (FOLDER / f"{name}.json").write_text(json.dumps(vars(made), indent=1, sort_keys=True) + "\n")
    return made


def command(name: str) -> str:
    """As a person would type it."""
    return " ".join(("python", *(f'"{one}"' if " " in one else one for one in SUITES[name])))


def kept() -> dict[str, Measured]:
    """The newest figures of each suite that was measured."""
    files = (FOLDER / f"{name}.json" for name in SUITES)
    raw: list[dict[str, Any]] = [json.loads(file.read_text()) for file in files if file.exists()]
    return {one["name"]: Measured(**one) for one in raw}


def commit(root: Path) -> str:
    """The commit that is measured; `-dirty` where anything else than what measurements write is not committed."""
    head = _git(root, "rev-parse", "--short=10", "HEAD")
    others = (f":(exclude){path}" for path in GENERATED)
    return f"{head}{DIRTY}" if _git(root, "status", "--porcelain", "--", ".", *others) else head


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()
