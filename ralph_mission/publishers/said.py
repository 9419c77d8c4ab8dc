"""What came of a part of a post, and what that means for the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ralph_mission.mission.effects import Fate, Receipt

LONGEST = 300  # characters of a detail


@dataclass(frozen=True, slots=True)
class PartResult:
    """Of one part: `id` and `url` by the network; `detail` why not, for people; `wait` for how many seconds."""

    status: Fate
    id: str = ""
    url: str = ""
    detail: str = ""
    wait: float = 0.0

    @property
    def out(self) -> bool:
        """Whether it is there for all to see."""
        return self.status in ("done", "adopted")


def in_order(key: str, parts: Sequence[str], say: Callable[[int, str, str], PartResult]) -> Receipt:
    """Say each part once, in order: `say` gets its place, its text and the id of the last one that has one.

    Once the first is out the receipt says so, and what is missing; doubt about a later part is doubt about the whole.
    """
    first = last = say(0, parts[0], "")
    if not first.out:
        return Receipt(key, first.status, detail=first.detail[:LONGEST], wait=first.wait)
    for at, part in enumerate(parts[1:], 1):
        if not last.id:  # nothing to reply to: a second part alone would make no sense
            return _receipt(key, first.status, first, f"{first.detail}; the other parts were not sent")
        now = say(at, part, last.id)
        if not now.out:
            told = f"{at} of {len(parts)} parts are out; {now.detail}"
            return _receipt(key, "unknown" if now.status == "unknown" else first.status, first, told)
        last = now if now.id else last
    return _receipt(key, first.status, first, first.detail)


def _receipt(key: str, status: Fate, first: PartResult, told: str) -> Receipt:
    name = f"id={first.id} " if first.id else ""
    return Receipt(key, status, url=first.url, detail=f"{name}{told}".strip()[:LONGEST])
