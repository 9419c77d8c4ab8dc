"""Whether each guard's test passes with it, and fails without it: `python -m tests.guards [--only NAME]`."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.guards.guard import ROOT, Guard, read_guards
from tests.guards.off import BROKEN

LIMIT = 600.0
"""Seconds after which a test is given up, which kills no guard."""
PYTEST = (sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", "-p", "no:xdist")
KILLED, SURVIVED, UNTRIED, STALE = "killed", "SURVIVED", "UNTRIED", "STALE"
"""What became of a guard. Untried: its test does not pass or is skipped with the guard in its place, or the replacement
broke the module; it proves nothing here. Stale: its row does not fit what stands there any more."""
ALL_PASSED, SOME_FAILED = 0, 1  # pytest's exit codes


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every guard was killed by its test."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this guard alone; may be repeated")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--figures", metavar="FILE", help="write what was counted, as JSON")
    asked = parser.parse_args(arguments)
    if missing := set(asked.only) - set(read_guards()):
        print(f"[guards] there is no guard named {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    guards = [guard for name, guard in read_guards().items() if not asked.only or name in asked.only]
    with ThreadPoolExecutor(asked.jobs) as pool:
        tests = sorted({guard.test for guard in guards if not guard.find_fault()})
        share = max(1, -(-len(tests) // asked.jobs))
        shares = [tests[first : first + share] for first in range(0, len(tests), share)]
        passing = set().union(*pool.map(find_passing, shares))
        ends = pool.map(lambda guard: judge(guard, guard.test in passing), guards)
        verdicts = dict(zip(guards, ends, strict=True))
    if asked.figures:
        Path(asked.figures).write_text(json.dumps({"guard mutants": count_by_kind(verdicts)}, indent=2) + "\n")
    return summarise(verdicts)


def count_by_kind(verdicts: dict[Guard, str]) -> dict[str, dict[str, int]]:
    """Guards of promises, of rules and of attack cases: how many, and what became of them."""
    rows: dict[str, dict[str, int]] = {}
    for guard, verdict in verdicts.items():
        kind = "promises" if re.fullmatch(r"I\d+", guard.holds) else "attacks" if guard.holds.isdigit() else "rules"
        row = rows.setdefault(kind, {"guards": 0, "killed": 0, "survived": 0, "untried": 0})
        row["guards"] += 1
        row[{KILLED: "killed", SURVIVED: "survived"}.get(verdict, "untried")] += 1
    return rows


def find_passing(tests: Sequence[str]) -> set[str]:
    """Those that run and pass with every guard in its place: in one process, or each in its own if that cannot be."""
    code, said = run_pytest(["-rA", *tests], ROOT, LIMIT * len(tests))
    if code not in (ALL_PASSED, SOME_FAILED):  # one of them does not exist
        return set().union(*(find_passing([test]) for test in tests)) if len(tests) > 1 else set()
    ends = [line.split(" ", 1) for line in said.splitlines() if line.startswith(("PASSED ", "FAILED ", "ERROR "))]
    return {test for test in tests if {end for end, name in ends if _is_of(name, test)} == {"PASSED"}}


def _is_of(name: str, test: str) -> bool:
    return name.startswith((f"{test}[", f"{test} - ")) or name == test


def judge(guard: Guard, passes: bool) -> str:
    """What becomes of one guard; `passes`: its test does with the guard in its place."""
    if fault := guard.find_fault():
        verdict, why = STALE, fault
    elif not passes:
        verdict, why = UNTRIED, f"with the guard, {guard.test} does not pass or is skipped"
    else:
        code, said = _run_without(guard)
        verdict = {ALL_PASSED: SURVIVED, SOME_FAILED: KILLED}.get(code, UNTRIED)
        why = guard.test if verdict == KILLED else said.strip()[-400:]
    print(f"[guards] {verdict:8} {guard.name} ({guard.holds}): {why}", flush=True)
    return verdict


def _run_without(guard: Guard) -> tuple[int, str]:
    off = ["-x", "-p", "tests.guards.off", "--guard-off", guard.name, guard.test]
    if guard.module:
        return run_pytest(off, ROOT)
    with tempfile.TemporaryDirectory(prefix="ralph-guards-") as folder:
        _copy_checkout(guard, Path(folder))
        return run_pytest(["-x", guard.test], Path(folder))


def run_pytest(arguments: Sequence[str], place: Path, limit: float = LIMIT) -> tuple[int, str]:
    environment = {**os.environ, "CI": "1"}  # so that chance is the same each time
    try:
        done = subprocess.run(
            [*PYTEST, *arguments], cwd=place, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return BROKEN, f"it did not end within {limit:.0f} seconds"
    return done.returncode, done.stdout + done.stderr


def _copy_checkout(guard: Guard, place: Path) -> None:
    """What is no module (a script, the action) is switched off in a copy."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)
    (place / guard.file).write_text(guard.switched_off(), encoding="utf-8")
    (place / ".venv").symlink_to(ROOT / ".venv")


def summarise(verdicts: dict[Guard, str]) -> int:
    """Print what became of all. 0 when every guard was killed."""
    by_end = {end: [guard.name for guard, one in verdicts.items() if one == end] for end in (SURVIVED, UNTRIED, STALE)}
    killed = len(verdicts) - sum(map(len, by_end.values()))
    rest = "; ".join(f"{end.lower()}: {', '.join(names) or 'none'}" for end, names in by_end.items())
    print(f"[guards] {killed} of {len(verdicts)} killed; {rest}")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
