"""`ralph due` without click, pydantic or rich: the gate that every wake passes, many times an hour."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.cli.moment import iso, moment
from ralph_mission.gateways.place import acts_on_github
from ralph_mission.gateways.place import place as server

NOT_DUE = 10


@dataclass(frozen=True, slots=True)
class Plain:
    """What was asked of `ralph due`."""

    repo: str = "."
    config: str | None = None
    now: str | None = None
    json: bool = False


def plain(arguments: list[str]) -> Plain | None:
    """The question, when it needs no real parser; None for help, mistakes and abbreviations."""
    asked, rest = Plain(), list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--json" and not equals:
            asked = replace(asked, json=True)
        elif name in ("--repo", "--config", "--now") and (equals or rest):
            asked = replace(asked, **{name.removeprefix("--"): value if equals else rest.pop(0)})  # type: ignore[arg-type]  # names of Plain
        else:
            return None
    return asked


def memory_place(asked: Plain) -> dict[str, str]:
    """Where memory is, when it may be elsewhere than usual: only then are the settings worth their cost."""
    if acts_on_github(os.environ):
        return {}  # what an earlier job left in the workspace may be anyone's; the cycle asks the default branch
    place = Path(asked.config) if asked.config else Path(asked.repo) / "ralph.yml"
    if not asked.config and not (
        place.is_file() and re.search(rb"^\s*\{?\s*['\"]?memory['\"]?\s*:", place.read_bytes(), re.M)
    ):
        return {}
    from ralph_mission.config import read
    from ralph_mission.gateways.git import Git

    memory = read(Git.open(Path(asked.repo)), Path(asked.config) if asked.config else None).memory
    return {"branch": memory.branch, "path": memory.path}


def _on_server(asked: Plain) -> bool:
    """Whether the memory that counts is GitHub's: in a workflow, or where the settings name that forge."""
    if acts_on_github(os.environ):
        return True
    place = Path(asked.config) if asked.config else Path(asked.repo) / "ralph.yml"
    return place.is_file() and bool(re.search(rb"\bkind\s*:\s*['\"]?github\b", place.read_bytes()))


def kept(url: str) -> Path:
    """The folder of the cache: the runner's tool cache outlives a workspace."""
    base = os.environ.get("RUNNER_TOOL_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ralph-due" / hashlib.sha256(url.encode()).hexdigest()[:16]


def ask(asked: Plain) -> tuple[bool, datetime | None, str]:
    """(due, when next, why). Raises Trouble."""
    from ralph_mission.stores.due import due_fast, due_on_server

    now, memory = moment(asked.now) or datetime.now(UTC), memory_place(asked)
    if _on_server(asked):
        place = server(os.environ)
        return due_on_server(place, kept(place.git_url), now, **memory)
    return due_fast(Path(asked.repo), now, **memory)


def answer(asked: Plain) -> int:
    """Print whether a cycle is due; 0 when it is, 10 when not. Raises Trouble."""
    due, next_due_at, reason = ask(asked)
    if asked.json:
        import json

        print(json.dumps({"due": due, "next_due_at": iso(next_due_at), "reason": reason}))
    else:
        print(reason)
    return 0 if due else NOT_DUE
