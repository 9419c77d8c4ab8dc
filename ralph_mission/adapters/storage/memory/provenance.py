"""Whose commit the head of the memory branch is: ours, ours plus a person's edit, or foreign; and repairs of the
branch.

Decides by a commit's changes and this clone's records, never by names. If git itself is damaged (a lock, a ref file,
lost objects), the branch goes back to its newest commit with a readable history; without one it is deleted, and memory
starts at a new root.

This clone's record of the branch is stored outside of it: `<git common dir>/ralph/anchor.json` holds the position after
our last commit and, around the move of the ref, the commit about to be made: after a crash in between, head == pending,
which is recognised as ours. Work trees share it.

On a self-hosted runner, a checkout clears its workspace, and even deletes the clone for a wrong remote or a broken
repository. It leaves the tool cache alone, so files there outlive a job.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.git.remote import Remote
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.errors import UserError
from ralph_mission.mission.memory.text import peek, refuse
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.mission.model.memory import Header
from ralph_mission.safety.patch import REGULAR
from ralph_mission.values import compile_regex, dataclass


@dataclass(frozen=True, slots=True)
class AnchorMark:
    """The contents of the anchor file; `pending` is a commit id or ""."""

    lineage: str
    serial: int
    oid: str
    pending: str = ""

    @property
    def anchor(self) -> Anchor:
        """The position, in the mission's model."""
        return Anchor(self.lineage, self.serial, self.oid)


@dataclass(frozen=True, slots=True)
class Anchorage:
    """The folder `<git common dir>/ralph`; created on the first write."""

    folder: Path

    def read(self) -> AnchorMark | None:
        """The stored mark, or None. Raises UserError if unreadable."""
        try:
            mark: AnchorMark = codec.load(AnchorMark, (self.folder / "anchor.json").read_bytes())
            return mark
        except FileNotFoundError:
            return None
        except codec.UnreadableDocument:
            raise refuse(f"{self.folder / 'anchor.json'} cannot be read") from None

    def write(self, mark: AnchorMark) -> None:
        """Store it, durably and atomically. Raises OSError."""
        files.write(self.folder / "anchor.json", json.dumps(asdict(mark), indent=1).encode() + b"\n")

    def clone(self) -> str:
        """This clone's own name, generated once. Raises OSError."""
        place = self.folder / "clone"
        if not place.exists():
            files.write(place, secrets.token_hex(6).encode())
        return place.read_text()

    def forget(self) -> None:
        """Delete it: the first commit was not made after all."""
        (self.folder / "anchor.json").unlink(missing_ok=True)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Held while the ref and the anchor move together. Raises OSError."""
        with files.hold_file(self.folder / "moving", wait=None):
            yield

    @contextmanager
    def working(self) -> Iterator[bool]:
        """Held for a whole cycle; False if another process of this clone holds it."""
        with files.hold_file(self.folder / "lock") as lock:
            yield lock


def this_holder(clone: str = "") -> str:
    """Host (and clone, where several share one memory), boot and process: `host[/clone]:boot id:pid`."""
    return f"{_place(clone)}:{files.boot_id()}:{os.getpid()}"


def same_place(holder: str, clone: str = "") -> bool:
    """Whether a holder ran on this machine (in this clone), in this boot or an earlier one."""
    place, _, rest = holder.partition(":")
    return place == _place(clone) and rest.count(":") == 1


def _place(clone: str) -> str:
    return f"{socket.gethostname()}/{clone}" if clone else socket.gethostname()


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """This repository's folder in the tool cache, which all repositories of a runner share, or None."""
    cache, repository = environment.get("RUNNER_TOOL_CACHE", ""), environment.get("GITHUB_REPOSITORY", "")
    if cache and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", repository):
        return Path(cache) / "ralph" / repository.lower().replace("/", "+")
    return None


FOLLOWED = compile_regex(rb"ref: |[0-9a-f]{40}")
"""Prefixes of valid ref contents: another ref's name, a commit's id."""

MAX_UNRECORDED = 30  # our commits not recorded in the forge: from six crashed runs, five each
LOOKED = 300  # commits, including people's edits, searched for those


