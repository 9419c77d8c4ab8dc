"""The versions that an advisory affects, by OSV's schema: events and versions.

Queries OSV for known vulnerabilities of versions (https://osv.dev, API version 1).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from ralph_mission.adapters.http.guard import Web
from ralph_mission.adapters.packages.model import CRATES, Ecosystem, parse, step
from ralph_mission.adapters.packages.registries import AnswerCache, CachedAnswer
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

LOWEST: Mapping[Ecosystem, str] = {"npm": "0.0.0-0", "PyPI": "0.dev0", CRATES: "0.0.0-0", "Go": "0.0.0-0", "Maven": "0"}
"""OSV's version "0": introduced from the start."""
Event = tuple[str, str]
"""An event (introduced, fixed, last_affected), and its version."""


@dataclass(frozen=True, slots=True)
class Affected:
    """`ranges` of OSV, each of them events in any order; single `versions`. Foreign text.

    Without any data every version counts as affected.
    """

    ranges: tuple[tuple[Event, ...], ...] = ()
    versions: tuple[str, ...] = ()

    def holds(self, ecosystem: Ecosystem, version: str) -> bool:
        """Whether a version is affected; True if unknown."""
        if version in self.versions or not (self.ranges or self.versions):
            return True
        return any(_between(ecosystem, events, version) for events in self.ranges)

    @property
    def fixes(self) -> Iterator[str]:
        """The versions that OSV's ranges end before."""
        yield from (version for events in self.ranges for kind, version in events if kind == "fixed")


UNKNOWN_VERSIONS = Affected()


def of_osv(advisory: Mapping[str, Any], ecosystem: Ecosystem, name: str) -> Affected:
    """An advisory's data for a package. Raises TypeError, AttributeError or ValueError if invalid."""
    entries = [entry for entry in advisory.get("affected") or () if _about(entry, ecosystem, name)]
    spans = (span for entry in entries for span in entry.get("ranges") or () if span.get("type") != "GIT")
    ranges = tuple(
        tuple((str(kind), str(at)) for event in span.get("events") or () for kind, at in event.items())
        for span in spans
    )
    return Affected(ranges, tuple(str(version) for entry in entries for version in entry.get("versions") or ()))


def _about(entry: Mapping[str, Any], ecosystem: Ecosystem, name: str) -> bool:
    package = entry.get("package") or {}
    return (package.get("ecosystem"), str(package.get("name", "")).lower()) == (ecosystem, name.lower())


def _between(ecosystem: Ecosystem, events: tuple[Event, ...], version: str) -> bool:
    """Whether the last event up to a version is an introduction."""
    mine: Any = parse(ecosystem, version)
    passed: list[tuple[Any, bool]] = []
    for kind, written in events:
        at: Any = parse(ecosystem, LOWEST[ecosystem] if written == "0" else written)
        if mine is None or at is None:
            return True
        if kind == "introduced" and mine >= at:
            passed.append((at, True))
        elif (kind == "fixed" and mine >= at) or (kind == "last_affected" and mine > at):
            passed.append((at, False))
    return bool(passed) and max(passed)[1]


