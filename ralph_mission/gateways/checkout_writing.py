"""Writing into a work tree without following a link that a session may have left there."""

from __future__ import annotations

import os
from contextlib import suppress

from ralph_mission.gateways import wire
from ralph_mission.gateways.checkout_files import EXECUTABLE, LINK, File, reachable
from ralph_mission.gateways.checkout_kept import remove_folder as remove_folder

LEADING_OUT = frozenset(("", ".", "..", ".git"))
"""Parts that lead out of a checkout or into a repository. Git refuses such paths; a forged index or tree has them."""


def restore(top: str, path: str, file: File, content: bytes) -> None:
    """Make `path` what it was; whatever stands in its way goes, and no link is followed."""
    where = os.path.join(os.fsencode(top), wire.raw(path))
    _clear_way(os.fsencode(top), wire.raw(path))
    os.makedirs(os.path.dirname(where), exist_ok=True)
    if os.path.isdir(where) and not os.path.islink(where):
        remove_folder(where)
    spare = where + b".ralph-restored"
    with suppress(FileNotFoundError):
        os.unlink(spare)
    if file.mode == LINK:
        os.symlink(content, spare)
    else:
        descriptor = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as out:
            out.write(content)
        os.chmod(spare, file.permissions or (0o755 if file.mode == EXECUTABLE else 0o644))
    os.replace(spare, where)


def remove(top: str, path: str) -> None:
    """Make `path` absent, and the folders that are empty then; what lies beyond a link, or outside of `top`, stays."""
    root, name = os.fsencode(top), wire.raw(path)
    folder = os.path.dirname(name)
    if LEADING_OUT.intersection(path.split("/")) or not reachable(top + "/", os.fsdecode(folder), {"": True}):
        return
    where = os.path.join(root, name)
    if os.path.isdir(where) and not os.path.islink(where):
        remove_folder(where)
    else:
        with suppress(FileNotFoundError):
            os.unlink(where)
    with suppress(OSError):
        while folder:
            os.rmdir(os.path.join(root, folder))
            folder = os.path.dirname(folder)


def _clear_way(top: bytes, path: bytes) -> None:
    parts = path.split(b"/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = os.path.join(top, *parts[:depth])
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            os.unlink(folder)