@dataclass(frozen=True, slots=True)
class MemoryBranch:
    """The memory branch of a repository, and the path of the memory file on it.

    With a `remote` the server's branch counts, and none is expected here.
    """

    git: Git
    name: str
    path: str
    remote: Remote | None = None
    vouched: Callable[[], Anchor | None] = lambda: None  # the position last recorded in the forge

    @property
    def ref(self) -> str:
        """The full name of the ref."""
        return f"refs/heads/{self.name}"

    def head(self) -> str:
        """Its commit, fetched, or "". Raises UserError if checked out or invalid."""
        if self.remote:
            oid = self.remote.head(self.name)
            if oid:
                self.remote.fetch({self.ref: oid})
            return oid
        form = "--format=%(refname)%00%(objectname)%00%(objecttype)%00%(symref)%00%(worktreepath)"
        try:
            lines = self.git.text("for-each-ref", form, self.ref).split("\n")
        except GitError as error:
            raise refuse(f"git cannot read the branch {self.name}: {reason(error)}") from None
        for line in lines:
            name, *rest = line.split("\0")
            if name == self.ref:
                return self._check_object(*rest)
        if is_damaged(self.file):
            raise refuse(f"{self.file} is damaged: it names no commit")
        return ""

    @property
    def file(self) -> Path:
        """The ref's file, if it has its own."""
        return self.git.common_dir / self.ref

    def move(self, new: str, old: str) -> str:
        """Compare-and-swap; `old` "" means it must not exist. Returns its new commit, "" if it was at another.

        A server may make its own commit with the same content. Raises Denied, UserError.
        """
        if self.remote:
            moved = self.remote.push(self.name, new, old)
            if moved not in ("", new):
                self.remote.fetch({self.ref: moved})
            return moved
        return new if self.git.move_ref(self.ref, new, old) else ""

    def landed(self, commit: str, head: str) -> str:
        """The commit in `head` for the intended one: itself, or the server's with the same content, or ""."""
        if not commit or self.git.contains(commit, head):
            return commit
        parent = self.git.try_text("rev-parse", "--verify", "--quiet", f"{commit}^")
        since = self.git.try_text("rev-list", "--first-parent", "--reverse", head, *([f"^{parent}"] if parent else []))
        found = since.partition("\n")[0]
        return found if self.remote and self.git.says_the_same(commit, found) else ""

    def refuse_unborn_checkout(self) -> None:
        """Raises UserError if a work tree is on the branch before its first commit."""
        if self.remote:
            return
        place = ""
        for line in self.git.text("worktree", "list", "--porcelain").split("\n"):
            place = line.removeprefix("worktree ") if line.startswith("worktree ") else place
            if line == f"branch {self.ref}":
                raise _checked_out(self.name, place)

    def ours(self, head: str, mark: AnchorMark | None, alone: bool = True) -> str:
        """Our newest commit that is `head` or its ancestor. Raises UserError.

        A clone without records trusts the position in the forge, or else once the branch as found, if its files are
        regular. Unless it has to be `alone` (a cycle is running), a clone of a server's repository accepts progress by
        other runners: up to the forge's position, and a few commits more in case a runner crashed. One of them may even
        have restarted memory (`ralph memory recover`), if the forge's position shows that.
        """
        if mark is None or not mark.oid + mark.pending:
            self._refuse_odd_files(head)
            return self._vouched_for(head)
        pending = self.landed(mark.pending, head)
        if head in (mark.oid, pending):
            return head
        for known in self._starts(replace(mark, pending=pending), alone):
            if known and self.git.contains(known, head):
                newest = known if alone or self.remote is None else self._handed_on(known, head)
                self._refuse_foreign(newest, head)
                return newest
        raise refuse(self._refuse_lost(mark, head))

    def _vouched_for(self, head: str) -> str:
        """Our newest commit for a clone without records, as in every workflow run."""
        anchor = self.vouched() if self.remote else None
        if anchor is None or not anchor.oid or not self.git.contains(anchor.oid, head):
            return head
        newest = self._handed_on(anchor.oid, head)
        self._refuse_foreign(newest, head)
        return newest

    def _starts(self, mark: AnchorMark, alone: bool) -> Iterator[str]:
        """Commits that prove their descendants: those recorded here; then another runner's restart."""
        yield from (mark.pending, mark.oid)
        anchor = self.vouched() if self.remote and not alone else None
        if anchor and anchor.lineage != mark.lineage and anchor.serial > mark.serial:
            yield anchor.oid

    def _handed_on(self, known: str, head: str) -> str:
        """The newest commit since `known` by another runner: serial grew by one at a time with the same lineage."""
        anchor = self.vouched()
        if anchor and anchor.oid and self.git.contains(known, anchor.oid) and self.git.contains(anchor.oid, head):
            known = anchor.oid
        since = self.git.text("rev-list", "--first-parent", "--reverse", f"{known}..{head}").split()
        headers = self._headers((known, *since[:LOOKED]))
        start = at = headers.get(known)
        for oid in since[:LOOKED]:
            header = headers.get(oid)
            if header and at and start and _follows(header, at) and header.serial <= start.serial + MAX_UNRECORDED:
                known, at = oid, header
        return known

    def _headers(self, commits: Sequence[str]) -> dict[str, Header]:
        """The headers of readable memory files, as a later commit may fix a person's broken edit."""
        headers, blobs = dict[str, Header](), self.git.blobs(f"{oid}:{self.path}" for oid in commits)
        for oid in commits:
            with suppress(UserError):
                headers[oid] = peek(blobs.get(f"{oid}:{self.path}", b""))
        return headers

    def only_memory_changed(self, old: str, new: str) -> bool:
        """Whether two commits differ only in the memory file's content."""
        return not self._foreign_paths(old, new)

    def odd_files(self, head: str) -> tuple[str, ...]:
        """Paths other than regular files (symlinks, submodules, executables), and a missing memory file."""
        entries = self.git.listing(head)
        irregular = [entry.path for entry in entries if entry.mode != REGULAR]
        missing = [] if any(entry.path == self.path for entry in entries) else [self.path]
        return tuple(irregular + [path for path in missing if path not in irregular])

    def _check_object(self, oid: str, kind: str, symref: str, place: str) -> str:
        if symref or kind != "commit":
            raise refuse(f"the branch {self.name} does not point at a commit of its own")
        if place:
            raise _checked_out(self.name, place)
        return oid

    def _refuse_odd_files(self, head: str) -> None:
        irregular = self.odd_files(head)
        if irregular:
            raise refuse(f"{irregular[0]!r} on the branch {self.name} is missing or not a regular file")

    def _refuse_foreign(self, known: str, head: str) -> None:
        paths = self._foreign_paths(known, head)
        if paths:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            raise refuse(f"someone else changed {paths[0]!r}{more} on the branch {self.name}")

    def _foreign_paths(self, old: str, new: str) -> list[str]:
        return [
            one.path
            for one in self.git.changes(old, new)
            if one.path != self.path or (one.old_mode, one.new_mode) != (REGULAR, REGULAR)
        ]

    def _refuse_lost(self, mark: AnchorMark, head: str) -> str:
        if self.git.contains(head, mark.oid):
            return f"the branch {self.name} was rolled back behind serial {mark.serial}"
        return f"the history of the branch {self.name} was rewritten: it lacks {mark.oid[:10]}"


