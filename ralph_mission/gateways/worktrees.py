"""Several builders at once: each in a clone of its own, their changes merged in one fixed order.

Clones rather than linked work trees: those would share refs, configuration and hooks, so that one builder's
session could move what another one's check compares. A clone borrows the objects and is gone afterwards; what
was left by a process that died is removed by the next one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways.checkout_writing import remove_folder
from ralph_mission.gateways.files import locks, safe_paths
from ralph_mission.gateways.git import Git, Identity
from ralph_mission.gateways.workshop import changed, clone
from ralph_mission.loop.model import Change
from ralph_mission.safety.patch import GITLINK
from ralph_mission.trouble import Trouble

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
class Collected:
    """What a builder made, as one commit on its base ("" for nothing), and the paths it touched."""

    name: str
    commit: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The base with what could be applied; `left_out` tells of each builder's path that met an earlier one's."""

    commit: str
    applied: tuple[str, ...]
    left_out: Mapping[str, tuple[Change, ...]]


@contextmanager
def parts(git: Git, commit: str, names: Sequence[str], scratch: Path) -> Iterator[tuple[Part, ...]]:
    """One clone of `commit` for each name, on a branch `work`; all are gone afterwards. Raises Trouble."""
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


def collect(git: Git, part: Part, message: str, who: Identity = Identity()) -> Collected:
    """Everything in the clone that differs from its base, by content, as one commit in `git`'s object store.

    The clone's own repository, which a session could have changed, is not asked; what a loop keeps there for itself
    is not work. Raises Trouble.
    """
    changes = changed(part.folder, part.base, git).changes
    found = {change.path: change for change in changes if change.path.partition("/")[0] != KEPT}
    if nested := [path for path, change in found.items() if GITLINK in (change.old_mode, change.new_mode)]:
        raise Trouble(f"{part.name} made a repository inside the checkout: {nested[0]}", "see its report; run it again")
    wanted = {path: None if change.new is None else (change.new_mode, change.new) for path, change in found.items()}
    if not wanted:
        return Collected(part.name, "", ())
    tree = git.write_tree(part.base, wanted)
    return Collected(
        part.name, git.commit_tree(tree, [part.base], message, datetime.now(UTC), who), tuple(sorted(wanted))
    )


def merge(git: Git, base: str, collected: Sequence[Collected], message: str, who: Identity = Identity()) -> Merged:
    """Apply builders' commits to `base` in the order given. Disjoint ones are applied whole.

    A builder that touched what an earlier one had touched (or a folder above or below it) is left out as a
    whole: half of a change was built by nobody. The same input always gives the same trees. `{name}` in
    `message` is the builder's; one commit for each.
    """
    taken: dict[str, str] = {}
    head, applied, left_out = base, list[str](), dict[str, tuple[Change, ...]]()
    for one in (one for one in collected if one.commit):
        if met := [(path, other) for path in one.paths if (other := _met(path, taken))]:
            left_out[one.name] = tuple(Change(path, "conflict", f"{other} had it first") for path, other in met)
            continue
        head = _applied(git, head, one, message, who)
        taken |= dict.fromkeys(one.paths, one.name)
        applied.append(one.name)
    return Merged(head, tuple(applied), left_out)


def _cloned(git: Git, commit: str, place: Path, open_ones: ExitStack) -> Path:
    folder = open_ones.enter_context(clone(git, commit, place))
    fresh = Git(folder / ".git", folder / ".git", folder)
    fresh.run("update-ref", BRANCH, commit)
    fresh.run("symbolic-ref", "HEAD", BRANCH)
    return folder


def _applied(git: Git, head: str, one: Collected, message: str, who: Identity) -> str:
    made = history.entries(git, one.commit, one.paths)
    with git.scratch_index() as env:
        git.run("read-tree", head, env=env)
        git.run("update-index", "--replace", "-z", "--index-info", stdin=history.index_lines(made, one.paths), env=env)
        tree = git.run("write-tree", env=env).decode().strip()
    return git.commit_tree(tree, [head], message.replace("{name}", one.name), datetime.now(UTC), who)


def _met(path: str, taken: Mapping[str, str]) -> str:
    """Which earlier builder had this path, or a file where it needs a folder, or files below it; "" for none."""
    for other, name in taken.items():
        if other == path or other.startswith(f"{path}/") or path.startswith(f"{other}/"):
            return name
    return ""


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        remove_folder(os.fsencode(place))
