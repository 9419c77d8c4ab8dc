"""Whether each guard's test passes with it, and fails without it: `python -m tests.guards [--only NAME]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.guards.guard import ROOT, Guard
from tests.guards.playing import Play, Played, play_all
from tests.guards.registry import guards as registered
from tests.guards.registry import subjects
from tests.guards.telling import BROKEN
from tests.trust.table import Table

KILLED, SURVIVED, UNTRIED = "killed", "SURVIVED", "UNTRIED"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every guard was killed by its test."""
    asked = _parser().parse_args(arguments)
    os.chdir(ROOT)
    chosen = [one for name in asked.subject for one in subjects()[name]] or registered()
    guards = [guard for guard in chosen if not asked.only or guard.name in asked.only]
    if missing := set(asked.only) - {guard.name for guard in guards}:
        print(f"[guards] there is no guard named {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    if asked.among:
        return _search(guards, asked.among, asked.jobs)
    return _judge(guards, asked.jobs, asked.figures)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this guard alone; may be repeated")
    parser.add_argument("--subject", choices=subjects(), action="append", default=[], help="this part; may be repeated")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--figures", metavar="FILE", help="write what was counted, as JSON")
    parser.add_argument("--among", metavar="TESTS", action="append", help="show which of these tests fail without it")
    return parser


def _judge(guards: Sequence[Guard], jobs: int, figures: str | None) -> int:
    passing = _passing(guards, jobs)
    verdicts: dict[str, str] = {}
    for played in play_all((Play((guard.test,), guard) for guard in guards if _is_in(guard, passing)), jobs):
        guard = played.play.guard
        assert guard is not None
        verdicts[guard.name], said = verdict(played)
        print(f"[guards] {verdicts[guard.name]:8} {guard.name} ({guard.holds}) at {guard.where} by {said}", flush=True)
    for guard in guards:
        if verdicts.setdefault(guard.name, UNTRIED) == UNTRIED:
            print(f"[guards] {UNTRIED:8} {guard.name}: with the guard, {guard.test} does not pass")
    table = _counted(guards, verdicts)
    print("\n".join(table.lines))
    if figures:
        Path(figures).write_text(json.dumps({table.name: table.rows}, indent=2, sort_keys=True) + "\n")
    survivors = [name for name, one in verdicts.items() if one != KILLED]
    told = ", ".join(survivors) or "none"
    print(f"[guards] {len(guards) - len(survivors)} of {len(guards)} killed; survivors: {told}")
    return 1 if survivors else 0


def _passing(guards: Iterable[Guard], jobs: int) -> set[str]:
    """The ids of what passes with every guard in its place, by file, each test once."""
    files: dict[str, dict[str, None]] = {}
    for guard in guards:
        files.setdefault(guard.test.split("::")[0], {})[guard.test] = None
    found: set[str] = set()
    for played in play_all((Play(tuple(tests)) for tests in files.values()), jobs):
        found |= set(played.passed)
        for one in played.failed:
            print(f"[guards] fails with all guards in place: {one['test']}: {one['said']}", flush=True)
        if played.broke:
            print(f"[guards] {' '.join(played.play.tests)}: {played.broke}", flush=True)
    return found


def _is_in(guard: Guard, passing: Iterable[str]) -> bool:
    return any(one == guard.test or one.startswith(f"{guard.test}[") for one in passing)


def verdict(played: Played) -> tuple[str, str]:
    """What became of a mutant, and what says so: a test's assertion or the product's reaction, nothing else."""
    if played.broke:
        return UNTRIED, f"nobody: {played.broke}"
    if not played.failed:
        return SURVIVED, f"nobody: {len(played.passed)} passed without it"
    first = played.failed[0]
    return (UNTRIED if first["kind"] == BROKEN else KILLED), f"{first['test']}, {first['kind']}: {first['said']}"


def _counted(guards: Iterable[Guard], verdicts: dict[str, str]) -> Table:
    table, asked = Table("guard mutants"), set(guards)
    for subject, members in subjects().items():
        for guard in (one for one in members if one in asked):
            killed = int(verdicts[guard.name] == KILLED)
            table.count(subject, guards=1, killed=killed, survived=1 - killed)
    return table


def _search(guards: Sequence[Guard], tests: Sequence[str], jobs: int) -> int:
    """For whoever writes a row: the tests that could be named in it."""
    for played in play_all((Play(tuple(tests), guard, most=12) for guard in guards), jobs):
        print(f"[guards] {played.play.guard and played.play.guard.name}: {played.broke}", flush=True)
        for one in played.failed:
            print(f"  {one['kind']:9} {one['test'].removeprefix('tests/')}  {one['said'][:80]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
