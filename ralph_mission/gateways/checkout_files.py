"""The files of a checkout by content: raw bytes, never through a link, a filter or an attribute.

What `.gitignore` and `info/exclude` hide is not seen, nor is a folder that ignores itself (a tool's cache).
A hash is remembered as long as the file's inode, size, times of change and mode stay: a session can set the
modification time of a file, but not the time of its last change.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ralph_mission.gateways import wire
from ralph_mission.gateways.checkout_flags import Flags
from ralph_mission.gateways.checkout_listed import NOTHING, Index, Listed, listing, updated
from ralph_mission.gateways.checkout_pipes import IGNORES, READ_BY_GIT, special, status_of
from ralph_mission.gateways.git import Git, GitError

LINK, REGULAR, EXECUTABLE, OTHER = "120000", "100644", "100755", "other"
UNREADABLE = "unreadable"
NAMED = {LINK: "made a link", OTHER: "made a special file"}
NONE_IGNORED = 1
"""What `check-ignore` exits with when no path is ignored."""
FRESH, FRESH_COARSE = 100_000_000, 2_000_000_000
"""Nanoseconds in which a second write may carry the same time: a kernel's tick is 10 ms at most, FAT's 2 s."""
CHUNK = 1 << 20

Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class File:
    """A path as it stands: git's mode (or OTHER: a pipe, a socket), the object id of its bytes, its permissions."""

    mode: str
    oid: str
    permissions: int = field(default=0, compare=False)


Files = Mapping[str, File]


@dataclass(frozen=True, slots=True)
class Reading:
    """A work tree at one moment; `nested` are folders that are repositories of their own."""

    files: Files
    index: Index
    nested: frozenset[str]
    flags: Flags


