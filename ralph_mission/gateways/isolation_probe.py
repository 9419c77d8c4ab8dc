"""Which levels of isolation this machine really offers: each is tried, by running something in it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ralph_mission.gateways import isolation_bwrap as bwrap
from ralph_mission.gateways import isolation_uid as users
from ralph_mission.gateways.isolation import LEVELS, Cage, Level, agreed
from ralph_mission.gateways.place import acts_on_github
from ralph_mission.gateways.process import run_foreign
from ralph_mission.trouble import Trouble

NAMESPACES = (
    "let ordinary users make namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap; in a container, its seccomp "
    "profile), or use a weaker sandbox"
)
PROGRAM = ["/bin/sh", "-c", 'exec "$0" -I -S -c ""', sys.executable]
"""Our own Python: each session needs it, for `ralph emit` and for the guard before its commands.

Started by a shell, as those are: `setpriv` itself may still start what its user cannot reach."""
UNREACHED = "run ralph with a Python that every user may start (not one below /root), or use sandbox: bwrap"


@dataclass(frozen=True, slots=True)
class Found:
    """A level as this machine has it. `why`: what keeps it away, "" when it is there; `mend`: who must do what.

    `open_because`: why the network stays open at `bwrap`, "" where it is closed or the level has none to close.
    """

    level: Level
    why: str = ""
    mend: str = ""
    open_because: str = ""

    @property
    def available(self) -> bool:
        """Whether something really ran at that level."""
        return not self.why


@cache
def probe(level: Level) -> Found:
    """Try a level. Looked at once per process: a machine does not change under a run."""
    if level != "env" and not sys.platform.startswith("linux"):
        return Found(level, f"the isolation `{level}` is made for Linux", "run on Linux, or accept sandbox: env")
    if level == "uid" and os.geteuid() != 0:
        return Found(level, users.NOT_ROOT, users.INSTEAD)
    why, mend = _ran(level)
    return Found(level, why, mend, bwrap.keeps_open() if level == "bwrap" and not why else "")


def best() -> Found:
    """The strongest level there is."""
    return next(found for level in reversed(LEVELS) if (found := probe(level)).available)


def demand(level: Level) -> Found:
    """The level as asked for. Raises Trouble when this machine does not have it: never another one instead."""
    found = probe(level)
    if not found.available:
        raise Trouble(f"sandbox: {level} cannot be had: {found.why}", found.mend)
    return found


def insisted(wanted: Level | None, environ: Mapping[str, str]) -> Found:
    """The level for agents here: `wanted` as the owner's configuration has it, None where it says nothing.

    Raises Trouble when it cannot be had, and on GitHub when there would be none and no owner accepted that.
    """
    on_github = acts_on_github(environ)
    return demand(agreed(wanted, on_github, best().level if on_github and wanted is None else "env"))


def told(found: Found) -> str:
    """A level in words, for the doctor and for reports."""
    said = {
        "env": "env: an environment and a home of the run's own, as your user",
        "uid": "uid: another user",
        "bwrap": "bwrap: a view of the machine of its own; network: the model's host only",
    }[found.level]
    if found.open_because:
        return f"bwrap: a view of the machine of its own; network: open, it cannot be closed ({found.open_because})"
    return said


def _ran(level: Level) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="ralph-probe-") as folder:
        place = Path(folder).resolve()
        place.chmod(0o711)
        (place / "work").mkdir()
        cage = Cage(level, (place / "work",))
        try:
            done = run_foreign(PROGRAM, cwd=place / "work", home=place / "home", timeout=bwrap.SECONDS, cage=cage)
        except Trouble as trouble:
            return trouble.what, trouble.next_step
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = (said[-1] if said else f"exit {done.code}") if done.code else ""
    return why, {"bwrap": NAMESPACES, "uid": UNREACHED}[level] if why else ""
