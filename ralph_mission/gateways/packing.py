"""Loose objects put into a pack, as `git maintenance` does, but so that a kill at any moment leaves nothing behind.

Git's own takes a lock file that outlives its holder, and then nothing is packed any more; and what it was writing stays
for ever. Here a pack is written in a folder of our own, which the next one clears, and moved when it is whole.
Nothing is dropped, whoever made it and whether anything refers to it; no setting is read or written.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ralph_mission.gateways import durable
from ralph_mission.gateways.git import Git, GitError

FOLDER = re.compile(r"[0-9a-f]{2}")
REST = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
FORGOTTEN = 14 * 24 * 3600.0  # seconds after which git itself takes a temporary file for that of a dead process
MOST = 50_000  # objects at once, as git's own maintenance: a cycle waits for it, and the next time takes the rest
WHOLE = (".pack", ".rev", ".idx")  # in this order: a pack without its index is none
OURS = "ralph"


def pack_loose(git: Git) -> None:
    """Put loose objects into a pack; one that cannot be packed, and a disk that refuses, leave all as it is.

    Call it with a lock held: there is one folder for what is being packed.
    """
    objects, desk = git.common_dir / "objects", git.common_dir / "ralph" / "packing"
    with suppress(GitError, OSError):
        _clear(objects)
        git.run("prune-packed", "--quiet")  # those of a run that was killed when its pack stood
        if names := "".join(f"{name}\n" for name in islice(loose(objects), MOST)):
            _pack(git, objects, desk, names.encode())
            git.run("prune-packed", "--quiet")
    shutil.rmtree(desk, ignore_errors=True)


def loose(objects: Path) -> Iterator[str]:
    """The ids of the objects that are files of their own."""
    for folder in sorted(one for one in os.listdir(objects) if FOLDER.fullmatch(one)):
        yield from (folder + rest for rest in sorted(os.listdir(objects / folder)) if REST.fullmatch(rest))


def _pack(git: Git, objects: Path, desk: Path, names: bytes) -> None:
    """These objects in a pack, moved to the others when it is on the disk."""
    shutil.rmtree(desk, ignore_errors=True)
    (desk / "info").mkdir(parents=True)
    # A file, and no variable: there a colon in a path would part it.
    (desk / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    made = git.run("pack-objects", "--quiet", str(desk / OURS), stdin=names, env={"GIT_OBJECT_DIRECTORY": str(desk)})
    place = objects / "pack"
    place.mkdir(exist_ok=True)
    for name in made.decode().split():  # several where the repository limits their size
        for end in WHOLE:
            with suppress(FileNotFoundError):  # not every git writes them all
                os.replace(desk / f"{OURS}-{name}{end}", place / f"{OURS}-{name}{end}")
    durable.sync(place)


def _clear(objects: Path) -> None:
    """Without packs of ours that were not moved whole, and without what git's own clearing takes for long dead."""
    before = time.time() - FORGOTTEN
    for one in (*objects.glob("pack/tmp_*"), *objects.glob("[0-9a-f][0-9a-f]/tmp_obj_*")):
        if one.stat().st_mtime < before:
            one.unlink()
    for end in WHOLE[:-1]:
        for one in objects.glob(f"pack/{OURS}-*{end}"):
            if not one.with_suffix(WHOLE[-1]).exists():
                one.unlink()
