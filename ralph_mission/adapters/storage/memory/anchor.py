"""This clone's record of the memory branch, stored outside of it.

`<git common dir>/ralph/anchor.json` holds the position after our last commit and, around the move of the ref, the
commit about to be made: after a crash in between, head == pending, which is recognised as ours. Work trees share it.

On a self-hosted runner, a checkout clears its workspace, and even deletes the clone for a wrong remote or a broken
repository. It leaves the tool cache alone, so files there outlive a job.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.memory import codec
from ralph_mission.mission.memory.text import refuse
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.values import dataclass

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class AnchorMark:
    """The contents of the anchor file; `pending` is a commit id or ""."""

    lineage: str
    serial: int
    oid: str
    pending: str = ""

    @property
    def anchor(self) -> Anchor:
        """The position, in the mission's model."""
        return Anchor(self.lineage, self.serial, self.oid)


@dataclass(frozen=True, slots=True)
class Anchorage:
    """The folder `<git common dir>/ralph`; created on the first write."""

    folder: Path

    def read(self) -> AnchorMark | None:
        """The stored mark, or None. Raises UserError if unreadable."""
        try:
            mark: AnchorMark = codec.load(AnchorMark, (self.folder / "anchor.json").read_bytes())
            return mark
        except FileNotFoundError:
            return None
        except codec.UnreadableDocument:
            raise refuse(f"{self.folder / 'anchor.json'} cannot be read") from None

    def write(self, mark: AnchorMark) -> None:
        """Store it, durably and atomically. Raises OSError."""
        files.write(self.folder / "anchor.json", json.dumps(asdict(mark), indent=1).encode() + b"\n")

    def clone(self) -> str:
        """This clone's own name, generated once. Raises OSError."""
        place = self.folder / "clone"
        if not place.exists():
            files.write(place, secrets.token_hex(6).encode())
        return place.read_text()

    def forget(self) -> None:
        """Delete it: the first commit was not made after all."""
        (self.folder / "anchor.json").unlink(missing_ok=True)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Held while the ref and the anchor move together. Raises OSError."""
        with files.hold_file(self.folder / "moving", wait=None):
            yield

    @contextmanager
    def working(self) -> Iterator[bool]:
        """Held for a whole cycle; False if another process of this clone holds it."""
        with files.hold_file(self.folder / "lock") as lock:
            yield lock


def this_holder(clone: str = "") -> str:
    """Host (and clone, where several share one memory), boot and process: `host[/clone]:boot id:pid`."""
    return f"{_place(clone)}:{boot_id()}:{os.getpid()}"


def same_place(holder: str, clone: str = "") -> bool:
    """Whether a holder ran on this machine (in this clone), in this boot or an earlier one."""
    place, _, rest = holder.partition(":")
    return place == _place(clone) and rest.count(":") == 1


def _place(clone: str) -> str:
    return f"{socket.gethostname()}/{clone}" if clone else socket.gethostname()


def boot_id() -> str:
    """The running kernel's own id; "" where there is none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def folder(environment: Mapping[str, str]) -> Path | None:
    """This repository's folder in the tool cache, which all repositories of a runner share, or None."""
    cache, repository = environment.get("RUNNER_TOOL_CACHE", ""), environment.get("GITHUB_REPOSITORY", "")
    if cache and re.fullmatch(r"[A-Za-z0-9_-][\w.-]*/[\w.-]+", repository):
        return Path(cache) / "ralph" / repository.lower().replace("/", "+")
    return None
