"""How a source of the web is asked, and what is remembered of it from look to look: one line of the memory file.

It is asked politely where it is somebody else's, by the environment's endpoint where it is a search. A question that
several sources have is asked once for all of them, and one says what they all lack.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ralph_mission.adapters.http.guard import GuardedWeb, WebAnswer
from ralph_mission.adapters.observers import cache
from ralph_mission.adapters.observers.commands.results import Result
from ralph_mission.adapters.observers.web.robots import Robots
from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra
from ralph_mission.safety.address import AddressRefused, parse_address
from ralph_mission.values import dataclass


class Errands:
    """Answers of one look, which is known by its time; those of an earlier one are forgotten."""

    def __init__(self) -> None:
        self._lock, self._now = threading.Lock(), datetime.min
        self._known: dict[str, Future[str]] = {}
        self._speakers: dict[str, str] = {}

    def speaks(self, kind: str, name: str) -> bool:
        """Whether a source is the one that says what every source of its kind lacks: the first that asked this."""
        return self._speakers.setdefault(kind, name) == name

    def once(self, now: datetime, question: str, ask: Callable[[], str]) -> str:
        """What `ask` gave to whoever came first with this question. Raises what it raised: UserError for the web."""
        with self._lock:
            if now != self._now:
                self._now, self._known = now, {}
            first = question not in self._known
            answer = self._known.setdefault(question, Future())
        if first:
            _run(ask, answer)
        return answer.result()


def _run(ask: Callable[[], str], answer: Future[str]) -> None:
    try:
        answer.set_result(ask())
    except UserError as trouble:
        answer.set_exception(trouble)
    except BaseException as error:
        answer.set_exception(UserError("the question was cut off", "nothing was lost; the next cycle tries again"))
        raise error


KEPT = 100_000  # characters of a robots.txt that is kept for the day


class SearchUnset(UserError):
    """Nobody said where to search."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the last answer said of itself, so that it need not be sent again."""

    etag: str
    modified: str


def search(endpoint: str, query: str, allow: Collection[str], seconds: float) -> WebAnswer:
    """Send a query. Raises Unset without an endpoint, UserError as the web does."""
    if not endpoint:
        raise SearchUnset("not configured: nobody says where to search", "set SEARCH_URL in the environment")
    words = quote(query, safe="")
    usual = f"{endpoint.rstrip('/')}/search?format=json&q={words}"  # as SearXNG has it
    url = endpoint.replace("{query}", words) if "{query}" in endpoint else usual
    try:
        own = parse_address(url).door  # whoever names an endpoint in the environment means it, private or not
    except AddressRefused as refused:
        raise UserError(f"SEARCH_URL: {refused.what}", "set it to a plain http or https address", who="you") from None
    return GuardedWeb((*allow, own), seconds).get(url, headers={"Accept": "application/json"})


def fetch(
    web: GuardedWeb, url: str, since: Conditions, folder: Path | None, now: datetime, errands: Errands | None = None
) -> WebAnswer:
    """Ask for a page as its host's robots.txt allows, which is kept in `folder` for the day. Raises UserError.

    `errands` ask a host for it once for all sources that look at once.
    """
    require_extra("web", "sources of the web need")
    today = cache.key("robots", f"{now:%Y-%m-%d}")
    known = {one.path: one.message for one in cache.load(folder, today) or ()}
    robots = Robots(web, dict(known), partial((errands or Errands()).once, now))
    answer = replace(web, permit=robots.permit).get(url, etag=since.etag, modified=since.modified)
    if robots.known != known:
        texts = [(origin, text) for origin, text in robots.known.items() if len(text) <= KEPT]
        cache.save(folder, today, [Result(path=origin, message=text) for origin, text in texts])
    return answer


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
