"""A package's releases, queried from a Python package index or an npm registry, and cached.

If the lock file names no registry, it comes from the owner's environment, the project's settings for its package
manager or the package manager itself. No registry is hard-coded here.

Answers are cached by URL with their ETag; within `every` nothing is requested. The number of requests, their time and
the size of answers are limited; remaining packages come first next time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import re
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, field
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.http.guard import Web, WebAnswer
from ralph_mission.adapters.packages.model import Ecosystem, Package, Release
from ralph_mission.adapters.sandbox.process import run_foreign
from ralph_mission.errors import UserError
from ralph_mission.safety.address import PORTS
from ralph_mission.values import dataclass

CACHED_ANSWERS = 3_000
"""Cached answers; a lock file has some hundred packages."""
CACHE_CAP = 16_000_000  # bytes of one of them


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """`facts`: plain JSON; `asked`: the time of the server's last validation."""

    facts: Any
    asked: datetime
    etag: str = ""
    modified: str = ""


class AnswerCache:
    """Such answers by request, in a folder; None stores nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._cache = FileCache(folder, CACHED_ANSWERS, CACHE_CAP)
        self.tidy = self._cache.tidy

    def get(self, question: str) -> CachedAnswer | None:
        """The cached answer, or None if missing or unreadable."""
        with suppress(ValueError, TypeError, KeyError):
            found = self._cache.get(_file_name(question))
            return CachedAnswer(**{**found, "asked": datetime.fromisoformat(found["asked"])})
        return None

    def put(self, question: str, answer: CachedAnswer) -> None:
        """Keep it."""
        self._cache.put(_file_name(question), {**asdict(answer), "asked": answer.asked.isoformat()})


def _file_name(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:40]


NAMES: Mapping[Ecosystem, tuple[str, ...]] = {
    "PyPI": ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"),
    "npm": ("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER"),
}
"""Variables that configure package managers; the first one set counts."""
SETTINGS = (".npmrc", ".yarnrc", ".yarnrc.yml", "uv.toml")
ALLOW = "RALPH_WEB_ALLOW"
"""Hosts, or host:port, that may be private."""
OWN = ("OSV_API_URL", ALLOW)
SECONDS = 60.0


def is_index_file(path: str) -> bool:
    """Whether this is a file that may name a registry."""
    return posixpath.basename(path) in SETTINGS


def registry(package: Package, texts: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The base URL for a package; "" if only the package manager itself knows (see `built_in`)."""
    if package.registry:
        return package.registry
    folder = posixpath.dirname(package.path)
    scope = package.name.partition("/")[0] if package.name.startswith("@") else ""
    if scope and (found := _npmrc(texts.get(posixpath.join(folder, ".npmrc"), ""), f"{scope}:registry")):
        return found
    configured = next((environment[name] for name in NAMES[package.ecosystem] if environment.get(name)), "")
    return (configured or _configured_index(package.ecosystem, folder, texts)).rstrip("/")


def built_in(ecosystem: Ecosystem, scratch: Path) -> str:
    """The registry that pip or npm reports, or ""."""
    if ecosystem == "npm":
        done = run_foreign(("npm", "config", "get", "registry"), cwd=scratch, home=scratch / "home", timeout=SECONDS)
        found = re.search(r"^https?://\S+$", done.stdout.decode(errors="replace"), re.MULTILINE)
        return found[0].rstrip("/") if found else ""
    command = (sys.executable, "-m", "pip", "help", "install")
    done = run_foreign(command, cwd=scratch, home=scratch / "home", timeout=SECONDS, extra_env={"COLUMNS": "200"})
    found = re.search(r"--index-url\b.{0,200}?\(default\s+(https?://[^\s)]+)\)", done.stdout.decode(), re.DOTALL)
    return found[1].rstrip("/") if found else ""


def hosts(environment: Mapping[str, str], *more: str) -> tuple[str, ...]:
    """host:port of every registry in the environment: set by the owner, so they may be private."""
    addresses = [environment.get(name, "") for names in NAMES.values() for name in names]
    places = [_place(address) for address in (*addresses, *more)]
    named = re.split(r"[\s,]+", environment.get(ALLOW, ""))
    return tuple(dict.fromkeys(place for place in (*places, *named) if place))


def _place(address: str) -> str:
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.hostname and (port := parts.port or PORTS.get(parts.scheme)):
            host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
            return f"{host}:{port}"  # no other port of it: those are for the repository's files to name
    return ""


def _configured_index(ecosystem: Ecosystem, folder: str, texts: Mapping[str, str]) -> str:
    def text(name: str) -> str:
        return texts.get(posixpath.join(folder, name), "") or texts.get(name, "")

    if ecosystem == "npm":
        berry = re.search(r"^npmRegistryServer:\s*[\"']?([^\"'\s]+)", text(".yarnrc.yml"), re.MULTILINE)
        classic = re.search(r"^registry\s+[\"']?([^\"'\s]+)", text(".yarnrc"), re.MULTILINE)
        return _npmrc(text(".npmrc"), "registry") or (berry[1] if berry else "") or (classic[1] if classic else "")
    return _uv(text("uv.toml"), ()) or _uv(text("pyproject.toml"), ("tool", "uv"))


def _npmrc(text: str, key: str) -> str:
    found = re.search(rf"^[ \t]*+{re.escape(key)}[ \t]*+=[ \t]*[\"']?(https?://[^\"'\s]+)", text, re.MULTILINE)
    return found[1].rstrip("/") if found else ""


