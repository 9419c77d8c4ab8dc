"""Folders that belong to a run's user while it lasts, and to whom they belonged afterwards; folders that are closed.

Owners change on what is really there, never through a link. A file that has a second name is not lent: it may be
somebody else's too (a package manager's cache), and a run would write to both.
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ralph_mission.gateways import isolation_uid as users
from ralph_mission.trouble import Trouble

Owner = tuple[int, int]
NOBODY: Owner = (0, 0)  # what the topmost folder is told
_closings: dict[tuple[int, int], tuple[int, int]] = {}
"""Device and inode -> how many runs want it closed, and its mode before the first of them."""
_guard = threading.Lock()


@contextmanager
def lent(folders: Iterable[Path], kept: Iterable[Path], uid: int) -> Iterator[None]:
    """`folders` with all that is in them, but for `kept`, belong to `uid`; then to whom they belonged before.

    What is at a new place belongs to the owner of its folder. Raises Trouble for a folder that another run works in.
    """
    tops, spared = outermost(folders), frozenset(map(str, kept))
    before: dict[str, Owner] = {}

    def lend(path: str, found: os.stat_result, _: Owner) -> Owner:
        owner = found.st_uid, found.st_gid
        if owner[0] in users.OURS:  # a run that was killed left it: it is ours
            if owner[0] != uid and users.in_use(owner[0]):
                raise Trouble(f"another run works in {path}", "wait until it is over")
            owner = os.geteuid(), os.getegid()
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            before[path] = owner
            os.lchown(path, uid, uid)
        return owner

    try:
        for top in tops:
            _each(top, lend, NOBODY, spared)
        yield
    finally:
        for top in tops:
            _give_back(top, range(uid, uid + 1), before)


def reclaim(top: Path) -> None:
    """Take back what a run left to its user because it was killed: everything there becomes ours.

    Asked before git looks at a checkout, which distrusts one of another user's. Costs one look where nothing was left.
    """
    if os.geteuid() == 0 and top.exists() and (uid := top.lstat().st_uid) in users.OURS and not users.in_use(uid):
        _give_back(top, users.OURS, {})


def take_back(top: Path) -> None:
    """The same for whatever below `top` still belongs to a run's user, when all runs that worked there are over."""
    if os.geteuid() == 0:
        _give_back(top, users.OURS, {})


def reclaim_around(directory: Path) -> None:
    """The same for the checkout that `directory` is in, and for its repository where that lies elsewhere."""
    if os.geteuid() == 0:
        for place in around(directory):
            reclaim(place)


def lent_out(directory: Path) -> bool:
    """Whether the checkout that `directory` is in, or its repository, belongs to a run's user now."""
    return any(place.exists() and place.lstat().st_uid in users.OURS for place in around(directory))


def around(directory: Path) -> tuple[Path, ...]:
    """The checkout that `directory` is in, its repository, and for a linked one the repository that all share: found
    without git, which may refuse to look. Nothing outside of a checkout."""
    here = directory.resolve()
    top = next((place for place in (here, *here.parents) if (place / ".git").exists()), None)
    return (top, *_repository(top / ".git")) if top else ()


@contextmanager
def closed(places: Iterable[Path]) -> Iterator[None]:
    """Only their owner may enter or read `places`, until the last run that wants it so is over."""
    with ExitStack() as held:
        for place in places:
            with suppress(FileNotFoundError):
                held.enter_context(_closed(place))
        yield


def reachable(writable: Iterable[Path], readable: Iterable[Path], hidden: Iterable[Path]) -> None:
    """Raises Trouble when another user cannot get as far as one of the folders; what is writable will be theirs."""
    tops = outermost(writable)
    for folder in (*tops, *readable):
        for parent in reversed(folder.parents):
            if not (parent.stat().st_mode & stat.S_IXOTH or {parent, *parent.parents} & {*tops}):
                raise Trouble(f"{folder} lies in {parent}, which only its owner may enter", _elsewhere(parent))
        for place in hidden:
            if place in folder.parents:
                raise Trouble(f"{folder} lies in {place}, which is hidden from agents", "work in another folder")


def outermost(folders: Iterable[Path]) -> list[Path]:
    """`folders` without those that lie in another of them."""
    every = set(folders)
    return sorted(folder for folder in every if not every & set(folder.parents))


def _repository(named: Path) -> tuple[Path, ...]:
    """The repository of a work tree, and for a linked one the repository that all of them share."""
    if named.is_dir():
        return (named.resolve(),)
    place = named.parent / named.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
    shared = place / "commondir"
    return (place, *((place / shared.read_text("utf-8", "replace").strip(),) if shared.is_file() else ()))


def _elsewhere(parent: Path) -> str:
    return f"chmod o+x {parent}, work in another folder, or use sandbox: bwrap"


def _give_back(top: Path, users_of: range, before: dict[str, Owner]) -> None:
    ours = os.geteuid(), os.getegid()
    wanted: list[tuple[str, Owner]] = []

    def give(path: str, found: os.stat_result, above: Owner) -> Owner:
        owner = before.get(path, above)
        if found.st_uid in users_of:
            wanted.append((path, owner))
        return owner

    try:
        _each(top, give, ours)
        for path, owner in reversed(wanted):  # the topmost last: as long as it is not ours, something is left to do
            os.lchown(path, *owner)
    except OSError:  # folders so deep that no path names them: chown(1) walks without one
        for uid in users_of:
            subprocess.run(["chown", "-hPR", f"--from={uid}", f"{ours[0]}:{ours[1]}", str(top)], check=True)


def _each(
    top: Path, do: Callable[[str, os.stat_result, Owner], Owner], above: Owner, spared: frozenset[str] = frozenset()
) -> None:
    """Call `do` for `top` and everything below it with what it is and what `do` said of its folder.

    Nobody else writes there meanwhile: the run has not started, or is over to the last of its processes.
    """
    waiting: list[tuple[str, Owner]] = [(str(top), above)] if top.exists() else []
    while waiting:
        path, owner = waiting.pop()
        if path in spared:
            continue
        found = os.lstat(path)
        told = do(path, found, owner)
        if stat.S_ISDIR(found.st_mode):
            waiting += [(f"{path}/{name}", told) for name in os.listdir(path)]


@contextmanager
def _closed(place: Path) -> Iterator[None]:
    handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK)  # the thing itself, whatever name it gets meanwhile
    try:
        found = os.fstat(handle)
        known = found.st_dev, found.st_ino
        with _guard:
            count, mode = _closings.get(known, (0, stat.S_IMODE(found.st_mode)))
            _closings[known] = count + 1, mode
            os.fchmod(handle, mode & 0o700)
        try:
            yield
        finally:
            with _guard:
                count, mode = _closings.pop(known)
                if count > 1:
                    _closings[known] = count - 1, mode
                else:
                    os.fchmod(handle, mode)
    finally:
        os.close(handle)
