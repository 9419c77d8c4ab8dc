"""Lands judged changes on the user's branch: writes objects, moves that branch, and fast-forwards a clean work tree.

If the user committed meanwhile, the change goes on top unless it conflicts; if something uncommitted is in the way,
nothing is changed. The user's git identity is read before any session could have changed it.

`Objects` is the user's repository as the trusted reader of a clone. It reads nothing a session could write: trees,
contents and new objects come from the user's repository, to which it only adds objects; no ref, index or file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.git import git as wire
from ralph_mission.adapters.git.git import EMPTY_TREE, Git, GitError, Identity
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.adapters.workspace.snapshot import File, Files
from ralph_mission.errors import UserError
from ralph_mission.values import compile_regex, dataclass

GITLINK = "160000"
NOT_IN_A_NAME = compile_regex(r"[\x00-\x1f<>\x7f]")
SCRATCH = "refs/ralph/scratch"
"""The scratch ref of `fast-import` for a commit; it is removed at once."""


@dataclass(frozen=True)
class Objects:
    """The objects of `git`; `entries` is not cached."""

    git: Git

    @cached_property
    def algorithm(self) -> str:
        """The hash algorithm of object ids."""
        return self.git.try_text("rev-parse", "--show-object-format") or "sha1"

    def entries(self, commit: str) -> dict[str, File]:
        """Every path of a commit ("" for none); a submodule has the mode GITLINK. Raises GitError."""
        listed = self.git.listing(commit) if commit else ()
        return {entry.path: File(entry.mode, entry.oid) for entry in listed}

    def store(self, contents: Iterable[bytes]) -> None:
        """Write blobs, in one process. Raises GitError."""
        stream = b"".join(_blob(content) for content in contents)
        if stream:
            self.git.run("fast-import", "--quiet", "--done", stdin=stream + b"done\n")

    def commit(
        self, parent: str, changes: Mapping[str, File | None], message: str, when: datetime, who: Identity,
        contents: Iterable[bytes] = (),
    ) -> str:  # fmt: skip  # as one reads it
        """A commit on `parent` ("" for none) with the given paths (None: deleted). Blobs are stored already, or in
        `contents`.

        On disk when it returns. Raises GitError.
        """
        text, seconds = message.replace("\0", "").encode("utf-8", "replace"), int(when.timestamp())
        by = f"{_name(who.name)} <{_name(who.email)}> {seconds} +0000"
        lines = [_blob(content) for content in contents]
        lines += [f"commit {SCRATCH}\nmark :1\nauthor {by}\ncommitter {by}\ndata {len(text)}\n".encode() + text + b"\n"]
        lines.append(f"from {parent}\n".encode() if parent else b"")
        lines += [b"D %s\n" % quoted(path) for path, file in changes.items() if file is None]
        lines += [
            f"M {file.mode} {file.oid} ".encode() + quoted(path) + b"\n"
            for path, file in changes.items()
            if file is not None
        ]
        lines.append(f"\nget-mark :1\nreset {SCRATCH}\nfrom {wire.NOBODY[0] * self._length}\n\ndone\n".encode())
        raw = self.git.run("-c", "core.fsync=committed", "fast-import", "--quiet", "--done", stdin=b"".join(lines))
        return raw.decode().strip()

    def paths_between(self, old: str, new: str) -> list[str]:
        """The paths in which two commits ("" for none) differ. Raises GitError."""
        return self.git.paths_between(old or EMPTY_TREE, new or EMPTY_TREE, "--ignore-submodules=none")

    def patch(self, old: str, new: str) -> bytes:
        """The patch between two commits, for `git apply`. Raises GitError."""
        flags = ("-r", "-p", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--full-index")
        return self.git.run("diff-tree", *flags, old or EMPTY_TREE, new)

    def holds(self, commit: str, line: bytes) -> bool:
        """Whether a file of a commit ("" for none) has these bytes anywhere."""
        try:
            return bool(commit and self.git.run("grep", "-a", "-l", "-F", "-f", "-", commit, stdin=line + b"\n"))
        except GitError:  # 1: in none
            return False

    def behind(self, commit: str, tip: str) -> bool:
        """Whether `tip` is `commit` or a descendant; False if git cannot tell."""
        known = re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", commit) and tip
        return bool(known) and self.git.contains(commit, tip)

    @property
    def _length(self) -> int:
        return 64 if self.algorithm == "sha256" else len(wire.NOBODY)


def submodules(entries: Files) -> Iterator[str]:
    """The submodules of a commit."""
    return (path for path, file in entries.items() if file.mode == GITLINK)


def quoted(path: str) -> bytes:
    """A path quoted for a line of git's input."""
    name = wire.raw(path)
    return b'"%s"' % name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _blob(content: bytes) -> bytes:
    return b"blob\ndata %d\n%s\n" % (len(content), content)


