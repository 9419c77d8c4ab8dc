"""Whether each guard's test passes with it, and fails without it: `python -m tests.guards [--only NAME]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.guards.guard import ROOT, Guard
from tests.guards.playing import Play, Played, play_all
from tests.guards.registry import guards as registered
from tests.guards.registry import stale, subjects
from tests.guards.telling import BROKEN
from tests.trust.table import Table

KILLED, SURVIVED, UNTRIED, STALE = "killed", "SURVIVED", "UNTRIED", "STALE"
"""What became of a guard. Untried: its test does not pass, or is skipped, with the guard in its place, or a mutant
ended in no words; it proves nothing here. Stale: its row does not fit what stands there any more."""
WORDS = {SURVIVED: "survivors", UNTRIED: "untried", STALE: "stale"}


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
    verdicts = dict(_stale(guards))
    fit = [guard for guard in guards if guard.name not in verdicts]
    whole = _whole(fit, jobs)
    for played in play_all((Play((guard.test,), guard) for guard in fit if _is_in(guard, whole.passed)), jobs):
        guard = played.play.guard
        assert guard is not None
        verdicts[guard.name], said = verdict(played)
        print(f"[guards] {verdicts[guard.name]:8} {guard.name} ({guard.holds}) at {guard.where} by {said}", flush=True)
    for guard in (guard for guard in fit if guard.name not in verdicts):
        verdicts[guard.name] = UNTRIED
        print(f"[guards] {UNTRIED:8} {guard.name} ({guard.holds}): {_why_not(guard, whole)}")
    table = counted(guards, verdicts)
    print("\n".join(table.lines))
    if figures:
        Path(figures).write_text(json.dumps({table.name: table.rows}, indent=2, sort_keys=True) + "\n")
    return _summed_up(verdicts)


def _stale(guards: Iterable[Guard]) -> Iterator[tuple[str, str]]:
    for guard in guards:
        if wrong := stale(guard):
            yield guard.name, STALE
            print(f"[guards] {STALE:8} {guard.name}: {wrong}; mend [{guard.name}] in {guard.row}", flush=True)


def _whole(guards: Iterable[Guard], jobs: int) -> Played:
    """What all tests that are named come to with every guard in its place, by file, each test once."""
    files: dict[str, dict[str, None]] = {}
    for guard in guards:
        files.setdefault(guard.test.split("::")[0], {})[guard.test] = None
    passed, skipped = list[str](), dict[str, str]()
    for played in _alone_where_one_is_gone([Play(tuple(tests)) for tests in files.values()], jobs):
        passed += played.passed
        skipped |= played.skipped
        for one in played.failed:
            print(f"[guards] fails with all guards in place: {one['test']}: {one['said']}", flush=True)
        if played.broke:
            print(f"[guards] {' '.join(played.play.tests)}: {played.broke}", flush=True)
    return Played(Play(()), tuple(passed), skipped=skipped)


def _alone_where_one_is_gone(plays: Sequence[Play], jobs: int) -> Iterator[Played]:
    """pytest plays nothing of what it is asked when one id is none: then each of them alone."""
    again = list[Play]()
    for played in play_all(plays, jobs):
        if not (played.passed or played.failed or played.skipped) and len(played.play.tests) > 1:
            again += [Play((test,)) for test in played.play.tests]
        else:
            yield played
    yield from play_all(again, jobs) if again else ()


def _is_in(guard: Guard, names: Iterable[str]) -> bool:
    return any(one == guard.test or one.startswith(f"{guard.test}[") for one in names)


def _why_not(guard: Guard, whole: Played) -> str:
    """Why its test proves nothing here."""
    file = guard.test.partition("::")[0]
    reasons = [why for one, why in whole.skipped.items() if one == file or _is_in(guard, [one])]
    return f"{guard.test} is skipped here: {reasons[0]}" if reasons else f"with the guard, {guard.test} does not pass"


def verdict(played: Played) -> tuple[str, str]:
    """What became of a mutant, and what says so: a test's assertion or the product's reaction, nothing else."""
    if played.broke:
        return UNTRIED, f"nobody: {played.broke}"
    if not played.failed and not played.passed:
        return UNTRIED, f"nobody: skipped: {', '.join(sorted(set(played.skipped.values()))) or 'no test was played'}"
    if not played.failed:
        return SURVIVED, f"nobody: {len(played.passed)} passed without it"
    first = played.failed[0]
    return (UNTRIED if first["kind"] == BROKEN else KILLED), f"{first['test']}, {first['kind']}: {first['said']}"


def counted(guards: Iterable[Guard], verdicts: Mapping[str, str]) -> Table:
    """By subject: a guard is killed, or it survived, or nothing is known of it."""
    table, asked = Table("guard mutants"), set(guards)
    for subject, members in subjects().items():
        for one in (verdicts[guard.name] for guard in members if guard in asked):
            killed, survived = int(one == KILLED), int(one == SURVIVED)
            table.count(subject, guards=1, killed=killed, survived=survived, untried=1 - killed - survived)
    return table


def _summed_up(verdicts: Mapping[str, str]) -> int:
    """0 when every guard was killed."""
    by_end = {end: [name for name, one in verdicts.items() if one == end] for end in (SURVIVED, UNTRIED, STALE)}
    killed = len(verdicts) - sum(map(len, by_end.values()))
    told = "; ".join(f"{WORDS[end]}: {', '.join(names) or 'none'}" for end, names in by_end.items())
    print(f"[guards] {killed} of {len(verdicts)} killed; {told}")
    return 0 if killed == len(verdicts) else 1


def _search(guards: Sequence[Guard], tests: Sequence[str], jobs: int) -> int:
    """For whoever writes a row: the tests that could be named in it."""
    for played in play_all((Play(tuple(tests), guard, most=12) for guard in guards), jobs):
        print(f"[guards] {played.play.guard and played.play.guard.name}: {played.broke}", flush=True)
        for one in played.failed:
            print(f"  {one['kind']:9} {one['test'].removeprefix('tests/')}  {one['said'][:80]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
