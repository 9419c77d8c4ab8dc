"""Observes the web: feeds, JSON documents, pages and searches, each a separate source with its own interval.

Requests go through the guard (`adapters/http/guard.py`); a separate program (`reading`) parses the answers, which are
quoted. The first check stores the state and reports nothing. Later ones report new items, or changes of a text.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.http.guard import GuardedWeb, WebAnswer
from ralph_mission.adapters.observers.looking import too_soon, unavailable
from ralph_mission.adapters.observers.web import reading, state
from ralph_mission.adapters.observers.web.state import Conditions, Errands, WebCursor, digest
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.config.observers import WebSettings
from ralph_mission.errors import Unset, UserError
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.safety.address import parse_address
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun

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
    errands: Errands = field(default_factory=Errands)  # shared with the other sources
    speaks: bool = True  # whether it is this one that says what several of them lack

    @property
    def name(self) -> str:
        """`web.` and the source's name."""
        return f"web.{self.settings.name}"

    def observe(self, context: ObservationContext) -> Observation:
        """News since the last check; `unavailable` with the fix if it fails."""
        before = WebCursor.parse(context.cursor, self._about())
        if soon := too_soon(self.name, before.at, self.settings.every, context):
            return soon
        try:
            return self._look(context, before)
        except UserError as problem:
            return self._unseen(problem, context.cursor)

    def try_out(self, scratch: Path, now: datetime) -> str:
        """One bounded check without storing anything: the present content, in words. Raises UserError."""
        found = self._read(self._ask(WebCursor(""), now), None, scratch)
        return count_noun(len(found["items"]), "item") if "items" in found else f"{len(found['text']):,} characters"

    def _look(self, context: ObservationContext, before: WebCursor) -> Observation:
        answer = self._ask(before, context.now)
        after = replace(before, at=context.now, etag=answer.etag, modified=answer.modified)
        if answer.status == 304:
            return self._seen(replace(before, at=context.now), (), "unchanged")
        text = FileCache(self.folder).get(before.text) if before.text else None
        found = self._read(answer, text if isinstance(text, str) else None, Path(context.scratch))
        news = self._items if "items" in found else self._text
        return news(found, before, after, context.now)

    def _items(self, found: Mapping[str, Any], before: WebCursor, after: WebCursor, now: datetime) -> Observation:
        items = found["items"]
        after = after.having_seen(one["id"] for one in items)
        if before.at is None or before.text:  # it was a text before: every item would seem new
            return self._seen(after, (), f"first look: {count_noun(len(items), 'item')} remembered")
        new = {one["id"]: one for one in items if one["fits"] and not before.knows(one["id"])}
        signals = tuple(state.item(self.settings, one, self._keys, now) for one in list(new.values())[:MOST])
        rest = f", only the first {MOST} are reported" if len(new) > MOST else ""
        return self._seen(after, signals, f"{count_noun(len(items), 'item')}, {len(new)} new{rest}")

    def _text(self, found: Mapping[str, Any], before: WebCursor, after: WebCursor, now: datetime) -> Observation:
        after = replace(after, text=digest(found["text"]))
        cache = FileCache(self.folder)
        cache.put(after.text, found["text"])
        cache.tidy()
        size = f"{len(found['text']):,} characters"
        if not before.text or before.text == after.text:
            return self._seen(after, (), "unchanged" if before.text else f"first look: {size} remembered")
        fits = found["fits"] if found["changes"] else not self.settings.match
        where = state.without_query(self.settings.url or "")
        signal = state.change(self.settings, where, found["changes"], self._keys, now, after.text)
        return self._seen(
            after, (signal,) if fits else (), f"changed, {size}{'' if fits else '; nothing that matches'}"
        )

    def _seen(self, cursor: WebCursor, signals: tuple[Signal, ...], detail: str) -> Observation:
        return Observation(self.name, "ok", signals, detail=detail, cursor=cursor.dump(), complete=False)

    def _unseen(self, problem: UserError, cursor: str) -> Observation:
        if isinstance(problem, Unset) and not self.speaks:
            return Observation(self.name, "skipped", detail="not configured, as another search says", cursor=cursor)
        return unavailable(self.name, problem, cursor)

    def _ask(self, before: WebCursor, now: datetime) -> WebAnswer:
        settings = self.settings
        if settings.kind == "search":
            answer = state.search(self.endpoint, settings.query, self.allow, self.seconds)
        else:
            web, known = GuardedWeb(self.allow, self.seconds), Conditions(before.etag, before.modified)
            answer = state.fetch(web, settings.url or "", known, self.folder, now, self.errands)
        if answer.status != 200 and not (answer.status == 304 and (before.etag or before.modified)):
            what = f"{parse_address(answer.url).authority} answers with status {answer.status}"
            raise UserError(what, "look at its address in ralph.yml if this lasts", who="network")
        return answer

    def _read(self, answer: WebAnswer, before: str | None, scratch: Path) -> dict[str, Any]:
        search = self.settings.kind == "search"
        request = {
            "kind": "json" if search else self.settings.kind,
            "url": state.without_query(answer.url),
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
        return state.keys(self.settings.url or "", self.endpoint)

    def _about(self) -> str:
        settings = self.settings
        return digest(settings.kind, settings.url or "", settings.query, settings.path)[:8]


__all__ = ["ALLOW", "ENDPOINT", "Errands", "Source", "WebSettings", "build"]

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
    errands: Errands | None = None,
) -> Source:
    """The observer of one source; `cache`: a folder for earlier answers, or None.

    Sources with the same `errands` request a host's robots.txt once per check, and report missing settings once.
    """
    allow = tuple(filter(None, re.split(r"[,\s]+", environment.get(ALLOW, ""))))
    folder = cache / "web" / settings.name if cache else None
    common = errands or Errands()
    speaks = common.speaks(settings.kind, settings.name)
    return Source(settings, environment.get(ENDPOINT, ""), allow, folder, errands=common, speaks=speaks)
