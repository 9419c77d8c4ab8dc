"""Turns intended edits into a commit, and compares two commits: their merge base and changes.

A commit depends only on the effect and its author: repeating it gives the same id, and a branch with a different commit
is somebody else's work. Answers about object ids are cached. Missing history (a shallow clone) makes differences
larger, never smaller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.git.git import EMPTY_TREE, Git, GitError, Identity
from ralph_mission.mission.model.effects import PushBranch
from ralph_mission.mission.model.forge import Pull, Touch
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.safety.patch import FileDelta, apply, patch_id
from ralph_mission.values import compile_regex, dataclass

SERVER = "GitHub <noreply@"
HUNK = compile_regex(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Changes:
    """What a head changes since it left its base: lines of the base side, and each file's change as an id."""

    touches: tuple[Touch, ...] = ()
    patch_ids: frozenset[str] = frozenset()


def is_ancestor(git: Git, old: str, new: str) -> bool:
    """Whether commit `old` is in the history of `new`."""
    return bool(old) and fork(git, new, old) == old


@lru_cache(maxsize=1024)
def fork(git: Git, base: str, head: str) -> str:
    """The merge base of `head` and `base`; the empty tree if they share no history."""
    return git.try_text("merge-base", base, head) or EMPTY_TREE


@lru_cache(maxsize=256)
def changes(git: Git, base: str, head: str) -> Changes:
    """The lines of the base side that `head` changes since it left `base`; an insertion touches the line before it."""
    flags = ("-r", "-p", "--raw", "-z", "--text", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    raw = git.run("diff-tree", *flags, fork(git, base, head), head)
    names, _, patch = raw.partition(b"\0\0")
    hunks = list(_hunks(_paths(names), patch.split(b"\n")))
    return Changes(tuple(hunk.touch for hunk in hunks), frozenset(_patch_ids(hunks)))


def with_changes(
    git: Git, pull: Pull, base: str, head: str, touches: bool, details: bool, us: Identity = Identity()
) -> Pull:
    """The pull request with the ids of its changes; `touches` adds the lines, `details` its commits."""
    found = changes(git, base, head)
    return replace(
        pull,
        touches=found.touches if touches or details else (),
        patch_ids=found.patch_ids,
        commits=commits(git, base, head) if details else (),
        own=own(git, base, head, us) if details else frozenset(),
    )


def diff(git: Git, base: str, head: str) -> str:
    """What `head` changes since it left `base`, as a patch for people."""
    flags = ("-r", "-p", "--stat", "--text", "-M", "--no-ext-diff", "--no-textconv", "--no-color")
    return git.text("diff-tree", *flags, fork(git, base, head), head)


def shown(git: Git, base: str, head: str) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """The files of that diff, and the lines it shows on the side of `head`; none for a deleted file."""
    flags = ("-r", "-p", "--raw", "-z", "--text", "--no-renames", "--no-ext-diff", "--no-textconv")
    names, _, patch = git.run("diff-tree", *flags, fork(git, base, head), head).partition(b"\0\0")
    paths, position = _paths(names) if names else [], -1
    found: dict[str, tuple[tuple[int, int], ...]] = dict.fromkeys(paths, ())
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            position += 1
        elif (match := HUNK.match(line)) and int(match[4] or 1):
            first = int(match[3])
            found[paths[position]] += ((first, first + int(match[4] or 1) - 1),)
    return found


def commits(git: Git, base: str, head: str) -> tuple[str, ...]:
    """Object ids on `head` that are not on `base`, oldest first."""
    return tuple(git.text("rev-list", "--reverse", head, f"^{base}").split())


def own(git: Git, base: str, head: str, who: Identity = Identity()) -> frozenset[str]:
    """Those of `commits` with one of our names as author and no other's as committer, unless forged.

    Commits made on the server have its name as committer.
    """
    us = {f"{one.name} <{one.email}>" for one in (who, Identity())}
    log = git.text("log", "--format=%H %an <%ae>%x00%cn <%ce>", head, f"^{base}")
    lines = (line.partition(" ") for line in log.split("\n"))
    return frozenset(oid for oid, _, names in lines if _names_us(names, us))


def _names_us(names: str, us: Collection[str]) -> bool:
    author, _, committer = names.partition("\0")
    return author in us and (committer in us or committer.startswith(SERVER))


def _paths(names: bytes) -> list[str]:
    """The path of each following patch. A change of type is a removal and an addition."""
    fields = names.rstrip(b"\0").split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return [path.decode("utf-8", "surrogateescape") for meta, path in pairs for _ in range(1 + meta.endswith(b" T"))]


@dataclass(frozen=True, slots=True)
class _Hunk:
    touch: Touch
    deleted: tuple[bytes, ...]
    added: tuple[bytes, ...]


def _hunks(paths: list[str], lines: list[bytes]) -> Iterator[_Hunk]:
    position, row = -1, 0
    while row < len(lines):
        line, row = lines[row], row + 1
        if line.startswith(b"diff --git "):
            position += 1
        elif match := HUNK.match(line):
            first, gone, come = max(int(match[1]), 1), int(match[2] or 1), int(match[4] or 1)
            body = [text for text in lines[row : row + gone + come + 2] if not text.startswith(b"\\")][: gone + come]
            touch = Touch(paths[position], first, first + max(gone, 1) - 1)
            yield _Hunk(touch, tuple(text[1:] for text in body[:gone]), tuple(text[1:] for text in body[gone:]))
            row += gone + come


def _patch_ids(hunks: list[_Hunk]) -> Iterator[str]:
    for path in {hunk.touch.path for hunk in hunks}:
        here = [hunk for hunk in hunks if hunk.touch.path == path]
        deleted = (line for hunk in here for line in hunk.deleted)
        yield patch_id(path, deleted, (line for hunk in here for line in hunk.added))


OURS = "ralph/"

Contents = dict[str, tuple[str, bytes] | None]


def commit(git: Git, effect: PushBranch, default: str, who: Identity = Identity()) -> str:
    """Create the branch's new commit, without moving any ref. Raises ForgeRefused."""
    _require_name(git, effect.branch, default)
    for known in filter(None, (effect.base_sha, effect.onto)):
        if git.resolve(known) != known:
            raise ForgeRefused(f"there is no commit {known}")
    parents, start = _find_base(git, effect)
    try:
        tree = git.write_tree(start, _contents(git, start, effect.files)) if effect.files else start
        return git.commit_tree(tree, parents, effect.message, effect.date, who)
    except ValueError as error:
        raise ForgeRefused(f"the change does not fit {start[:12]}: {error}") from None
    except GitError as error:
        raise ForgeRefused(f"git cannot commit the change: {error.detail.strip()}") from None


def merged_tree(git: Git, ours: str, theirs: str) -> str:
    """The tree of a conflict-free merge, made without a checkout. Raises ForgeRefused."""
    try:
        return git.text("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs).split("\0")[0]
    except GitError as error:
        if error.code == 1:
            what, person = "the merge has conflicts with its base", FailureReason.NEEDS_PERSON
            raise ForgeRefused(what, "solve them in its branch", person) from None
        raise ForgeRefused(f"git cannot merge: {error.detail.strip()}") from None


def _find_base(git: Git, effect: PushBranch) -> tuple[tuple[str, ...], str]:
    """The parents, and the tree to edit. The base is merged in, never rebased onto."""
    if not effect.onto:
        return (effect.base_sha,), git.text("rev-parse", f"{effect.base_sha}^{{tree}}")
    if is_ancestor(git, effect.base_sha, effect.onto):
        return (effect.onto,), git.text("rev-parse", f"{effect.onto}^{{tree}}")
    return (effect.onto, effect.base_sha), merged_tree(git, effect.onto, effect.base_sha)


def _require_name(git: Git, name: str, default: str) -> None:
    if name == default:
        raise ForgeRefused("default-branch")
    if not name.startswith(OURS) or not git.try_text("check-ref-format", "--branch", name):
        raise ForgeRefused("branch-name")


def _contents(git: Git, tree: str, files: Sequence[FileDelta]) -> Contents:
    """Each path's new content; None if deleted. Raises ValueError if an edit does not fit."""
    oids = {entry.path: entry.oid for entry in git.listing(tree, *(file.path for file in files))}
    blobs = git.blobs(oids.values())
    return {file.path: _content(file, blobs.get(oids.get(file.path, ""), b"")) for file in files}


def _content(file: FileDelta, old: bytes) -> tuple[str, bytes] | None:
    return (file.mode, apply(old, file.edits)) if file.mode else None
