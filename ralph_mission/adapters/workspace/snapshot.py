"""The files of a clone by content: raw bytes, never through a link, a filter or an attribute.

Only Python walks the tree. Git would enter nested repositories, block on a pipe named `.gitignore`, and apply
attributes and settings that a session left; it only decides about ignored names, in a folder of ours. Writing and
removing do not follow a session's links, either.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from ralph_mission.adapters.git import git
from ralph_mission.adapters.git import git as wire
from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.safety.secrets import secret_values
from ralph_mission.values import dataclass

LINK, REGULAR, EXECUTABLE, SPECIAL = "120000", "100644", "100755", "special"
UNREADABLE, TOO_LARGE = "unreadable", "too large"
"""Instead of an object id: unreadable, or larger than `LARGEST`."""
NAMED = {LINK: "made a link", SPECIAL: "made a special file"}
LARGEST = 100 * 1024 * 1024  # bytes of the largest accepted file
IGNORE_FILE = ".gitignore"
OURS = ".ralph"
"""The engine's folder at the top: only known files in it are read."""
REPOSITORY = ".git"
NONE_IGNORED = 1
"""The exit code of `check-ignore` if no path is ignored."""
FRESH, FRESH_COARSE = 100_000_000, 2_000_000_000
"""Nanoseconds within which two writes may have the same time: a kernel's tick is at most 10 ms, FAT's 2 s."""

Signature = tuple[int, int, int, int, int]


class File(NamedTuple):
    """A path: git's mode (or SPECIAL: a pipe, a socket, a device) and the object id of its bytes."""

    mode: str
    oid: str

    @property
    def storable(self) -> bool:
        """Whether git can store it."""
        return self.mode != SPECIAL and self.oid not in (UNREADABLE, TOO_LARGE)


Files = Mapping[str, File]


@dataclass(frozen=True, slots=True)
class Reading:
    """A tree at a moment. `repositories`: nested folders with a `.git`; their files are included."""

    files: Files
    repositories: tuple[str, ...] = ()


