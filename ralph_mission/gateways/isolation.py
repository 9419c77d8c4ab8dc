"""How far what runs agents' or a repository's code is kept apart from us: `env` < `uid` < `bwrap`.

`env` is what `process.run_foreign` always does: an environment and a home of the run's own. `uid` adds a user of
the run's own (we must be root). `bwrap` adds a view of the machine of its own: bubblewrap's namespaces. What each
holds and does not hold stands in docs/isolation.md; whether a level can be had is tried by `isolation_probe`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ralph_mission.gateways import isolation_bwrap as bwrap
from ralph_mission.gateways import isolation_lending as lending
from ralph_mission.gateways import isolation_uid as users
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.isolation_relay import Endpoint, relay
from ralph_mission.trouble import Trouble

Level = Literal["env", "uid", "bwrap"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the weakest to the strongest."""
PRIVATE = (
    ".aws", ".claude", ".codex", ".config", ".copilot", ".docker", ".gemini", ".git-credentials", ".gitconfig",
    ".gnupg", ".kube", ".netrc", ".npmrc", ".pypirc", ".ssh",
)  # fmt: skip  # one list
"""Where tools keep keys below a person's home."""
STORED = re.compile(r"^\s*(?:extraheader\s*=.*authorization|(?:push)?url\s*=\s*\S+://[^/\s:@]*:[^/\s@]+@)", re.I | re.M)
"""A credential in git's configuration: as actions/checkout leaves it, or a password in an address."""
UNSTORED = "give actions/checkout `persist-credentials: false`, or take it out with `git config --unset-all`"


@dataclass(frozen=True, slots=True)
class Cage:
    """What a foreign process may reach besides the home of its run. Paths that are missing are left out.

    `writable`: folders it may write in. `readable`: what else it needs to see at `bwrap` besides the system and PATH.
    `hidden`: what it must not see, also inside the others; the more particular path wins. `endpoints`: the only hosts
    it reaches at `bwrap`, where the kernel can close the network; None leaves the network as it is.
    """

    level: Level = "env"
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    endpoints: tuple[Endpoint, ...] | None = None


@dataclass(frozen=True, slots=True)
class Inside:
    """A command as it is started in a cage; `uid` is the user that is the run's alone, None where it is ours.

    `report`: where a view tells what its end ends, and where that is read; None where it can be seen from here.
    """

    argv: tuple[str, ...]
    uid: int | None = None
    report: bwrap.Report | None = None

    @property
    def passed_on(self) -> tuple[int, ...]:
        """The descriptors that the command has to get."""
        return (self.report.writing,) if self.report else ()


OPEN = Cage()


@contextmanager
def entered(cage: Cage, argv: Sequence[str], cwd: Path, home: Path, scratch: Path, path: str) -> Iterator[Inside]:
    """The command in its cage; `path` is the PATH it gets. Afterwards nothing runs or belongs to its user any more.

    Raises Trouble when the level cannot be had, or a folder cannot be reached from inside.
    """
    if cage.level == "env":
        yield Inside(tuple(argv))
        return
    if cage.level == "bwrap" and not bwrap.program():
        raise Trouble("bubblewrap (bwrap) is not installed", bwrap.INSTALL)
    writable, readable, hidden = map(_there, ((*cage.writable, home), cage.readable, cage.hidden))
    with ExitStack() as held:
        if cage.level == "uid":
            if os.geteuid() != 0:
                raise Trouble(users.NOT_ROOT, users.INSTEAD)
            lending.reachable(writable, readable, hidden)
            held.enter_context(lending.closed(hidden))
        uid = held.enter_context(_borrowing(writable, hidden)) if os.geteuid() == 0 else None
        become = users.becoming(uid) if uid is not None else ()
        if cage.level == "uid":
            yield Inside((*become, *argv), uid)
            return
        ways = (cage.endpoints or ()) if (closed := cage.endpoints is not None and not bwrap.keeps_open()) else ()
        socket = held.enter_context(relay(ways, uid)) if ways else None
        view = bwrap.View(writable, readable, hidden, scratch.resolve(), path, argv[0], cwd.resolve(), socket)
        report = held.enter_context(bwrap.reporting())
        command = (*become, *bwrap.helped(argv, cwd.resolve(), ways, report.writing))
        yield Inside(tuple(bwrap.wrapped(view, command, closed, uid is not None)), uid, report)


def of_checkout(
    level: Level, git: Git, environ: Mapping[str, str], endpoints: Sequence[Endpoint] | None = None
) -> Cage:
    """The cage for sessions in a checkout, with its repository where that lies elsewhere (a linked work tree).

    Raises Trouble when git's configuration there holds a credential, which a session could read, and for a bare one.
    """
    if level == "env":
        return OPEN
    if git.work_tree is None:
        raise Trouble("this repository is bare, so there is nothing to work in", "name a checkout", usage=True)
    borrowed = _borrowed(git.common_dir / "objects")
    writable = tuple(dict.fromkeys((git.work_tree, git.git_dir, git.common_dir)))
    hidden = (*private(environ), *(place.parent / "config" for place in borrowed))
    absent = hidden if level == "bwrap" else ()  # at `uid` git would give up on a file that it may not read
    for file in _credentials(git):
        if not any(Path(file).resolve().is_relative_to(place.resolve()) for place in absent):
            raise Trouble(f"{file} holds a credential, which is no agent's business", UNSTORED)
    return Cage(level, writable, borrowed, hidden, None if endpoints is None else tuple(endpoints))


def _credentials(git: Git) -> Iterator[str]:
    """The files of git's configuration that hold one: of the repository and the work tree, or included by them, as
    newer versions of actions/checkout leave it."""
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
    """Where the machine keeps what is no agent's business: keys below the home, a runner's own files."""
    home, temporary = environ.get("HOME", ""), environ.get("RUNNER_TEMP", "")
    found = [Path(home, name) for name in PRIVATE] if home else []
    if temporary:
        found.append(Path(temporary))
    if Path(temporary).parent.name == "_work":  # a self-hosted runner keeps its own credentials beside its work
        found += sorted(Path(temporary).parents[1].glob(".*"))
    return tuple(place for place in found if place.is_absolute())


def agreed(wanted: Level | None, on_github: bool, found: Level) -> Level:
    """The level to insist on: what the owner's configuration says; else `env` on a person's machine, and on GitHub
    the strongest that was found there.

    On GitHub no agent runs at `env` unless the owner wrote it: Trouble, who must act is the owner.
    """
    if wanted is not None or not on_github:
        return wanted or "env"
    if found == "env":
        raise Trouble(
            "no agent runs on GitHub without isolation, and this runner offers none",
            f"{bwrap.INSTALL}; or accept it in ralph.yml with hands: {{agent: {{sandbox: env}}}}",
        )
    return found


# --- entering ------------------------------------------------------------------------


def _there(places: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(place.resolve() for place in places if place.exists()))


@contextmanager
def _borrowing(writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> Iterator[int]:
    """A user of the run's own, to whom the folders are lent. All its processes are gone before they are given back."""
    with users.own() as uid, lending.lent(writable, hidden, uid):
        try:
            yield uid
        finally:
            users.end_all(uid)


def _borrowed(objects: Path) -> tuple[Path, ...]:
    """The object folders of other repositories that one borrows from, and they in turn."""
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
