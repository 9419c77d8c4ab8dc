"""Replay what a failing test of this folder tells: 1 where it goes wrong again.

python -m tests.crash --stage "…" --kind … --at N       one fault; without --at, at every call that it can strike
python -m tests.crash --stage "…" --blows 1=death 2=500  a pair: by the number of the write
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.crash.cases import ALL, Case, scene, strike
from tests.crash.stages import EVERY, staged
from tests.crash.test_pairs import Life
from tests.figures import Table


def main(arguments: Sequence[str] | None = None) -> int:
    """One fault, or what else was asked for."""
    asked = parse_arguments(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return _struck(asked, Path(folder)) if asked.kind else _endured(asked, Path(folder))


def _struck(asked: argparse.Namespace, folder: Path) -> int:
    with scene(folder, asked.stage) as played:
        chosen = [Case(asked.stage, asked.kind, asked.at)] if asked.at else played.cases([asked.kind])
        found = [strike(played, case) for case in chosen]
    for struck in found:
        told = "; ".join(struck.wrong) or f"as it should be: {struck.end.rest.outcomes}"
        print(f"{asked.kind} at {struck.call}: {told}")
        print(f"  {dict(+struck.end.log.taken)}")
    return int(any(struck.wrong for struck in found))


def _endured(asked: argparse.Namespace, folder: Path) -> int:
    """The same assertions as in the tests."""
    table, blows = Table("replayed"), (one.partition("=") for one in asked.blows)
    try:
        with staged(folder, asked.stage) as hub:
            Life(hub, asked.stage, table).endure({int(number): kind for number, _, kind in blows})
    except AssertionError as error:
        print(f"it goes wrong: {error}")
        return 1
    print(*table.lines, sep="\n")
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", required=True, choices=EVERY)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--kind", choices=ALL)
    what.add_argument("--blows", nargs="+", metavar="N=KIND", help="two faults of one life")
    parser.add_argument("--at", type=int, default=0, help="the number of the call, from 1")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
