"""A clone as the workplace of a loop's sessions (`loop.ports.Workplace`): mark, judge by content, restore, land.

The expected content comes from the user's repository and from what was judged, never from the clone's own `.git`. A
process that outlives its session can only write in the clone: what lands was stored when it was judged.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.workspace.clone import Clone, KnownRed, Position, position, read_state, verdict
from ralph_mission.adapters.workspace.land import GITLINK, Judged, Landing, Objects, User, submodules
from ralph_mission.adapters.workspace.snapshot import (
    IGNORE_FILE,
    LINK,
    OURS,
    REPOSITORY,
    File,
    Files,
    IgnoreRules,
    Reader,
    Reading,
    differing,
    find_credentials,
    how,
    remove_any,
    remove_path,
    why_unstorable,
    write_file,
)
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import CheckoutState, CheckResult, NetChange, PathChange
from ralph_mission.loop.ports import SessionWork
from ralph_mission.safety.objections import lines_of_tests, may_hold_tests
from ralph_mission.safety.paths import unsafe_path

IN_MEMORY = 64 * 1024 * 1024
"""Bytes of judged contents kept until the commit; more are stored at once."""
MOVED = 0.5
"""The share of a deleted file's lines that a new file must contain to count as a rename."""
EMPTY = "empty"
"""The name of a mark before the first commit."""
CHECKED = "a check changed it"
HINT = "git fsck shows what is missing; get it from a remote or another clone, then resume with --continue"


@contextmanager
def _as_user_errors() -> Iterator[None]:
    """Turn git failures into UserErrors."""
    try:
        yield
    except GitError as error:
        raise UserError(f"git no longer works in this repository: {error}", HINT) from None


