"""Which versions an advisory is about, as OSV's schema tells it: events and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ralph_mission.gateways.packages.model import Ecosystem
from ralph_mission.gateways.packages.versions import parse

LOWEST: Mapping[Ecosystem, str] = {"npm": "0.0.0-0", "PyPI": "0.dev0"}
"""What OSV means by an introduction in "0"."""
Event = tuple[str, str]
"""What happened (introduced, fixed, last_affected), and in which version."""


@dataclass(frozen=True, slots=True)
class Affected:
    """`ranges` of OSV, each of them events in any order; single `versions`. Foreign text.

    Nothing at all: nobody told, so every version counts as affected.
    """

    ranges: tuple[tuple[Event, ...], ...] = ()
    versions: tuple[str, ...] = ()

    def holds(self, ecosystem: Ecosystem, version: str) -> bool:
        """Whether a version is affected; True where that cannot be told."""
        if version in self.versions or not (self.ranges or self.versions):
            return True
        return any(_between(ecosystem, events, version) for events in self.ranges)

    @property
    def fixes(self) -> Iterator[str]:
        """The versions that OSV's ranges end before."""
        yield from (version for events in self.ranges for kind, version in events if kind == "fixed")


UNTOLD = Affected()


def of_osv(told: Mapping[str, Any], ecosystem: Ecosystem, name: str) -> Affected:
    """What an advisory says of one package. Raises TypeError, AttributeError or ValueError when it is none."""
    entries = [entry for entry in told.get("affected") or () if _about(entry, ecosystem, name)]
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
    """Whether the latest event that a version is not before is an introduction."""
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
