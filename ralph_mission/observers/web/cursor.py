"""What is remembered of a source from look to look, on one short line of the memory file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

SEEN = 200  # items that are known again
_WIDTH = 8  # hex digits of an item: one in four billion is mistaken for another


@dataclass(frozen=True, slots=True)
class WebCursor:
    """`about` says of which settings it is; `text` is the digest of what stood there, `seen` those of the items."""

    about: str
    at: datetime | None = None  # None: nothing was ever seen
    etag: str = ""
    modified: str = ""
    text: str = ""
    seen: tuple[str, ...] = ()

    @classmethod
    def parse(cls, kept: str, about: str) -> WebCursor:
        """From the memory file; what cannot be read, or is about another place, is a first look."""
        try:
            found = json.loads(kept)
            at, seen = datetime.fromisoformat(found["at"]), found["seen"]
            etag, modified, text = (found[name] for name in ("etag", "modified", "text"))
            words = all(isinstance(word, str) for word in (etag, modified, text))
            readable = at.tzinfo and words and re.fullmatch("[0-9a-f]*", seen)
            if readable and found["about"] == about:
                digests = (seen[place : place + _WIDTH] for place in range(0, len(seen), _WIDTH))
                return cls(about, at, etag, modified, text, tuple(digests)[:SEEN])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        return cls(about)

    def dump(self) -> str:
        """On one line."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        kept = {"about": self.about, "at": at, "etag": self.etag, "modified": self.modified, "text": self.text}
        return json.dumps({**kept, "seen": "".join(self.seen)}, separators=(",", ":"))

    def having_seen(self, names: Iterable[str]) -> WebCursor:
        """With these items; earlier ones are known a while longer, because lists come and go."""
        return replace(self, seen=tuple(dict.fromkeys((*map(mark, names), *self.seen)))[:SEEN])

    def knows(self, name: str) -> bool:
        """Whether an item was there before."""
        return mark(name) in self.seen


def mark(name: str) -> str:
    """An item in a cursor."""
    return digest(name)[:_WIDTH]


def digest(*parts: str) -> str:
    """A short name for texts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
