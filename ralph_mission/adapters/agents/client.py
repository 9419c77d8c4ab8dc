"""A coding agent as a program: its invocation, requirements, and the reading of its answer.

`Client` is one frozen value for each known program (`clients.CLIENTS`). `CommandAgent` runs all of them
the same way: the prompt goes to standard input, the output contains the last message.

It sees the work tree as its folder, the run's own home, PATH, the allowed variables, and RALPH_HAT,
RALPH_ITERATION, RALPH_RUN_DIR, RALPH_MODEL (its hat's or the run's), RALPH_MAX_TURNS and its hat's restrictions, for
programs that can turn them into options. Nothing else of ours.

Its messages and calls are read from its output while it runs, by `AgentStream`. Every streaming client prints one JSON
object per line, and no two of them use the same shape for different things: one reader covers them all, also if a
custom command starts one of them. Other output is text.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ralph_mission.adapters import files as durable_files
from ralph_mission.adapters.agents import reading
from ralph_mission.adapters.agents.reading import AgentReply, Gave, Json
from ralph_mission.adapters.git.git import Identity
from ralph_mission.adapters.sandbox import shims
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import own_tool, run_foreign
from ralph_mission.adapters.sandbox.shims import DANGEROUS
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.model.state import AgentTurn, Hat, Session, SessionUsage
from ralph_mission.safety.text import sanitise, truncate
from ralph_mission.values import dataclass

LONGEST = 1_000_000  # bytes
WRITES = ("Edit", "Write")
RUNS = "Bash"
"""Tools that hats can deny, by Claude Code's names."""


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session's environment. `env`: our variables that the program sees: keys and URLs of models.

    `trusted`: it may obey the repository's configuration (hooks, servers, rules). `sandboxed`: our sandbox already
    isolates it, and its own could not work inside.
    """

    work_tree: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
    sandboxed: bool = False


@dataclass(frozen=True, slots=True)
class Invocation:
    """The program's arguments, input, additional environment, and files in its home."""

    arguments: tuple[str, ...] = ()
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _plain(session: Session, _: SessionPlace) -> Invocation:
    return Invocation(stdin=session.prompt)


@dataclass(frozen=True, slots=True)
class Login:
    """A person's login to the provider: `file` in the folder that `variable` names, else in `folder` of their home.
    `how`: the way to log in; `token`: that to a key, for the level `bwrap`, which hides the login."""

    variable: str
    folder: str
    file: str
    how: str
    token: str

    def find(self, environ: Mapping[str, str]) -> Path | None:
        """The folder, if a person is logged in."""
        place = Path(environ.get(self.variable) or Path(environ.get("HOME", "/")) / self.folder)
        return place if (place / self.file).is_file() else None


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent's program.

    `version`: the arguments to print its version. One of `keys` has to be set to reach its model; `endpoints` name
    other URLs of that model. `fresh`: files in its home that are removed before each session. `leaves`: a file in its
    home that `read` gets too. `obeys`: paths of a repository that it would obey in any case, so that it only runs if
    they are missing, or trusted. `install`: the command that installs it. `priced`: a completed session reports its
    cost. `login`: a person's login, an alternative to a key. `streams`: it prints each step live.
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
        """Why it may not run there, or ""."""
        found = next((path for path in self.obeys if os.path.lexists(place.work_tree / path)), "")
        if not found or place.trusted:
            return ""
        return f"{self.name} would obey {found} of the repository, which is not trusted: remove it, or trust it"


PLAIN = Client("command")
"""Any program: its input is the prompt, its output the message."""


def write_client_files(home: Path, client: Client, files: Mapping[str, str]) -> None:
    """Remove an earlier session's files that `client` would obey, then write `files`, without following links."""
    gone = (*client.fresh, *filter(None, (client.leaves,)))
    durable_files.unlink(home, gone)  # a link on the path would have us remove other files
    for name in gone:
        _away(home / name)
    for name, text in files.items():
        folder = home
        for part in Path(name).parts[:-1]:
            folder /= part
            if folder.is_symlink():
                folder.unlink()
            folder.mkdir(exist_ok=True)
        durable_files.replace_text(folder / Path(name).name, text)


def read_client_output(home: Path, client: Client) -> bytes:
    """The file the program left; empty if it is not a file, or too long."""
    found = durable_files.content(home / client.leaves, LONGEST + 1) if client.leaves else None
    return found if found and len(found) <= LONGEST else b""


def may_write(hat: Hat) -> bool:
    """Whether this hat may write anything at all."""
    return hat.write_allowed != () and not set(WRITES) <= set(hat.tools_denied)