def _name(text: str) -> str:
    return NOT_IN_A_NAME.sub("", text).strip()


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged change: the new state of `paths` (None: deleted) on the commit `base` ("" for none)."""

    base: str
    paths: Mapping[str, File | None]
    message: str
    commit: str


@dataclass(frozen=True, slots=True)
class Landing:
    """Lands into the repository `git` of `user`. What cannot land is kept as a patch in the folder `aside`."""

    git: Git
    user: User
    aside: Path

    def land(self, branch: str, judged: Judged, exempt: Collection[str] = ()) -> str:
        """Bring a change to `branch` ("" for a detached HEAD); returns its commit there.

        The work tree follows if the branch is checked out; the files of `exempt` paths are left to the caller. Raises
        UserError, and then changes nothing.
        """
        tip = branch or "HEAD"
        head, checked_out = self._stands(branch)
        if head != judged.base:
            judged = self._on_top(judged, head)
        if checked_out:
            self._fast_forward(tip, judged, exempt)
        elif not self.git.move_ref(tip, judged.commit, judged.base):
            raise self._branch_moved_error(judged)
        return judged.commit

    def _stands(self, branch: str) -> tuple[str, bool]:
        """The commit of the branch, and whether the branch is checked out."""
        line = self.git.text("for-each-ref", "--format=%(HEAD)%(objectname)", branch) if branch else ""
        if line:
            return line[1:], line[0] == "*"
        return self.git.resolve("HEAD"), self.git.try_text("symbolic-ref", "--quiet", "HEAD") == branch

    def keep_patch(self, base: str, commit: str) -> Path:
        """Write the patch from `base` ("" for none) to `commit` to a file; returns its path. Raises GitError,
        OSError."""
        path = self.aside / f"{commit[:12]}.patch"
        files.write(path, Objects(self.git).patch(base, commit))
        return path

    def _on_top(self, judged: Judged, head: str) -> Judged:
        """The change on top of what the user committed meanwhile."""
        objects = Objects(self.git)
        if judged.base and not objects.behind(judged.base, head):
            raise self._branch_moved_error(judged)
        if met := meeting(judged.paths, objects.paths_between(judged.base, head)):
            patch = self.keep_patch(judged.base, judged.commit)
            what = f"{met[0]} was committed in the checkout meanwhile; what was built is in {patch}"
            raise UserError(what, "git apply what you want of it, then resume with --continue")
        commit = objects.commit(head, judged.paths, judged.message, datetime.now(UTC), self.user.identity)
        return Judged(head, judged.paths, judged.message, commit)

    def _fast_forward(self, tip: str, judged: Judged, exempt: Collection[str]) -> None:
        """Move branch, index and files to the commit, through the user's own filters."""
        git = self.git
        here = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *self.user.settings))
        base = judged.base or EMPTY_TREE
        exempted = [path for path in judged.paths if path in exempt]
        before = _write_index(here, exempted)
        self._begin(judged, tip)
        try:
            if exempted:  # git does not touch files in the work tree that the index already has as in the commit
                _index(here, {path: judged.paths[path] for path in exempted})
            _read_tree(here, base, judged.commit)
        except GitError as error:
            if exempted:
                _index(here, before)
            self._note.unlink(missing_ok=True)
            patch = self.keep_patch(judged.base, judged.commit)
            what = f"what was built cannot be taken over: {_error_line(error)}; it is in {patch}"
            raise UserError(what, "commit or stash what stands in the way, then resume with --continue") from None
        if not here.move_ref(tip, judged.commit, judged.base):
            _read_tree(here, judged.commit, base)
            self._note.unlink(missing_ok=True)
            raise self._branch_moved_error(judged)
        self._note.unlink(missing_ok=True)

    def undo_cut_off(self) -> None:
        """Undo what a killed landing had already written: each file that is still as the landing left it, while the
        last commit has the old version. Anything a person wrote or committed since stays.

        Raises OSError, and UserError if git cannot do it now: the note stays for the next start.
        """
        note = files.read_json(self._note, NOTE_CAP)
        if not isinstance(note, dict):
            return
        git, (base, commit) = self.git, (str(note.get(name, "")) for name in ("base", "commit"))
        here = Git(git.git_dir, git.common_dir, git.work_tree, (*git.extra, *self.user.settings))
        if git.resolve(commit) == commit and git.resolve(base) == base:
            try:
                _take_back(here, base, commit, git.resolve("HEAD"))
            except GitError as error:
                raise self._stays_half_error(error) from None
        self._note.unlink(missing_ok=True)

    def _stays_half_error(self, error: GitError) -> UserError:
        lock = self.git.git_dir / "index.lock"
        if lock.exists():
            what = f"the index is locked by {lock}, and a landing that was cut off has to be undone first"
            return UserError(what, "end the git that holds it, or remove that file if none runs; then start again")
        what = f"what a landing that was cut off left cannot be undone: {_error_line(error)}"
        return UserError(what, f"see that git works here, or put the files right and remove {self._note}")

    def _begin(self, judged: Judged, tip: str) -> None:
        note = {"tip": tip, "base": judged.base, "commit": judged.commit}
        files.write(self._note, json.dumps(note).encode(), lasting=False)

    @property
    def _note(self) -> Path:
        """A note that exists while a landing writes into the work tree."""
        return self.aside.parent / "landing.json"

    def _branch_moved_error(self, judged: Judged) -> UserError:
        patch = self.keep_patch(judged.base, judged.commit)
        what = f"the branch moved while a session worked apart; what it built is in {patch}"
        return UserError(what, "see that nothing else moves it, then resume with --continue")


