"""A local forge with people who open, ask, answer and review, and the forge observer looking at it."""

from __future__ import annotations

from datetime import datetime, timedelta

from ralph_mission.adapters.forges.local import LocalForge, Person
from ralph_mission.adapters.observers import forge
from ralph_mission.errors import Missing
from ralph_mission.mission.model.effects import OpenIssue, marker
from ralph_mission.mission.model.forge import Issue, Pull, Pulse
from ralph_mission.mission.model.mission import Observation, Signal
from tests.adapters.observers.place import Place
from tests.helpers import NOON, commit, git


class Tale(LocalForge):
    """The local forge, told how the project is doing and what is gone, and counting what was read in full."""

    told: Pulse | None = None
    deleted: frozenset[int] = frozenset()  # between being listed and being looked at
    read: list[int]
    since: datetime

    def pulse(self, since: datetime, few: int = 0) -> Pulse:
        self.since = since
        return self.told or super().pulse(since, few)

    def issue(self, number: int) -> Issue:
        self.read.append(number)
        if number in self.deleted:
            raise Missing(f"there is no #{number}", "")
        return super().issue(number)

    def pull(self, number: int) -> Pull:
        self.read.append(number)
        return super().pull(number)


class World:
    """A local forge whose clock the test sets."""

    def __init__(self, place: Place) -> None:
        self.place, self.now = place, NOON
        self.forge = Tale(place.git, now=lambda: self.now)
        self.forge.read = []
        self.mara, self.joe = Person(self.forge, "mara"), Person(self.forge, "joe")

    def later(self, days: float) -> None:
        self.now += timedelta(days=days)

    def look(self, cursor: str = "", **settings: str) -> Observation:
        observer = forge.build(forge.ForgeSettings.model_validate(settings), self.forge, self.place.git)
        return observer.observe(self.place.context(cursor, now=self.now))

    def lookups(self, times: int, hours: float = 1) -> list[Observation]:
        """Look after look, each with the cursor of the one before."""
        made = [self.look()]
        for _ in range(times - 1):
            self.later(hours / 24)
            made.append(self.look(made[-1].cursor))
        return made

    def seen(self, kind: str, **settings: str) -> tuple[Signal, ...]:
        return tuple(signal for signal in self.look(**settings).signals if signal.kind == kind)

    def ours(self, title: str = "A proposal", body: str = "Shall we?", labels: tuple[str, ...] = ()) -> int:
        return self.forge.perform(OpenIssue("ab" * 8, title, f"{body}\n\n{marker('ab' * 8)}", labels)).number

    def pull(self, name: str = "topic") -> int:
        git(self.place.path, "checkout", "--quiet", "-b", name)
        commit(self.place.path, {name: "1"})
        git(self.place.path, "checkout", "--quiet", "main")
        return self.mara.open_pull(name, "main", "Add a thing")

    def push(self, name: str = "topic") -> None:
        git(self.place.path, "checkout", "--quiet", name)
        commit(self.place.path, {name: "2"})
        git(self.place.path, "checkout", "--quiet", "main")
