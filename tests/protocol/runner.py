"""The real `run_cycle`, one step at a time: every question and every action is answered by whoever holds the tape.

A cycle is a function of what it was told, so a runner half-way through one is the list of its answers. It is run
again from its beginning to learn what it asks next; what was learned is kept, for every state in which it was told
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.mission import cycle
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot
from tests.protocol.ports import Memories, Setting, ports_of
from tests.protocol.register import History

WRITES = ("commit", "send", "show_dashboard")


@dataclass(frozen=True)
class Ask:
    """What a runner wants of the world."""

    name: str
    arguments: tuple[Any, ...] = ()

    @property
    def writes(self) -> bool:
        return self.name in WRITES

    def __str__(self) -> str:
        subject = self.arguments[0] if self.arguments else ""
        told = subject.message if isinstance(subject, MemoryBatch) else type(subject).__name__
        return f"{self.name} {told}" if self.writes else self.name


@dataclass(frozen=True)
class Said:
    """An answer. `error`: it is raised."""

    value: Any = None
    error: Exception | None = None

    @property
    def key(self) -> Hashable:
        """Two answers of one key are the same answer. A recollection is told by its commit."""
        if self.error is not None:
            return type(self.error), str(self.error)
        value = self.value
        return (value.oid, value.human_edits) if isinstance(value, MemorySnapshot) else value


@dataclass(frozen=True)
class End:
    """How a cycle ended: its outcome, or the trouble it ran into."""

    outcome: str
    effects: int = 0


@dataclass(eq=False)
class Moment:
    """A place in a cycle: who runs it, everything told until now, and what comes next once that is known."""

    holder: str
    told: tuple[Said, ...] = ()
    next: Ask | End | None = None
    then: dict[Hashable, Moment] = field(default_factory=dict)

    def after(self, said: Said) -> Moment:
        key = said.key
        if key not in self.then:
            self.then[key] = Moment(self.holder, (*self.told, said))
        return self.then[key]

    def __repr__(self) -> str:
        return f"{self.holder} before {self.next}"


class Waits(BaseException):
    """A runner wants what is not answered on the way."""


@dataclass
class Tape:
    """Replays what was told until `moment`, then moves that on: questions that are `live` are answered at once."""

    moment: Moment
    live: Callable[[Ask], Said | None]
    at: int = 0
    told: tuple[Said, ...] = ()

    def __post_init__(self) -> None:
        self.told = self.moment.told

    def ask(self, name: str, *arguments: Any) -> Any:
        if self.at == len(self.told):
            self._move_on(Ask(name, arguments))
        said = self.told[self.at]
        self.at += 1
        if said.error is not None:
            raise said.error
        return said.value

    def _move_on(self, ask: Ask) -> None:
        self.moment.next = ask
        said = self.live(ask)
        if said is None:
            raise Waits(str(ask))
        self.moment = self.moment.after(said)
        self.told = self.moment.told


@dataclass
class Runner:
    """Runs cycles of one world, and knows every moment it has ever been at."""

    setting: Setting
    history: History
    replays: int = 0
    begun: dict[str, Moment] = field(default_factory=dict)

    def begin(self, holder: str) -> Moment:
        """The beginning of a cycle of somebody's."""
        return self.begun.setdefault(holder, Moment(holder))

    def next_of(self, moment: Moment) -> Ask | End | None:
        """What it asks there, or how it ended."""
        return self.at_next(moment, lambda ask: None).next

    def at_next(self, moment: Moment, live: Callable[[Ask], Said | None]) -> Moment:
        """Where it comes to when it asks only what is `live`: before any other question, or at the end."""
        while True:
            if moment.next is None:
                moment = self._replayed(moment, live)
            if isinstance(moment.next, End) or (said := live(moment.next)) is None:
                return moment
            moment = moment.after(said)

    def _replayed(self, moment: Moment, live: Callable[[Ask], Said | None]) -> Moment:
        self.replays += 1
        tape = Tape(moment, live)
        ports = ports_of(self.setting, Memories(moment.holder, self.history, tape.ask), tape.ask)
        try:
            report, _ = cycle.run_cycle(ports, self.setting.settings, cycle.CycleRequest("cron", force=True))
            tape.moment.next = End(report.outcome, len(report.effects))
        except Waits:
            pass
        except UserError as problem:
            tape.moment.next = End(f"trouble: {problem.what}")
        return tape.moment