class IgnoreRules:
    """Git's ignore rules: given `.gitignore` files (path -> content), the user's settings and `info/exclude`; and the
    paths `excluded`.

    Git evaluates them in a folder that contains only these files.
    """

    def __init__(self, git: Git, rules: Mapping[str, bytes], excluded: Sequence[str] = ()) -> None:
        self.rules, self.excluded = dict(rules), tuple(excluded)
        self._git = git
        self._known = {f"{path}{slash}": True for path in excluded for slash in ("", "/")}

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of `paths` that are ignored; folders end with a slash. Raises GitError."""
        unique = list(dict.fromkeys(paths))
        if new := [path for path in unique if path not in self._known]:
            found = self._ask(new)
            self._known.update((path, path.rstrip("/") in found) for path in new)
        return frozenset(path for path in unique if self._known[path])

    def without(self, paths: Iterable[str]) -> IgnoreRules:
        """The same rules, with none of `paths` excluded."""
        gone = frozenset(paths).intersection(self.excluded)
        return (
            IgnoreRules(self._git, self.rules, [path for path in self.excluded if path not in gone]) if gone else self
        )

    def _ask(self, paths: list[str]) -> frozenset[str]:
        with tempfile.TemporaryDirectory(prefix="ralph-ignore-") as place:
            for path, content in self.rules.items():
                where = os.path.join(os.fsencode(place), wire.raw(path))
                os.makedirs(os.path.dirname(where), exist_ok=True)
                Path(os.fsdecode(where)).write_bytes(content)
            for path in paths:
                if path.endswith("/"):  # a rule may apply to folders only
                    os.makedirs(os.path.join(os.fsencode(place), wire.raw(path)), exist_ok=True)
            alone = Git(self._git.git_dir, self._git.common_dir, Path(place), self._git.extra)
            names = b"".join(b"./" + wire.raw(path.rstrip("/")) + b"\0" for path in paths)
            try:
                raw = alone.run(
                    "check-ignore", "-z", "--stdin", "--no-index", stdin=names, env={"GIT_LITERAL_PATHSPECS": "0"}
                )
            except GitError as error:
                if error.code != NONE_IGNORED:
                    raise
                raw = b""
        return frozenset(path[2:] for path in raw.decode("utf-8", "surrogateescape").split("\0"))


class _Folder(NamedTuple):
    """The entries of a folder: path, whether it is a folder, name. `stamp` changes whenever an entry does."""

    stamp: tuple[int, int, int]
    names: tuple[tuple[str, bool, str], ...]


class Reader:
    """Reads the tree at `top` repeatedly; only files written in between are hashed, or folders listed, again.

    A hash is reused while inode, size, mtime, ctime and mode stay the same: a session can set a file's mtime, but not
    its ctime.
    """

    def __init__(self, top: Path, algorithm: str) -> None:
        self._top, self._algorithm = str(top), algorithm
        self._cache: dict[str, tuple[Signature, File]] = {}
        self._folders: dict[str, _Folder] = {}

    def read(
        self, known: Files, ignored: Callable[[Iterable[str]], frozenset[str]], opaque: frozenset[str] = frozenset()
    ) -> Reading:
        """Read `known` paths, and all others that are not `ignored`. Raises OSError.

        Unknown folders that ignore themselves, as tools' caches do, are not entered, nor are `opaque` ones.
        """
        look = _Walk(known, _folders(known), opaque, time.time_ns())
        new = self._list("", look)
        while new:
            invisible = ignored(new)
            visible = [path for path in new if path not in invisible]
            for path in visible:
                if not path.endswith("/") and (status := _status(f"{self._top}/{path}")):
                    look.files[path] = self._file(path, status, look.began)
            folders = [path for path in visible if path.endswith("/") and not self._ignores_itself(path)]
            new = [one for folder in folders for one in self._list(folder.rstrip("/"), look)]
        if len(self._cache) > len(look.files):
            self._cache = {path: entry for path, entry in self._cache.items() if path in look.files}
        return Reading(look.files, tuple(sorted(look.repositories)))

    def content(self, path: str) -> tuple[File, bytes] | None:
        """A file with its bytes right now; None if there is nothing git can store."""
        where = f"{self._top}/{path}"
        try:
            descriptor = _without_links(where, os.O_RDONLY)
        except OSError:
            return self._link(where)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return None
            content = _whole(descriptor, status.st_size)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return (File(_mode(status), self.oid(content)), content) if len(content) <= LARGEST else None

    def _link(self, where: str) -> tuple[File, bytes] | None:
        try:
            target = os.readlink(os.fsencode(where))
        except OSError:
            return None
        return File(LINK, self.oid(target)), target

    def oid(self, content: bytes) -> str:
        """The object id of these bytes."""
        digest = hashlib.new(self._algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest()

    def _list(self, start: str, look: _Walk) -> list[str]:
        """Add known paths below a folder to `look`; returns unknown ones, folders with a slash."""
        new: list[str] = []
        known, folders, files, top = look.known, look.folders, look.files, self._top
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            for path, is_folder, name in self._names(folder, look.began):
                if path in known and not is_folder:
                    if status := _status(f"{top}/{path}"):
                        files[path] = self._file(path, status, look.began)
                elif is_folder and path in folders:
                    waiting.append(path)
                elif name == REPOSITORY:
                    look.repositories += [folder] if folder else []
                elif path != OURS and not path.startswith(f"{OURS}/") and not (is_folder and path in look.opaque):
                    new.append(path + "/" * is_folder)
        return new

    def _names(self, folder: str, began: int) -> tuple[tuple[str, bool, str], ...]:
        where = f"{self._top}/{folder}" if folder else self._top
        status = _status(where)
        if status is None:
            return ()
        stamp = (status.st_ctime_ns, status.st_mtime_ns, status.st_ino)
        last = self._folders.get(folder)
        if last is not None and last.stamp == stamp:
            return last.names
        above = f"{folder}/" if folder else ""
        names = tuple(
            (above + entry.name, entry.is_dir(follow_symlinks=False), entry.name) for entry in _entries(where)
        )
        if _is_settled(status.st_ctime_ns, began):
            self._folders[folder] = _Folder(stamp, names)
        return names

    def _ignores_itself(self, folder: str) -> bool:
        try:
            with open(f"{self._top}/{folder}{IGNORE_FILE}", "rb", opener=_without_links) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return False
                lines = file.read(4096).split(b"\n")
        except OSError:
            return False
        return [line.strip() for line in lines if line.strip() and not line.startswith(b"#")] == [b"*"]

    def _file(self, path: str, status: os.stat_result, began: int) -> File:
        signature = (status.st_ctime_ns, status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)
        entry = self._cache.get(path)
        if entry is not None and entry[0] == signature:
            return entry[1]
        file = self._hash_file(path, status)
        if _is_settled(status.st_ctime_ns, began) and file.oid != UNREADABLE:
            self._cache[path] = (signature, file)
        else:
            self._cache.pop(path, None)
        return file

    def _hash_file(self, path: str, status: os.stat_result) -> File:
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            return File(SPECIAL, f"{stat.S_IFMT(status.st_mode):o}")  # seen, never opened
        if status.st_size > LARGEST:
            return File(_mode(status), TOO_LARGE)
        found = self.content(path)
        return found[0] if found else File(_mode(status), UNREADABLE)


@dataclass(slots=True)
class _Walk:
    """A reading in progress: known paths, their folders, and the result so far."""

    known: Files
    folders: frozenset[str]
    opaque: frozenset[str]
    began: int
    files: dict[str, File] = field(default_factory=dict)
    repositories: list[str] = field(default_factory=list)


def differing(before: Files, now: Files) -> list[str]:
    """The paths that differ between both sides."""
    changed = [path for path, value in now.items() if before.get(path) != value]
    return sorted([*changed, *(before.keys() - now.keys())])


def why_unstorable(file: File | None) -> str:
    """Why no commit can hold a file, or ""."""
    if file is None or file.storable:
        return ""
    why = {TOO_LARGE: "is too large", UNREADABLE: "cannot be read"}.get(file.oid, "is not a plain file")
    return f"it {why}, so that no commit can hold it"


def how(before: File | None, now: File | None) -> str:
    """How a path changed, in words."""
    if now is None:
        return "deleted"
    if (before is None or before.mode != now.mode) and now.mode in NAMED:
        return NAMED[now.mode]
    if before is None:
        return "created"
    return "modified" if before.oid != now.oid else "mode changed"


def _status(where: str) -> os.stat_result | None:
    try:
        return os.lstat(where)
    except OSError:  # gone meanwhile, or a parent folder was replaced
        return None


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """The entries of a folder; permissions a session removed are restored, and a vanished folder is empty."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            yield from entries


