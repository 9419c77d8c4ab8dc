"""Asks a registry which releases a package has: an index of Python packages, or a registry of npm's.

Answers are kept with their ETag; within `every` nothing is asked at all. How many are asked, for how long and how
large an answer may be is bounded; what stays unasked is asked first the next time.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from ralph_mission.gateways.http.guard import Web, WebAnswer
from ralph_mission.gateways.packages.keeping import Kept, Shelf
from ralph_mission.gateways.packages.model import Ecosystem, Release
from ralph_mission.trouble import Trouble

CAP = 12_000_000
"""Bytes of one answer: the largest packages have some thousand releases."""
ACCEPT: Mapping[Ecosystem, str] = {
    "PyPI": "application/vnd.pypi.simple.v1+json, text/html;q=0.5",
    "npm": "application/vnd.npm.install-v1+json, application/json;q=0.5",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One package at one registry; `base` is never shown to anybody, for it may hold a password."""

    ecosystem: Ecosystem
    base: str = field(repr=False)
    name: str

    @property
    def url(self) -> str:
        """Where its releases are told."""
        name = quote(self.name, safe="@") if self.ecosystem == "npm" else f"{quote(self.name)}/"
        return f"{self.base.rstrip('/')}/{name}"


@dataclass(frozen=True, slots=True)
class Told:
    """What was found out; `failed` are the reasons of those that were asked in vain, `left` how many were not asked."""

    releases: Mapping[Question, tuple[Release, ...]]
    failed: Mapping[Question, str]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Registries:
    """Asks through `web`; `seconds` for all questions of one look together."""

    web: Web
    shelf: Shelf
    now: datetime
    every: timedelta
    seconds: float
    most: int

    def tell(self, questions: Iterable[Question]) -> Told:
        """The releases of every package that could be asked about."""
        releases: dict[Question, tuple[Release, ...]] = {}
        failed: dict[Question, str] = {}
        stale: list[tuple[Question, Kept | None]] = []
        for question in dict.fromkeys(questions):
            kept = self.shelf.get(question.url)
            if kept and timedelta(0) <= self.now - kept.asked < self.every:
                releases[question] = _restored(kept)
            else:
                stale.append((question, kept))
        deadline, asked = time.monotonic() + self.seconds, 0
        for question, kept in sorted(stale, key=lambda row: row[1].asked.timestamp() if row[1] else 0.0):
            if asked == self.most or time.monotonic() > deadline:
                break
            asked += 1
            try:
                releases[question] = self._ask(question, kept)
            except Trouble as trouble:
                failed[question] = trouble.what
        return Told(releases, failed, len(stale) - asked)

    def _ask(self, question: Question, kept: Kept | None) -> tuple[Release, ...]:
        address, credentials = apart(question.url)
        answer = self.web.get(
            address,
            etag=kept.etag if kept else "",
            modified=kept.modified if kept else "",
            headers={"Accept": ACCEPT[question.ecosystem], **credentials},
            cap=CAP,
        )
        if answer.status == 304 and kept:
            self.shelf.put(question.url, Kept(kept.facts, self.now, kept.etag, kept.modified))
            return _restored(kept)
        if answer.status != 200:
            raise Trouble(
                f"the registry answers {answer.status} for {question.name}", "look at the registry", "network"
            )
        found = _read(question, answer)
        facts = [[release.version, release.withdrawn, release.runtime] for release in found]
        self.shelf.put(question.url, Kept(facts, self.now, answer.etag, answer.modified))
        return found


def apart(address: str) -> tuple[str, Mapping[str, str]]:
    """An address without the user in it, and the header that says the same."""
    parts = urlsplit(address)
    user, mark, host = parts.netloc.rpartition("@")
    if not mark:
        return address, {}
    said = base64.b64encode(unquote(user).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {said}"}


def _restored(kept: Kept) -> tuple[Release, ...]:
    return tuple(Release(str(version), bool(gone), str(runtime)) for version, gone, runtime in kept.facts)


def _read(question: Question, answer: WebAnswer) -> tuple[Release, ...]:
    try:
        if question.ecosystem == "npm":
            return tuple(_npm(json.loads(answer.content)))
        if "json" in answer.content_type:
            return _merged(_simple(question.name, json.loads(answer.content)))
        return _merged(_page(question.name, answer.content.decode("utf-8", "replace")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, AssertionError):  # of html.parser
        what = f"what the registry says of {question.name} cannot be read"
        raise Trouble(what, "look at the registry", "network") from None


def _npm(document: Mapping[str, Any]) -> Iterator[Release]:
    for version, entry in document["versions"].items():
        engines = entry.get("engines") or {}
        node = engines.get("node", "") if isinstance(engines, dict) else ""
        yield Release(str(version), bool(entry.get("deprecated")), str(node))


def _simple(package: str, document: Mapping[str, Any]) -> Iterator[Release]:
    for file in document["files"]:
        version = _version_in(package, str(file["filename"]))
        if version:
            yield Release(version, bool(file.get("yanked")), str(file.get("requires-python") or ""))


def _page(package: str, text: str) -> Iterator[Release]:
    page = _Links()
    page.feed(text)
    for name, withdrawn, runtime in page.found:
        if version := _version_in(package, name):
            yield Release(version, withdrawn, runtime)


def _merged(files: Iterable[Release]) -> tuple[Release, ...]:
    """One release per version: withdrawn when all its files are."""
    found: dict[str, Release] = {}
    for file in files:
        before = found.get(file.version, file)
        found[file.version] = Release(file.version, before.withdrawn and file.withdrawn, before.runtime or file.runtime)
    return tuple(found.values())


def _version_in(package: str, filename: str) -> str:
    """Which version of the package a file is; "" of another one's, which a page may list as well."""
    try:
        name, version = (parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename)(filename)[:2]
        return str(version) if name == package else ""
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return ""


class _Links(HTMLParser):
    """(file name, withdrawn, requires-python) of each link on a page of the simple API."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "a" and told.get("href"):
            name = str(told["href"]).partition("#")[0].rpartition("/")[2]
            self.found.append((name, "data-yanked" in told, told.get("data-requires-python") or ""))
