"""A coding agent as a program: how it is called, what it needs, and how its answer is read.

`Client` is one frozen value for each known program (`clients.CLIENTS`). How any of them is run is `CommandAgent`, the
same for all: the prompt goes to its standard input, its last message is what it prints.

It sees the work tree as its folder, a home of the run's own, PATH, the names that are allowed, and RALPH_HAT,
RALPH_ITERATION, RALPH_RUN_DIR, RALPH_MODEL (its hat's or the run's), RALPH_MAX_TURNS and what its hat may not do, for
a program that can turn it into options of its own. Nothing else of ours.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ralph_mission.adapters import files as durable_files
from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.reading import AgentReply, Gave
from ralph_mission.adapters.agents.stream import AgentStream
from ralph_mission.adapters.git.git import Identity
from ralph_mission.adapters.sandbox import shims
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import own_tool, run_foreign
from ralph_mission.adapters.sandbox.shims import DANGEROUS
from ralph_mission.loop.model.state import AgentTurn, Hat, Session, SessionUsage
from ralph_mission.loop.model.watch import RunEvent
from ralph_mission.values import dataclass

LONGEST = 1_000_000  # bytes
WRITES = ("Edit", "Write")
RUNS = "Bash"
"""Tools as hats deny them: by the names that Claude Code gives them."""


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a session is played. `env` is what the program sees of ours: keys and addresses of models.

    `trusted`: it may obey what the repository says to it (hooks, servers, rules). `sandboxed`: something of ours keeps
    it from the rest of the machine already, and a wall of its own could not stand within that.
    """

    work_tree: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
    sandboxed: bool = False


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
class Login:
    """Where a person's login to the provider stands: `file` in the folder that `variable` names, else in `folder` of
    her home. `how` tells how one logs in."""

    variable: str
    folder: str
    file: str
    how: str

    def find(self, environ: Mapping[str, str]) -> Path | None:
        """The folder, where somebody is logged in."""
        place = Path(environ.get(self.variable) or Path(environ.get("HOME", "/")) / self.folder)
        return place if (place / self.file).is_file() else None


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent's program.

    `version` are the arguments by which it tells its version. One of `keys` has to be set for it to reach its model;
    `endpoints` name other addresses of that model. `fresh` is what it keeps in its home and may not keep: it is taken
    away before each session. `leaves` is a file in its home that `read` gets too. `obeys` are paths of a repository
    that it would obey whatever it is told, so that it plays only where they are missing, or trusted. `install` is the
    command that brings it. `priced`: a session that comes to its end tells what it cost. `login`: where a
    person's stands, which serves instead of a key. `streams`: what it prints tells of each step as it comes.
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
    login: Login | None = None
    streams: bool = True

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
    durable_files.unlink(home, gone)  # a link on the way would have us remove what is somebody's own
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
    found = durable_files.content(home / client.leaves, LONGEST + 1) if client.leaves else None
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


GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C is answered within two
OUTPUT_CAP = 20_000_000  # bytes over both streams: hours of a talkative agent
SHIMS = "shims"
RUN = ".ralph"
"""From here on folders are ours."""
EVERYWHERE = ("**",)
NOTHING_SPENT = SessionUsage(1, cost_usd=0.0)
PROFILES = (".profile", ".bash_profile", ".zprofile")


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """Runs `command` (a text: by the shell) once per session in `work_tree`.

    `allow` names variables of ours that it may see (a model's key, its endpoint); `extra_env` sets others. `home` is
    made and kept between sessions. Commands like those in `denied`, or that the hat denies, are refused by what stands
    before them on its PATH (`adapters/sandbox/shims.py`). `identity` signs commits where neither the repository nor the
    program says who does. `tell` is given what it says and does as it comes. `sandbox` keeps it apart. `client` knows
    how the program is spoken to, `trusted` that it may obey what the repository says to it.
    """

    command: tuple[str, ...] | str
    work_tree: Path
    home: Path
    allow: tuple[str, ...] = ()
    extra_env: Mapping[str, str] = field(default_factory=dict)
    denied: tuple[str, ...] = tuple(DANGEROUS)
    identity: Identity = Identity()
    output_cap: int = OUTPUT_CAP
    tell: Callable[[Session, RunEvent], None] | None = None
    now: Callable[[], datetime] = _utc
    name: str = "command"

    sandbox: Sandbox = OPEN
    client: Client = PLAIN
    trusted: bool = False

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session in a fresh process; its whole group is gone when this returns or an interrupt leaves it.

        Whatever the program does is a `failure` of the turn. Raises UserError when it cannot be kept as far apart as
        `sandbox` wants.
        """
        place = self._place()
        if objection := self.client.objection(place):
            return AgentTurn(failure="exit", detail=objection, usage=NOTHING_SPENT, agent=self.name)
        _solid(self.home)
        _furnish(self.home, self.identity)
        invocation = self.client.invocation(session, place)
        furnish(self.home, self.client, invocation.files)
        denied = (*self.denied, *session.hat.commands_denied)
        run_dir = Path(session.run_dir)
        stream = AgentStream(partial(self.tell, session)) if self.tell else None
        guards, before = shims.build(self.home / SHIMS, denied, run_dir), len(shims.refused_commands(run_dir))
        finished = run_foreign(
            self.command if isinstance(self.command, str) else (*self.command, *invocation.arguments),
            cwd=self.work_tree,
            home=self.home,
            timeout=session.seconds,
            output_cap=self.output_cap,
            stdin=invocation.stdin.encode(),
            allow=self.allow,
            extra_env={
                **self.extra_env,
                **invocation.env,
                **_session_environment(session),
                "PATH": _path(guards, self.home, self.extra_env.get("PATH", "")),
            },
            stopped=stopped,
            grace=GRACE,
            live=stream.feed if stream and self.client.streams else None,
            sandbox=self.sandbox,
        )
        gave = reading.Gave(
            finished.stdout, finished.stderr, finished.code, finished.timed_out, finished.stopped,
            finished.truncated, finished.seconds, read_leavings(self.home, self.client),
        )  # fmt: skip  # one value
        turn = reading.turn(gave, self.now(), self.client.read)
        if turn.failure == "auth" and self.client.login:
            said, _, rest = turn.detail.partition("\n")
            turn = replace(
                turn, detail=f"{said}: {self.client.login.how}, or set {self.client.keys[0]}\n{rest}".rstrip()
            )
        if stream:
            stream.end(turn)
        refused = (*turn.refused, *_since(before, shims.refused_commands(run_dir)))
        running = tuple(map(reading.line, finished.left))
        return replace(turn, refused=tuple(dict.fromkeys(refused)), agent=self.name, left_running=running)

    def _place(self) -> SessionPlace:
        seen = {name: os.environ[name] for name in self.allow if name in os.environ} | dict(self.extra_env)
        return SessionPlace(self.work_tree, self.home, seen, self.trusted, self.sandbox.level == "bwrap")


def _since(before: int, refused: tuple[str, ...]) -> tuple[str, ...]:
    """What was refused in this session, each once; a session may have taken the older lines away."""
    return tuple(dict.fromkeys(refused[before:] if len(refused) >= before else refused))


def _session_environment(session: Session) -> dict[str, str]:
    hat = session.hat
    told = {
        "RALPH_HAT": hat.name,
        "RALPH_ITERATION": str(session.iteration),
        "RALPH_RUN_DIR": session.run_dir,
        "RALPH_MODEL": session.model,
        "RALPH_MAX_TURNS": str(session.turns),
        "RALPH_DENIED_TOOLS": "\n".join(hat.tools_denied),
        "RALPH_DENIED_COMMANDS": "\n".join(hat.commands_denied),
        "RALPH_WRITE_ALLOWED": "\n".join(EVERYWHERE if hat.write_allowed is None else hat.write_allowed),
        "RALPH_WRITE_DENIED": "\n".join(hat.write_denied),
    }
    return {name: value.replace("\0", "") for name, value in told.items()}  # no environment can hold one


def _path(guards: Path | None, home: Path, path: str) -> str:
    return os.pathsep.join((shims.path_with(guards, path), str(home.resolve() / "bin")))


def _solid(home: Path) -> None:
    """No link on the way to the home, and none in place of what is made anew in it: a session may have left one."""
    parts = home.absolute().parts
    top = parts.index(RUN) if RUN in parts else len(parts) - 1
    way = Path(*parts[top:])
    durable_files.unlink(Path(*parts[:top]), (str(way / "bin"), str(way / SHIMS)))


def _furnish(home: Path, identity: Identity) -> None:
    """Make the home anew where agents rely on it: `ralph` is found, and git knows whom to name."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    ralph = Path(own_tool("ralph"))
    if ralph.is_absolute() and not shutil.which("ralph"):
        shims.replace_file(home / "bin" / "ralph", f'#!/bin/sh\nexec {shlex.quote(str(ralph))} "$@"\n', 0o755)
    settings = f"[user]\n\tname = {_quote(identity.name)}\n\temail = {_quote(identity.email)}\n"
    shims.replace_file(home / ".gitconfig", settings)
    guarded = f'PATH={shlex.quote(str(home.resolve() / SHIMS))}:"$PATH"\nexport PATH\n'
    for profile in PROFILES:  # a login shell sets PATH anew before it reads these
        shims.replace_file(home / profile, guarded)


def _quote(text: str) -> str:
    plain = "".join(letter for letter in text if letter.isprintable())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
