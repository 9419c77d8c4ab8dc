"""A site on loopback, and a source of the web that looks at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ralph_mission.adapters.observers import look_once, web
from ralph_mission.adapters.observers.web import reading
from ralph_mission.mission.model.forge import Branch
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from tests.adapters.web_server import Server, reply, serving, site
from tests.helpers import NOON


@dataclass
class World:
    """A site on loopback and a source that looks at it, an hour later each time."""

    server: Server
    pages: dict[str, Any]
    folder: Path
    cursor: str = ""
    now: datetime = NOON
    cache: bool = True
    environment: dict[str, str] = field(default_factory=dict)

    def look(self, **settings: Any) -> Observation:
        """One look through the front door; what it remembers is remembered."""
        told = {"name": "rivals", "kind": "feed", "url": f"{self.server.url}/a", **settings}
        chosen = web.WebSettings.model_validate({key: value for key, value in told.items() if value is not None})
        environment = {web.ALLOW: self.server.place, **self.environment}
        source = unhurried(web.build(chosen, self.folder / "cache" if self.cache else None, environment))
        seen = look_once(source, ObservationContext(Branch("main", ""), self.now, None, self.cursor, str(self.folder)))
        self.cursor = seen.cursor or self.cursor
        self.now += timedelta(hours=1)
        return seen

    @property
    def asked(self) -> list[str]:
        return [path for path in self.server.paths if path != "/robots.txt"]


def unhurried(source: web.Source) -> web.Source:
    """The same with time enough on any machine, however busy."""
    return replace(source, seconds=600.0, patience=600.0)


@contextmanager
def looking(folder: Path) -> Iterator[World]:
    """A world without pages yet. What is sent is read in this process, in a tenth of the time."""
    pages: dict[str, Any] = {}
    with serving(site(pages)) as server, mock.patch.object(web, "run_foreign", _read_here):
        yield World(server, pages, folder)


def _read_here(command: object, *, stdin: bytes, **_: object) -> SimpleNamespace:
    request, _, content = stdin.partition(b"\n")
    try:
        answer = reading.read(json.loads(request), content)
    except reading.UnreadablePage as error:
        answer = {"complaint": str(error)}
    return SimpleNamespace(code=0, stdout=json.dumps(answer).encode())


def rss(*entries: tuple[str, str], extra: str = "") -> bytes:
    items = "".join(
        f"<item><guid>{name}</guid><title>{title}</title><link>https://example.org/{name}</link>"
        f"<pubDate>Mon, 04 May 2026 10:00:00 GMT</pubDate><description>{extra}</description></item>"
        for name, title in entries
    )
    return reply(
        f"<rss version='2.0'><channel><title>x</title>{items}</channel></rss>".encode(), Content_Type="text/xml"
    )


def titles(seen: Observation) -> list[str]:
    assert seen.status == "ok", seen.detail
    return [signal.title for signal in seen.signals]


def page(body: str) -> bytes:
    return reply(f"<!doctype html><html><body>{body}</body></html>".encode(), Content_Type="text/html; charset=utf-8")
