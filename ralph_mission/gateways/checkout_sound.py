"""What git would stumble over in its own folder: seen and mended before the first git process runs after a session.

git opens whatever bears the right name. At a pipe it waits for ever, through a link it writes elsewhere, and without a
HEAD there is no repository. A session may change HEAD, index and refs, and a later step judges how; here they are only
made readable. Whatever stood so when the mark was made is the user's own and stays.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralph_mission.gateways.checkout_files import settled
from ralph_mission.gateways.checkout_kept import PUT_BACK, Guarded, Kept, kept, write
from ralph_mission.gateways.checkout_pipes import status_of
from ralph_mission.gateways.git import Git
from ralph_mission.loop.model import Change

FILES = ("HEAD", "index", "packed-refs", "logs/HEAD")
FOLDERS = ("refs", "logs", "info", "objects", "modules", "worktrees")
ID = rb"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?"
FORMS = {
    "HEAD": re.compile(rb"(?:ref:\s*refs/[^\0]+|%s)\s*" % ID),
    "packed-refs": re.compile(rb"(?:(?:#[^\n]*|%s [^\n\0]+|\^%s)\n)*" % (ID, ID)),
}
REF = re.compile(rb"(?:ref:\s*\S[^\0]*|%s(?:\s.*)?)" % ID, re.DOTALL)
LONGEST_REF = 4096  # bytes: a name is a path
UNREADABLE = "made unreadable"


def standing(git: Git) -> dict[str, Kept]:
    """HEAD and the packed refs as they are."""
    return {path: found for name in FORMS for path, found in kept(_place(git, name)).items()}


def stand(git: Git, before: Guarded) -> tuple[Change, ...]:
    """Write those again that git could not read; what it can read stays."""
    wrong = {path: why for path in before if kept(path).get(path) != before[path] and (why := _broken(path))}
    for path in wrong:
        write(path, before[path])
    return tuple(Change(shown(git, path), why, PUT_BACK) for path, why in wrong.items())


def index(git: Git) -> bool:
    """Whether the index is whole: its first bytes, and the checksum at its end (zeros where none is written)."""
    try:
        raw = Path(git.git_dir / "index").read_bytes()
    except OSError:
        return False
    sums = (hashlib.new(name, usedforsecurity=False) for name in ("sha1", "sha256"))
    return raw.startswith(b"DIRC") and any(_ends_with(raw, digest) for digest in sums)


def have_refs(git: Git) -> None:
    """Without a folder of refs git says that there is no repository."""
    os.makedirs(f"{git.common_dir}/refs", exist_ok=True)


class Sweep:
    """Looks through a repository again and again; a folder is read once more only when its times changed."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._plain: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}

    def odd(self) -> dict[str, Kept]:
        """Links, pipes, sockets and devices anywhere in the repository; files and folders in each other's place; refs
        that name nothing, and locks of refs."""
        folders = tuple(dict.fromkeys((self._git.git_dir, self._git.common_dir)))
        outer = [one for one in folders if not any(one != other and one.is_relative_to(other) for other in folders)]
        paths = self._strange(map(str, outer))
        for folder in folders:
            paths |= {f"{folder}/{name}" for name in FILES if os.path.isdir(f"{folder}/{name}")}
            paths |= {f"{folder}/{name}" for name in FOLDERS if os.path.isfile(f"{folder}/{name}")}
            paths.update(_no_refs(f"{folder}/refs"))
        packed = _place(self._git, "packed-refs")
        return {path: _kept(path) for path in sorted(paths | ({packed} if _broken(packed) == UNREADABLE else set()))}

    def _strange(self, tops: Iterable[str]) -> set[str]:
        """Whatever is neither file nor folder."""
        began, before, self._plain = time.time_ns(), self._plain, {}
        waiting, found = list(tops), set[str]()
        while waiting:
            folder = waiting.pop()
            times, known = _times(folder), before.get(folder)
            inner, odd = (known[1], []) if known and known[0] == times else _parted(_entries(folder))
            if not odd and settled(times[0], began):
                self._plain[folder] = (times, inner)
            found.update(odd)
            waiting += inner
        return found


def how(path: str) -> str:
    """What a path is that git stumbles over, in words."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return "made a link"
    if stat.S_ISDIR(mode):
        return "made a folder"
    return UNREADABLE if stat.S_ISREG(mode) else "made a special file"


def shown(git: Git, path: str) -> str:
    """A path of the repository as a person reads it."""
    for folder in (git.git_dir, git.common_dir):
        if path.startswith(f"{folder}/"):
            return ".git" + path[len(str(folder)) :]
    return os.path.relpath(path, str(git.work_tree))


def _ends_with(raw: bytes, digest: hashlib._Hash) -> bool:
    size = digest.digest_size
    digest.update(raw[:-size])
    return raw[-size:] in (digest.digest(), bytes(size))


def _place(git: Git, name: str) -> str:
    return f"{git.git_dir if name == 'HEAD' else git.common_dir}/{name}"


def _broken(path: str) -> str:
    """What keeps git from reading a file of ours, "" when nothing does."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return how(path)
        return "" if FORMS[os.path.basename(path)].fullmatch(Path(path).read_bytes()) else UNREADABLE
    except (FileNotFoundError, NotADirectoryError):
        return "deleted"
    except PermissionError:
        return UNREADABLE


def _times(folder: str) -> tuple[int, int, int]:
    """They change with each name in a folder; a session can set the second one back, the first it cannot."""
    status = status_of(folder)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_ino) if status else (0, 0, 0)


def _parted(entries: Iterable[os.DirEntry[str]]) -> tuple[tuple[str, ...], list[str]]:
    """The folders, and what is neither folder nor file."""
    folders = {entry.path for entry in entries if entry.is_dir(follow_symlinks=False)}
    odd = [one.path for one in entries if one.path not in folders and not one.is_file(follow_symlinks=False)]
    return tuple(folders), odd


def _entries(folder: str) -> list[os.DirEntry[str]]:
    for mend in (True, False):
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except PermissionError:
            if not mend:
                raise
            os.chmod(folder, 0o700)
        except (FileNotFoundError, NotADirectoryError):
            break
    return []


def _no_refs(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        yield from (f"{root}/{name}" for name in names if _no_ref(f"{root}/{name}"))


def _no_ref(path: str) -> bool:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return False  # told already
        wrong = path.endswith(".lock") or status.st_size > LONGEST_REF
        return wrong or not REF.fullmatch(Path(path).read_bytes())
    except PermissionError:
        return True


def _kept(path: str) -> Kept:
    return kept(path).get(path) or Kept(os.lstat(path).st_mode, b"")
