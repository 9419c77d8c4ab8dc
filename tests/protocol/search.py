"""Breadth first through every state of a world; the first thing that is wrong is told with the shortest way there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from tests.protocol.cached_functions import SHARED, remembered
from tests.protocol.ends import Ends, without
from tests.protocol.invariants import wrong_at, wrong_in
from tests.protocol.mutants import Mutant
from tests.protocol.world import Config, State, World

STOP = "throws the kill switch"
Portraits = Mapping[tuple[str, ...], set]
"""The ends that are right, by what people did."""


@dataclass
class Found:
    """What a search came to. `wrong`: the steps to what should not be, and what that is; () where nothing is."""

    world: World
    states: int = 0
    transitions: int = 0
    depth: int = 0
    ends: int = 0
    unknown: int = 0
    wrong: tuple[str, ...] = ()
    portraits: dict[tuple[str, ...], set] = field(default_factory=dict)


@dataclass
class Search:
    """One search of one world. `right` are the ends to compare with; None: none are, they are only collected."""

    world: World
    right: Portraits | None = None
    came: dict[State, tuple[State, str] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.found = Found(self.world)

    def run(self) -> Found:
        """Look at every state that can be reached, until something is wrong."""
        ends, waiting = Ends(self.world), deque([(self.world.start, 0)])
        self.came[self.world.start] = None
        while waiting and not self.found.wrong:
            state, depth = waiting.popleft()
            self.found.depth = depth
            waiting.extend((after, depth + 1) for after in self._look(state, ends))
        self.found.states = len(self.came)
        return self.found

    def _look(self, state: State, ends: Ends) -> Iterator[State]:
        for what in (
            *wrong_in(self.world, state),
            *(self._at_the_end(state, ends) if state.idle and state.began else ()),
        ):
            self._tell(state, what)
        for step in self.world.steps(state) if not self.found.wrong else ():
            self.found.transitions += 1
            for what in wrong_at(self.world, state, step):
                self._tell(state, step.told, what)
            if step.after not in self.came:
                self.came[step.after] = (state, step.told)
                yield step.after

    def _at_the_end(self, state: State, ends: Ends) -> Iterable[str]:
        rest = ends.of(state)
        self.found.ends += 1
        self.found.unknown += bool(rest.doubts)
        if rest.problem:
            return [rest.problem]
        self.found.portraits.setdefault(state.moved, set()).add(rest.portrait)
        if self.right is None:
            return []
        right = {without(one, rest.doubts) for one in self.right.get(_without_stops(state.moved), ())}
        return [] if rest.portrait in right else [f"it ends otherwise than undisturbed: {_apart(rest.portrait, right)}"]

    def _tell(self, state: State, *what: str) -> None:
        if not self.found.wrong:
            self.found.wrong = (*self._way(state), *what)

    def _way(self, state: State) -> list[str]:
        way: list[str] = []
        while (came := self.came[state]) is not None:
            state, told = came
            way.append(told)
        return way[::-1]


def _apart(found: tuple, right: Iterable[tuple]) -> str:
    """The parts in which it differs from the one it is nearest to."""
    apart = [[(w, f) for w, f in zip(one, found, strict=True) if w != f] for one in right]
    nearest = min(apart, key=len, default=[])
    return (
        "; ".join(f"{wanted!r} became {came!r}" for wanted, came in nearest) or "people's actions led to no end at all"
    )


@cache
def undisturbed(config: Config) -> Portraits:
    """The ends that are right: of one runner, to whom nothing happens but what people do.

    Where they do something, they may also stop it half-way: a death is to come to no more than that.
    """
    calm = replace(config, name="", runners=1, crashes=0, doubts=0, late=0, fine=False)
    if config.moves and STOP not in config.moves:
        calm = replace(calm, moves=(*config.moves, STOP))
    return calm_ends(calm)


@cache
def calm_ends(calm: Config) -> Portraits:
    """The same for a world in which nothing goes wrong, whatever it is called."""
    with remembered():
        found = Search(World(calm)).run()
    assert not found.wrong, found.wrong
    right: dict[tuple[str, ...], set] = {}
    for moved, portraits in found.portraits.items():
        right.setdefault(_without_stops(moved), set()).update(portraits)
    return right


def _without_stops(moved: Iterable[str]) -> tuple[str, ...]:
    return tuple(move for move in moved if move != STOP)


@cache
def searched(config: Config) -> Found:
    """Everything that can happen in a world, compared with what happens undisturbed."""
    right = undisturbed(config)
    with remembered():
        return Search(World(config), right).run()


def hunted(mutant: Mutant) -> Found:
    """The same where one thing is wrong with the protocol, until that comes out."""
    right = undisturbed(mutant.config)
    with mutant.injected(), remembered({} if mutant.decides else SHARED):
        return Search(World(mutant.config), right).run()
