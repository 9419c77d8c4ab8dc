"""The state of a web source: its robots.txt, requests, stored items, and news.

A question is asked once for all sources that share it. Without a robots.txt (RFC 9309; 4xx) everything may be read;
one that cannot be read (5xx, no connection) forbids everything until it can. What is remembered of a source stands on
one short line of the memory file; what strangers wrote goes into signals as a quotation marked as such.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.parse import quote as percent_encode

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.http.guard import AGENT, GuardedWeb, WebAnswer
from ralph_mission.adapters.observers.looking import age_days, block, one_line, quote
from ralph_mission.config.observers import WebSettings
from ralph_mission.errors import Unset, UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.address import AddressRefused, parse_address
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

CAP = 512_000  # bytes: RFC 9309 wants 500 KiB at least


@dataclass(frozen=True, slots=True)
class Robots:
    """Asks each origin once; `known` are the texts, by origin. `once` may have an answer for an origin already."""

    web: GuardedWeb
    known: MutableMapping[str, str] = field(default_factory=dict)
    once: Callable[[str, Callable[[], str]], str] = lambda origin, ask: ask()

    def permit(self, url: str) -> None:
        """Nothing when `url` may be read. Raises UserError when it may not, or when nobody can tell."""
        from protego import Protego

        there = parse_address(url)
        if there.origin not in self.known:
            self.known[there.origin] = self.once(there.origin, lambda: self._text(there.origin))
        if not Protego.parse(self.known[there.origin]).can_fetch(there.url, AGENT):
            what = f"{there.authority} asks programs not to read this (robots.txt)"
            raise UserError(what, "take the source out of ralph.yml, or ask its owner", who="network")

    def _text(self, origin: str) -> str:
        answer = self.web.get(f"{origin}/robots.txt", cap=CAP)
        if answer.status >= 500 or answer.status == 429:
            host = parse_address(origin).authority
            what = f"{host} cannot say what programs may read (robots.txt, status {answer.status})"
            raise UserError(what, "nothing was lost; the next cycle tries again", who="network")
        return answer.content.decode("utf-8", "replace") if answer.status == 200 else ""


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
    except UserError as problem:
        answer.set_exception(problem)
    except BaseException as error:
        answer.set_exception(UserError("the question was cut off", "nothing was lost; the next cycle tries again"))
        raise error


KEPT = 100_000  # characters of a robots.txt that is kept for the day


@dataclass(frozen=True, slots=True)
class Conditions:
    """The last answer's validators, so that it need not be sent again."""

    etag: str
    modified: str


def search(endpoint: str, query: str, allow: Collection[str], seconds: float) -> WebAnswer:
    """Send a query. Raises Unset without an endpoint, UserError as the web does."""
    if not endpoint:
        raise Unset("not configured: no SEARCH_URL", "set SEARCH_URL in the environment")
    words = percent_encode(query, safe="")
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
    cache, today = FileCache(folder), cache_key("robots", f"{now:%Y-%m-%d}")
    copy = cache.get(today)
    known = {str(origin): str(text) for origin, text in copy.items()} if isinstance(copy, dict) else {}
    robots = Robots(web, dict(known), partial((errands or Errands()).once, now))
    answer = replace(web, permit=robots.permit).get(url, etag=since.etag, modified=since.modified)
    if robots.known != known:
        cache.put(today, {origin: text for origin, text in robots.known.items() if len(text) <= KEPT})
        cache.tidy()
    return answer


SEEN = 200  # known items
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
    def parse(cls, line: str, about: str) -> WebCursor:
        """From the memory file; what cannot be read, or is about another place, is a first look."""
        try:
            found = json.loads(line)
            at, entries = datetime.fromisoformat(found["at"]), found["seen"]
            etag, modified, text = (found[name] for name in ("etag", "modified", "text"))
            words = all(isinstance(word, str) for word in (etag, modified, text))
            readable = at.tzinfo and words and re.fullmatch("[0-9a-f]*", entries)
            if readable and found["about"] == about:
                digests = (entries[place : place + _WIDTH] for place in range(0, len(entries), _WIDTH))
                return cls(about, at, etag, modified, text, tuple(digests)[:SEEN])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        return cls(about)

    def dump(self) -> str:
        """On one line."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        document = {"about": self.about, "at": at, "etag": self.etag, "modified": self.modified, "text": self.text}
        return json.dumps({**document, "seen": "".join(self.seen)}, separators=(",", ":"))

    def having_seen(self, names: Iterable[str]) -> WebCursor:
        """Add these items; earlier ones stay known for a while, because lists vary."""
        return replace(self, seen=tuple(dict.fromkeys((*map(mark, names), *self.seen)))[:SEEN])

    def knows(self, name: str) -> bool:
        """Whether an item is known."""
        return mark(name) in self.seen


def mark(name: str) -> str:
    """An item in a cursor."""
    return digest(name)[:_WIDTH]


def digest(*parts: str) -> str:
    """A short name for texts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


EXCERPT_CHARS = 600  # characters of an item
LINES = 12  # of a change
UNTRUSTED = "untrusted words of strangers, quoted"


def item(settings: WebSettings, found: Mapping[str, Any], hidden: Sequence[str], now: datetime) -> Signal:
    """One new item. `hidden` are values that must not be shown."""
    title, url, date = (redact(one_line(found[name], 500), hidden) for name in ("title", "url", "date"))
    excerpt = redact(block(found["text"], EXCERPT_CHARS), hidden)
    essence = ("web", settings.name, digest(found["id"]))
    return _signal(
        settings, title or url or "an item without a title", url, date, f"{title}\n{excerpt}", essence, "", now
    )


def change(
    settings: WebSettings, url: str, lines: Sequence[str], hidden: Sequence[str], now: datetime, to: str
) -> Signal:
    """A page or a value that changed; `lines` is the difference, empty when what stood there before is not known."""
    more = len(lines) - LINES
    excerpts = [redact(one_line(line, 200), hidden) for line in lines[:LINES]]
    text = "\n".join([*excerpts, *([f"… {count_noun(more, 'more line')}"] if more > 0 else [])])
    first = next((line[2:] for line in excerpts if line.startswith("+")), "")
    title = f"changed: {first}" if first else "changed"
    text = text or "(its earlier text is not kept here)"
    return _signal(settings, title, url, f"{now:%Y-%m-%d}", text, ("web", settings.name), to, now)


def without_query(url: str) -> str:
    """A URL without possible keys: its query and its fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def keys(*urls: str) -> tuple[str, ...]:
    """Values in the queries of our own URLs, which may be keys."""
    return tuple(value for url in urls for _, value in parse_qsl(urlsplit(url).query) if len(value) >= 8)


def _signal(
    settings: WebSettings,
    title: str,
    url: str,
    date: str,
    text: str,
    essence: tuple[str, ...],
    which: str,
    now: datetime,
) -> Signal:
    where = f"{url or 'no address'}, {date or 'no date'}, from the {settings.kind} {settings.name}"
    return Signal(
        observer=f"web.{settings.name}",
        kind=settings.finding,
        title=one_line(f"{settings.name}: {title}"),
        essence=essence,
        occurrence=which,
        severity=settings.severity,
        confidence=0.6,
        effort=2.0,
        detail=block(f"{where} ({UNTRUSTED}):\n{quote(text.strip())}"),
        age_days=_age(date, now),
        facts=(("source", settings.name), ("url", url), ("date", date)),
    )


def _age(date: str, now: datetime) -> float:
    with suppress(ValueError):
        when = datetime.fromisoformat(date)
        return age_days(when if when.tzinfo else when.replace(tzinfo=UTC), now)
    return 0.0