def uncommitted(git: Git) -> frozenset[str]:
    """All paths that differ from the last commit, also only in the index, or are untracked. Raises GitError."""
    entries = iter(git.text("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0"))
    return frozenset(entry[3:] for entry in entries if entry)


def meeting(paths: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Those of `paths` that are among `others`, or contain one, or are in one."""
    known = tuple(others)
    return tuple(
        path for path in paths
        if any(one == path or one.startswith(f"{path}/") or path.startswith(f"{one}/") for one in known)
    )  # fmt: skip  # one value


def _read_tree(git: Git, before: str, after: str) -> None:
    try:
        git.run("read-tree", "-m", "-u", before, after)
    except GitError:  # a file with a new time counts as changed until git refreshes the index
        git.try_text("update-index", "-q", "--refresh")
        git.run("read-tree", "-m", "-u", before, after)


def _take_back(git: Git, base: str, commit: str, tip: str) -> None:
    """Restore files and index to `tip` where they are as in `commit`, if `tip` is as `base` there."""
    objects = Objects(git)
    old, new, last = objects.entries(base), objects.entries(commit), objects.entries(tip)
    paths = [path for path in objects.paths_between(base, commit) if last.get(path) == old.get(path)]
    if not paths:
        return
    current = _contents(git, [path for path in paths if path in new])
    written: dict[str, File | None] = {path: new[path] for path, oid in current.items() if new[path].oid == oid}
    written |= {path: None for path in paths if path not in new and not os.path.lexists(_work_tree(git) / path)}
    _index(git, {path: old.get(path) for path in paths} | written)
    halfway = objects.commit(tip, written, "Cut off", datetime.now(UTC), Identity())
    _read_tree(git, halfway, tip or EMPTY_TREE)


def _contents(git: Git, paths: Sequence[str]) -> dict[str, str]:
    """The object ids of existing files in the work tree, through the user's filters."""
    top = _work_tree(git)
    found = [path for path in paths if "\n" not in path and (top / path).is_file() and not (top / path).is_symlink()]
    named = "".join(f"{path}\n" for path in found).encode("utf-8", "surrogateescape")
    ids = git.text("hash-object", "--stdin-paths", stdin=named).split() if found else ()
    return dict(zip(found, ids, strict=True))


def _work_tree(git: Git) -> Path:
    assert git.work_tree is not None  # a bare repository has no files
    return git.work_tree


def _write_index(git: Git, paths: Sequence[str]) -> dict[str, File | None]:
    raw = git.text("ls-files", "-s", "-z", "--", *paths) if paths else ""
    rows = (row.split("\t", 1) for row in raw.split("\0") if row)
    found = {path: File(*meta.split(" ")[:2]) for meta, path in rows}
    return {path: found.get(path) for path in paths}


def _index(git: Git, entries: Mapping[str, File | None]) -> None:
    index = {path: (file.mode, file.oid) if file else None for path, file in entries.items()}
    git.run("update-index", "-z", "--index-info", stdin=wire.index_info(index))


def _error_line(error: GitError) -> str:
    lines = [line.strip() for line in error.detail.splitlines() if line.strip()]
    return " ".join(lines).removeprefix("error: ") or f"exit {error.code}"


WANTED = r"^(user\.(name|email)|core\.(autocrlf|eol|excludesfile)|filter\..*)$"
"""The user's settings that are used: identity, how bytes become blobs (line ends, large files), global ignores."""
PASSED_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME")
NOTE_CAP = 10_000  # bytes


@dataclass(frozen=True, slots=True)
class User:
    """The author of commits, with the settings that decide what a commit holds."""

    identity: Identity = Identity()
    settings: tuple[str, ...] = ()

    @staticmethod
    def of(git: Git) -> User:
        """The user of a checkout, as git knows them by its configuration or variables; Ralph by default."""
        found = _read_settings(str(git.work_tree))
        name, email = found.pop("user.name", ""), found.pop("user.email", "")
        if not acts_on_github(os.environ):
            name, email = os.environ.get("GIT_AUTHOR_NAME") or name, os.environ.get("GIT_AUTHOR_EMAIL") or email
        found.setdefault("core.excludesfile", _default_excludes())
        identity = Identity(name, email) if name and email else Identity()
        return User(identity, tuple(f"{key}={value}" for key, value in found.items() if "\n" not in value))


def _read_settings(folder: str) -> dict[str, str]:
    command = ["git", "-C", folder, "config", "--includes", "-z", "--get-regexp", WANTED]
    done = subprocess.run(command, capture_output=True, check=False, env=_git_environment())
    rows = (row.partition("\n") for row in done.stdout.decode("utf-8", "replace").split("\0") if row)
    return {key: value for key, _, value in rows}


def _git_environment() -> dict[str, str]:
    """The environment that leads git to its settings. On a runner, HOME is not used: an earlier job may have written
    there."""
    variables = {
        name: value for name, value in os.environ.items() if name in PASSED_VARIABLES or name.startswith("GIT_CONFIG")
    }
    return variables | ({"GIT_CONFIG_GLOBAL": os.devnull} if acts_on_github(os.environ) else {})


def _default_excludes() -> str:
    if acts_on_github(os.environ):
        return os.devnull
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return f"{home}/git/ignore"
