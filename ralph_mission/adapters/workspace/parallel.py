"""Several sessions at once: each in a clone of its own, their changes merged in one fixed order.

A clone borrows the objects and is gone afterwards; what was left by a process that died is removed by the next one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.adapters.files import locks, safe_paths
from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.adapters.workspace.files import File
from ralph_mission.adapters.workspace.land import Judged
from ralph_mission.adapters.workspace.objects import Objects
from ralph_mission.adapters.workspace.restore import remove_folder
from ralph_mission.adapters.workspace.workplace import Workspace
from ralph_mission.adapters.workspace.workshop import clone
from ralph_mission.loop.model.state import PathChange
from ralph_mission.values import dataclass

PREFIX = "ultrawork-"
BRANCH = "refs/heads/work"
KEPT = ".ralph"


@dataclass(frozen=True, slots=True)
class Part:
    """One builder's clone: where it is, and the commit it starts from."""

    name: str
    folder: Path
    base: str

    @property
    def git(self) -> Git:
        """Its own repository: refs, index and configuration are nobody else's."""
        return Git(self.folder / ".git", self.folder / ".git", self.folder)


@dataclass(frozen=True, slots=True)
class Built:
    """What a builder made and was judged; None for nothing."""

    name: str
    judged: Judged | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """What it touches."""
        return tuple(sorted(self.judged.paths)) if self.judged else ()


@dataclass(frozen=True, slots=True)
class Merged:
    """Several builders' changes as commits on one another; `left_out` tells of each path that met an earlier one's."""

    judged: Judged
    applied: tuple[str, ...]
    left_out: Mapping[str, tuple[PathChange, ...]]


class WorkspaceApart(Workspace):
    """A clone whose work somebody else lands, with that of others: `built` is the last that was judged."""

    built: Judged | None = None

    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        """As in `ports.Workplace`, but that no branch moves."""
        judged = self.build(message, lists)
        self.built = judged if judged.paths else None
        return judged.commit


@contextmanager
def parts(git: Git, commit: str, names: Sequence[str], scratch: Path) -> Iterator[tuple[Part, ...]]:
    """One clone of `commit` for each name, on a branch `work`; all are gone afterwards. Raises UserError."""
    base = git.resolve(commit)
    safe_paths.own(scratch).mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_ones:
        with locks.hold_folder(scratch):  # or another process could take the new folder for an abandoned one
            prune(scratch)
            place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=scratch))
            place.chmod(0o711)  # a builder that plays as another user has to get to its clone
            open_ones.callback(_remove, place)
            open_ones.enter_context(locks.hold_folder(place))
        yield tuple(Part(name, _cloned(git, base, place, open_ones), base) for name in names)


def prune(scratch: Path) -> tuple[Path, ...]:
    """Remove what processes left that do not run any more; gives what was removed."""
    left = tuple(place for place in sorted(scratch.glob(f"{PREFIX}*")) if place.is_dir() and not locks.is_held(place))
    for place in left:
        _remove(place)
    return left


def merge(git: Git, base: str, built: Sequence[Built], who: Identity = Identity()) -> Merged:
    """Apply what builders made to `base` in the order given, a commit for each.

    A builder that touched what an earlier one had touched (or a folder above or below it) is left out as a
    whole: half of a change was built by nobody. The same input always gives the same trees.
    """
    objects, head = Objects(git), base
    taken: dict[str, str] = {}
    paths: dict[str, File | None] = {}
    applied, left_out, message = list[str](), dict[str, tuple[PathChange, ...]](), ""
    for one in built:
        if one.judged is None:
            continue
        if met := [(path, other) for path in one.paths if (other := _met(path, taken))]:
            left_out[one.name] = tuple(PathChange(path, "conflict", f"{other} had it first") for path, other in met)
            continue
        message = one.judged.message
        head = objects.commit(head, one.judged.paths, message, datetime.now(UTC), who)
        taken |= dict.fromkeys(one.paths, one.name)
        paths |= one.judged.paths
        applied.append(one.name)
    return Merged(Judged(base, paths, message, head), tuple(applied), left_out)


def _cloned(git: Git, commit: str, place: Path, open_ones: ExitStack) -> Path:
    folder = open_ones.enter_context(clone(git, commit, place))
    fresh = Git(folder / ".git", folder / ".git", folder)
    fresh.run("update-ref", BRANCH, commit)
    fresh.run("symbolic-ref", "HEAD", BRANCH)
    return folder


def _met(path: str, taken: Mapping[str, str]) -> str:
    """Which earlier builder had this path, or a file where it needs a folder, or files below it; "" for none."""
    for other, name in taken.items():
        if other == path or other.startswith(f"{path}/") or path.startswith(f"{other}/"):
            return name
    return ""


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        remove_folder(os.fsencode(place))
