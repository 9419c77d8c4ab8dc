"""The interface of networks (`Channel`), our default templates, and the outbox.

Only announcements that the owner asked for are sent at once with these templates. The outbox is a folder of files that
a person reads and sends: the only network whose contents can be checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from ralph_mission.adapters import files
from ralph_mission.errors import Unset, UserError
from ralph_mission.mission.model.effects import Receipt
from ralph_mission.mission.model.forge import OUTBOX, Chart, Post
from ralph_mission.values import dataclass
from ralph_mission.words import stamp

Draw = Callable[[Chart], bytes]
"""A chart as PNG, or b"". Never raises."""


class Channel(Protocol):
    """One network."""

    @property
    def network(self) -> str:
        """Its name in ralph.yml."""
        ...

    def publish(self, key: str, post: Post) -> Receipt:
        """Send it once. Never raises for network failures."""
        ...

    def find(self, key: str) -> Receipt | None:
        """What is certainly out already under this key; None if unknown."""
        ...

    def check(self) -> str:
        """Our identity there, in words; read-only. Raises UserError."""
        ...


def read_secrets(environment: Mapping[str, str], names: tuple[str, ...], network: str) -> tuple[str, ...]:
    """The values of these variables. Raises Unset that names missing ones."""
    missing = [name for name in names if not environment.get(name, "").strip()]
    if missing:
        lacks = ", ".join(missing)
        raise Unset(f"{network} is not set up: {lacks} missing in the environment", f"set {lacks} (see ralph doctor)")
    return tuple(environment[name].strip() for name in names)


TEXTS: Mapping[str, str] = {
    "change": "{{ about }}: {{ watch | label }} went {{ direction }}"
    "{% if change_percent is defined %} by {{ change_percent | abs | percent }}{% endif %},"
    " from {{ previous | thousands }} to {{ value | thousands }}{{ unit | default('') }}.",
    "new_since": "New in {{ watch | label }}: {{ about }}.",
    "top": "{{ watch | label | capitalize }}:{% for one in rows %}\n\n{{ loop.index }}. {{ one | names }}"
    "{% if one[order_by] is defined %} ({{ one[order_by] | thousands }}){% endif %}{% endfor %}",
    "where": "{{ watch | label | capitalize }}: {{ about }}.",
    "threshold": "{{ about }}: {{ watch | label }} is {{ value | thousands }}{{ unit | default('') }},"
    " {{ direction }} {{ limit | thousands }}{{ unit | default('') }}.",
    "outlier": "{{ about }}: {{ watch | label }} is {{ value | thousands }}{{ unit | default('') }},"
    " usual is {{ usual | thousands }}{{ unit | default('') }}.",
    "missing": "{{ about }}: nothing new in {{ watch | label }}"
    "{% if age is defined %} for {{ age | thousands }} hours{% endif %}.",
}
"""By the fact `sort` of a watch. Tests render each."""

COMPLETED = "completed"
ANNOUNCEMENT = (
    "Merged: {{ what }}, pull request {{ pull }}"
    "{% if days > 1 %}, {{ days }} days after it was found{% elif days == 1 %}, a day after it was found{% endif %}."
)
"""For a completed mission."""


IGNORED = "*\n"  # the folder's own .gitignore, unless it has one: its contents are never committed
STAGED = "staged"  # the folder for posts of staged cycles


@dataclass(frozen=True, slots=True)
class OutboxFolder:
    """Files named DATE-outbox-KEY.md, with a picture of the same name if there is a chart."""

    folder: Path
    now: Callable[[], datetime]
    draw: Draw
    network: str = OUTBOX

    def publish(self, key: str, post: Post) -> Receipt:
        """Write the file atomically; idempotent."""
        if found := self.find(key):
            return found
        at = self.now().astimezone(UTC)
        place = self.folder / f"{at:%Y-%m-%d}-{OUTBOX}-{key}.md"
        try:
            self._write(place, post, f"A post for a person to send, made {stamp(at)}.")
        except OSError as error:
            why = error.strerror or type(error).__name__
            return Receipt(
                key, "failed", detail=f"the outbox cannot be written: {why}; make room or fix its permissions"
            )
        return Receipt(key, "done", detail=f"id={place.name}")

    def stage(self, key: str, post: Post) -> Receipt:
        """Write what a network would get, separate from posts to be sent; failures are ignored."""
        place = self.folder / STAGED / f"{post.network}-{key}.md"
        try:
            self._write(place, post, f"Staged for {post.network} at {stamp(self.now())}, and not sent.")
        except OSError:
            return Receipt(key, "staged")
        return Receipt(key, "staged", url=str(place))

    def _write(self, place: Path, post: Post, head: str) -> None:
        """Raises OSError."""
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ".gitignore").exists():
            files.write(self.folder / ".gitignore", IGNORED.encode())
        picture = self.draw(post.chart) if post.chart else b""
        if picture:
            files.write(place.with_suffix(".png"), picture)
        files.write(place, _letter(post, head, place.with_suffix(".png").name if picture else "").encode())

    def find(self, key: str) -> Receipt | None:
        """The file of this key, if any."""
        found = next(self.folder.glob(f"*-{OUTBOX}-{key}.md"), None) if key.isalnum() else None
        return Receipt(key, "adopted", detail=f"id={found.name}") if found else None

    def check(self) -> str:
        """Its path. Raises UserError if it is not writable."""
        there = next(place for place in (self.folder, *self.folder.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise UserError("the outbox cannot be written", f"fix the permissions of {there}")
        waiting = len(list(self.folder.glob(f"*-{OUTBOX}-*.md")))
        return f"{waiting} waiting in {self.folder}"


def _letter(post: Post, head: str, picture: str) -> str:
    """The file for a person: the parts between rules, ready to copy."""
    if post.chart:
        head += f"\nChart: {picture or 'none could be drawn'}. Alt text: {post.chart.alt}"
    return "\n\n---\n\n".join([head, *post.parts]) + "\n"
