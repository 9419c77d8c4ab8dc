"""What a coding agent's program is to us: how it is called, what it needs, and how its answer is read.

One frozen value for each, in a module of its own and on a line of `registry.py`. How it is run (the guards on PATH, the
home, limits, the end of its processes) is the same for all: `command.CommandAgent`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.adapters.files import safe_paths
from ralph_mission.adapters.sandbox import shims
from ralph_mission.loop.model.state import Hat, Session
from ralph_mission.values import dataclass

LONGEST = 1_000_000  # bytes
WRITES = ("Edit", "Write")
RUNS = "Bash"
"""Tools as hats deny them: by the names that Claude Code gives them."""


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a session is played. `env` is what the program sees of ours: keys and addresses of models.

    `trusted`: it may obey what the repository says to it (hooks, servers, rules). `walled`: something of ours keeps it
    from the rest of the machine already, and a wall of its own could not stand within that.
    """

    work_tree: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
    walled: bool = False


@dataclass(frozen=True, slots=True)
class Invocation:
    """What follows the program's name, what it reads, what it sees besides, and files that it finds in its home."""

    arguments: tuple[str, ...] = ()
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _plain(session: Session, _: SessionPlace) -> Invocation:
    return Invocation(stdin=session.prompt)


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent's program.

    `version` are the arguments by which it tells its version. One of `keys` has to be set for it to reach its model;
    `endpoints` name other addresses of that model. `fresh` is what it keeps in its home and may not keep: it is taken
    away before each session. `leaves` is a file in its home that `read` gets too. `obeys` are paths of a repository
    that it would obey whatever it is told, so that it plays only where they are missing, or trusted. `install` is the
    command that brings it. `priced`: a session that comes to its end tells what it cost.
    """

    name: str
    program: tuple[str, ...] = ()
    invocation: Callable[[Session, SessionPlace], Invocation] = _plain
    read: Callable[[Gave], AgentReply] = reading.plain
    version: tuple[str, ...] = ("--version",)
    keys: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    leaves: str = ""
    obeys: tuple[str, ...] = ()
    install: str = ""
    priced: bool = False

    def objection(self, place: SessionPlace) -> str:
        """Why it may not play there, "" when it may."""
        found = next((path for path in self.obeys if _is_there(place.work_tree / path)), "")
        if not found or place.trusted:
            return ""
        return f"{self.name} would obey {found} of the repository, and nobody trusts that: take it out, or trust it"


PLAIN = Client("command")
"""Any program: the prompt is its input, its output the message."""


def furnish(home: Path, client: Client, files: Mapping[str, str]) -> None:
    """Leave nothing of an earlier session that `client` would obey, then write `files`, by links nowhere else."""
    gone = (*client.fresh, *filter(None, (client.leaves,)))
    safe_paths.unlink(home, gone)  # a link on the way would have us remove what is somebody's own
    for name in gone:
        _away(home / name)
    for name, text in files.items():
        folder = home
        for part in Path(name).parts[:-1]:
            folder /= part
            if folder.is_symlink():
                folder.unlink()
            folder.mkdir(exist_ok=True)
        shims.replace_file(folder / Path(name).name, text)


def read_leavings(home: Path, client: Client) -> bytes:
    """What the program left of itself; nothing of a file that is none, or too long."""
    found = safe_paths.content(home / client.leaves, LONGEST + 1) if client.leaves else None
    return found if found and len(found) <= LONGEST else b""


def denies(hat: Hat, tools: Iterable[str]) -> bool:
    """Whether the hat denies every one of these tools."""
    return all(tool in hat.tools_denied for tool in tools)


def may_write(hat: Hat) -> bool:
    """Whether there is anything at all that this hat may write."""
    return hat.write_allowed != () and not denies(hat, WRITES)


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
