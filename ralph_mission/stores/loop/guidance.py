"""`.ralph/loop/guidance.jsonl`: a person's words to the next session. Lines are only added, also those that say that
one was given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph_mission.loop.items import Guidance
from ralph_mission.stores.loop import files
from ralph_mission.trouble import Trouble

CAP = 16 * 1024 * 1024
LENGTH = 4000
"""Characters of one guidance: it goes into a prompt whole."""


@dataclass(frozen=True, slots=True)
class Guide:
    """The guidance of one checkout; `folder` is its `.ralph`. Every call may raise Trouble and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The words, and which of them were given."""
        return self.folder / "loop" / "guidance.jsonl"

    def say(self, text: str) -> Guidance:
        """Keep a person's word for the next session. Raises Trouble for an empty or a very long one."""
        words = text.strip()
        if not words or len(words) > LENGTH:
            wrong = "is too long" if words else "needs words"
            raise Trouble(
                f"guidance {wrong}", f"say in at most {LENGTH:,} characters what the next session has to know"
            )
        said = Guidance(f"guidance-{os.urandom(4).hex()}", words, self.now())
        files.append(self.path, _dumped({"id": said.id, "ts": said.at.isoformat(), "text": said.text}))
        return said

    def keep(self, said: Guidance) -> None:
        """A word that was said elsewhere, under the id it has there; one that is here already is not said again."""
        if said.id not in {known.id for known, _ in self.all()}:
            files.append(self.path, _dumped({"id": said.id, "ts": said.at.isoformat(), "text": said.text}))

    def all(self) -> tuple[tuple[Guidance, bool], ...]:
        """Everything that was said, oldest first, and whether it was given."""
        lines = [_values(raw) for raw in (files.read(self.path, CAP) or b"").split(b"\n")]
        given = {values["acknowledged"] for values in lines if isinstance(values.get("acknowledged"), str)}
        said = {found.id: found for values in lines if (found := _guidance(values))}
        return tuple((found, found.id in given) for found in said.values())

    def pending(self) -> tuple[Guidance, ...]:
        """What no session was given yet, oldest first."""
        return tuple(said for said, given in self.all() if not given)

    def acknowledge(self, ids: Iterable[str]) -> None:
        """These were given to a session: not given again. Others are passed over."""
        waiting = {said.id for said in self.pending()}
        for id in dict.fromkeys(ids):
            if id in waiting:
                files.append(self.path, _dumped({"acknowledged": id, "ts": self.now().isoformat()}))


def _guidance(values: dict[str, Any]) -> Guidance | None:
    id, text = values.get("id"), values.get("text")
    if not (isinstance(id, str) and id and isinstance(text, str) and text.strip()):
        return None
    return Guidance(id, text.strip(), _moment(values.get("ts")))


def _moment(found: object) -> datetime:
    try:
        at = datetime.fromisoformat(str(found))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _values(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _dumped(values: dict[str, str]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