def _away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C works within two
OUTPUT_CAP = 20_000_000  # bytes over both streams: hours of a talkative agent
SHIMS = "shims"
RUN = ".ralph"
"""From here on folders are ours."""
EVERYWHERE = ("**",)
NOTHING_SPENT = SessionUsage(1, cost_usd=0.0)
PROFILES = (".profile", ".bash_profile", ".zprofile")


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """Runs `command` (a text: by the shell) once per session in `work_tree`.

    `allow` names our variables that it may see (a model's key, its endpoint); `extra_env` sets others. `home` is
    created and kept between sessions. Commands in `denied`, or that the hat denies, are refused by shims on its PATH
    (`adapters/sandbox/shims.py`). `identity` is the author of commits if neither the repository nor the program sets
    one. `tell` receives its messages and calls live. `sandbox` isolates it. `client` is the program's interface;
    `trusted`: it may obey the repository's configuration.
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
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    name: str = "command"

    sandbox: Sandbox = OPEN
    client: Client = PLAIN
    trusted: bool = False

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session in a fresh process; its whole group has ended when this returns or an interrupt leaves it.

        The program's errors are a `failure` of the turn. Raises UserError if the isolation of `sandbox` is unavailable.
        """
        place = self._place()
        if objection := self.client.objection(place):
            return AgentTurn(failure="exit", detail=objection, usage=NOTHING_SPENT, agent=self.name)
        _remove_links(self.home)
        _prepare_home(self.home, self.identity)
        invocation = self.client.invocation(session, place)
        write_client_files(self.home, self.client, invocation.files)
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
        output = reading.Gave(
            finished.stdout, finished.stderr, finished.code, finished.timed_out, finished.stopped,
            finished.truncated, finished.seconds, read_client_output(self.home, self.client),
        )  # fmt: skip  # one value
        turn = reading.turn(output, self.now(), self.client.read)
        if turn.failure == "auth" and self.client.login:
            summary, _, rest = turn.detail.partition("\n")
            turn = replace(
                turn, detail=f"{summary}: {self.client.login.how}, or set {self.client.keys[0]}\n{rest}".rstrip()
            )
        if stream:
            stream.end(turn)
        refused = (*turn.refused, *_since(before, shims.refused_commands(run_dir)))
        running = tuple(map(reading.line, finished.left))
        return replace(turn, refused=tuple(dict.fromkeys(refused)), agent=self.name, left_running=running)

    def _place(self) -> SessionPlace:
        variables = {name: os.environ[name] for name in self.allow if name in os.environ} | dict(self.extra_env)
        return SessionPlace(self.work_tree, self.home, variables, self.trusted, self.sandbox.level == "bwrap")


def _since(before: int, refused: tuple[str, ...]) -> tuple[str, ...]:
    """This session's refusals, each once; a session may have removed the older lines."""
    return tuple(dict.fromkeys(refused[before:] if len(refused) >= before else refused))


