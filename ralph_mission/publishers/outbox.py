"""The outbox: a folder of files that a person reads and sends. The one network that can be asked what is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ralph_mission.gateways.files import atomic
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.posts import OUTBOX, Post
from ralph_mission.publishers.channel import Draw
from ralph_mission.trouble import UserError

IGNORED = "*\n"  # the folder's own .gitignore, unless it has one: nothing of it is ever committed
STAGED = "staged"  # the folder of what a staged cycle would have said


@dataclass(frozen=True, slots=True)
class OutboxFolder:
    """Files named DATE-outbox-KEY.md, with a picture of the same name where there is a chart."""

    folder: Path
    now: Callable[[], datetime]
    draw: Draw
    network: str = OUTBOX

    def publish(self, key: str, post: Post) -> Receipt:
        """A whole file or none. Done twice it is the same file."""
        if found := self.find(key):
            return found
        at = self.now().astimezone(UTC)
        place = self.folder / f"{at:%Y-%m-%d}-{OUTBOX}-{key}.md"
        try:
            self._write(place, post, f"A post for a person to send, made {at:%Y-%m-%d %H:%M} UTC.")
        except OSError as error:
            why = error.strerror or type(error).__name__
            return Receipt(key, "failed", detail=f"the outbox cannot be written: {why}; make room or mend its rights")
        return Receipt(key, "done", detail=f"id={place.name}")

    def stage(self, key: str, post: Post) -> Receipt:
        """What a network would get, apart from what waits to be sent; where nothing can be written there is no file."""
        place = self.folder / STAGED / f"{post.network}-{key}.md"
        try:
            self._write(place, post, f"Staged for {post.network} at {self.now():%Y-%m-%d %H:%M} UTC, and not sent.")
        except OSError:
            return Receipt(key, "staged")
        return Receipt(key, "staged", url=str(place))

    def _write(self, place: Path, post: Post, head: str) -> None:
        """Raises OSError."""
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ".gitignore").exists():
            atomic.write(self.folder / ".gitignore", IGNORED.encode())
        picture = self.draw(post.chart) if post.chart else b""
        if picture:
            atomic.write(place.with_suffix(".png"), picture)
        atomic.write(place, _letter(post, head, place.with_suffix(".png").name if picture else "").encode())

    def find(self, key: str) -> Receipt | None:
        """The file of this key, if there is one."""
        found = next(self.folder.glob(f"*-{OUTBOX}-{key}.md"), None) if key.isalnum() else None
        return Receipt(key, "adopted", detail=f"id={found.name}") if found else None

    def check(self) -> str:
        """Where it is. Raises Trouble where nothing can be written."""
        there = next(place for place in (self.folder, *self.folder.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise UserError("the outbox cannot be written", f"mend the rights of {there}")
        waiting = len(list(self.folder.glob(f"*-{OUTBOX}-*.md")))
        return f"{waiting} waiting in {self.folder}"


def _letter(post: Post, head: str, picture: str) -> str:
    """What a person reads: the parts between rules, ready to copy."""
    if post.chart:
        head += f"\nChart: {picture or 'none could be drawn'}. Alt text: {post.chart.alt}"
    return "\n\n---\n\n".join([head, *post.parts]) + "\n"
