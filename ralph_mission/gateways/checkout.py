"""The checkout a loop works in: marked before a session, compared by content after it, put right where needed.

The order matters: what git obeys (configuration, hooks, attributes, alternates) is compared and put back by
reading and writing files before the first git process runs on what a session left. Hooks never run. Filters run
in `commit` and `tree` alone, and only those the user had configured before the session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.gateways import checkout_files as files
from ralph_mission.gateways import checkout_guard as guard
from ralph_mission.gateways import checkout_history as history
from ralph_mission.gateways import checkout_mark as marks
from ralph_mission.gateways import checkout_writing as writing
from ralph_mission.gateways.checkout_user import User
from ralph_mission.gateways.git import Git, GitError
from ralph_mission.gateways.process import run_foreign
from ralph_mission.loop.model import Change, Commit, Tree, Verification
from ralph_mission.loop.ports import Work
from ralph_mission.trouble import Trouble

LINES = 40
CONTENT = (files.LINK, files.REGULAR, files.EXECUTABLE)
"""Of a failed check's output, from the end, that are told."""
GRACE = 1.0  # seconds between TERM and KILL: Ctrl-C is answered within two
NAMED = {files.LINK: "made a link", files.OTHER: "made a special file"}


class Checkout:
    """A `Workplace` in a work tree. `checks` are shell commands, each of at most `seconds`, with `home` as HOME.

    `more` is asked at each verification for checks that are due then.
    """

    def __init__(
        self, git: Git, checks: tuple[str, ...], home: Path, seconds: float,
        more: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:  # fmt: skip  # as one reads it
        if git.work_tree is None:
            raise Trouble("this repository is bare, so there is nothing to work in", "name a checkout", usage=True)
        self._user = User.of(git)
        self._git = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *self._user.settings))
        self._top, self._checks, self._more, self._home, self._seconds = git.work_tree, checks, more, home, seconds
        self._reader = files.Reader(self._git)
        self._maker = marks.Maker(self._git, self._reader)
        self._marks: dict[str, marks.Mark] = {}
        self._left_by_checks: set[str] = set()

    def mark(self) -> str:
        """Remember everything as it is now. Raises Trouble when git cannot read the checkout."""
        try:
            made = self._maker.make(next(iter(self._marks), ""))
        except GitError as error:
            raise Trouble(f"the checkout cannot be read: {error}", "see `git status`, then run again") from None
        self._marks = {made.name: made}
        return made.name

    def changed(self, mark: str) -> Work:
        """What differs from the mark: in the files, in any commit since, in the index."""
        before = self._mark(mark)
        foreign = guard.put_back(self._git, before.guarded, before.nested)
        try:
            where, moved = history.put_back(self._git, before.place, before.aside)
            foreign += guard.abandon(self._git, before.unfinished) + moved
            with ThreadPoolExecutor(2) as beside:
                commits = beside.submit(history.commits, self._git, before.place, where.head)
                touched = beside.submit(history.touched, self._git, before.place, where.head)
                now, unnested = self._now(before)
            return Work(self._changes(before, touched.result(), now), commits.result(), foreign + unnested)
        except GitError as error:
            return Work(foreign=(*foreign, Change(".git", "unreadable", str(error))), readable=False)

    def undo(self, mark: str, paths: Sequence[str]) -> None:
        """Put `paths` back as at the mark: in the files, in the index and in every commit since."""
        before = self._mark(mark)
        tip = history.place(self._git).head
        if tip != before.place.head:
            old = history.entries(self._git, before.place.head, paths)
            new = history.rebuilt(self._git, before.place, tip, old, paths)
            self._move(before, new, tip)
        lines = history.index_lines(before.index, paths)
        self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines)
        self._restore({path: before.files.get(path) for path in paths})

    def verify(self) -> Verification:
        """The project's own checks, one after another, until one fails.

        They run what a session wrote, so what they change is put back, and what they leave behind is not committed.
        """
        checks = (*self._checks, *self._more())
        if not checks:
            return Verification()
        before = self._maker.make()
        self._marks[before.name], ours = before, before.name not in self._marks
        try:
            return self._verdict(checks)
        finally:
            self._put_back_checked(before)
            if ours:
                del self._marks[before.name]
                marks.unpin(self._git, before.name)

    def commit(self, message: str, mark: str = "") -> str:
        """Commit what stands uncommitted, as the user; with a mark everything since becomes one commit."""
        now, where = self._reader.read(), history.place(self._git)
        before = self._mark(mark) if mark else None
        known = before.files if before else self._committed(where.head)
        paths = [path for path in files.differing(known, now.files) if self._committable(path, now)]
        tree = self._staged(where.head, paths)
        parent = before.place.head if before else where.head
        if tree == history.tree_of(self._git, parent):
            return ""
        parents = [parent] if parent else []
        made = self._git.commit_tree(tree, parents, message, datetime.now(UTC), self._user.identity)
        return history.moved(self._git, where.tip, made, where.head)

    def set_aside(self, mark: str) -> tuple[Change, ...]:
        """Keep the uncommitted rest of a session that died below `refs/ralph/aside/`, and have the files without it.

        Its commits stay where they are, and so do refs: since then a person may have moved them.
        """
        before = self._mark(mark)
        told = guard.put_back(self._git, before.guarded, before.nested)
        where = history.place(self._git)
        told += guard.abandon(self._git, before.unfinished)
        now, unnested = self._now(before)
        rest = files.differing(before.files, now.files)
        old, new = (history.entries(self._git, commit, rest) for commit in (before.place.head, where.head))
        committed = {
            path: files.File(*new[path]) if path in new else None for path in rest if old.get(path) != new.get(path)
        }
        wanted = {path: committed.get(path, before.files.get(path)) for path in rest}
        wanted = {path: file for path, file in wanted.items() if file != now.files.get(path)}
        if wanted:
            self._keep_aside(before, where, now, wanted)
        self._restore(wanted)
        reason = f"kept in {before.aside}/rest"
        return (
            *told,
            *unnested,
            *(Change(path, _how(file, now.files.get(path)), reason) for path, file in wanted.items()),
        )

    def tree(self) -> Tree:
        """Where the checkout stands, for a prompt. `readable` is False when git gives no answer."""
        flags = ("--porcelain", "-z", "--no-renames", "--ignore-submodules=all", "--untracked-files=normal")
        try:
            with ThreadPoolExecutor(1) as beside:
                asked = beside.submit(self._git.run, "status", *flags)
                last = self._git.try_text("log", "--no-show-signature", "-5", "--format=%H %s")  # "" before the first
                dirty = bool(asked.result())
        except GitError:
            return Tree(readable=False)
        commits = tuple(Commit(*line.split(" ", 1)) for line in last.split("\n") if line)
        branch = history.branch(self._git).removeprefix("refs/heads/")
        return Tree(branch, commits[0].hash if commits else "", commits, dirty)

    # --- comparing --------------------------------------------------------------------

    def _mark(self, name: str) -> marks.Mark:
        if name not in self._marks:
            self._marks[name] = marks.load(self._git, name)
        return self._marks[name]

    def _now(self, before: marks.Mark) -> tuple[files.Reading, tuple[Change, ...]]:
        """The files as they stand, seen with the ignore files of the mark; nested repositories are unmade first."""
        now = self._read(before)
        aside = self._git.git_dir / "ralph" / "aside" / before.name[:12]
        unnested = guard.unnest(self._git, now.nested - before.nested, aside)
        if unnested:
            now = self._reader.read()
        if files.ignores(now.files) != files.ignores(before.files):
            now = self._reader.read(before.files)
        return now, unnested

    def _read(self, before: marks.Mark) -> files.Reading:
        try:
            return self._reader.read()
        except GitError:  # a session may have left an index that git cannot read
            self._git.run("read-tree", f"{before.name}:index")
            return self._reader.read()

    def _changes(self, before: marks.Mark, touched: dict[str, str], now: files.Reading) -> tuple[Change, ...]:
        found = dict(touched)
        staged = {path for path in files.differing(before.index, now.index) if path not in found}
        found |= dict.fromkeys(staged - before.nested, "staged")
        for path in files.differing(before.files, now.files):
            how = _how(before.files.get(path), now.files.get(path))
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
        contents = self._git.blobs(file.oid for file in wanted.values() if file)
        lost = [path for path, file in wanted.items() if file and file.mode in CONTENT and file.oid not in contents]
        if lost:
            raise Trouble(
                f"{lost[0]} cannot be put back: git has lost what stood there", "see git fsck, then run again"
            )
        for path in sorted((path for path, file in wanted.items() if file is None), reverse=True):
            writing.remove(top, path)
        for path, file in wanted.items():
            if file and file.oid in contents:
                writing.restore(top, path, file, contents[file.oid])

    def _keep_aside(self, before: marks.Mark, where: history.Place, now: files.Reading, wanted: Iterable[str]) -> None:
        self._reader.keep(now)
        there = {
            path: (now.files[path].mode, now.files[path].oid)
            for path in wanted
            if path in now.files and now.files[path].mode != files.OTHER
        }
        with self._git.scratch_index() as env:
            if where.head:
                self._git.run("read-tree", where.head, env=env)
            lines = history.index_lines(there, wanted)
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
        return {entry.path: files.File(entry.mode, entry.oid) for entry in entries if entry.mode != files.GITLINK}

    def _committable(self, path: str, now: files.Reading) -> bool:
        if path in self._left_by_checks and path not in now.index:
            return False
        special = path in now.files and now.files[path].mode == files.OTHER
        return not special and not any(path.startswith(f"{folder}/") for folder in now.nested)

    def _staged(self, head: str, paths: Sequence[str]) -> str:
        """The tree of `head` with `paths` as they stand, through the user's filters; the index has them too."""
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        self._git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)
        index = self._reader.read().index
        with self._git.scratch_index() as env:
            if head:
                self._git.run("read-tree", head, env=env)
            lines = history.index_lines(index, paths)
            self._git.run("update-index", "--replace", "-z", "--index-info", stdin=lines, env=env)
            return self._git.run("write-tree", env=env).decode().strip()

    # --- checking ---------------------------------------------------------------------

    def _put_back_checked(self, before: marks.Mark) -> None:
        changed = [change.path for change in self.changed(before.name).changes]
        if known := [path for path in changed if path in before.files]:
            self.undo(before.name, known)
        tip = history.place(self._git).head
        if tip != before.place.head:
            self._move(before, before.place.head, tip)
        self._left_by_checks |= set(changed) - before.files.keys()

    def _verdict(self, checks: Iterable[str]) -> Verification:
        for check in checks:
            done = run_foreign(check, cwd=self._top, home=self._home, timeout=self._seconds, grace=GRACE)
            if done.code:
                said = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()[-LINES:]
                why = f"took over {self._seconds:g} s" if done.timed_out else f"exit {done.code}"
                return Verification(False, True, "\n".join((f"{check}: {why}", *said)))
        return Verification(True, True, "")


def _how(before: files.File | None, now: files.File | None) -> str:
    if now is None:
        return "deleted"
    if (before is None or before.mode != now.mode) and now.mode in NAMED:
        return NAMED[now.mode]
    if before is None:
        return "created"
    return "modified" if before.oid != now.oid else "mode changed"