def is_damaged(ref_file: Path) -> bool:
    """Whether a ref's file exists with contents that git cannot follow."""
    try:
        return not FOLLOWED.match(ref_file.read_bytes())
    except OSError:
        return False


def reason(error: GitError) -> str:
    """Git's message, in one line."""
    lines = [line for line in error.detail.strip().splitlines() if line] or [f"git exit {error.code}"]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])


def _follows(header: Header, before: Header) -> bool:
    return (header.lineage, header.serial) == (before.lineage, before.serial + 1)


def _checked_out(name: str, place: str) -> UserError:
    return UserError(
        f"the branch {name} is checked out in {place}", f"check out another branch there: git -C {place} switch BRANCH"
    )


STALE = 600.0  # seconds after which a ref's lock is stale: git holds one briefly
TRIED = 50  # commits of the reflog to try, newest first


def lock_file(branch: MemoryBranch) -> Path:
    """Git's lock file during a move of the ref."""
    return branch.file.with_name(f"{branch.file.name}.lock")


def lock_age(branch: MemoryBranch) -> float | None:
    """Seconds since the ref was locked, or None. A future time counts by its distance."""
    if branch.remote:
        return None
    try:
        return abs(time.time() - lock_file(branch).lstat().st_mtime)
    except OSError:
        return None