OSV = "https://api.osv.dev"
STRANGE = "OSV does not answer as it should"
BATCH = 1_000
"""Packages per query, OSV's own limit."""
MOST = 200
"""Full advisories requested per check."""
SECONDS = 60.0
"""Seconds for all requests of a check; none starts later."""
SEVERITIES = ("low", "moderate", "medium", "high", "critical")
Subject = tuple[Ecosystem, str, str]
"""An ecosystem, a package, a version."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """One known vulnerability of one version. `fixed` is the nearest version without it, or "".

    `affected`: all affected versions, to judge others by.

    `severity` is low, moderate, high, critical or "" as the advisory's own database says. Foreign text.
    `bare`: only its name is known, as its content was unavailable.
    """

    id: str
    subject: Subject
    aliases: tuple[str, ...] = ()
    summary: str = ""
    severity: str = ""
    fixed: str = ""
    bare: bool = False
    affected: Affected = UNKNOWN_VERSIONS

    def holds(self, version: str) -> bool:
        """Whether another version of the package has it too."""
        return self.affected.holds(self.subject[0], version)


@dataclass(frozen=True, slots=True)
class Known:
    """A check's result. Missing parts are requested first next time: all answers are cached.

    `late` and `over`: advisories not requested in time, or beyond `MOST`; `unasked`: packages not requested from OSV in
    time; `more`: packages with more advisories than OSV returns at once; `bare`: advisories known only by name.
    """

    advisories: tuple[Advisory, ...] = ()
    late: int = 0
    over: int = 0
    unasked: int = 0
    more: int = 0

    @property
    def bare(self) -> int:
        """The number of advisories known only by name."""
        return sum(advisory.bare for advisory in self.advisories)

    def __str__(self) -> str:
        """All missing parts on one line, or ""."""
        missing = (
            (self.late, "advisories not asked in time"),
            (self.over, f"advisories beyond the {MOST} of one look"),
            (self.unasked, "packages whose advisories were not asked in time"),
            (self.more, "packages with more advisories than OSV returns at once"),
            (self.bare, "advisories of which OSV gives the name alone"),
        )
        return "; ".join(f"{what}: {number}" for number, what in missing if number)


@dataclass(frozen=True, slots=True)
class Advisories:
    """OSV at `endpoint`, queried at most once in `every` for the same versions, for `seconds` per check."""

    web: Web
    endpoint: str
    cache: AnswerCache
    now: datetime
    every: timedelta
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic

    def about(self, subjects: Iterable[Subject]) -> Known:
        """Their advisories. Raises UserError if OSV is unreachable."""
        until, ordered = self.clock() + self.seconds, sorted(set(subjects))
        named: list[tuple[Subject, str, str]] = []
        more = unasked = 0
        for start in range(0, len(ordered), BATCH):
            batch = ordered[start : start + BATCH]
            if (rows := self._batch(batch, until)) is None:
                unasked += len(batch)
                continue
            more += sum(row[1] for row in rows)
            named += [(s, str(id), str(at)) for s, row in zip(batch, rows, strict=False) for id, at in row[0]]
        return replace(self._details(named, until), unasked=unasked, more=more)

    def _details(self, named: Iterable[tuple[Subject, str, str]], until: float) -> Known:
        """Cached advisories need no request, so they do not count towards the limit."""
        found: list[Advisory] = []
        requests = late = over = 0
        for subject, id, modified in named:
            answer = self.cache.get(self._question(id, modified))
            if answer is None and requests >= MOST:
                over += 1
            elif answer is None and self.clock() >= until:
                late += 1
            else:
                requests += answer is None
                found.append(self._in_full(subject, id, modified, answer))
        return Known(tuple(advisory for advisory in found if advisory.id), late, over)

    def _batch(self, subjects: Sequence[Subject], until: float) -> list[tuple[list[list[str]], bool]] | None:
        """For each subject, (id, last modified) of its advisories, and whether there are more.

        None if it is too late for a request.
        """
        queries = [{"package": {"ecosystem": e, "name": n}, "version": v} for e, n, v in subjects]
        body = json.dumps({"queries": queries}).encode()
        question = f"{self.endpoint} paged {hashlib.sha256(body).hexdigest()}"
        entry = self.cache.get(question)
        if entry and timedelta(0) <= self.now - entry.asked < self.every:
            return [(row[0], bool(row[1])) for row in entry.facts]
        if self.clock() >= until:
            return None
        answer = self._json(self.web.post(f"{self.endpoint}/v1/querybatch", body, headers=JSON))
        try:
            rows = [
                ([[v["id"], v.get("modified", "")] for v in row.get("vulns") or ()], bool(row.get("next_page_token")))
                for row in answer["results"]
            ]
        except (TypeError, KeyError, AttributeError):
            raise UserError(STRANGE, "try later", "network") from None
        self.cache.put(question, CachedAnswer(rows, self.now))
        return rows

    def _question(self, id: str, modified: str) -> str:
        return f"{self.endpoint} {id} {modified}"

    def _in_full(self, subject: Subject, id: str, modified: str, answer: CachedAnswer | None) -> Advisory:
        """The advisory in full; it counts for this version even without its text."""
        try:
            if answer is None:
                answer = CachedAnswer(
                    self._json(self.web.get(f"{self.endpoint}/v1/vulns/{quote(id, safe='')}")), self.now
                )
                self.cache.put(self._question(id, modified), answer)
            return _advisory(subject, answer.facts)
        except (UserError, TypeError, KeyError, AttributeError, ValueError):
            return Advisory(id, subject, bare=True)

    def _json(self, answer: Any) -> dict[str, Any]:
        try:
            found = json.loads(answer.content) if answer.status == 200 else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UserError(f"{STRANGE} (status {answer.status})", "try later", "network")
        return found


JSON: Mapping[str, str] = {"Content-Type": "application/json"}


def _advisory(subject: Subject, advisory: Mapping[str, Any]) -> Advisory:
    if advisory.get("withdrawn"):
        return Advisory("", subject)
    severity = str((advisory.get("database_specific") or {}).get("severity", "")).lower()
    summary = str(advisory.get("summary") or advisory.get("details") or "").strip().partition("\n")[0]
    severity = severity if severity in SEVERITIES else ""  # it is shown in our words, so it is one of ours
    aliases = tuple(str(alias) for alias in advisory.get("aliases") or ())
    affected = of_osv(advisory, subject[0], subject[1])
    fixed = nearest(subject, affected.fixes, affected)
    return Advisory(str(advisory.get("id", "")), subject, aliases, summary, severity, fixed, affected=affected)


def nearest(subject: Subject, fixes: Iterable[str], affected: Affected) -> str:
    """The smallest unaffected version newer than the one in use."""
    best = ""
    for fixed in (fixed for fixed in fixes if not affected.holds(subject[0], fixed)):
        if step(subject[0], subject[2], fixed) and (not best or step(subject[0], fixed, best)):
            best = fixed
    return best
