"""Observes the web: feeds, JSON documents, pages and searches, each a separate source with its own interval.

Requests go through the guard (`adapters/http/guard.py`); a separate program (`reading`) parses the answers, which are
quoted. The first check stores the state and reports nothing. Later ones report new items, or changes of a text.

A question is asked once for all sources that share it. Without a robots.txt (RFC 9309; 4xx) everything may be read; one
that cannot be read (5xx, no connection) forbids everything until it can.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
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
from ralph_mission.adapters.observers.looking import age_days, block, one_line, quote, too_soon, unavailable
from ralph_mission.adapters.observers.web import reading
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.config.observers import WebSettings
from ralph_mission.errors import Unset, UserError
from ralph_mission.extras import require_extra
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
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


class SharedRequests:
    """Answers of one look, which is known by its time; those of an earlier one are forgotten."""

    def __init__(self) -> None:
        self._lock, self._now = threading.Lock(), datetime.min
        self._known: dict[str, Future[str]] = {}
        self._reporters: dict[str, str] = {}

    def reports_missing(self, kind: str, name: str) -> bool:
        """Whether a source is the one that says what every source of its kind lacks: the first that asked this."""
        return self._reporters.setdefault(kind, name) == name

    def once(self, now: datetime, question: str, ask: Callable[[], str]) -> str:
        """The answer of `ask` to a question, which is asked once. Raises what `ask` raised: UserError for the web."""
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


ROBOTS_LENGTH = 100_000  # characters of a robots.txt that is kept for the day


def search(endpoint: str, query: str, allow: Collection[str], seconds: float) -> WebAnswer:
    """Send a query. Raises Unset without an endpoint, UserError as the web does."""
    if not endpoint:
        raise Unset("not configured: no SEARCH_URL", "set SEARCH_URL in the environment")
    words = percent_encode(query, safe="")
    usual = f"{endpoint.rstrip('/')}/search?format=json&q={words}"  # as SearXNG has it
    url = endpoint.replace("{query}", words) if "{query}" in endpoint else usual
    try:
        own = parse_address(url).door  # an endpoint named in the environment is meant, private or not
    except AddressRefused as refused:
        raise UserError(f"SEARCH_URL: {refused.what}", "set it to a plain http or https address", who="you") from None
    return GuardedWeb((*allow, own), seconds).get(url, headers={"Accept": "application/json"})


def fetch(
    web: GuardedWeb, url: str, before: WebCursor, folder: Path | None, now: datetime, shared_requests: SharedRequests
) -> WebAnswer:
    """Ask for a page as its host's robots.txt allows, which is kept in `folder` for the day. Raises UserError.

    `shared_requests`: a host is asked for it once for all sources that look at the same time.
    """
    require_extra("web", "sources of the web need")
    cache, today = FileCache(folder), cache_key("robots", f"{now:%Y-%m-%d}")
    copy = cache.get(today)
    known = {str(origin): str(text) for origin, text in copy.items()} if isinstance(copy, dict) else {}
    robots = Robots(web, dict(known), partial(shared_requests.once, now))
    answer = replace(web, permit=robots.permit).get(url, etag=before.etag, modified=before.modified)
    if robots.known != known:
        cache.put(today, {origin: text for origin, text in robots.known.items() if len(text) <= ROBOTS_LENGTH})
        cache.tidy()
    return answer


KNOWN_ITEMS = 200  # known items
_WIDTH = 8  # hex digits of an item: one in four billion is mistaken for another


@dataclass(frozen=True, slots=True)
class WebCursor:
    """`about` says of which settings it is; `text` is the digest of what stood there, `items` those of the items."""

    about: str
    at: datetime | None = None  # None: nothing was ever seen
    etag: str = ""
    modified: str = ""
    text: str = ""
    items: tuple[str, ...] = ()

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
                return cls(about, at, etag, modified, text, tuple(digests)[:KNOWN_ITEMS])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        return cls(about)

    def dump(self) -> str:
        """On one line."""
        at = self.at.isoformat(timespec="seconds") if self.at else None
        document = {"about": self.about, "at": at, "etag": self.etag, "modified": self.modified, "text": self.text}
        return json.dumps({**document, "seen": "".join(self.items)}, separators=(",", ":"))

    def having_seen(self, names: Iterable[str]) -> WebCursor:
        """Add these items; earlier ones stay known for a while, because lists vary."""
        return replace(self, items=tuple(dict.fromkeys((*map(mark, names), *self.items)))[:KNOWN_ITEMS])

    def knows(self, name: str) -> bool:
        """Whether an item is known."""
        return mark(name) in self.items


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


MOST = 20  # items reported per check
EXHAUSTED = "cannot be read within its time and memory"
RESULTS = "results[].{id: url, title: title, url: url, date: publishedDate, text: content}"  # of SearXNG


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of `observers.web`. `endpoint`: for searches, `allow`: hosts that may be private."""

    settings: WebSettings
    endpoint: str = ""
    allow: Collection[str] = ()
    folder: Path | None = None
    seconds: float = 20.0  # for asking
    patience: float = 15.0  # for reading what came
    shared_requests: SharedRequests = field(default_factory=SharedRequests)  # shared with the other sources
    reports_missing: bool = True  # whether it is this one that says what several of them lack

    @property
    def name(self) -> str:
        """`web.` and the source's name."""
        return f"web.{self.settings.name}"

    def observe(self, context: ObservationContext) -> Observation:
        """News since the last check; `unavailable` with the fix if it fails."""
        settings = self.settings
        about = digest(settings.kind, settings.url or "", settings.query, settings.path)[:8]
        before = WebCursor.parse(context.cursor, about)
        if soon := too_soon(self.name, before.at, self.settings.every, context):
            return soon
        try:
            return self._look(context, before)
        except UserError as problem:
            if isinstance(problem, Unset) and not self.reports_missing:
                detail = "not configured, as another search says"
                return Observation(self.name, "skipped", detail=detail, cursor=context.cursor)
            return unavailable(self.name, problem, context.cursor)

    def try_out(self, scratch: Path, now: datetime) -> str:
        """One bounded check without storing anything: the present content, in words. Raises UserError."""
        found = self._read(self._ask(WebCursor(""), now), None, scratch)
        return count_noun(len(found["items"]), "item") if "items" in found else f"{len(found['text']):,} characters"

    def _look(self, context: ObservationContext, before: WebCursor) -> Observation:
        answer = self._ask(before, context.now)
        after = replace(before, at=context.now, etag=answer.etag, modified=answer.modified)
        if answer.status == 304:
            return self._build_observation(replace(before, at=context.now), (), "unchanged")
        text = FileCache(self.folder).get(before.text) if before.text else None
        found = self._read(answer, text if isinstance(text, str) else None, Path(context.scratch))
        news = self._items if "items" in found else self._text
        return news(found, before, after, context.now)

    def _items(self, found: Mapping[str, Any], before: WebCursor, after: WebCursor, now: datetime) -> Observation:
        items = found["items"]
        after = after.having_seen(one["id"] for one in items)
        if before.at is None or before.text:  # it was a text before: every item would seem new
            return self._build_observation(after, (), f"first look: {count_noun(len(items), 'item')} remembered")
        new = {one["id"]: one for one in items if one["fits"] and not before.knows(one["id"])}
        signals = tuple(item(self.settings, one, self._keys, now) for one in list(new.values())[:MOST])
        rest = f", only the first {MOST} are reported" if len(new) > MOST else ""
        return self._build_observation(after, signals, f"{count_noun(len(items), 'item')}, {len(new)} new{rest}")

    def _text(self, found: Mapping[str, Any], before: WebCursor, after: WebCursor, now: datetime) -> Observation:
        after = replace(after, text=digest(found["text"]))
        cache = FileCache(self.folder)
        cache.put(after.text, found["text"])
        cache.tidy()
        size = f"{len(found['text']):,} characters"
        if not before.text or before.text == after.text:
            return self._build_observation(after, (), "unchanged" if before.text else f"first look: {size} remembered")
        fits = found["fits"] if found["changes"] else not self.settings.match
        where = without_query(self.settings.url or "")
        signal = change(self.settings, where, found["changes"], self._keys, now, after.text)
        return self._build_observation(
            after, (signal,) if fits else (), f"changed, {size}{'' if fits else '; nothing that matches'}"
        )

    def _build_observation(self, cursor: WebCursor, signals: tuple[Signal, ...], detail: str) -> Observation:
        return Observation(self.name, "ok", signals, detail=detail, cursor=cursor.dump(), complete=False)

    def _ask(self, before: WebCursor, now: datetime) -> WebAnswer:
        settings = self.settings
        if settings.kind == "search":
            answer = search(self.endpoint, settings.query, self.allow, self.seconds)
        else:
            web = GuardedWeb(self.allow, self.seconds)
            answer = fetch(web, settings.url or "", before, self.folder, now, self.shared_requests)
        if answer.status != 200 and not (answer.status == 304 and (before.etag or before.modified)):
            what = f"{parse_address(answer.url).authority} answers with status {answer.status}"
            raise UserError(what, "look at its address in ralph.yml if this lasts", who="network")
        return answer

    def _read(self, answer: WebAnswer, before: str | None, scratch: Path) -> dict[str, Any]:
        search = self.settings.kind == "search"
        request = {
            "kind": "json" if search else self.settings.kind,
            "url": without_query(answer.url),
            "type": answer.content_type,
            "path": self.settings.path or (RESULTS if search else ""),
            "match": self.settings.match,
            "before": before,
        }
        done = run_foreign(
            (sys.executable, "-I", reading.__file__),
            cwd=scratch,
            home=scratch / f"home-{self.name}",
            timeout=self.patience,
            stdin=json.dumps(request).encode() + b"\n" + answer.content,
        )
        found: dict[str, Any] = json.loads(done.stdout) if done.code == 0 else {"complaint": EXHAUSTED}
        if "complaint" in found:
            what = f"what {parse_address(answer.url).authority} sent {found['complaint']}"
            raise UserError(what, "look at url, kind and path of the source in ralph.yml", who="network")
        return found

    @property
    def _keys(self) -> tuple[str, ...]:
        """Values in the queries of our own URLs, which may be keys."""
        urls = (self.settings.url or "", self.endpoint)
        return tuple(value for url in urls for _, value in parse_qsl(urlsplit(url).query) if len(value) >= 8)