class Reader:
    """Reads one work tree again and again; only what was written in between is hashed."""

    def __init__(self, git: Git) -> None:
        assert git.work_tree is not None
        self._git, self.top = git, str(git.work_tree)
        self._known: dict[str, tuple[Signature, File]] = {}
        self._held: dict[str, tuple[tuple[int, int, int], frozenset[str]]] = {}
        self._kept: set[str] = set()
        self._algorithm = ""
        self._raw, self._rows, self._last = b"", [""], NOTHING

    def read(self, rules: Files | None = None, wait: float = 600) -> Reading:
        """What stands there now; with `rules` the ignore files are those of another moment.

        Raises GitError, also when git gives no list of the paths within `wait` seconds.
        """
        began = time.time_ns()
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(self._asked, wait)
            unchanged = self._unchanged()
            listed = self._listed(asked.result())
        if rules is not None:
            listed = Listed.of(listed.index, self._not_ignored(rules), listed.flags)
        paths = dict.fromkeys(listed.paths)
        real = {"": True}
        nested = {
            folder
            for folder in listed.nested
            if reachable(f"{self.top}/", folder, real) and os.path.lexists(f"{self.top}/{folder}/.git")
        }
        for folder, names in self._special(listed.folders):
            paths.update({f"{folder}/{name}" if folder else name: None for name in names if name != ".git"})
            nested.update({folder} if folder and ".git" in names else ())
        for folder in nested:
            paths.update(dict.fromkeys(_walk(self.top, folder)))
        return Reading(self._files(paths, unchanged, began), listed.index, frozenset(nested), listed.flags)

    def keep(self, reading: Reading) -> tuple[str, ...]:
        """Write what the index does not hold into the object store. Gives the ids of all such objects."""
        held = {oid for _, oid in reading.index.values()}
        wanted = {
            path: file
            for path, file in reading.files.items()
            if file.oid not in held and file.mode != OTHER and file.oid != UNREADABLE
        }
        self._write({path: file for path, file in wanted.items() if file.oid not in self._kept})
        oids = {file.oid for file in wanted.values()}
        self._kept = oids
        return tuple(sorted(oids))

    def _asked(self, wait: float) -> bytes:
        return self._git.run("ls-files", "-z", "-v", "-s", "--cached", "--others", "--exclude-standard", timeout=wait)

    def _listed(self, raw: bytes) -> Listed:
        if raw != self._raw:
            rows = raw.decode("utf-8", "surrogateescape").split("\0")
            self._last = updated(self._last, self._rows, rows) or listing(rows)
            self._raw, self._rows = raw, rows
        return self._last

    def _not_ignored(self, rules: Files) -> list[str]:
        raw = self._git.run("ls-files", "-z", "--others")
        others = [path for path in raw.decode("utf-8", "surrogateescape").split("\0") if path]
        ignored = self._ignored(others, rules) if others else frozenset()
        return [path for path in others if path not in ignored]

    def _ignored(self, paths: Iterable[str], rules: Files) -> frozenset[str]:
        """Which of `paths` those ignore files hide, asked in a folder that holds nothing else."""
        wanted = {path: file.oid for path, file in ignores(rules).items() if file.mode in (REGULAR, EXECUTABLE)}
        blobs = self._git.blobs(wanted.values())
        with tempfile.TemporaryDirectory(prefix="ralph-ignore-") as place:
            for path, oid in wanted.items():
                Path(place, path).parent.mkdir(parents=True, exist_ok=True)
                Path(place, path).write_bytes(blobs.get(oid, b""))
            alone = Git(self._git.git_dir, self._git.common_dir, Path(place), self._git.extra)
            names = b"".join(b"./" + wire.raw(path) + b"\0" for path in paths)  # no path starts with a `:` then
            plain = {"GIT_LITERAL_PATHSPECS": "0"}
            try:
                raw = alone.run("check-ignore", "-z", "--stdin", "--no-index", stdin=names, env=plain)
            except GitError as error:
                if error.code != NONE_IGNORED:
                    raise
                raw = b""
        return frozenset(path[2:] for path in raw.decode("utf-8", "surrogateescape").split("\0"))

    def _special(self, folders: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
        """Which folders hold an ignore file or a repository, also one that hides itself and with it its neighbours.

        What a folder holds is remembered as long as its times stay: they change with each name in it.
        """
        began, seen, real = time.time_ns(), {}, {"": True}
        for folder in ("", *folders):
            status = status_of(f"{self.top}/{folder}") if reachable(f"{self.top}/", folder, real) else None
            if status is None:
                continue
            times = (status.st_ctime_ns, status.st_mtime_ns, status.st_ino)
            before = self._held.get(folder)
            names = before[1] if before and before[0] == times else _names(f"{self.top}/{folder}")
            if settled(status.st_ctime_ns, began):
                seen[folder] = (times, names)
            if names:
                yield folder, names
        self._held = seen

    def _unchanged(self) -> dict[str, tuple[Signature, File]]:
        """What stands as it was known, which most of it does."""
        known = ((path, entry, _glance(f"{self.top}/{path}")) for path, entry in self._known.items())
        return {path: entry for path, entry, status in known if status and _signature(status) == entry[0]}

    def _files(
        self, paths: Iterable[str], unchanged: Mapping[str, tuple[Signature, File]], began: int
    ) -> dict[str, File]:
        """What they are; `began` (ns) is when it was first asked."""
        seen, found, top, real = {}, {}, f"{self.top}/", {"": True}
        beyond = {folder for folder in {path.rpartition("/")[0] for path in paths} if not reachable(top, folder, real)}
        for path in paths:
            if beyond and path.rpartition("/")[0] in beyond:
                continue
            if entry := unchanged.get(path):
                seen[path], found[path] = entry, entry[1]
                continue
            status = status_of(top + path)
            if status and not stat.S_ISDIR(status.st_mode):
                file = found[path] = self._file(top + path, status)
                if settled(status.st_ctime_ns, began) and file.oid != UNREADABLE:
                    seen[path] = (_signature(status), file)
        self._known = seen
        return found

    def _file(self, where: str, status: os.stat_result) -> File:
        permissions = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return File(LINK, self._oid([os.readlink(os.fsencode(where))], status.st_size), 0)
        if not stat.S_ISREG(status.st_mode):
            return File(OTHER, f"{stat.S_IFMT(status.st_mode):o}", permissions)  # seen, never opened
        mode = EXECUTABLE if permissions & stat.S_IXUSR else REGULAR
        try:
            with open(where, "rb", buffering=0, opener=_without_links) as file:
                size = os.fstat(file.fileno()).st_size
                return File(mode, self._oid(iter(lambda: file.read(CHUNK), b""), size), permissions)
        except OSError:
            return File(mode, UNREADABLE, permissions)

    def oid(self, content: bytes) -> str:
        """The object id of these bytes."""
        return self._oid([content], len(content))

    def _oid(self, chunks: Iterable[bytes], size: int) -> str:
        if not self._algorithm:
            self._algorithm = self._git.try_text("rev-parse", "--show-object-format") or "sha1"
        digest = hashlib.new(self._algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for chunk in chunks:
            digest.update(chunk)
        return digest.hexdigest()

    def _write(self, wanted: Files) -> None:
        names = [path for path, file in wanted.items() if file.mode != LINK]
        lines = b"".join(quoted(f"{self.top}/{path}") + b"\n" for path in names)
        if names:
            self._git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=lines)
        for path in (path for path, file in wanted.items() if file.mode == LINK):
            target = os.readlink(os.fsencode(f"{self.top}/{path}"))
            self._git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=target)


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Which paths are not the same on both sides."""
    changed = {path for path, value in now.items() if before.get(path) is not value and before.get(path) != value}
    return sorted(changed | (before.keys() - now.keys()))


def how(before: File | None, now: File | None) -> str:
    """What came of a path, in words."""
    if now is None:
        return "deleted"
    if (before is None or before.mode != now.mode) and now.mode in NAMED:
        return NAMED[now.mode]
    if before is None:
        return "created"
    return "modified" if before.oid != now.oid else "mode changed"


def ignores(files: Files) -> dict[str, File]:
    """The ignore files among them."""
    return {path: file for path, file in files.items() if path.rpartition("/")[2] == IGNORES}


def quoted(path: str) -> bytes:
    """A path on a line of its own, as git reads one back."""
    name = wire.raw(path)
    return b'"%s"' % name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _without_links(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _glance(where: str) -> os.stat_result | None:
    """`lstat`, None too where a folder above became something else, such as a link to itself: `_files` tells what."""
    try:
        return os.lstat(where)
    except OSError:
        return None


def _signature(status: os.stat_result) -> Signature:
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)


def _names(folder: str) -> frozenset[str]:
    """Those of git's names that are there; of what is no ignore file, only what git would stumble over."""
    seen = {name: status for name in (*READ_BY_GIT, ".git") if (status := status_of(f"{folder}/{name}"))}
    return frozenset(name for name, status in seen.items() if name in (IGNORES, ".git") or special(status.st_mode))


def settled(changed: int, now: int) -> bool:
    """Whether a change after `now` is sure to carry another time than `changed`; both in nanoseconds."""
    return changed + (FRESH if changed % 1_000_000_000 else FRESH_COARSE) < now


def _walk(top: str, folder: str) -> Iterator[str]:
    """Everything in a nested repository but what git keeps there."""
    if os.path.islink(f"{top}/{folder}"):
        return
    for root, folders, names in os.walk(f"{top}/{folder}"):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if os.path.islink(f"{root}/{name}")]
        yield from (f"{root}/{name}"[len(top) + 1 :] for name in (*names, *links) if name != ".git")


def reachable(top: str, folder: str, real: dict[str, bool]) -> bool:
    """Whether `folder` is one all the way down: what lies beyond a link is not the checkout's."""
    if folder not in real:
        above = reachable(top, folder.rpartition("/")[0], real)
        try:
            real[folder] = above and stat.S_ISDIR(os.lstat(top + folder).st_mode)
        except OSError:
            real[folder] = False
    return real[folder]
