"""Who works on a task, and whether that can be proven over. An owner is `host:boot id:pid` and may add a name.

A process that ended, or a machine that started anew, is proof. Time is not, and neither is another host.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def this_owner(environ: Mapping[str, str]) -> str:
    """Who claims here: `RALPH_OWNER`, which a loop gives each session, else the terminal's shell.

    A command without either is over before the work begins, so its process proves nothing and is not named.
    """
    if given := environ.get("RALPH_OWNER", "").strip():
        return given
    return place(os.getsid(0) if _has_terminal() else None)


def place(pid: int | None) -> str:
    """The owner that `pid` of this machine is; None for one that only a new start of the machine can end."""
    return f"{os.uname().nodename}:{_boot()}:{pid or '-'}"


def dead(owner: str) -> bool:
    """Whether the owner is proven to be gone. One that we cannot read is not."""
    host, _, rest = owner.partition(":")
    boot, _, process = rest.partition(":")
    if host != os.uname().nodename or not boot or not process:
        return False
    pid = process.partition(":")[0]
    return boot != _boot() or (pid.isdecimal() and _has_ended(int(pid)))


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return _zombie(pid)


def _zombie(pid: int) -> bool:
    """Whether only its parent has not heard yet: it works no more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _boot() -> str:
    try:
        with open(BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""
