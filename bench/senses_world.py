"""A repository on the suite's fake GitHub with every sense at work, in a world where nothing happens.

All servers are in this process and on loopback; a cycle is a process of its own, as the action starts it.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from bench.senses_database import FILES, KINDS, Log
from tests.adapters.web_server import reply, serving, site
from tests.fakes.registry import Registry
from tests.fakes.registry import serving as registry_of
from tests.integration.hub import Hub, open_hub
from tests.postgres_server import Server

MODULES, PACKAGES, ISSUES, ITEMS = 500, 60, 40, 30
WATCHED = ("change", "new-since", "threshold")
"""Kinds of which nothing is found while nothing happens."""
PAUSE = timedelta(hours=7)
"""Longer than any answer is believed unasked."""
ALONE: Mapping[str, Any] = {"code": {}, "forge": {}}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one cycle. `forge`: requests to GitHub, git's too. The others are what the senses cost beside it:

    requests to registries, OSV and sites, how many were answered by 304, bytes of the answers; statements of SQL, and
    the milliseconds that the server took for them.
    """

    milliseconds: float
    forge: int
    requests: int
    unchanged: int
    bytes: int
    statements: int
    database: float


@dataclass
class World:
    """The hub, the servers around it, and what a cycle of it costs."""

    hub: Hub
    registry: Registry
    log: Log
    statuses: list[int]  # of the site's answers
    slow: str
    sent: int = 0

    def cycle(self, after: timedelta = PAUSE) -> Cost:
        """One cycle, some time after the last. Ends the benchmark when it failed, or when a sense did."""
        self.hub.now += after
        self.hub.fake.clock.now = max(self.hub.now, self.hub.fake.clock.now)
        for journal in (self.hub.fake.journal, self.registry.journal, self.statuses):
            journal.clear()
        self.sent, place, start = 0, self.log.written(), time.perf_counter()
        with mock.patch.object(socket.socket, "sendall", self._counted(socket.socket.sendall)):
            process = self.hub.process("--force")
            out, err = process.communicate()
        took = (time.perf_counter() - start) * 1000
        _whole(process.returncode, out, err)
        told = [status for _, _, status in self.registry.journal] + self.statuses
        forge = len(self.hub.fake.journal)
        return Cost(took, forge, len(told), told.count(304), self.sent, *self.log.since(place))

    def _counted(self, sendall: Callable[..., None]) -> Callable[..., None]:
        """Whatever this process sends is an answer: those who ask are other processes."""
        forge = urlsplit(self.hub.fake.url).port

        def counted(plug: socket.socket, content: Any, *flags: int) -> None:
            self.sent += len(content) if plug.getsockname()[1] != forge else 0
            sendall(plug, content, *flags)

        return counted


def _whole(code: int, out: bytes, err: bytes) -> None:
    if code != 0:
        raise SystemExit(f"a cycle failed: exit {code}\n{err.decode()}")
    for line in json.loads(out)["observers"]:
        if line["status"] == "unavailable":
            raise SystemExit(f"{line['name']} is unavailable: {line['detail']}")


@contextmanager
def quiet(folder: Path, database: Server, senses: bool = True, pause: float = 0.0) -> Iterator[World]:
    """The world before its first cycle; without `senses`, code and forge are all that is looked at.

    `pause`: seconds that one page of the site takes to answer, where it is looked at.
    """
    folder.mkdir()
    statuses: list[int] = []
    with ExitStack() as stack:
        pages = {f"/{name}": _tagged(body, kind, statuses) for name, (body, kind) in PAGES.items()}
        pages["/slow"] = _late(pages["/page"], pause)
        web = stack.enter_context(serving(site({**pages, "/robots.txt": _missing(statuses)})))
        registry = stack.enter_context(registry_of(Registry(python=_packages())))
        slow = f"{web.url}/slow" if pause else ""
        config: dict[str, Any] = {"hands": {"fixers": []}, "observers": _observers(web.url, slow) if senses else ALONE}
        hub = stack.enter_context(open_hub(folder, _files(), json.dumps(config)))
        hub.fake.validate = False
        hub.actions |= {
            "DATABASE_URL": database.url(user="reader"),
            "PIP_INDEX_URL": registry.index,
            "OSV_API_URL": registry.url,
            "RALPH_WEB_ALLOW": web.place,
        }
        mara = hub.person("mara", "read")
        for number in range(ISSUES):
            mara.create_issue(f"Buoy {number} has drifted", "Ten metres to the east.")
        yield World(hub, registry, Log(database), statuses, slow)


def _files() -> dict[str, str | bytes]:
    modules = {f"src/part{n % 20}/module{n}.py": f"VALUE = {n}\n" * 40 for n in range(MODULES)}
    pins = "".join(f"{name}==1.0.0\n" for name in _packages())
    return {**modules, "requirements.txt": pins, **FILES}


def _packages() -> dict[str, dict[str, dict[str, str]]]:
    return {f"buoy-{number}": {"1.0.0": {}} for number in range(PACKAGES)}


def _observers(web: str, slow: str) -> dict[str, Any]:
    sources = [
        {"name": "feed", "kind": "feed", "url": f"{web}/feed"},
        {"name": "list", "kind": "json", "url": f"{web}/json", "path": "items[].{id: id, title: title}"},
        {"name": "page", "kind": "page", "url": f"{web}/page"},
        *([{"name": "slow", "kind": "page", "url": slow}] if slow else []),
    ]
    check = {
        "name": "check",
        "run": "cat src/*/*.py | grep -n ALARM",
        "kind": "bug",
        "parse": {"regex": "(?P<message>.+)"},
    }
    return {
        "code": {},
        "commands": [check],
        "database": {"prisma_schema": "prisma", "watches": [{"name": kind, **KINDS[kind]} for kind in WATCHED]},
        "dependencies": {},
        "forge": {},
        "web": sources,
    }


# --- a site whose answers have tags -----------------------------------------------------

_ITEMS = [{"id": number, "title": f"News {number}"} for number in range(ITEMS)]
_FEED = "".join(f"<item><guid>{one['id']}</guid><title>{one['title']}</title></item>" for one in _ITEMS)
PAGES: Mapping[str, tuple[str, str]] = {
    "feed": (f"<rss version='2.0'><channel>{_FEED}</channel></rss>", "text/xml"),
    "json": (json.dumps({"items": _ITEMS}), "application/json"),
    "page": (f"<main>{'<p>The terms have not changed since.</p>' * 200}</main>", "text/html"),
}
Page = Callable[[bytes], bytes]


def _tagged(body: str, kind: str, statuses: list[int]) -> Page:
    def page(head: bytes) -> bytes:
        unchanged = b'if-none-match: "as it was"' in head.lower()
        statuses.append(304 if unchanged else 200)
        if unchanged:
            return bytes(reply(b"", "304 Not Modified", ETag='"as it was"'))
        return bytes(reply(body.encode(), Content_Type=kind, ETag='"as it was"'))

    return page


def _late(page: Page, pause: float) -> Page:
    def late(head: bytes) -> bytes:
        time.sleep(pause)
        return page(head)

    return late


def _missing(statuses: list[int]) -> Page:
    def page(head: bytes) -> bytes:
        statuses.append(404)
        return bytes(reply(b"", "404 Not Found"))

    return page
