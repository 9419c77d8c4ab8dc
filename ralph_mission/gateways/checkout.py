"""The checkout a loop works in: marked before a session, compared by content after it, put right where needed.

The order matters: what git obeys (configuration, hooks, attributes, alternates) is compared and put back by
reading and writing files before the first git process runs on what a session left. Hooks never run. Filters run
in `commit` and `tree` alone, and only those the user had configured before the session.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from ralph_mission.gateways import checkout_files as files
from ralph_mission.gateways import checkout_flags as flags
from ralph_mission.gateways import checkout_guard as guard
from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways import checkout_mark as marks
from ralph_mission.gateways import checkout_rest as rest
from ralph_mission.gateways import checkout_sound as sound
from ralph_mission.gateways import checkout_steering as steering
from ralph_mission.gateways import checkout_writing as writing
from ralph_mission.gateways.checkout_checks import verdict
from ralph_mission.gateways.checkout_dirty import dirty
from ralph_mission.gateways.checkout_kept import PUT_BACK, Kept, remove, write
from ralph_mission.gateways.checkout_listed import GITLINK, NO_PATH
from ralph_mission.gateways.checkout_pipes import READ_BY_GIT, blocking
from ralph_mission.gateways.checkout_user import User
from ralph_mission.gateways.git import TIMED_OUT, Git, GitError
from ralph_mission.gateways.isolation import OPEN, Cage
from ralph_mission.loop.model import Change, Commit, Tree, Verification
from ralph_mission.loop.ports import Work
from ralph_mission.trouble import Trouble

CONTENT = (files.LINK, files.REGULAR, files.EXECUTABLE)
FRESH = 0.5  # seconds for which what was seen of the files is told without another look
PATIENCE = 20.0  # seconds for a list of the paths, until we look what git may be waiting for
PINNED = ("core.commitGraph=false", "core.multiPackIndex=false")
"""Files of the object store that git believes without a proof: a session may have written them."""
CHECKED = "a check changed it"
MEND = "git fsck tells what is missing, a remote or another clone may have it; mend that, then go on with --continue"


@contextmanager
def _answered() -> Iterator[None]:
    """What git cannot do here is for a person to mend."""
    try:
        yield
    except GitError as error:
        raise Trouble(f"git cannot work in this checkout any more: {error}", MEND) from None


class Checkout:
    """A `Workplace` in a work tree. `checks` are shell commands, each of at most `seconds`.

    `more` is asked at each verification for checks that are due then; `cage` keeps all of them apart. `unsteered`: what
    configures agents and came with a session, ignored by git or not, goes with it.
    """

    def __init__(
        self, git: Git, checks: tuple[str, ...], seconds: float,
        more: Callable[[], tuple[str, ...]] = tuple, cage: Cage = OPEN, unsteered: bool = False,
    ) -> None:  # fmt: skip  # as one reads it
        if git.work_tree is None:
            raise Trouble("this repository is bare, so there is nothing to work in", "name a checkout", usage=True)
        self._user = User.of(git)
        self._git = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *self._user.settings, *PINNED))
        self._top, self._checks, self._more, self._seconds = git.work_tree, checks, more, seconds
        self._cage, self._unsteered = cage, unsteered
        self._reader = files.Reader(self._git)
        self._sweep = sound.Sweep(self._git)
        self._maker = marks.Maker(self._git, self._reader, self._sweep)
        self._marks: dict[str, marks.Mark] = {}
        self._left_by_checks: set[str] = set()
        self._seen: tuple[float, files.Reading] | None = None  # what `changed` saw last, and when

    @_answered()
    def mark(self) -> str:
        """Remember everything as it is now. Raises Trouble when git cannot read the checkout."""
        made, self._seen = self._maker.make(next(iter(self._marks), "")), None
        self._marks = {made.name: made}
        self._steady(made)
        return made.name

    @_answered()
    def changed(self, mark: str) -> Work:
        """What differs from the mark: in the files, in any commit since, in the index.

        Raises Trouble when git cannot say it (objects are gone): nothing is known of what the session did then.
        """
        before, began, self._seen = self._mark(mark), time.monotonic(), None
        foreign = self._sound(before) + self._steady(before)
        with ThreadPoolExecutor(3) as beside:
            reading = beside.submit(self._reader.read, wait=PATIENCE) if sound.index(self._git) else None
            where, moved = history.put_back(self._git, before.place, before.aside)
            commits = beside.submit(history.commits, self._git, before.place, where.head)
            touched = beside.submit(history.touched, self._git, before.place, where.head)
            indexed = self._indexed(before, where.head)
            now, mended = self._now(before, where.head, reading)
        told = {change.path: change for change in (*indexed, *mended, *moved, *foreign)}
        same = files.ignores(now.files) == files.ignores(before.files)  # else git sees other files than we did
        self._seen = (began, now) if same else None
        return Work(self._changes(before, touched.result(), now), commits.result(), tuple(told.values()))

    @_answered()
    def undo(self, mark: str, paths: Sequence[str]) -> None:
        """Put `paths` back as at the mark: in the files, in the index and in every commit since."""
        before, self._seen = self._mark(mark), None
        tip = history.place(self._git).head
        if tip != before.place.head:
            old = history.entries(self._git, before.place.head, paths)
            new = history.rebuilt(self._git, before.place, tip, old, paths)
            self._move(before, new, tip)
        lines = history.index_lines(before.index, paths)
        self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines)
        self._restore({path: before.files.get(path) for path in paths})

    @_answered()
    def verify(self) -> Verification:
        """The project's own checks, one after another, until one fails.

        They run what a session wrote, so what they change is put back, and what they leave behind is not committed.
        """
        checks = (*self._checks, *self._more())
        if not checks:
            return Verification()
        self._seen = None
        before = self._maker.make()
        self._marks[before.name], ours = before, before.name not in self._marks
        undone: tuple[Change, ...] = ()
        try:
            found = verdict(checks, self._top, self._seconds, self._cage)
        finally:
            undone = self._put_back_checked(before)
            if ours:
                del self._marks[before.name]
                marks.unpin(self._git, before.name)
        return replace(found, undone=undone)

    @_answered()
    def commit(self, message: str, mark: str = "", landing: Callable[[str], None] = lambda _: None) -> str:
        """Commit what stands uncommitted, as the user; with a mark everything since becomes one commit.

        `landing` is told the commit before HEAD moves there.
        """
        now, where, self._seen = self._reader.read(), history.place(self._git), None
        before = self._mark(mark) if mark else None
        known = before.files if before else self._committed(where.head)
        paths = [path for path in files.differing(known, now.files) if self._committable(path, now)]
        tree = self._staged(where.head, paths)
        parent = before.place.head if before else where.head
        if tree == history.tree_of(self._git, parent):
            landing(where.head)
            return ""
        parents = [parent] if parent else []
        made = self._git.commit_tree(tree, parents, message, datetime.now(UTC), self._user.identity)
        landing(made)
        return history.moved(self._git, where.tip, made, where.head)

    def landed(self, commit: str) -> bool:
        """As in `ports.Workplace`."""
        return history.landed(self._git, commit)

    @_answered()
    def set_aside(self, mark: str) -> tuple[Change, ...]:
        """Keep the uncommitted rest of a session that died below `refs/ralph/aside/`, and have the files without it.

        Its commits stay where they are, and so do refs: since then a person may have moved them.
        """
        before, self._seen = self._mark(mark), None
        told = self._sound(before)
        where = history.place(self._git)
        broken = not where.head or f".git/{where.tip}" in {change.path for change in told}
        if before.place.head and broken:  # which no person does
            history.moved(self._git, where.tip, before.place.head, where.head)
            where = history.place(self._git)
        told += self._indexed(before, where.head)
        now, unnested = self._now(before, where.head)
        left = rest.found(self._git, before, where.head, now)
        if left.files or left.staged:
            self._keep_aside(before, where, now, left)
        if left.index:
            self._git.run("update-index", "--replace", "-z", "--index-info", stdin=left.lines)
        self._restore(left.files)
        reason = f"kept in {before.aside}/rest"
        return (
            *told,
            *unnested,
            *(Change(path, files.how(file, now.files.get(path)), reason) for path, file in left.files.items()),
            *(Change(path, "staged", reason) for path in left.staged),
        )

    def tree(self) -> Tree:
        """Where the checkout stands, for a prompt. `readable` is False when git gives no answer."""
        seen = self._seen[1] if self._seen and time.monotonic() - self._seen[0] < FRESH else None
        try:
            with ThreadPoolExecutor(1) as beside:
                asked = beside.submit(dirty, self._git, seen)
                last = self._git.try_text("log", "--no-show-signature", "-5", "--format=%H %s")  # "" before the first
                uncommitted = asked.result()
        except GitError:
            return Tree(readable=False)
        commits = tuple(Commit(*line.split(" ", 1)) for line in last.split("\n") if line)
        branch = history.branch(self._git).removeprefix("refs/heads/")
        return Tree(branch, commits[0].hash if commits else "", commits, uncommitted)

    # --- comparing --------------------------------------------------------------------

    def _mark(self, name: str) -> marks.Mark:
        if name not in self._marks:
            self._marks[name] = marks.load(self._git, name)
        return self._marks[name]

    def _sound(self, before: marks.Mark) -> tuple[Change, ...]:
        """No git runs before this: what it obeys is as at the mark, and nothing keeps it from reading the rest."""
        told = guard.put_back(self._git, before.guarded, before.standing, before.nested, self._sweep)
        return told + guard.abandon(self._git, before.unfinished)

    def _steady(self, before: marks.Mark) -> tuple[Change, ...]:
        return steering.put_away(str(self._top), before.files) if self._unsteered else ()

    def _now(
        self, before: marks.Mark, head: str, begun: Future[files.Reading] | None = None
    ) -> tuple[files.Reading, tuple[Change, ...]]:
        """The files as they stand, seen with the ignore files of the mark; nested repositories are unmade first.

        `begun`: they are being read already.
        """
        now, mended = self._read(before, head, begun)
        if waiting := [path for path, file in now.files.items() if _waited_at(path, file, before)]:
            mended += self._unblocked(before, waiting)
            now = self._reader.read()
        mended += flags.put_back(self._git, before.flags, now.flags, now.index)
        aside = self._git.git_dir / "ralph" / "aside" / before.name[:12]
        unnested = guard.unnest(self._git, now.nested - before.nested, aside)
        if unnested:
            now = self._reader.read()
        if files.ignores(now.files) != files.ignores(before.files):
            now = self._reader.read(before.files)
        return now, mended + unnested

    def _read(
        self, before: marks.Mark, head: str, begun: Future[files.Reading] | None
    ) -> tuple[files.Reading, tuple[Change, ...]]:
        try:
            return begun.result() if begun else self._reader.read(wait=PATIENCE), ()
        except GitError as error:
            if error.code == TIMED_OUT:
                told = self._unblocked(before, blocking(str(self._top)))
                return self._reader.read(), told
        told = self._index_back(before, head)
        return self._reader.read(), told

    def _unblocked(self, before: marks.Mark, waiting: Iterable[str]) -> tuple[Change, ...]:
        """What git would wait at for ever is as at the mark."""
        paths = list(waiting)
        for path in paths:
            remove(f"{self._top}/{path}")
        self._restore({path: before.files[path] for path in paths if path in before.files})
        return tuple(Change(path, files.NAMED[files.OTHER], PUT_BACK) for path in paths)

    def _indexed(self, before: marks.Mark, head: str) -> tuple[Change, ...]:
        """An index that git can read, which it asks for whatever it is asked."""
        if sound.index(self._git) or not (before.index or os.path.lexists(self._git.git_dir / "index")):
            return ()
        return self._index_back(before, head)

    def _index_back(self, before: marks.Mark, head: str) -> tuple[Change, ...]:
        """The index of the mark, and in it what was committed since."""
        if before.raw:
            write(str(self._git.git_dir / "index"), Kept(stat.S_IFREG | 0o644, before.raw))
        else:
            self._git.run("read-tree", f"{before.name}:index")
        paths = history.net(self._git, before.place.head, head)
        lines = history.index_lines(history.entries(self._git, head, paths), paths)
        self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines)
        return (Change(".git/index", "made unreadable", PUT_BACK),)

    def _changes(self, before: marks.Mark, touched: dict[str, str], now: files.Reading) -> tuple[Change, ...]:
        found = dict(touched)
        staged = {path for path in files.differing(before.index, now.index) if path not in found}
        found |= dict.fromkeys(staged - before.nested, "staged")
        for path in files.differing(before.files, now.files):
            how = files.how(before.files.get(path), now.files.get(path))
            found[path] = f"{how}, {found[path]}" if found.get(path, "staged") != "staged" else how
        return tuple(Change(path, found[path]) for path in sorted(found))

    # --- putting right ----------------------------------------------------------------

    def _move(self, before: marks.Mark, new: str, old: str) -> None:
        if new or not old:
            history.moved(self._git, before.place.tip, new, old)
        else:  # nothing is left of the first commits of a repository
            self._git.run("update-ref", "--no-deref", "-d", before.place.tip, old)

    def _restore(self, wanted: dict[str, files.File | None]) -> None:
        """Absent ones first: a link that stands where a folder was must go before the folder comes back."""
        top = str(self._top)
        found = self._git.blobs(file.oid for file in wanted.values() if file)
        contents = {oid: content for oid, content in found.items() if self._reader.oid(content) == oid}  # git believes
        lost = [path for path, file in wanted.items() if file and file.mode in CONTENT and file.oid not in contents]
        if lost:
            raise Trouble(f"{lost[0]} cannot be put back: git has lost what stood there", MEND)
        for path in sorted((path for path, file in wanted.items() if file is None), reverse=True):
            writing.remove(top, path)
        for path, file in wanted.items():
            if file and file.oid in contents:
                writing.restore(top, path, file, contents[file.oid])

    def _keep_aside(self, before: marks.Mark, where: history.Place, now: files.Reading, left: rest.Rest) -> None:
        self._reader.keep(now)
        there = {path: now.index[path] for path in left.staged if path in now.index}
        there |= {
            path: (now.files[path].mode, now.files[path].oid)
            for path in left.files
            if path in now.files and now.files[path].mode != files.OTHER
        }
        with self._git.scratch_index() as env:
            if where.head:
                self._git.run("read-tree", where.head, env=env)
            lines = history.index_lines(there, (*left.files, *left.staged))
            self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines, env=env)
            tree = self._git.run("write-tree", env=env).decode().strip()
        parents = [where.head] if where.head else []
        made = self._git.commit_tree(
            tree, parents, "What a session that was cut off left unfinished", datetime.now(UTC)
        )
        self._git.run("update-ref", f"{before.aside}/rest", made)

    # --- committing -------------------------------------------------------------------

    def _committed(self, head: str) -> dict[str, files.File]:
        entries = self._git.listing(head) if head else ()
        return {entry.path: files.File(entry.mode, entry.oid) for entry in entries if entry.mode != GITLINK}

    def _committable(self, path: str, now: files.Reading) -> bool:
        if path in self._left_by_checks and path not in now.index:
            return False
        file = now.files.get(path)
        special = file and (file.mode == files.OTHER or file.oid == files.UNREADABLE)
        return (
            not special and not NO_PATH.search(path) and not any(path.startswith(f"{folder}/") for folder in now.nested)
        )

    def _staged(self, head: str, paths: Sequence[str]) -> str:
        """The tree of `head` with `paths` as they stand, through the user's filters; the index has them too."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        with self._git.scratch_index() as env:
            if head:  # first: nothing is staged over a commit that git has lost
                self._git.run("read-tree", head, env=env)
            self._git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)
            index = self._reader.read().index
            lines = history.index_lines(index, paths)
            self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines, env=env)
            return self._git.run("write-tree", env=env).decode().strip()

    # --- checking ---------------------------------------------------------------------

    def _put_back_checked(self, before: marks.Mark) -> tuple[Change, ...]:
        work = self.changed(before.name)
        changed = [change.path for change in work.changes]
        if known := [path for path in changed if path in before.files]:
            self.undo(before.name, known)
        tip = history.place(self._git).head
        if tip != before.place.head:
            self._move(before, before.place.head, tip)
        left = [path for path in changed if path not in before.files]
        lines = history.index_lines(before.index, left)
        self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines)
        self._left_by_checks.update(left)
        if left:
            self._seen = None  # what a check staged of them is not in the index any more
        return (*(replace(one, reverted=CHECKED) for one in work.changes if one.path in before.files), *work.foreign)


def _waited_at(path: str, file: files.File, before: marks.Mark) -> bool:
    named = path.rpartition("/")[2] in READ_BY_GIT
    return named and file.mode == files.OTHER and before.files.get(path) != file