def _session_environment(session: Session) -> dict[str, str]:
    hat = session.hat
    variables = {
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
    return {name: value.replace("\0", "") for name, value in variables.items()}  # invalid in an environment


def _path(guards: Path | None, home: Path, path: str) -> str:
    return os.pathsep.join((shims.path_with(guards, path), str(home.resolve() / "bin")))


def _remove_links(home: Path) -> None:
    """Ensure no links on the path to the home, or in place of its recreated files: a session may have left one."""
    parts = home.absolute().parts
    top = parts.index(RUN) if RUN in parts else len(parts) - 1
    way = Path(*parts[top:])
    durable_files.unlink(Path(*parts[:top]), (str(way / "bin"), str(way / SHIMS)))


def _prepare_home(home: Path, identity: Identity) -> None:
    """Recreate the parts of the home that agents rely on: `ralph` on the PATH, and git's identity."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    ralph = Path(own_tool("ralph"))
    if ralph.is_absolute() and not shutil.which("ralph"):
        durable_files.replace_text(home / "bin" / "ralph", f'#!/bin/sh\nexec {shlex.quote(str(ralph))} "$@"\n', 0o755)
    durable_files.replace_text(home / ".gitconfig", identity.settings)
    guarded = f'PATH={shlex.quote(str(home.resolve() / SHIMS))}:"$PATH"\nexport PATH\n'
    for profile in PROFILES:  # a login shell resets PATH before it reads these
        durable_files.replace_text(home / profile, guarded)


LONGEST_LINE = 1_000_000  # bytes: a longer one is not shown
WORDS = 4_000  # characters of an agent's single message


class AgentStream:
    """Passes an agent's steps to `tell`, from its standard output, live."""

    def __init__(self, tell: Callable[[RunEvent], None]) -> None:
        self._tell, self._rest, self._skipping = tell, b"", False
        self._last, self._counted, self.has_output = "", False, False

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes; an incomplete line waits for its rest."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if lines and self._skipping:
            self._skipping = False
            del lines[0]
        self._read(lines)
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def end(self, turn: AgentTurn) -> None:
        """Process the rest at the session's end, as some clients print everything then."""
        if self._rest and not self._skipping:
            self._read([self._rest])
        if not self.has_output:
            for call in turn.calls:
                self._tell(RunEvent("tool", call))
            if turn.text:
                self._tell(RunEvent("text", _words(turn.text)))

    def _read(self, lines: list[bytes]) -> None:
        """Tell plain lines that came together as one text: recording each of millions would hold the run up."""
        plain: list[bytes] = []
        size = 0
        for line in lines:
            document = next(reading.documents(line), None)
            if document is not None or size + len(line) >= WORDS:
                self._tell_text(plain)
                plain, size = [], 0
            if document is None:
                plain.append(line)
                size += len(line) + 1
                continue
            for event in _events(document):
                self._tell_event(self._uncounted(document, event) if event.kind == "usage" else event)
        self._tell_text(plain)

    def _tell_text(self, lines: list[bytes]) -> None:
        self._tell_event(RunEvent("text", _words(b"\n".join(lines).decode(errors="replace"))))

    def _tell_event(self, event: RunEvent) -> None:
        if event.text or event.tokens or event.usd:
            self._counted = self._counted or event.tokens > 0
            self.has_output = self.has_output or event.kind != "usage"
            self._tell(event)

    def _uncounted(self, document: Json, event: RunEvent) -> RunEvent:
        """Without tokens already reported: some clients print an answer in parts, and a sum at the end."""
        id = reading.as_text(reading.inner(document, "message").get("id"))
        again = bool(id) and id == self._last
        self._last = id or self._last
        return replace(event, tokens=0) if again or (document.get("type") == "result" and self._counted) else event


def _words(text: str) -> str:
    return sanitise(truncate(text.strip(), WORDS), "log")


def _events(document: Json) -> Iterator[RunEvent]:
    kind = document.get("type")
    if kind == "assistant":  # Claude Code, Amp; "text" is our driver's
        yield from _message(reading.inner(document, "message"))
        yield RunEvent("text", _words(reading.as_text(document.get("text"))))
    elif kind == "call":  # our driver of Claude Code
        yield _call(document.get("tool"), document.get("input"))
    elif kind == "result":
        yield _usage(reading.tokens(document))
    elif kind in ("item.started", "item.completed"):  # Codex
        yield from _item(reading.inner(document, "item"), kind == "item.started")
    elif kind == "turn.completed":
        yield _usage(reading.tokens(document))
    elif kind == "assistant.message":  # GitHub Copilot CLI
        yield from _copilot(reading.inner(document, "data"))
    elif kind in ("text", "tool_use", "step_finish"):  # OpenCode
        yield from _part(kind, reading.inner(document, "part"))


def _message(message: Json) -> Iterator[RunEvent]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            yield RunEvent("text", _words(reading.as_text(block.get("text"))))
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield _call(block.get("name"), block.get("input"))
    yield _usage(reading.tokens(message))


def _item(item: Json, started: bool) -> Iterator[RunEvent]:
    what = item.get("type")
    if what == "agent_message" and not started:
        yield RunEvent("text", _words(reading.as_text(item.get("text"))))
    elif what in ("command_execution", "mcp_tool_call", "web_search") and started:
        yield _call(what, {name: item[name] for name in ("command", "tool", "arguments", "query") if name in item})
    elif what == "file_change" and not started:
        yield _call(what, {"changes": item.get("changes")})


def _copilot(data: Json) -> Iterator[RunEvent]:
    yield RunEvent("text", _words(reading.as_text(data.get("content"))))
    requests = data.get("toolRequests")
    for one in requests if isinstance(requests, list) else ():
        if isinstance(one, dict):
            yield _call(one.get("name"), one.get("arguments"))
    yield _usage(SessionUsage(output_tokens=reading.as_count(data.get("outputTokens"))))


def _part(kind: str, part: Json) -> Iterator[RunEvent]:
    if kind == "text":
        yield RunEvent("text", _words(reading.as_text(part.get("text"))))
    elif kind == "tool_use":
        yield _call(part.get("tool"), reading.inner(part, "state", "input"))
    else:
        counts, cached = reading.inner(part, "tokens"), reading.inner(part, "tokens", "cache")
        read = reading.as_count(counts.get("input")) + reading.as_count(cached.get("read"))
        yield _usage(SessionUsage(0, read, reading.as_count(counts.get("output")), reading.as_cost(part.get("cost"))))


def _call(tool: Any, arguments: object) -> RunEvent:
    """A call with the first line of its most descriptive argument."""
    fields = arguments if isinstance(arguments, dict) else {}
    short = {
        name: text.strip().partition("\n")[0] if isinstance(text := fields[name], str) else text for name in fields
    }
    return RunEvent("tool", truncate(reading.describe_call(reading.as_text(tool), short or arguments), 300))


def _usage(usage: SessionUsage) -> RunEvent:
    return RunEvent("usage", tokens=usage.input_tokens + usage.output_tokens, usd=usage.cost_usd)
