"""What every network can do (`Channel`), our own words where the owner has none, and the outbox.

Only what the owner asked to be announced is said at once in these words. The outbox is a folder of files that a person
reads and sends: the one network that can be asked what is there.
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

Draw = Callable[[Chart], bytes]
"""A chart as PNG; b"" where none can be made. Never raises."""


class Channel(Protocol):
    """One network."""

    @property
    def network(self) -> str:
        """Its name in ralph.yml."""
        ...

    def publish(self, key: str, post: Post) -> Receipt:
        """Say it once. Never raises for what the network does."""
        ...

    def find(self, key: str) -> Receipt | None:
        """What is certainly out already under this key; None where nobody can tell."""
        ...

    def check(self) -> str:
        """Who we are there, in words, by asking and changing nothing. Raises UserError."""
        ...


def read_secrets(environment: Mapping[str, str], names: tuple[str, ...], network: str) -> tuple[str, ...]:
    """The values of these variables. Raises Unset that names those which are missing."""
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
"""By the fact `sort` of a watch. Tests render each of them."""

COMPLETED = "completed"
ANNOUNCEMENT = (
    "Merged: {{ what }}, pull request {{ pull }}"
    "{% if days > 1 %}, {{ days }} days after it was found{% elif days == 1 %}, a day after it was found{% endif %}."
)
"""Of a mission that came to its end."""


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
            return Receipt(
                key, "failed", detail=f"the outbox cannot be written: {why}; make room or fix its permissions"
            )
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
            files.write(self.folder / ".gitignore", IGNORED.encode())
        picture = self.draw(post.chart) if post.chart else b""
        if picture:
            files.write(place.with_suffix(".png"), picture)
        files.write(place, _letter(post, head, place.with_suffix(".png").name if picture else "").encode())

    def find(self, key: str) -> Receipt | None:
        """The file of this key, if there is one."""
        found = next(self.folder.glob(f"*-{OUTBOX}-{key}.md"), None) if key.isalnum() else None
        return Receipt(key, "adopted", detail=f"id={found.name}") if found else None

    def check(self) -> str:
        """Where it is. Raises UserError where nothing can be written."""
        there = next(place for place in (self.folder, *self.folder.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise UserError("the outbox cannot be written", f"fix the permissions of {there}")
        waiting = len(list(self.folder.glob(f"*-{OUTBOX}-*.md")))
        return f"{waiting} waiting in {self.folder}"


def _letter(post: Post, head: str, picture: str) -> str:
    """What a person reads: the parts between rules, ready to copy."""
    if post.chart:
        head += f"\nChart: {picture or 'none could be drawn'}. Alt text: {post.chart.alt}"
    return "\n\n---\n\n".join([head, *post.parts]) + "\n"