def faults(branch: MemoryBranch) -> Iterator[str]:
    """Problems of the ref and its commits at the level of git."""
    age = lock_age(branch)
    if age is not None:
        yield f"{lock_file(branch)} stands since {age:.0f} s: while it does, nothing can be written"
    if other := _other_ref(branch):
        yield f"the branch {branch.name} is another name of {other}"
        return
    head = _named_object(branch)
    if _has_damaged_file(branch):
        yield f"{branch.file} is damaged: it names no commit"
    elif head and (lost := _what_is_lost(branch, head)):
        yield f"git has lost something of the branch {branch.name}: {lost}"


def repair(branch: MemoryBranch) -> list[str]:
    """Make the branch usable for git; returns the repairs, in words.

    Raises UserError for a lock that may be held, a checked-out branch, and if only a new clone helps.
    """
    done = list(_unlock(branch))
    if _other_ref(branch):
        branch.git.run("symbolic-ref", "--delete", branch.ref)
        return [*done, *_go_back(branch, "")]
    head, damaged = _named_object(branch), _has_damaged_file(branch)
    lost = _what_is_lost(branch, head) if head and not damaged else ""
    if not damaged and not lost:
        return done
    if branch.remote:
        what = f"this clone has lost something of the branch {branch.name} that the server has: {lost}"
        raise UserError(what, "make a new clone and run there")
    branch.refuse_unborn_checkout()
    if damaged:
        branch.file.unlink()
        head = _named_object(branch)  # an older one, packed with other refs
    return [*done, *_go_back(branch, head)]


def _go_back(branch: MemoryBranch, head: str) -> Iterator[str]:
    """Move the branch from `head` to its newest intact commit; delete it if there is none."""
    target = next((oid for oid in (head, *earlier(branch)[:TRIED]) if oid and not _what_is_lost(branch, oid)), "")
    if target:
        branch.git.run("update-ref", "--no-deref", branch.ref, target)
        yield f"the branch {branch.name} as of {target[:10]}: git cannot read what came after it"
    elif head:
        branch.git.run("update-ref", "--no-deref", "-d", branch.ref)


def earlier(branch: MemoryBranch) -> list[str]:
    """The branch's earlier commits from the reflog, newest first."""
    try:
        lines = (branch.git.common_dir / "logs" / branch.ref).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    moves = [line.split(" ", 2)[:2] for line in reversed(lines)]
    return list(dict.fromkeys(oid for move in moves for oid in reversed(move) if len(move) == 2 and oid.strip("0")))


def _unlock(branch: MemoryBranch) -> Iterator[str]:
    age, lock = lock_age(branch), lock_file(branch)
    if age is None:
        return
    if age < STALE:
        what = f"{lock} says that git is moving the branch {branch.name}, since {age:.0f} s"
        step = f"run again in {STALE / 60:.0f} minutes: an older lock counts as abandoned and is removed"
        raise UserError(what, step)
    lock.unlink(missing_ok=True)
    yield f"the branch {branch.name}, whose lock was abandoned"


def _has_damaged_file(branch: MemoryBranch) -> bool:
    return branch.remote is None and is_damaged(branch.file)


def _other_ref(branch: MemoryBranch) -> str:
    """The target of a symbolic ref, or ""."""
    return "" if branch.remote else branch.git.try_text("symbolic-ref", "--quiet", branch.ref)


def _named_object(branch: MemoryBranch) -> str:
    """The object that the ref names, existing or not, or "". Raises UserError for a server's."""
    if branch.remote:
        return branch.head()
    return branch.git.try_text("rev-parse", "--verify", "--quiet", branch.ref)


def _what_is_lost(branch: MemoryBranch, oid: str) -> str:
    """Git's message about missing parts of a commit and its history, or ""."""
    try:
        branch.git.run("rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}")
        branch.git.refuse_lost(oid, history=True)
    except GitError as error:
        return reason(error)
    return ""
