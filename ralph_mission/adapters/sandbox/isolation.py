"""The isolation of agents' and repositories' code: the levels `env` and `bwrap`.

`env` is what `process.run_foreign` always does: the run's own environment and home. `bwrap` adds its own view of the
machine by bubblewrap's namespaces. It is the default if it works, which is tested. docs/agents.md lists what each
level prevents and does not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.adapters.sandbox import bwrap
from ralph_mission.adapters.sandbox.bwrap import Endpoint, relay
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

Level = Literal["env", "bwrap"]
NAMESPACES = (
    "let ordinary users make namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap; in a container, its seccomp "
    "profile)"
)
ACCEPT = "accept it in ralph.yml with hands: {agent: {sandbox: env}}"
PRIVATE = (
    ".aws", ".claude", ".codex", ".config", ".copilot", ".docker", ".gemini", ".git-credentials", ".gitconfig",
    ".gnupg", ".kube", ".netrc", ".npmrc", ".pypirc", ".ssh",
)  # fmt: skip  # one list
"""Folders below a person's home with tools' keys."""
STORED = compile_regex(
    r"^\s*(?:extraheader\s*=.*authorization|(?:push)?url\s*=\s*\S+://[^/\s:@]*:[^/\s@]+@)", re.I | re.M
)
"""A credential in git's configuration: as actions/checkout leaves it, or a password in a URL."""
UNSTORED = (
    "give actions/checkout `persist-credentials: false`, or take it out with `git config --unset-all`; or let agents "
    "read it, with sandbox: env"
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a foreign process may access besides its run's home. Missing paths are skipped.

    `writable`: folders it may write in. `readable`: further visible paths at `bwrap` besides the system and PATH.
    `hidden`: invisible paths, also inside the others; the more specific path wins. `endpoints`: the only hosts it
    reaches at `bwrap`, if the kernel can close the network; None leaves the network unchanged. `wrap`: the owner's
    command in front of the process.
    """

    level: Level = "env"
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    endpoints: tuple[Endpoint, ...] | None = None
    wrap: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inside:
    """A command to start in a sandbox.

    `report`: the pipe on which a view reports processes that end with it; None if they are visible from here.
    """

    argv: tuple[str, ...]
    report: bwrap.Report | None = None

    @property
    def passed_on(self) -> tuple[int, ...]:
        """The descriptors to pass to the command."""
        return (self.report.writing,) if self.report else ()


OPEN = Sandbox()


@contextmanager
def enter_sandbox(
    sandbox: Sandbox, argv: Sequence[str], cwd: Path, home: Path, scratch: Path, path: str
) -> Iterator[Inside]:
    """The command in its sandbox; `path`: its PATH. Afterwards no process runs there any more.

    Raises UserError if the level is unavailable.
    """
    argv = (*sandbox.wrap, *argv)
    if sandbox.level == "env":
        yield Inside(argv)
        return
    if not bwrap.program():
        raise UserError(bwrap.MISSING, bwrap.INSTALL)
    writable, readable, invisible = map(_keep_existing, ((*sandbox.writable, home), sandbox.readable, sandbox.hidden))
    with ExitStack() as stack:
        closed = sandbox.endpoints is not None and not bwrap.attempt().open_network
        ways = (sandbox.endpoints or ()) if closed else ()
        socket = stack.enter_context(relay(ways)) if ways else None
        view = bwrap.View(writable, readable, invisible, scratch.resolve(), path, argv[0], cwd.resolve(), socket)
        report = stack.enter_context(bwrap.reporting())
        command = bwrap.with_helper(argv, cwd.resolve(), ways, report.writing)
        yield Inside(tuple(bwrap.wrap_command(view, command, closed)), report)


# --- which level ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """The level for agents here, and the owner's own command in front of them.

    `open_network`: why the network stays open at `bwrap`, or "". `lacking`: for `env` by default, why `bwrap` is
    unavailable and how to get it.
    """

    level: Level
    open_network: str = ""
    lacking: str = ""
    wrap: tuple[str, ...] = ()


def find_level(level: Level | None, environ: Mapping[str, str]) -> Found:
    """The level to use: `level` from the owner's configuration; without one (None), `bwrap`, or `env` if the machine
    lacks it.

    Raises UserError if `bwrap` is requested but unavailable, and on GitHub for `env` unless the owner configured it.
    """
    if level == "env":
        return Found("env")
    why, remedy = missing_bwrap()
    if not why:
        return Found("bwrap", bwrap.attempt().open_network)
    if level == "bwrap":
        raise UserError(f"sandbox: bwrap is not available: {why}", f"{remedy}; or {ACCEPT}")
    if acts_on_github(environ):
        what = f"no agent runs on GitHub without isolation, and this runner offers none: {why}"
        raise UserError(what, f"{remedy}; or {ACCEPT}")
    return Found("env", lacking=f"{why}; {remedy}")


def missing_bwrap() -> tuple[str, str]:
    """Why the level `bwrap` is unavailable here, and how to get it; two empty texts if it works."""
    if not sys.platform.startswith("linux"):
        return "bubblewrap is made for Linux", "run ralph on Linux, or in a container"
    why = bwrap.attempt().refused
    return (why, bwrap.INSTALL if why == bwrap.MISSING else NAMESPACES) if why else ("", "")


def describe_level(found: Found) -> str:
    """A level in words, for the doctor and for reports."""
    text = "env: its own environment and home folder, as your user"
    if found.lacking:
        text += f"; your files, your processes and the network stay open to it. For bwrap: {found.lacking}"
    if found.level == "bwrap":
        network = f"open, it cannot be closed ({found.open_network})" if found.open_network else "model host only"
        text = f"bwrap: its own view of the file system; network: {network}"
    return f"{text}; behind the owner's {found.wrap[0]}" if found.wrap else text


# --- a checkout ----------------------------------------------------------------------


def of_checkout(
    level: Level, git: Git, environ: Mapping[str, str], endpoints: Sequence[Endpoint] | None = None
) -> Sandbox:
    """The sandbox for sessions in a checkout, with its repository if that is elsewhere (a linked work tree).

    Raises UserError if git's configuration there contains a credential, which a session could read, and for a bare one.
    """
    if level == "env":
        return OPEN
    if git.work_tree is None:
        raise UserError("this repository is bare, so there is nothing to work in", "name a checkout", usage=True)
    borrowed = _borrowed_objects(git.common_dir / "objects")
    writable = tuple(dict.fromkeys((git.work_tree, git.git_dir, git.common_dir)))
    invisible = (*private(environ), *(place.parent / "config" for place in borrowed))
    for file in _credentials(git):
        if not any(Path(file).resolve().is_relative_to(place.resolve()) for place in invisible):
            raise UserError(f"{file} holds a credential, which is no agent's business", UNSTORED)
    return Sandbox(level, writable, borrowed, invisible, None if endpoints is None else tuple(endpoints))


def of_clone(
    level: Level, git: Git, folder: Path, environ: Mapping[str, str], endpoints: Sequence[Endpoint] | None = None
) -> Sandbox:
    """The sandbox for a clone of `git` at `folder`: the repository's objects are visible, its settings are not."""
    if level == "env":
        return OPEN
    objects = git.common_dir / "objects"
    readable = (objects, *_borrowed_objects(objects))
    return Sandbox(level, (folder,), readable, private(environ), None if endpoints is None else tuple(endpoints))


def _credentials(git: Git) -> Iterator[str]:
    """Git configuration files with a credential: the repository's and the work tree's, or included ones, as newer
    versions of actions/checkout leave it."""
    for place in dict.fromkeys((git.common_dir, git.git_dir)):
        for file in (place / "config", place / "config.worktree"):
            if file.is_file() and STORED.search(file.read_text("utf-8", "replace")):
                yield str(file)
    listed = git.text("config", "--includes", "--show-origin", "-z", "--list").split("\0")
    for origin, entry in zip(listed[::2], listed[1::2], strict=False):
        key, _, value = entry.partition("\n")
        if STORED.search(f"{key.rpartition('.')[2]} = {value}"):
            yield origin.removeprefix("file:")


def private(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Private paths of the machine: keys below the home, a runner's own files."""
    home, temporary = environ.get("HOME", ""), environ.get("RUNNER_TEMP", "")
    found = [Path(home, name) for name in PRIVATE] if home else []
    if temporary:
        found.append(Path(temporary))
    if Path(temporary).parent.name == "_work":  # a self-hosted runner keeps its own credentials beside its work
        found += sorted(Path(temporary).parents[1].glob(".*"))
    return tuple(place for place in found if place.is_absolute())


def _keep_existing(places: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(place.resolve() for place in places if place.exists()))


def _borrowed_objects(objects: Path) -> tuple[Path, ...]:
    """The object folders of other repositories that one borrows from, recursively."""
    found: list[Path] = []
    waiting = [objects]
    while waiting:
        here = waiting.pop()
        listed = here / "info" / "alternates"
        lines = listed.read_text("utf-8", "surrogateescape").splitlines() if listed.is_file() else []
        more = [(here / line).resolve() for line in lines if line and not line.startswith("#")]
        waiting += (new := [place for place in more if place not in found and place.is_dir()])
        found += new
    return tuple(found)