def _folders(files: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for folder in {path.rpartition("/")[0] for path in files}:
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(found)


def _whole(descriptor: int, size: int) -> bytes:
    """All bytes of an open file, which may be growing."""
    parts = [os.read(descriptor, size + 1)]
    while parts[-1] and sum(map(len, parts)) <= LARGEST:
        parts.append(os.read(descriptor, 1 << 20))
    return b"".join(parts)


def _mode(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR


def _is_settled(changed: int, now: int) -> bool:
    """Whether a change after `now` certainly gets another time than `changed`; both in nanoseconds."""
    return changed + (FRESH if changed % 1_000_000_000 else FRESH_COARSE) < now


def _without_links(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


LEADING_OUT = frozenset(("", ".", "..", ".git"))
"""Path components that lead out of a folder, nowhere, or into its repository."""


def write_file(top: str, path: str, mode: str, content: bytes) -> None:
    """Make `path` below `top` a file (or link) of git's `mode`, removing whatever is in the way. Raises OSError.

    Not by `files.write`: a repository's names may be as long as the system allows, and its files have the umask's mode.
    """
    where = os.path.join(os.fsencode(top), git.raw(path))
    _clear_way(os.fsencode(top), git.raw(path))
    os.makedirs(os.path.dirname(where), exist_ok=True)
    if os.path.isdir(where) and not os.path.islink(where):
        remove_folder(where)
    spare = os.path.join(os.path.dirname(where), f".{os.getpid()}.ralph-restored".encode())
    with suppress(FileNotFoundError):
        os.unlink(spare)
    if mode == LINK:
        os.symlink(content, spare)
    else:
        permissions = 0o777 if mode == EXECUTABLE else 0o666  # subject to the user's umask
        with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, permissions), "wb") as out:
            out.write(content)
    os.replace(spare, where)


def remove_path(top: str, path: str) -> None:
    """Remove `path` below `top`, and folders that become empty, without following links."""
    folder, name = os.path.split(git.raw(path))
    if LEADING_OUT.intersection(path.split("/")) or not _reachable(os.fsencode(top), folder):
        return
    remove_any(os.path.join(os.fsencode(top), folder, name))
    with suppress(OSError):
        while folder:
            os.rmdir(os.path.join(os.fsencode(top), folder))
            folder = os.path.dirname(folder)


def remove_any(where: bytes) -> None:
    """Remove whatever is at `where`: a file, a link, a pipe, a folder with its contents. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(where).st_mode):
            remove_folder(where)
        else:
            os.unlink(where)


def remove_folder(folder: bytes) -> None:
    """Remove a folder with its contents, even without permissions. Follows no links. Raises OSError."""
    with suppress(OSError):
        os.chmod(folder, 0o700)
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(root, name)):
                os.chmod(os.path.join(root, name), 0o700)
    shutil.rmtree(folder)


def _clear_way(top: bytes, path: bytes) -> None:
    parts = path.split(b"/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = os.path.join(top, *parts[:depth])
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            os.unlink(folder)


def _reachable(top: bytes, folder: bytes) -> bool:
    """Whether `folder` is reached without links: anything beyond a link is not the clone's."""
    parts = [part for part in folder.split(b"/") if part]
    ways = (os.path.join(top, *parts[:depth]) for depth in range(1, len(parts) + 1))
    return all(os.path.isdir(way) and not os.path.islink(way) for way in ways)


WINDOW, OVERLAP = 1_000_000, 4_000
"""Characters of a file that are searched for credentials at once, and the overlap of two such pieces."""
LOOSE = ("assigned-secret", "authorization", "jwt", "signed-address")
"""Kinds of which code and tests contain made-up examples: redacted in reports, allowed in commits."""


def find_credentials(path: str, content: bytes) -> set[tuple[str, str]]:
    """The credentials that a file must not bring into a commit: kind and value."""
    text = f"{path}\n{content.decode('utf-8', 'replace')}"
    pieces = (text[max(0, start - OVERLAP) : start + WINDOW] for start in range(0, len(text), WINDOW))
    return {found for piece in pieces for found in secret_values(piece) if found[0] not in LOOSE}
