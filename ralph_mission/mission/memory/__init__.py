"""The memory branch as values and text, and the paths of everything on it."""

from __future__ import annotations

import re

from ralph_mission.values import compile_regex

BRANCH = "ralph-memory"
MEMORY = "memory/ralph-log.md"
DASHBOARD = "README.md"
OPEN = "memory/open.json"
LEDGER = "memory/ledger"
JOURNAL = "memory/journal"
ARCHIVE = "memory/archive"

_NAME = compile_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MONTH = compile_regex(r"\d{4}-\d{2}")


def record(key: str) -> str:
    """The path of a ledger record. Raises ValueError if the key cannot be a file name."""
    return f"{LEDGER}/{_check_name(_NAME, key)[:2]}/{key}.json"


def journal(cycle: int, cycle_id: str) -> str:
    """The path of a cycle's audit document. Raises ValueError."""
    number = f"{cycle:06d}-"  # an id may start with it already
    hundred = f"{cycle // 100:04d}"  # git rewrites a folder for each new file, so none may grow without limit
    return f"{JOURNAL}/{hundred}/{number}{_check_name(_NAME, cycle_id).removeprefix(number)}.json"


def archive(month: str) -> str:
    """The path of a month's archive, `month` being YYYY-MM. Raises ValueError."""
    return f"{ARCHIVE}/{_check_name(_MONTH, month)}.md"


def _check_name(pattern: re.Pattern[str], name: str) -> str:
    if not pattern.fullmatch(name):
        raise ValueError(f"no file name: {name!r}")
    return name