class Workspace:
    """The clone at `folder` of the checkout `git`; judged changes land on the branch checked out there.

    `checks`: shell commands, each for at most `seconds`, run in `sandbox`; `more` returns further checks that are due
    now. `lists`: files that the engine copies into the clone and back. `no_agent_settings`: remove agent configuration
    that a session added. `shared`: the engine's folder in the user's checkout. `known`: checks that may fail, as
    before.
    """

    def __init__(
        self, git: Git, folder: Path, checks: tuple[str, ...] = (), seconds: float = 0.0,
        more: Callable[[], tuple[str, ...]] = tuple, sandbox: Sandbox = OPEN, *, no_agent_settings: bool = False,
        lists: Callable[[], tuple[str, ...]] = tuple, shared: Path | None = None, user: User | None = None,
        environment: Mapping[str, str] = MappingProxyType({}), known: KnownRed = lambda *_: False,
    ) -> None:  # fmt: skip  # as one reads it
        self._user = user or User.of(git)
        self._git = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *self._user.settings))
        self.clone = Clone(self._git, folder, self._user.identity, shared=shared)
        self._objects = Objects(self._git)
        self._reader = Reader(folder, self._objects.algorithm)
        self._landing = Landing(git, self._user, (shared or folder.parent) / "aside")
        self._checks, self._more, self._seconds, self._sandbox = checks, more, seconds, sandbox
        self._lists, self._no_agent_settings = lists, no_agent_settings
        self._environment, self._known = environment, known  # of checks; which of them may fail
        self._branch: str | None = None  # the checked-out branch when the loop began
        self._at = Position("", "", {})
        self._marked = ""
        self._submodules: frozenset[str] = frozenset()
        self._base: Files = {}  # the last commit
        self._before: Files = {}  # at the session's start: that, plus the lists
        self._now: Files = {}  # expected content: that, plus what was judged since
        self._rules = self._rules_now = IgnoreRules(self._git, {})  # of the mark, and of what was judged since
        self._hidden: frozenset[str] = frozenset()  # created in this session and ignored by its own rules
        self._lent: dict[str, File | None] = {}  # what a set-up put there
        self._list_contents: dict[str, bytes] = {}  # contents of lists, which must not be committed
        self._fits = ""  # the commit the files matched when last judged
        self._compared: tuple[str, Files] = "", {}
        self._judged_contents: dict[str, bytes] = {}  # judged contents that are not stored yet

    # --- beginning --------------------------------------------------------------------

    @_as_user_errors()
    def prepare(self) -> None:
        """Create the clone if needed. Nobody else may work in it. Raises UserError."""
        self._stand()
        self.clone.make(self._at.head)

    def exclude(self, names: Sequence[str]) -> None:
        """Take what the project's set-up put into the clone for ignored, as no session made it: a file until it is
        another one, a folder with all that is in it."""
        self.clone = replace(self.clone, excluded=tuple(names))
        self._rules = self._rules_now = IgnoreRules(self._git, {}, names)
        self._lent = {name: self._file_now(name) for name in names}

    def _file_now(self, name: str) -> File | None:
        """None: a folder, or nothing that git can store."""
        found = self._reader.content(name)
        return found[0] if found else None

    def undo_cut_off(self) -> None:
        """Undo what a killed landing left in the user's files. Nobody else may work in it."""
        self._landing.undo_cut_off()

    @_as_user_errors()
    def begin_session(self) -> str:
        """Prepare the clone for a session: the files of the last commit and the lists, with a fresh repository.

        Everything else is removed, except ignored files: build results stay for the next session.
        """
        self._stand()
        fits = self._fits == self._at.head != ""
        if not fits:
            self.clone.make(self._at.head)
        if self._submodules:
            self.clone.populate_submodules(self._objects, self._at.head)
        self._before = self._now = {**self._base, **self._list_files()}
        self._use_rules(self._before)
        if not fits:
            self._put_right(self._read(self._before))
        self._fits = ""
        if self._no_agent_settings:
            self.clone.remove_agent_settings(self._base)
        self.clone.renew(self._at)
        self.clone.share(self._base)
        self._hidden = frozenset()
        self._marked = self._at.head or EMPTY
        return self._marked

    def _stand(self) -> None:
        """Read the branch and its files. Raises UserError if the branch is gone."""
        at = position(self._git, self._branch)
        if self._at.head and not at.head:
            raise UserError(
                f"the branch {at.branch or 'HEAD'} no longer exists", "create it again, then resume with --continue"
            )
        if at.head != self._at.head or not self._base:
            self._base, self._submodules = self._entries(at.head)
        self._at, self._branch = at, at.branch

    def _entries(self, commit: str) -> tuple[dict[str, File], frozenset[str]]:
        """The files of a commit, and its submodules, whose contents do not count."""
        every = self._objects.entries(commit)
        return {path: file for path, file in every.items() if file.mode != GITLINK}, frozenset(submodules(every))

    def _use_rules(self, files: Files) -> None:
        rules = self._rules_of(files)
        if rules != self._rules.rules:
            self._rules = IgnoreRules(self._git, rules, self.clone.excluded)
        self._rules_now = self._rules

    # --- judging ----------------------------------------------------------------------

    @_as_user_errors()
    def changed(self, mark: str) -> SessionWork:
        """The differences from the mark, stored as they are read, so that later writes do not matter."""
        assert mark == self._marked, "the session of another mark"
        self._rules = self._rules.without(name for name, file in self._lent.items() if self._file_now(name) != file)
        reading = self._read(self._before, self._rules)
        changes = self._without_repositories(reading)
        files = dict(reading.files)
        ignored = self._ignored_since(files)
        changes += self._undo_unsafe(files, ignored)
        files = self._store_objects(files, ignored)
        changes += self._undo_secrets(files)
        found = tuple(
            PathChange(path, how(self._before.get(path), files.get(path))) for path in differing(self._before, files)
        )
        self._now = {path: file for path, file in files.items() if path not in self._hidden}
        return SessionWork(found, self.clone.messages(self._at.head), changes)

    def _read(self, known: Files, rules: IgnoreRules | None = None) -> Reading:
        try:
            return self._reader.read(known, (rules or self._rules_now).ignored, self._submodules)
        except OSError as error:
            what = f"{error.filename or self.clone.folder}: {(error.strerror or type(error).__name__).lower()}"
            raise UserError(f"what a session left cannot be read: {what}", "resume with --continue") from None

    def _without_repositories(self, reading: Reading) -> tuple[PathChange, ...]:
        """Ignore repositories that a session created in its clone: their files count like any others."""
        for folder in reading.repositories:
            remove_any(os.fsencode(self.clone.folder / folder / REPOSITORY))
        return tuple(
            PathChange(f"{folder}/.git", "created", "removed; its files count") for folder in reading.repositories
        )

    def _undo_unsafe(self, files: dict[str, File], ignored: frozenset[str]) -> tuple[PathChange, ...]:
        """Undo changes of paths that must not be touched, and files git cannot store; updates `files`."""
        changed = differing(self._before, files)
        why = {path: unsafe_path(path) or ("" if path in ignored else why_unstorable(files.get(path)))
               for path in changed}  # fmt: skip  # one value
        return self._put_back(files, {path: reason for path, reason in why.items() if reason})

    def _undo_secrets(self, files: dict[str, File]) -> tuple[PathChange, ...]:
        """Undo changes that would commit a credential; updates `files`. Files that the last commit contains anywhere
        stay, wherever they are now."""
        found = dict[str, str]()
        for path in differing(self._before, files):
            content = self._content(files.get(path))
            if path in self._hidden or path in self._lists() or not content:
                continue
            if not (credentials := find_credentials(path, content)):
                continue
            before = self._content(self._before.get(path))
            new = sorted(
                kind for kind, value in credentials
                if (raw := value.encode("utf-8", "replace")) not in before
                and not self._objects.holds(self._at.head, raw)
            )  # fmt: skip  # one value
            if new:
                found[path] = f"it holds a secret ({', '.join(dict.fromkeys(new))})"
        return self._put_back(files, found)

    def _put_back(self, files: dict[str, File], why: Mapping[str, str]) -> tuple[PathChange, ...]:
        """Undo changes of these paths, each for a reason; updates `files`. If a file was moved, the old one is restored
        too."""
        moved = {old: f"it became {path}, which was undone" for old, path in self._find_moved(files, why).items()}
        before = {path: self._before.get(path) for path in (*why, *moved)}
        undone = tuple(
            PathChange(path, how(self._before.get(path), files.get(path)), reason)
            for path, reason in (moved | dict(why)).items()
        )
        self._restore(before)
        for path, file in before.items():
            files.pop(path, None)
            if file:
                files[path] = file
        return undone

    def _find_moved(self, files: Files, paths: Iterable[str]) -> dict[str, str]:
        """Deleted files most of whose lines are in a new file at these paths. Old -> new."""
        new = {path: files[path] for path in paths if path in files and path not in self._before}
        gone = {path: file for path, file in self._before.items() if new and path not in files and file.storable}
        contents = self._git.blobs(file.oid for file in gone.values()) if gone else {}
        here = {path: (file.oid, set(_lines(self._content(file)))) for path, file in new.items()} if gone else {}
        found = dict[str, str]()
        for old, file in gone.items():
            lines = _lines(contents.get(file.oid, b""))
            for path, (oid, known) in here.items():
                if lines and (file.oid == oid or sum(line in known for line in lines) > MOVED * len(lines)):
                    found[old] = path
        return found

    def _content(self, file: File | None) -> bytes:
        if file is None or not file.storable:
            return b""
        content = self._judged_contents.get(file.oid)
        return self._git.blobs([file.oid]).get(file.oid, b"") if content is None else content

    def _ignored_since(self, files: Files) -> frozenset[str]:
        """Files the session created and ignored by its own rules: seen, but not landed."""
        self._rules_now = self._rules
        if self._rule_files(files) == self._rule_files(self._before):
            return frozenset()
        contents = {path: found[1] for path in self._rule_files(files) if (found := self._reader.content(path))}
        self._rules_now = IgnoreRules(self._git, contents, self._rules.excluded)
        return self._rules_now.ignored(path for path in files if path not in self._before)

    def _store_objects(self, files: dict[str, File], ignored: frozenset[str]) -> dict[str, File]:
        """The files with their contents stored; if one changes meanwhile, the stored version counts."""
        contents: dict[str, bytes] = {}
        size = 0
        for path in differing(self._before, files):
            file = files.get(path)
            if file is None or not file.storable or path in ignored:
                continue
            found = self._reader.content(path)
            if found is None:
                del files[path]
                continue
            files[path], contents[found[0].oid] = found[0], found[1]
            size += len(found[1])
            if size > IN_MEMORY:
                self._objects.store(contents.values())
                contents, size = {}, 0
        self._judged_contents, self._hidden = contents, ignored
        return files

    # --- putting right ----------------------------------------------------------------

    @_as_user_errors()
    def undo(self, mark: str, paths: Sequence[str]) -> None:
        """Restore `paths` to the mark."""
        assert mark == self._marked, "the session of another mark"
        now = dict(self._now)
        self._put_back(now, dict.fromkeys(paths, ""))
        self._now = now

    def _put_right(self, reading: Reading) -> list[str]:
        """Make the clone match `_now`; returns what did not match."""
        self._without_repositories(reading)
        wrong = differing(self._now, reading.files)
        self._restore({path: self._now.get(path) for path in wrong})
        return wrong

    def _restore(self, targets: Mapping[str, File | None]) -> None:
        """Removals first: a link in place of a folder must go before the folder is restored."""
        top = str(self.clone.folder)
        needed = [file.oid for file in targets.values() if file and file.storable]
        known = self._list_contents | self._judged_contents
        contents = self._git.blobs(oid for oid in needed if oid not in known) | known
        if lost := [path for path, file in targets.items() if file and file.storable and file.oid not in contents]:
            raise UserError(f"{lost[0]} cannot be put back: the repository has lost what stood there", HINT)
        for path in sorted((path for path, file in targets.items() if file is None or not file.storable), reverse=True):
            remove_path(top, path)
        for path, file in targets.items():
            if file and file.storable:
                write_file(top, path, file.mode, contents[file.oid])

    def _list_files(self) -> dict[str, File]:
        """The engine's lists, which it writes between sessions; their content is remembered."""
        found = {path: one for path in self._lists() if (one := self._reader.content(path))}
        self._list_contents = {file.oid: content for file, content in found.values()}
        return {path: file for path, (file, _) in found.items()}

    def _rule_files(self, files: Files) -> dict[str, File]:
        named = (path for path in files if path.endswith(IGNORE_FILE))  # few: far cheaper than to take each path apart
        return {path: files[path] for path in named if path.rpartition("/")[2] == IGNORE_FILE}

    def _rules_of(self, files: Files) -> dict[str, bytes]:
        oids = {path: file.oid for path, file in self._rule_files(files).items() if file.mode != LINK}
        contents = self._git.blobs(oids.values())
        return {path: contents[oid] for path, oid in oids.items() if oid in contents}

    # --- checking ---------------------------------------------------------------------

    @_as_user_errors()
    def verify(self) -> CheckResult:
        """Run the project's own checks on what would land; whatever they change is undone."""
        checks = (*self._checks, *self._more())
        if not checks:
            return CheckResult()
        if not self._marked:
            self.begin_session()
        self._take_lists()
        self._put_right(self._read(self._now))
        try:
            self.clone.unshare()
            found = verdict(checks, self.clone.folder, self._seconds, self._sandbox, self._environment, self._known)
        finally:
            before, reading = self._now, self._read(self._now)
            wrong = self._put_right(reading)
        undone = (
            PathChange(path, how(before[path], reading.files.get(path)), CHECKED) for path in wrong if path in before
        )
        return replace(found, undone=tuple(undone))

    def _take_lists(self) -> None:
        """Take over the lists as the engine wrote them after judging."""
        lists = self._lists()
        self._now = {path: file for path, file in self._now.items() if path not in lists} | self._list_files()

    # --- landing ----------------------------------------------------------------------

    @_as_user_errors()
    def land(self, message: str, lists: bool, announce: Callable[[str], None] = lambda _: None) -> str:
        """Land the judged change as one commit; returns its id, or "" if there is nothing."""
        judged = self.build(message, lists)
        announce(judged.commit or self._at.head)
        rest = {path for path in differing(self._before, self._now) if path not in judged.paths}
        whole = rest <= set(self._lists())
        if not judged.paths:
            self._fits = self._at.head if whole else ""
            return ""
        landed = self._landing.land(self._at.branch, judged, self._lists())
        self._base = {path: file for path, file in {**self._base, **judged.paths}.items() if file}
        self._at = replace(self._at, head=landed)
        if landed == judged.commit:
            self.clone.landed(landed, judged.paths)
            self._fits = landed if whole else ""
        else:
            self._base = {}  # somebody committed meanwhile: the next mark reads everything
        return landed

    @_as_user_errors()
    def build(self, message: str, lists: bool) -> Judged:
        """The judged change as a commit without a ref."""
        self._take_lists()
        listed = self._lists()
        changed = [path for path in differing(self._before, self._now) if lists or path not in listed]
        paths = {path: self._now.get(path) for path in changed if self._landable(path, self._now.get(path), listed)}
        if not paths:
            return Judged(self._at.head, {}, message, "")
        oids = {file.oid for file in paths.values() if file}
        contents = [content for oid, content in (self._judged_contents | self._list_contents).items() if oid in oids]
        commit = self._objects.commit(self._at.head, paths, message, datetime.now(UTC), self._user.identity, contents)
        return Judged(self._at.head, paths, message, commit)

    def _landable(self, path: str, file: File | None, lists: Sequence[str]) -> bool:
        if self._base.get(path) == file or (file is not None and not file.storable):
            return False
        if path in self._base:
            return True
        return self._committable(path, lists)

    def _committable(self, path: str, lists: Sequence[str]) -> bool:
        """Whether a new path may be committed: not ours, not a list that git ignores, not ignored."""
        ignored_list = path in lists and bool(self._rules_now.ignored([path]))
        return not path.startswith(f"{OURS}/") and not ignored_list and path not in self._hidden

    @_as_user_errors()
    def since(self, mark: str) -> NetChange:
        """The net change between an earlier mark and the judged state; reverted changes do not count."""
        try:
            old = self._before if mark == self._marked else self._files_at(mark)
        except GitError:  # history was rewritten since
            old = self._before
        lists, named = self._lists(), {word.removeprefix("./") for word in self._words_of_checks()}
        paths = [path for path in differing(old, self._now) if path in old or self._committable(path, lists)]
        before = {path: self._lines_of_tests(path, old.get(path)) for path in paths}
        moved = {before[path] for path in paths if not self._now.get(path)}
        tests = [
            path
            for path in paths
            if (file := self._now.get(path))
            and (path in named or self._lines_of_tests(path, file) not in {(), before[path], *moved})
        ]  # a file that a check names counts as a test
        return NetChange(tuple(paths), tuple(tests))

    def _lines_of_tests(self, path: str, file: File | None) -> tuple[str, ...]:
        return lines_of_tests(path, self._content(file)) if may_hold_tests(path) else ()

    def _files_at(self, mark: str) -> Files:
        """The files of an earlier mark; the last one is cached, as a run compares with its beginning each time."""
        if self._compared[0] != mark:
            self._compared = mark, self._entries("" if mark == EMPTY else mark)[0]
        return self._compared[1]

    def _words_of_checks(self) -> Iterator[str]:
        for check in (*self._checks, *self._more()):
            with suppress(ValueError):
                yield from shlex.split(check)

    def landed(self, commit: str) -> bool:
        """Whether the branch contains this commit; False if unknown."""
        return self._objects.behind(commit, self._git.resolve("HEAD"))

    @_as_user_errors()
    def set_aside(self, mark: str) -> tuple[PathChange, ...]:
        """Save a dead session's work as a patch below the engine's folder, without what had landed, and reset the files
        to the branch."""
        if not self.clone.folder.is_dir():
            return ()
        head = "" if mark == EMPTY else self._git.resolve(mark)
        if mark != EMPTY and not head:
            return ()  # from a version with another kind of mark
        self._stand()
        old, _ = self._entries(head)
        self._before = {**old, **self._list_files()}
        self._use_rules(old)
        files = self._store_objects(dict(self._read(self._before).files), frozenset())
        changes = {
            path: files.get(path)
            for path in differing(self._before, files)
            if files.get(path) != self._base.get(path) and not path.startswith(f"{OURS}/")
        }
        reason = "removed"
        storable = {
            path: file for path, file in changes.items() if (file is None or file.storable) and not unsafe_path(path)
        }
        if storable:
            text = "What a session that was cut off left unfinished"
            contents = self._judged_contents.values()
            commit = self._objects.commit(head, storable, text, datetime.now(UTC), self._user.identity, contents)
            reason = f"kept in {self._landing.keep_patch(head, commit)}"
        self._now = {**self._base, **self._list_files()}
        self._put_right(self._read(self._now))
        return tuple(PathChange(path, how(self._before.get(path), file), reason) for path, file in changes.items())

    def tree(self) -> CheckoutState:
        """The state of the branch, for a prompt. `readable` is False if git does not answer."""
        try:
            if self._branch is None:
                self._branch = position(self._git).branch
        except GitError:
            return CheckoutState(readable=False)
        return read_state(self._git, self._branch)


def _lines(content: bytes) -> list[bytes]:
    return [line for line in content.splitlines() if line.strip()]