ENDPOINT = "SEARCH_URL"
"""The variable with the search endpoint: a SearXNG instance, or any URL with `{query}` in it."""
ALLOW = "RALPH_WEB_ALLOW"
"""The variable with hosts (or host:port) that may be private. A repository's files cannot add to it."""


def read_once(settings: Mapping[str, str], cache: Path | None, scratch: Path, now: datetime) -> str:
    """The text of a page or a search, requested like a source of these settings. Raises UserError."""
    try:
        source = build(WebSettings.model_validate(settings), cache)
    except ValueError:
        raise UserError("it is not an address that can be asked", "give another one") from None
    found = source._read(source._ask(WebCursor(""), now), None, scratch)
    items = ("\n".join(one[part] for part in ("title", "url", "text")) for one in found.get("items", ()))
    return found["text"] if "text" in found else "\n\n".join(items)


def build(
    settings: WebSettings,
    cache: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    shared_requests: SharedRequests | None = None,
) -> Source:
    """The observer of one source; `cache`: a folder for earlier answers, or None.

    Sources with the same `shared_requests` ask for a robots.txt once per check, and report missing settings once.
    """
    allow = tuple(filter(None, re.split(r"[,\s]+", environment.get(ALLOW, ""))))
    folder = cache / "web" / settings.name if cache else None
    common = shared_requests or SharedRequests()
    reports_missing = common.reports_missing(settings.kind, settings.name)
    return Source(
        settings, environment.get(ENDPOINT, ""), allow, folder, shared_requests=common, reports_missing=reports_missing
    )
