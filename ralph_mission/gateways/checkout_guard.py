"""What git obeys besides its objects and refs: kept by bytes, compared by reading, put back by writing.

No git process runs here: the one that runs first after a session must not find a session's configuration.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.gateways.checkout_writing import remove_folder
from ralph_mission.gateways.git import Git
from ralph_mission.loop.model import Change
from ralph_mission.trouble import Trouble

OBEYED = (
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "gitdir",
    "shallow",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "logs/refs/stash",
)
"""Files and folders of a repository that change what git does, and the list of stashes."""
OF_NESTED = ("HEAD", "packed-refs", "refs", "index")
"""In a nested repository its own state as well: a session works on the outer one."""
UNFINISHED = (
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "BISECT_START",
    "BISECT_LOG",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "index.lock",
    "HEAD.lock",
    "config.lock",
    "packed-refs.lock",
    "shallow.lock",
)
"""What a merge, rebase or bisect leaves behind that was begun and not ended, and locks of a git that was killed."""
PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class Kept:
    """One file: its bytes, or the target of a link; `mode` as lstat has it."""

    mode: int
    content: bytes


Guarded = Mapping[str, Kept]
"""Absolute path -> what it is."""


def read(git: Git, nested: Iterable[str]) -> dict[str, Kept]:
    """All that is guarded, as it is now. Raises Trouble when the repository itself was exchanged for a link."""
    found: dict[str, Kept] = {}
    for folder in dict.fromkeys((git.git_dir, git.common_dir)):
        if not folder.is_dir() or folder.is_symlink():
            raise Trouble(f"{folder} is no folder any more", "put the repository back, then run again")
        found.update(_below(folder, OBEYED))
    top = str(git.work_tree)
    if os.path.isfile(f"{top}/.git"):
        found.update(_kept(f"{top}/.git"))
    for folder in (*_inner(f"{top}/{name}/.git" for name in nested), *_modules(git.common_dir / "modules")):
        found.update(_below(folder, (*OBEYED, *OF_NESTED)))
    return found


def put_back(git: Git, before: Guarded, nested: Iterable[str]) -> tuple[Change, ...]:
    """Make it as it was; tells what was not."""
    now = read(git, nested)
    differing = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    for path in differing:
        if path in now and path not in before:
            _remove(path)
    for path in differing:
        if path in before:
            _write(path, before[path])
    return tuple(Change(_shown(git, path), _how(before.get(path), now.get(path)), PUT_BACK) for path in differing)


def unfinished(git: Git) -> frozenset[str]:
    """What is begun and not ended."""
    return frozenset(name for name in UNFINISHED if os.path.lexists(git.git_dir / name))


def abandon(git: Git, before: frozenset[str]) -> tuple[Change, ...]:
    """End what a session began and did not end; the files stay for the comparison."""
    begun = sorted(unfinished(git) - before)
    for name in begun:
        _remove(str(git.git_dir / name))
    return tuple(Change(f".git/{name}", "created", "removed") for name in begun)


def unnest(git: Git, nested: Iterable[str], aside: Path) -> tuple[Change, ...]:
    """Repositories that a session made inside the checkout: their `.git` is moved to `aside`, their files stay."""
    made = []
    for number, folder in enumerate(sorted(nested)):
        aside.mkdir(parents=True, exist_ok=True)
        os.rename(f"{git.work_tree}/{folder}/.git", aside / f"{number}-{folder.rpartition('/')[2][:50]}")
        made.append(Change(f"{folder}/.git", "created", f"moved to {aside}"))
    return tuple(made)


def _below(folder: Path, names: Iterable[str]) -> dict[str, Kept]:
    return {path: kept for name in names for path, kept in _kept(f"{folder}/{name}").items()}


def _kept(path: str) -> dict[str, Kept]:
    try:
        status = os.lstat(path)
    except OSError:
        return {}
    if stat.S_ISDIR(status.st_mode):
        return {inner: kept for name in sorted(os.listdir(path)) for inner, kept in _kept(f"{path}/{name}").items()}
    if stat.S_ISLNK(status.st_mode):
        return {path: Kept(status.st_mode, os.readlink(os.fsencode(path)))}
    return {path: Kept(status.st_mode, Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b"")}


def _inner(places: Iterable[str]) -> Iterator[Path]:
    """The folders of nested repositories whose `.git` is a folder; a file is a plain file of the checkout's."""
    yield from (Path(place) for place in places if os.path.isdir(place) and not os.path.islink(place))


def _modules(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        if "HEAD" in names and "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            yield Path(root)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        remove_folder(os.fsencode(path))
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def _write(path: str, kept: Kept) -> None:
    if not os.path.isdir(os.path.dirname(path)):
        _remove(os.path.dirname(path))
        os.makedirs(os.path.dirname(path))
    if os.path.isdir(path) and not os.path.islink(path):
        remove_folder(os.fsencode(path))
    spare = f"{path}.ralph"
    _remove(spare)
    if stat.S_ISLNK(kept.mode):
        os.symlink(kept.content, os.fsencode(spare))
    else:
        Path(spare).write_bytes(kept.content)
        os.chmod(spare, stat.S_IMODE(kept.mode))
    os.replace(spare, path)


def _how(before: Kept | None, now: Kept | None) -> str:
    return "created" if before is None else "deleted" if now is None else "modified"


def _shown(git: Git, path: str) -> str:
    for folder in (git.git_dir, git.common_dir):
        if path.startswith(f"{folder}/"):
            return ".git" + path[len(str(folder)) :]
    return os.path.relpath(path, str(git.work_tree))
