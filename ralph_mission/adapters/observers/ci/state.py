"""The state of the workflow observer between checks, as one line of JSON in memory."""

from __future__ import annotations

import json
from dataclasses import astuple
from datetime import datetime

from ralph_mission.values import dataclass

MOST = 60  # stored flaky failures, the newest


@dataclass(frozen=True, slots=True)
class ChanceFailure:
    """A step that failed on code on which it also passed; `tests`: those named in a report."""

    path: str
    workflow: str
    job: str
    step: str
    sha: str
    run: int
    at: datetime
    tests: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """One per commit, regardless of attempts."""
        return (self.path, self.job, self.step, self.sha)


@dataclass(frozen=True, slots=True)
class CiCursor:
    """The failed runs that were judged ("id.attempt"), the workflows that were red and since when, what failed by
    chance, and when second tries were looked for last."""

    seen: frozenset[str] = frozenset()
    red: tuple[tuple[int, str], ...] = ()
    chances: tuple[ChanceFailure, ...] = ()
    day: str = ""

    @classmethod
    def parse(cls, text: str) -> CiCursor:
        """The stored state; empty if unreadable."""
        try:
            document = json.loads(text)
            chances = tuple(_read_chance(*one) for one in document["chances"])
            return cls(
                frozenset(map(str, document["seen"])),
                tuple((int(flow), str(since)) for flow, since in document["red"]),
                chances,
                str(document["day"]),
            )
        except (ValueError, KeyError, TypeError):
            return cls()

    def dump(self) -> str:
        """As `parse` reads it."""
        newest = sorted(sorted(self.chances, key=lambda one: one.at)[-MOST:], key=lambda one: one.key)
        chances = [[*astuple(one)[:6], one.at.isoformat(), list(one.tests)] for one in newest]
        known = {"seen": sorted(self.seen), "red": list(self.red), "chances": chances, "day": self.day}
        return json.dumps(known, separators=(",", ":"))


def _read_chance(
    path: str, workflow: str, job: str, step: str, sha: str, run: int, at: str, tests: list[str]
) -> ChanceFailure:
    return ChanceFailure(path, workflow, job, step, sha, int(run), datetime.fromisoformat(at), tuple(map(str, tests)))
