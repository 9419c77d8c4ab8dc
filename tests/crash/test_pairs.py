"""Two things that go wrong in one life: in one cycle, or the second while it recovers from the first.

The first blow strikes one write of a small stage. What is written from there until it rests is noted, and each of it
is then struck by the second, in another life for each pair of kinds: so both orders of any two are among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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
LARGER = ("a monitoring issue is brought up to date", "a proposal is made")
PARTS = 4  # a test of each stage's first blows, so that none takes minutes
Blows = dict[int, str]


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("pairs")
    yield made
    shown(request.config, made)


class Life:
    """A stage, begun anew for each pair."""

    def __init__(self, harbour: Hub, name: str, table: Table) -> None:
        self.harbour, self.name, self.table = harbour, name, table
        self.start = Snapshot.of(harbour, "start")
        self.writes, self.expected = self._lived({})

    def seconds(self, first: Blows) -> list[Blows]:
        """The first blow and each that may follow it."""
        (at,) = first
        writes, _ = self._lived(first)
        return [{**first, n: kind} for n, what in enumerate(writes, 1) if n > at for kind in kinds(what)]

    def _lived(self, blows: Blows) -> tuple[list[str], dict[str, Any]]:
        struck = FailingHub.of(self.start.restore(self.harbour), blows)
        come_to_rest(struck)
        return struck.written, portrait(struck)

    def endure(self, blows: Blows) -> None:
        """Live through it, and compare."""
        struck = FailingHub.of(self.start.restore(self.harbour), blows)
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


def pairs(tmp_path, name: str, part: int, table: Table) -> Iterator[tuple[Life, Blows]]:
    """Every pair whose first blow is in this part."""
    with staged(tmp_path, name) as harbour:
        life = Life(harbour, name, table)
        firsts = [{n: kind} for n, what in enumerate(life.writes, 1) for kind in kinds(what)]
        for first in firsts[part::PARTS]:
            yield from ((life, both) for both in life.seconds(first))


@pytest.mark.long  # takes ten seconds on a slow machine
def test_a_death_and_then_an_answer_that_gets_lost_end_as_if_nothing_had_happened(tmp_path, table):
    with staged(tmp_path, SMALL) as harbour:
        Life(harbour, SMALL, table).endure({1: "death", 2: "502_applied"})


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("part", range(PARTS))
def test_any_two_faults_end_as_if_nothing_had_happened(tmp_path, part, table):
    for life, both in pairs(tmp_path, SMALL, part, table):
        life.endure(both)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", LARGER)
def test_a_death_and_any_other_fault_end_as_if_nothing_had_happened(tmp_path, name, part, table):
    for life, both in pairs(tmp_path, name, part, table):
        if {"death", "late"} & set(both.values()):
            life.endure(both)
