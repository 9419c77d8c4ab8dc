"""News of a source as signals: where and when, and what strangers wrote as a quotation marked as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ralph_mission.adapters.observers.text import block, count_noun, one_line
from ralph_mission.adapters.observers.web.state import digest
from ralph_mission.config.observers import WebSettings
from ralph_mission.mission.model.mission import Signal
from ralph_mission.safety.secrets import redact

EXCERPT_CHARS = 600  # characters of an item
LINES = 12  # of a change
UNTRUSTED = "untrusted words of strangers, quoted"


def item(settings: WebSettings, found: Mapping[str, Any], hidden: Sequence[str], now: datetime) -> Signal:
    """One new item. `hidden` are values that must not be shown."""
    title, url, date = (redact(one_line(found[name], 500), hidden) for name in ("title", "url", "date"))
    said = redact(block(found["text"], EXCERPT_CHARS), hidden)
    essence = ("web", settings.name, digest(found["id"]))
    return _signal(settings, title or url or "an item without a title", url, date, f"{title}\n{said}", essence, "", now)


def change(
    settings: WebSettings, url: str, lines: Sequence[str], hidden: Sequence[str], now: datetime, to: str
) -> Signal:
    """A page or a value that changed; `lines` is the difference, empty when what stood there before is not known."""
    more = len(lines) - LINES
    kept = [redact(one_line(line, 200), hidden) for line in lines[:LINES]]
    said = "\n".join([*kept, *([f"… {count_noun(more, 'more line')}"] if more > 0 else [])])
    first = next((line[2:] for line in kept if line.startswith("+")), "")
    title = f"changed: {first}" if first else "changed"
    said = said or "(what it said before is not kept here)"
    return _signal(settings, title, url, f"{now:%Y-%m-%d}", said, ("web", settings.name), to, now)


def without_query(url: str) -> str:
    """An address without what may be a key: its query and its fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def keys(*urls: str) -> tuple[str, ...]:
    """Values in the queries of our own addresses, which may be keys."""
    return tuple(value for url in urls for _, value in parse_qsl(urlsplit(url).query) if len(value) >= 8)


def _signal(
    settings: WebSettings,
    title: str,
    url: str,
    date: str,
    said: str,
    essence: tuple[str, ...],
    which: str,
    now: datetime,
) -> Signal:
    quoted = "\n".join(f"> {line}" for line in said.strip().split("\n"))
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
        detail=block(f"{where} ({UNTRUSTED}):\n{quoted}"),
        age_days=_age(date, now),
        facts=(("source", settings.name), ("url", url), ("date", date)),
    )


def _age(date: str, now: datetime) -> float:
    with suppress(ValueError):
        when = datetime.fromisoformat(date)
        return max(0.0, (now - (when if when.tzinfo else when.replace(tzinfo=UTC))).total_seconds() / 86_400)
    return 0.0
