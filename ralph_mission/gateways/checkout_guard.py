"""What git obeys besides its objects and refs: kept by bytes, compared by reading, put back by writing.

No git process runs here: the one that runs first after a session must not find a session's configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralph_mission.gateways import checkout_sound as sound
from ralph_mission.gateways.checkout_kept import PUT_BACK, Guarded, Kept, kept, remove, write
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


def read(git: Git, nested: Iterable[str], sweep: sound.Sweep) -> dict[str, Kept]:
    """All that is guarded, as it is now. Raises Trouble when the repository itself was exchanged for a link."""
    _present(git)
    return {**_obeyed(git, nested), **sweep.odd()}


def put_back(
    git: Git, before: Guarded, standing: Guarded, nested: Iterable[str], sweep: sound.Sweep
) -> tuple[Change, ...]:
    """Make it as it was; tells what was not. `standing` is put back only where git could not read what stands there.

    Raises Trouble as `read` does."""
    _present(git)
    told = sound.stand(git, standing) + _put_back(git, before, nested, sweep)
    told += _put_back(git, before, nested, sweep) if told else ()  # what a link had hidden
    sound.have_refs(git)
    return told


def unfinished(git: Git) -> frozenset[str]:
    """What is begun and not ended."""
    return frozenset(name for name in UNFINISHED if os.path.lexists(git.git_dir / name))


def abandon(git: Git, before: frozenset[str]) -> tuple[Change, ...]:
    """End what a session began and did not end; the files stay for the comparison."""
    begun = sorted(unfinished(git) - before)
    for name in begun:
        remove(str(git.git_dir / name))
    return tuple(Change(f".git/{name}", "created", "removed") for name in begun)


def unnest(git: Git, nested: Iterable[str], aside: Path) -> tuple[Change, ...]:
    """Repositories that a session made inside the checkout: their `.git` is moved to `aside`, their files stay."""
    made = []
    for number, folder in enumerate(sorted(nested)):
        aside.mkdir(parents=True, exist_ok=True)
        os.rename(f"{git.work_tree}/{folder}/.git", aside / f"{number}-{folder.rpartition('/')[2][:50]}")
        made.append(Change(f"{folder}/.git", "created", f"moved to {aside}"))
    return tuple(made)


def _present(git: Git) -> None:
    for folder in dict.fromkeys((git.git_dir, git.common_dir)):
        if not folder.is_dir() or folder.is_symlink():
            raise Trouble(f"{folder} is no folder any more", "put the repository back, then run again")


def _obeyed(git: Git, nested: Iterable[str]) -> dict[str, Kept]:
    found: dict[str, Kept] = {}
    for folder in dict.fromkeys((git.git_dir, git.common_dir)):
        found.update(_below(folder, OBEYED))
    inner = [f"{git.work_tree}/{name}/.git" for name in nested]
    for pointer in (f"{git.work_tree}/.git", *inner):
        found.update(kept(pointer) if not os.path.isdir(pointer) else {})
    for folder in (*_inner(inner), *_modules(git.common_dir / "modules")):
        found.update(_below(folder, (*OBEYED, *OF_NESTED)))
    return found


def _put_back(git: Git, before: Guarded, nested: Iterable[str], sweep: sound.Sweep) -> tuple[Change, ...]:
    odd = sweep.odd()
    now = {**_obeyed(git, nested), **odd}
    differing = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    told = tuple(
        Change(
            sound.shown(git, path), sound.how(path) if path in odd else _how(before.get(path), now.get(path)), PUT_BACK
        )
        for path in differing
    )
    for path in differing:
        if path in now and path not in before:
            remove(path)
    for path in differing:
        if path in before:
            write(path, before[path])
    return told


def _below(folder: Path, names: Iterable[str]) -> dict[str, Kept]:
    return {path: found for name in names for path, found in kept(f"{folder}/{name}").items()}


def _inner(places: Iterable[str]) -> Iterator[Path]:
    """The folders of nested repositories whose `.git` is a folder; a file is a plain file of the checkout's."""
    yield from (Path(place) for place in places if os.path.isdir(place) and not os.path.islink(place))


def _modules(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        if "HEAD" in names and "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            yield Path(root)


def _how(before: Kept | None, now: Kept | None) -> str:
    return "created" if before is None else "deleted" if now is None else "modified"
