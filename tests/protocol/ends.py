"""What a world comes to once nobody disturbs it any more: cycles until one has nothing left to do.

Whoever is asked about a doubt looks, and answers through `mission/operations/control.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ralph_mission.adapters.forges import ForgeRefused, mark
from ralph_mission.errors import Missing
from ralph_mission.mission.operations import control
from tests.protocol import model_effects
from tests.protocol.ports import Memories
from tests.protocol.runner import Ask, End, Said
from tests.protocol.world import State, World

ROUNDS = 8  # cycles in which everything must have come to rest


@dataclass(frozen=True)
class Rest:
    """Where it came to, and the keys that a person had to settle; `trouble`: why it never did."""

    portrait: tuple[Any, ...]
    doubts: frozenset[str] = frozenset()
    problem: str = ""


@dataclass
class Ends:
    """The ends of one world, each worked out once."""

    world: World
    known: dict[tuple[int, str], Rest] = field(default_factory=dict)

    def of(self, state: State) -> Rest:
        """Where a state in which nobody runs comes to."""
        server = replace(self.world.server(state), hidden=frozenset())
        key = (self.world.number(server), state.head)
        if key not in self.known:
            self.known[key] = Undisturbed(self.world, *key).rest()
        return self.known[key]


@dataclass
class Undisturbed:
    """One runner, one server that always answers, and a person who looks after doubts."""

    world: World
    number: int
    head: str

    def rest(self) -> Rest:
        doubts, now = frozenset[str](), ()
        self._resume()
        for _ in range(ROUNDS):
            end = self._cycle()
            if end.outcome != "done":
                return Rest((), doubts, f"a last cycle ended: {end.outcome}")
            unknown = self.world.open_state(self._state).unknown
            doubts |= frozenset(unknown)
            if seen := [key for key in unknown if self._made(key)]:
                return Rest((), doubts, f"a person is asked about what is there to see: {seen}")
            for key in unknown:
                self._settle(key)
            before, now = now, portrait(self.world, self._state, doubts)
            if now == before and not unknown and not end.effects:
                return Rest(now, doubts)
        return Rest((), doubts, f"no rest after {ROUNDS} cycles")

    @property
    def _state(self) -> State:
        return State(server=self.number, head=self.head)

    def _resume(self) -> None:
        if self.head and self.world.history.commits[self.head].memory.header.paused:
            self.head = self.world.history.edited(self.head, paused=False)

    def _cycle(self) -> End:
        there = self.world.runner.at_next(self.world.runner.begin("the last"), self._said)
        assert isinstance(there.next, End), there
        return there.next

    def _said(self, ask: Ask) -> Said:
        if not ask.writes:
            return self.world.answer(self._state, ask)
        try:
            return Said(self._written(ask))
        except (ForgeRefused, Missing) as no:
            return Said(error=no)

    def _written(self, ask: Ask) -> Any:
        server = self.world.servers[self.number]
        if ask.name == "commit":
            new = self.world.history.advance(self.head, *ask.arguments)
            self.head = new.oid
            return new
        if ask.name == "show_dashboard":
            self.number = self.world.number(replace(server, anchor=ask.arguments[0]))
            return None
        after, receipt = model_effects.do(ask.arguments[0], server)
        self.number = self.world.number(after)
        return receipt

    def _made(self, key: str) -> int:
        """The number of what carries a key, 0 for none."""
        server = self.world.servers[self.number]
        remarks = (remark for thread in (*server.issues, *server.pulls) for remark in thread.remarks)
        numbers = ((t.number, t.body) for t in server.issues), ((r.id, r.body) for r in remarks)
        return next((number for one in numbers for number, body in one if mark(body) == key), 0)

    def _settle(self, key: str) -> None:
        """A person has looked, and it is not there."""
        store: Any = Memories("the last", self.world.history, self._asked)
        control.resolve(store, key, sent=False)

    def _asked(self, name: str, *arguments: Any) -> Any:
        said = self._said(Ask(name, arguments))
        if said.error is not None:
            raise said.error
        return said.value


def portrait(world: World, state: State, doubts: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """Everything that must be the same whatever went wrong, by keys, since numbers may differ.

    A remark that somebody had to settle may be missing: it is never sent again.
    """
    server, opened = world.server(state), world.open_state(state)
    threads = (*server.issues, *server.pulls)
    remarks = sorted(mark(r.body) for t in threads for r in t.remarks)
    return (
        tuple(sorted((mark(t.body), t.title, t.state, tuple(sorted(t.labels))) for t in threads)),
        tuple(key for key in remarks if key not in doubts),
        tuple(name for name, _ in server.branches),
        server.branch("main"),
        tuple(sorted((m.key, m.status.value, m.pending) for m in opened.missions)),
        (opened.claim, opened.effects, opened.unknown),
    )


def without(found: tuple[Any, ...], doubts: frozenset[str]) -> tuple[Any, ...]:
    """The same portrait without the remarks that were in doubt elsewhere."""
    return (found[0], tuple(key for key in found[1] if key not in doubts), *found[2:])
