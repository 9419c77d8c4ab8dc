"""Files of a repository kept by their bytes, and put back by writing: no git process runs, no link is followed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class Kept:
    """One file: its bytes, or the target of a link; `mode` as lstat has it."""

    mode: int
    content: bytes


Guarded = Mapping[str, Kept]
"""Absolute path -> what it is."""


def kept(path: str) -> dict[str, Kept]:
    """What stands at `path`, or below it when it is a folder; a pipe is seen and not opened."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            return {
                inner: found for name in sorted(os.listdir(path)) for inner, found in kept(f"{path}/{name}").items()
            }
        return {path: Kept(mode, _content(path, mode))}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def write(path: str, what: Kept) -> None:
    """Make `path` what it was; whatever stands in its way goes."""
    if not os.path.isdir(os.path.dirname(path)):
        remove(os.path.dirname(path))
        os.makedirs(os.path.dirname(path))
    if os.path.isdir(path) and not os.path.islink(path):
        remove_folder(os.fsencode(path))
    spare = f"{path}.ralph"
    remove(spare)
    if stat.S_ISLNK(what.mode):
        os.symlink(what.content, os.fsencode(spare))
    else:
        Path(spare).write_bytes(what.content)
        os.chmod(spare, stat.S_IMODE(what.mode))
    os.replace(spare, path)


def remove(path: str) -> None:
    """Make `path` absent."""
    if os.path.isdir(path) and not os.path.islink(path):
        remove_folder(os.fsencode(path))
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def remove_folder(folder: bytes) -> None:
    """A folder and all in it, though a session may have locked some of it. Follows no link."""
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(root, name)):
                os.chmod(os.path.join(root, name), 0o700)
    shutil.rmtree(folder)


def _content(path: str, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.readlink(os.fsencode(path))
    with suppress(PermissionError):  # it differs by its mode then
        return Path(path).read_bytes() if stat.S_ISREG(mode) else b""
    return b""
