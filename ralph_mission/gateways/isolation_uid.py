"""A user of the run's own: a number nobody else has, held as long as the run lasts."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ralph_mission.trouble import Trouble

OURS = range(70_000, 70_256)
"""Between the users of a system (below 65,536) and those of its containers (from 100,000: shadow's SUB_UID_MIN)."""
NOT_ROOT = "the isolation `uid` needs root: nobody else can start a program as another user"
INSTEAD = "use sandbox: bwrap, which needs no root (install bubblewrap), or run ralph as root"
PATIENCE = 5.0  # seconds for the kernel to end what was killed
TICK = 0.01


def becoming(uid: int) -> tuple[str, ...]:
    """What a root puts before a command to run it as `uid`, with no group, no capability and none to be won."""
    only = ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *only, "--")


@contextmanager
def own() -> Iterator[int]:
    """A user id that is this run's alone. Raises Trouble when there is none, or no `setpriv`."""
    if not shutil.which("setpriv"):
        raise Trouble("setpriv is not installed", "install util-linux")
    for uid in OURS:
        if not _known(uid) and (lock := _locked(uid)):
            with lock:
                end_all(uid)  # what a run left that was killed itself
                yield uid
            return
    raise Trouble(f"all {len(OURS)} user ids for runs are taken", "wait until other runs on this machine are over")


def in_use(uid: int) -> bool:
    """Whether a run of ours holds this user id now."""
    lock = _locked(uid)
    if lock:
        lock.close()
    return lock is None


def end_all(uid: int) -> None:
    """Kill every process of a run's user, and no other, though they fork faster than anybody can look at them.

    The kernel ends all of a user's processes in one step only when a process of that same user asks it to; it is asked
    by one that has no other right, and that knows who it is. Raises Trouble when some do not end.
    """
    if uid not in OURS:
        raise ValueError(f"{uid} is no user of a run")
    patience = time.monotonic() + PATIENCE
    _kill_as(uid)
    while left := running(uid):
        if time.monotonic() > patience:
            raise Trouble(f"processes of the run's user {uid} do not end: {left}", "end them, then run again")
        time.sleep(TICK)
        _kill_as(uid)


def end_abandoned() -> None:
    """Kill what runs that were killed themselves left: their users are nobody's now. Raises Trouble, as `end_all`."""
    for uid in sorted({owner for owner in map(_owner, Path("/proc").glob("[0-9]*")) if owner in OURS}):
        if not _known(uid) and (lock := _locked(uid)):  # whom the machine knows is no run's user, whatever the number
            with lock:
                end_all(uid)


def running(uid: int) -> list[int]:
    """The processes of a user that still run, dead ones waiting for their parents left out."""
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _runs(folder, uid)]


def _kill_as(uid: int) -> None:
    # Whoever `setpriv` cannot become that user as starts nothing; the shell looks once more, because for root
    # "all" would be everybody's.
    script = f'[ "$(id -u)" = {uid} ] && kill -KILL -1'
    subprocess.run(
        [*becoming(uid), "/bin/sh", "-c", script], check=False, capture_output=True, env={"PATH": os.defpath}
    )


def _owner(folder: Path) -> int:
    with suppress(OSError):
        return folder.stat().st_uid
    return -1


def _runs(folder: Path, uid: int) -> bool:
    with suppress(OSError):
        lines = (folder / "status").read_text("utf-8", "replace").split("\n")
        said = dict(line.partition(":\t")[::2] for line in lines)
        return said["Uid"].split() == [str(uid)] * 4 and not said["State"].startswith("Z")
    return False


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _locked(uid: int) -> socket.socket | None:
    # A name in the kernel rather than a file: it goes with the process that holds it, however that ends.
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0ralph-run-as-{uid}")
    except OSError:
        lock.close()
        return None
    return lock
