"""Rounds of `ralph work` and `ralph review`, which are no cycles, struck like the calls of a stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from tests.crash.calls import calls, moves
from tests.crash.cases import attempt
from tests.crash.dying import dying
from tests.crash.fault_kinds import KINDS
from tests.crash.snapshots import Snapshot
from tests.crash.witness import duplicates, open_state, watched
from tests.figures import Table
from tests.integration.hub import Hub


@dataclass(frozen=True)
class Rounds:
    """One round, and rounds until nothing is left to do: they give the doubts that a person settled."""

    hub: Hub
    once: Callable[[], object]
    rest: Callable[[], Collection[str]]

    def struck(self, kinds: Iterable[str], table: Table, row: str, everywhere: bool = True) -> Iterator[str]:
        """Strike each call by each of these faults, or one call of each sort and phase. Gives which, after the end.

        Raises AssertionError where there is no such call: nothing would have been tried.
        """
        start, known = Snapshot.of(self.hub, "start"), set[tuple[str, ...]]()
        with dying(self.hub) as life, moves(self.hub, lambda: len(life.requests)) as moved:
            self.once()
        asked = calls(life.requests, moved)
        found = [(kind, call) for kind in kinds for call in asked if KINDS[kind].at(call)]
        assert found, f"no call to strike: {row}"
        for kind, call in found:
            if everywhere or (kind, *call.sort) not in known:
                known.add((kind, *call.sort))
                start.restore(self.hub)
                self._endure(kind, call, table, row)
                yield f"{kind} at {call}"

    def _endure(self, kind: str, call, table: Table, row: str) -> None:
        with watched(self.hub) as witness:
            with KINDS[kind].strike(self.hub, call) as found:
                attempt(self.once)
            doubts = set(self.rest())
        self.hub.fake.list_lag = 0
        twice, state = duplicates(self.hub), open_state(self.hub)
        table.count(row, cases=1, duplicates=len(twice), unknown=len(doubts))
        assert found.hit and (twice, witness.wrong) == ([], []), f"{kind} at {call}"
        assert (state.working, state.effects, state.unknown, state.claim) == ((), (), (), None), f"{kind} at {call}"
