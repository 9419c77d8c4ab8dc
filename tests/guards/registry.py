"""All guards, by subject: `rows/SUBJECT.toml`, a table for each.

For a new one, `python -m tests.guards --only NAME --among TESTS` shows which tests fail without it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from tests.guards.guard import ROOT, Guard

ROWS = Path(__file__).parent / "rows"
FORMATS = "ralph_mission/safety/token_formats.py"
FOUND = "safety/test_secrets.py::test_a_token_of_a_common_format_is_found"
PUBLISHED = "attacks/test_secrets.py::test_a_token_of_a_format_that_its_issuer_publishes_is_found_and_cut_out"


@cache
def subjects() -> dict[str, tuple[Guard, ...]]:
    """The guards of each part of the product."""
    read = {path.stem: _rows(path) for path in sorted(ROWS.glob("*.toml"))}
    return {**read, "secrets": (*read.get("secrets", ()), *_formats())}


@cache
def guards() -> tuple[Guard, ...]:
    """Every guard."""
    return tuple(guard for members in subjects().values() for guard in members)


def by_name(name: str) -> Guard:
    """Raises KeyError for a name that nobody registered."""
    return {guard.name: guard for guard in guards()}[name]


def _rows(path: Path) -> tuple[Guard, ...]:
    read, place = tomllib.loads(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix()
    return tuple(Guard(name, **row, row=place) for name, row in read.items())


def formats() -> tuple[str, ...]:
    """The kinds of token as they stand in the product."""
    table = (ROOT / FORMATS).read_text(encoding="utf-8").partition("_KINDS = {")[2].partition("\n}")[0]
    return tuple(re.findall(r'^    "([\w-]+)":', table, re.MULTILINE))


def _formats() -> tuple[Guard, ...]:
    """One for each kind of token that has no row of its own: off, no alternative of its pattern is left."""
    rows = {guard.name for guard in _rows(ROWS / "secrets.toml")}
    kinds = [kind for kind in formats() if f"format-{kind}" not in rows]
    off = 'r"(?!)" if True else r"'
    return tuple(
        Guard(f"format-{kind}", "33", FORMATS, f'    "{kind}": r"', f'    "{kind}": {off}', _found(kind))
        for kind in kinds
    )


def _found(kind: str) -> str:
    """The test that has a sample of it."""
    samples = (ROOT / "tests" / FOUND.partition("::")[0]).read_text(encoding="utf-8")
    return f"{FOUND}[{kind}]" if f'    "{kind}":' in samples else PUBLISHED


def stale(guard: Guard) -> str:
    """What of its row does not fit the product or the tests any more, in words; "" when it can be played."""
    file, _, test = guard.test.partition("[")[0].partition("::")
    if not (ROOT / file).is_file() or (test and test not in defined_in(file)):
        return f"there is no test {guard.test}"
    return guard.stale()


def defined_in(file: str) -> frozenset[str]:
    """The tests of a file by their ids, without parameters."""
    return _defined_in((ROOT / file).read_text(encoding="utf-8"))


@cache
def _defined_in(source: str) -> frozenset[str]:
    found, inside = set(), ""
    for line in source.splitlines():
        if match := re.match(r"class (\w+)", line):
            inside = match[1]
        elif match := re.match(r"(\s*)(?:async )?def (test\w*)", line):
            found.add(f"{inside}::{match[2]}" if match[1] else match[2])
        elif line[:1] not in ("", " ", "#", ")", "@"):
            inside = ""
    return frozenset(found)