def _uv(text: str, section: tuple[str, ...]) -> str:
    try:
        settings = tomllib.loads(text)
        for part in section:
            settings = settings.get(part, {})
        default = next((str(i["url"]) for i in settings.get("index", ()) if i.get("default")), "")
        return default or str(settings.get("index-url", ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""


def own_environment() -> Mapping[str, str]:
    """Our variables that name registries or OSV."""
    names = [name for group in NAMES.values() for name in group]
    return {name: os.environ[name] for name in (*names, *OWN) if os.environ.get(name)}


CAP = 12_000_000
"""Bytes of one answer: the largest packages have some thousand releases."""
ACCEPT: Mapping[Ecosystem, str] = {
    "PyPI": "application/vnd.pypi.simple.v1+json, text/html;q=0.5",
    "npm": "application/vnd.npm.install-v1+json, application/json;q=0.5",
}


@dataclass(frozen=True, slots=True)
class RegistryQuestion:
    """A package at a registry; `base` is never shown, as it may contain a password."""

    ecosystem: Ecosystem
    base: str = field(repr=False)
    name: str

    @property
    def url(self) -> str:
        """The URL of its releases."""
        name = quote(self.name, safe="@") if self.ecosystem == "npm" else f"{quote(self.name)}/"
        return f"{self.base.rstrip('/')}/{name}"


@dataclass(frozen=True, slots=True)
class ReleaseAnswers:
    """The results; `failed`: the reasons of failed requests, `left`: the number not requested."""

    releases: Mapping[RegistryQuestion, tuple[Release, ...]]
    failed: Mapping[RegistryQuestion, str]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Registries:
    """Asks through `web`; `seconds` for all requests of a check together."""

    web: Web
    cache: AnswerCache
    now: datetime
    every: timedelta
    seconds: float
    most: int

    def tell(self, questions: Iterable[RegistryQuestion]) -> ReleaseAnswers:
        """The releases of every package that could be queried."""
        releases: dict[RegistryQuestion, tuple[Release, ...]] = {}
        failed: dict[RegistryQuestion, str] = {}
        stale: list[tuple[RegistryQuestion, CachedAnswer | None]] = []
        for question in dict.fromkeys(questions):
            answer = self.cache.get(question.url)
            if answer and timedelta(0) <= self.now - answer.asked < self.every:
                releases[question] = _restore(answer)
            else:
                stale.append((question, answer))
        deadline, requests = time.monotonic() + self.seconds, 0
        for question, answer in sorted(stale, key=lambda row: row[1].asked.timestamp() if row[1] else 0.0):
            if requests == self.most or time.monotonic() > deadline:
                break
            requests += 1
            try:
                releases[question] = self._ask(question, answer)
            except UserError as problem:
                failed[question] = problem.what
        return ReleaseAnswers(releases, failed, len(stale) - requests)

    def _ask(self, question: RegistryQuestion, earlier: CachedAnswer | None) -> tuple[Release, ...]:
        address, credentials = apart(question.url)
        answer = self.web.get(
            address,
            etag=earlier.etag if earlier else "",
            modified=earlier.modified if earlier else "",
            headers={"Accept": ACCEPT[question.ecosystem], **credentials},
            cap=CAP,
        )
        if answer.status == 304 and earlier:
            self.cache.put(question.url, CachedAnswer(earlier.facts, self.now, earlier.etag, earlier.modified))
            return _restore(earlier)
        if answer.status != 200:
            raise UserError(
                f"the registry answers {answer.status} for {question.name}", "look at the registry", "network"
            )
        found = _read(question, answer)
        facts = [[release.version, release.withdrawn, release.runtime] for release in found]
        self.cache.put(question.url, CachedAnswer(facts, self.now, answer.etag, answer.modified))
        return found


def apart(address: str) -> tuple[str, Mapping[str, str]]:
    """A URL without its user, and the equivalent header."""
    parts = urlsplit(address)
    user, mark, host = parts.netloc.rpartition("@")
    if not mark:
        return address, {}
    encoded = base64.b64encode(unquote(user).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {encoded}"}


def _restore(answer: CachedAnswer) -> tuple[Release, ...]:
    return tuple(Release(str(version), bool(gone), str(runtime)) for version, gone, runtime in answer.facts)


def _read(question: RegistryQuestion, answer: WebAnswer) -> tuple[Release, ...]:
    try:
        if question.ecosystem == "npm":
            return tuple(_npm(json.loads(answer.content)))
        if "json" in answer.content_type:
            return _merge_releases(_simple(question.name, json.loads(answer.content)))
        return _merge_releases(_page(question.name, answer.content.decode("utf-8", "replace")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, AssertionError):  # of html.parser
        what = f"what the registry says of {question.name} cannot be read"
        raise UserError(what, "look at the registry", "network") from None


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


def _merge_releases(files: Iterable[Release]) -> tuple[Release, ...]:
    """One release per version: withdrawn if all its files are."""
    found: dict[str, Release] = {}
    for file in files:
        before = found.get(file.version, file)
        found[file.version] = Release(file.version, before.withdrawn and file.withdrawn, before.runtime or file.runtime)
    return tuple(found.values())


def _version_in(package: str, filename: str) -> str:
    """A file's version of the package; "" for another package's, which a page may also list."""
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
        attributes = dict(attrs)
        if tag == "a" and attributes.get("href"):
            name = str(attributes["href"]).partition("#")[0].rpartition("/")[2]
            self.found.append((name, "data-yanked" in attributes, attributes.get("data-requires-python") or ""))
