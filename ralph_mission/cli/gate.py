"""`ralph due` without click, pydantic or rich: the gate that every wake passes, many times an hour.

What the gate needs of a server's settings, with nothing checked out: where memory is, and the longest pause.

Read from the default branch; kept by its commit, so that a wake costs one more look at a ref and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import Remote, acts_on_github
from ralph_mission.adapters.git.remote import place as server
from ralph_mission.adapters.storage.memory.due import usual_longest
from ralph_mission.cli.spelling import iso, moment
from ralph_mission.errors import UserError
from ralph_mission.mission.memory import layout
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.git.remote import RepositoryPlace
    from ralph_mission.config.settings import Config

NOT_DUE = 10
LONGEST_WAIT = 60  # seconds


@dataclass(frozen=True, slots=True)
class Plain:
    """What was asked of `ralph due`."""

    repo: str = "."
    config: str | None = None
    now: str | None = None
    json: bool = False
    wait: int = 0  # seconds that the due moment may be away and is waited for


def plain(arguments: list[str]) -> Plain | None:
    """The question, when it needs no real parser; None for help, mistakes and abbreviations."""
    asked, rest = Plain(), list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--json" and not equals:
            asked = replace(asked, json=True)
            continue
        if name not in ("--repo", "--config", "--now", "--wait") or not (equals or rest):
            return None
        value = value if equals else rest.pop(0)
        if name == "--wait" and not (value.isdecimal() and int(value) <= LONGEST_WAIT):
            return None
        asked = replace(asked, **{name.removeprefix("--"): int(value) if name == "--wait" else value})  # type: ignore[arg-type]  # names of Plain
    return asked


def memory_place(asked: Plain) -> dict[str, str]:
    """Where memory is by the settings here, if it may be elsewhere than usual: only then are they worth their cost."""
    if acts_on_github(os.environ):
        return {}  # what an earlier job left in the workspace may be anyone's
    if not asked.config and not _mentions(asked, "memory"):
        return {}
    memory = _settings(asked).memory
    return {"branch": memory.branch, "path": memory.path}


def longest_pause(asked: Plain) -> timedelta:
    """The longest pause by the settings here. Raises UserError."""
    from ralph_mission.adapters.storage.memory.due import usual_longest

    if not asked.config and not _mentions(asked, "schedule"):
        return usual_longest()
    return _settings(asked).schedule.rhythm().longest


def _mentions(asked: Plain, section: str) -> bool:
    """Whether the usual settings file may have this section."""
    place = Path(asked.repo) / "ralph.yml"
    key = rb"^\s*\{?\s*['\"]?%s['\"]?\s*:" % section.encode()
    return place.is_file() and bool(re.search(key, place.read_bytes(), re.M))


def _settings(asked: Plain) -> Config:
    from ralph_mission.config.reading import read

    return read(Git.open(Path(asked.repo)), Path(asked.config) if asked.config else None)


def _on_server(asked: Plain) -> bool:
    """Whether the memory that counts is GitHub's: in a workflow, or where the settings name that forge."""
    if acts_on_github(os.environ):
        return True
    place = Path(asked.config) if asked.config else Path(asked.repo) / "ralph.yml"
    return place.is_file() and bool(re.search(rb"\bkind\s*:\s*['\"]?github\b", place.read_bytes()))


def cache_folder(url: str) -> Path:
    """The folder of the cache: the runner's tool cache outlives a workspace."""
    base = os.environ.get("RUNNER_TOOL_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ralph-due" / hashlib.sha256(url.encode()).hexdigest()[:16]


def ask(asked: Plain) -> tuple[bool, datetime | None, str]:
    """(due, when next, why). Raises UserError."""
    from ralph_mission.adapters.storage.memory.due import due_fast, due_on_server

    now, longest = moment(asked.now) or datetime.now(UTC), partial(longest_pause, asked)
    if not _on_server(asked):
        return due_fast(Path(asked.repo), now, **memory_place(asked), longest=longest)
    place = server(os.environ)
    cache = cache_folder(place.git_url)
    if not acts_on_github(os.environ):
        return due_on_server(place, cache, now, **memory_place(asked), longest=longest)
    pass  # merged

    said = on_server(place, cache, asked.config)
    return due_on_server(place, cache, now, said.branch, said.path, lambda: said.longest)


def patiently(asked: Plain, sleep: Callable[[float], None] = time.sleep) -> tuple[bool, datetime | None, str]:
    """As `ask`, after the wait that was allowed when a cycle is due that soon. Raises UserError."""
    from ralph_mission.adapters.storage.memory.due import PAUSED

    due, next_due_at, reason = ask(asked)
    if due or reason == PAUSED or next_due_at is None or not asked.wait or asked.now:
        return due, next_due_at, reason
    left = (next_due_at - datetime.now(UTC)).total_seconds()
    if left > asked.wait:
        return due, next_due_at, reason
    sleep(max(left, 0.0))
    return ask(asked)


def answer(asked: Plain) -> int:
    """Print whether a cycle is due; 0 when it is, 10 when not. Raises UserError."""
    due, next_due_at, reason = patiently(asked)
    if asked.json:
        import json

        print(json.dumps({"due": due, "next_due_at": iso(next_due_at), "reason": reason}))
    else:
        print(reason)
    return 0 if due else NOT_DUE


NAME = "ralph.yml"


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """Branch and path of memory, and the longest pause between two cycles."""

    branch: str = layout.BRANCH
    path: str = layout.MEMORY
    longest: timedelta = field(default_factory=usual_longest)


def on_server(place: RepositoryPlace, kept: Path, config: str | None) -> ServerMemory:
    """What `config` (a path in the repository; `ralph.yml` without one) says on the default branch.

    Settings that cannot be read say nothing here: the cycle then says what is wrong. `kept` is the folder of the
    cache. Raises UserError when the server cannot be asked.
    """
    path = posixpath.normpath(config or NAME)
    with Remote.without_clone(place) as remote:
        branch, oid = remote.default()
        said = read_cached(kept, oid, path)
        if said is None:
            within = not path.startswith(("../", "/")) and path != ".."  # elsewhere the server has nothing
            said = _parse(remote.peek(branch, path) if within else None)
            with suppress(OSError):  # a cache
                known = {"oid": oid, "config": path, "said": [said.branch, said.path, said.longest.total_seconds()]}
                files.write(files.own(kept) / "settings.json", json.dumps(known).encode())
    return said


def _parse(content: bytes | None) -> ServerMemory:
    if content is None or (b"memory" not in content and b"schedule" not in content):
        return ServerMemory()
    from ralph_mission.config.reading import load

    try:
        settings = load(content.decode("utf-8-sig"))
    except (UserError, UnicodeDecodeError):
        return ServerMemory()
    return ServerMemory(settings.memory.branch, settings.memory.path, settings.schedule.rhythm().longest)


def read_cached(kept: Path, oid: str, path: str) -> ServerMemory | None:
    """What was read at this commit before, if anything."""
    try:
        known: dict[str, Any] = json.loads((kept / "settings.json").read_bytes())
        branch, memory, longest = known["said"]
        sound = (known["oid"], known["config"]) == (oid, path) and type(branch) is type(memory) is str
        return ServerMemory(branch, memory, timedelta(seconds=longest)) if sound else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
