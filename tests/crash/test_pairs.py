"""Two things that go wrong in one life: in one cycle, or the second while it recovers from the first.

The first blow strikes one write of a small stage. What is written from there until it rests is noted, and may be
struck by the second. Of all such pairs one life is lived, drawn by CRASH_SEED, for each two kinds of fault and sort of
write that the second strikes; and one at least for each first blow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.crash.calls import NAMES
from tests.crash.cases import SEED
from tests.crash.ends import differences, lost, portrait
from tests.crash.failing_writes import FailingHub, kinds
from tests.crash.history import audit
from tests.crash.limit_checks import beyond
from tests.crash.snapshots import Snapshot
from tests.crash.stages import come_to_rest, staged
from tests.crash.witness import duplicates, watched
from tests.figures import Table, shown
from tests.integration.hub import Hub

SMALL = "an approved proposal is carried on"
LARGER = ("a list is brought up to date", "a proposal is made")
Blows = dict[int, str]


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("pairs")
    yield made
    shown(request.config, made)


class Life:
    """A stage, begun anew for each pair."""

    def __init__(self, hub: Hub, name: str, table: Table) -> None:
        self.hub, self.name, self.table = hub, name, table
        self.start = Snapshot.of(hub, "start")
        self.writes, self.expected = self._lived({})

    def pairs(self, fits: Callable[[set[str]], object]) -> Iterator[Blows]:
        """Those that are lived, of the pairs of kinds that fit."""
        firsts = [(n, kind) for n, what in enumerate(self.writes, 1) for kind in kinds(what)]
        known, draw = set[tuple[str, str, str]](), random.Random(SEED)
        for at, kind in draw.sample(firsts, len(firsts)):
            writes, _ = self._lived({at: kind})
            after = [(n, what, one) for n, what in enumerate(writes, 1) if n > at for one in kinds(what)]
            fitting = [second for second in draw.sample(after, len(after)) if fits({kind, second[2]})]
            for place, (n, what, second) in enumerate(fitting):
                sort = kind, second, NAMES.sub("*", what)
                if place == 0 or sort not in known:
                    known.add(sort)
                    yield {at: kind, n: second}

    def _lived(self, blows: Blows) -> tuple[list[str], dict[str, Any]]:
        struck = FailingHub.of(self.start.restore(self.hub), blows)
        come_to_rest(struck)
        return struck.written, portrait(struck)

    def endure(self, blows: Blows) -> None:
        """Live through it, and compare."""
        struck = FailingHub.of(self.start.restore(self.hub), blows)
        with watched(struck) as witness:
            rest = come_to_rest(struck)
        found, memory = portrait(struck), audit(struck.fake.bare)
        twice, over = duplicates(struck), beyond(struck)
        missing = set(lost(self.expected, found)) - set(rest.doubts)  # of those a person was asked
        self.table.count(
            self.name,
            pairs=1,
            duplicates=len(twice),
            lost=len(missing),
            cap_breaches=len(over) + len(memory.breaches),
            not_converged=int(not rest.converged),
            unknown=len(set(rest.doubts)),
        )
        again = f"{struck.written}: {command(self.name, blows)}"
        assert not struck.blows, again
        assert rest.converged and rest.untold == (), again
        assert (twice, witness.wrong, over, memory.wrong, memory.breaches) == ([], [], [], [], []), again
        differ = {line.partition(":")[0] for line in differences(self.expected, found, rest.doubts, late=True)}
        assert differ <= _left_out(blows, struck.written), again


def command(name: str, blows: Blows) -> str:
    """What replays it alone."""
    told = " ".join(f"{number}={kind}" for number, kind in blows.items())
    return f'.venv/bin/python -m tests.crash --stage "{name}" --blows {told}'


def _left_out(blows: Blows, written: list[str]) -> set[str]:
    """What may differ for good: a label that was refused while a thread got it is not asked for again."""
    refused = [written[at - 1] for at, kind in blows.items() if kind in ("500", "rate_secondary")]
    return {"threads", "labels"} if any(what.endswith("/labels") for what in refused) else set()


@pytest.mark.long  # takes ten seconds on a slow machine
def test_a_death_and_then_an_answer_that_gets_lost_end_as_if_nothing_had_happened(tmp_path, table):
    with staged(tmp_path, SMALL) as hub:
        Life(hub, SMALL, table).endure({1: "death", 2: "502_applied"})


def endure_all(folder, name: str, fits: Callable[[set[str]], object], table: Table) -> None:
    with staged(folder, name) as hub:
        life = Life(hub, name, table)
        for both in life.pairs(fits):
            life.endure(both)


@pytest.mark.crash  # takes minutes
def test_any_two_faults_end_as_if_nothing_had_happened(tmp_path, table):
    endure_all(tmp_path, SMALL, bool, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", LARGER)
def test_a_death_and_any_other_fault_end_as_if_nothing_had_happened(tmp_path, name, table):
    endure_all(tmp_path, name, {"death", "late"}.intersection, table)
