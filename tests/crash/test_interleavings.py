"""Two and three runners that wake together, in every order that their effects can come in: one acts, the others leave.

Between two effects a runner only reads, so a schedule of effects is all that there is to choose. Where a runner is
killed on the way, whoever comes next ends up where one undisturbed runner would have. Longer races, in which each
request is a step, are drawn by a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.crash.ceilings import beyond
from tests.crash.history import audit
from tests.crash.interleaving import LAST_SLOT, Race, begun, every_schedule, following, race, replay
from tests.crash.past import Snapshot
from tests.crash.stages import NOW, STAGES, come_to_rest, differences, lost, portrait
from tests.crash.witness import Witness, duplicates, watched
from tests.integration.hub import Hub
from tests.trust.table import Table, shown

QUIET = {"lost", "not_due"}
SMALL = ("an approved proposal is carried on", "a monitoring issue is brought up to date")
SEEDS = range(24)


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("interleavings")
    yield made
    shown(request.config, made)


@dataclass(frozen=True)
class Start:
    """A stage's beginning, and what one runner alone makes of it."""

    harbour: Hub
    name: str
    snapshot: Snapshot
    ends: tuple[dict[str, Any], ...]  # after one cycle, after two, until none is due
    rest: dict[str, Any]

    @classmethod
    def of(cls, harbour: Hub, name: str) -> Start:
        """Rehearse it."""
        snapshot, ends = Snapshot.of(harbour, "start"), []
        while harbour.cycle(NOW, force=False)[0].outcome == "done":
            ends.append(portrait(harbour))
        come_to_rest(harbour)
        return cls(harbour, name, snapshot, tuple(ends), portrait(harbour))

    def race(self, letters: str, pick, table: Table, deaths: int = 0, every: bool = False) -> Race:
        """One race from there, held to all that must be true of it."""
        self.snapshot.restore(self.harbour)
        with watched(self.harbour) as witness:
            ran = race(self.harbour, letters, pick, deaths, every)
            again = replay(self.name, ran.schedule, every)
            row = f"{self.name}, {len(letters)} runners{', request by request' if every else ''}"
            table.count(row, interleavings=1, steps=len(ran.schedule))
            if ran.killed:
                self._rests(table, row, again)
            else:
                self._one_acted(ran, again)
        self._held(witness, table, row, again)
        return ran

    def _one_acted(self, ran: Race, again: str) -> None:
        acted = [outcome for outcome, effects in ran.ends if effects]
        left = {outcome for outcome, effects in ran.ends if not effects}
        assert len(ran.ends) == len(ran.runners) and left <= QUIET, (ran.ends, again)
        assert acted and set(acted) == {"done"} and len(acted) <= len(self.ends), (ran.ends, again)
        assert differences(self.ends[len(acted) - 1], portrait(self.harbour)) == [], again

    def _rests(self, table: Table, row: str, again: str) -> None:
        rest = come_to_rest(self.harbour)
        found = portrait(self.harbour)
        doubted = set(rest.doubts)
        missing = set(lost(self.rest, found)) - doubted  # of those a person was asked
        table.count(row, killed=1, lost=len(missing), not_converged=int(not rest.converged), unknown=len(doubted))
        assert rest.converged and rest.untold == (), again
        assert differences(self.rest, found, rest.doubts, late=True) == [], again

    def _held(self, witness: Witness, table: Table, row: str, again: str) -> None:
        twice, memory, over = duplicates(self.harbour), audit(self.harbour.fake.bare), beyond(self.harbour)
        table.count(row, duplicates=len(twice), cap_breaches=len(over) + len(memory.breaches))
        assert (twice, witness.wrong, memory.wrong, memory.breaches, over) == ([], [], [], [], []), again


def every(tmp_path, name: str, letters: str, table: Table, deaths: int = 0) -> None:
    with begun(tmp_path, name) as harbour:
        start = Start.of(harbour, name)
        seen = [ran.schedule for ran in every_schedule(lambda pick: start.race(letters, pick, table, deaths))]
    assert len(seen) == len(set(seen)) > 1


def once(tmp_path, schedule: str, table: Table, deaths: int = 0) -> None:
    with begun(tmp_path, SMALL[0]) as harbour:
        ran = Start.of(harbour, SMALL[0]).race("AB", following(schedule), table, deaths)
    assert ran.schedule.startswith(schedule)


def test_of_two_that_wake_together_the_one_whose_claim_came_first_acts(tmp_path, table):
    once(tmp_path, "ABABAAA", table)


@pytest.mark.long  # takes five seconds
def test_what_a_killed_runner_left_is_made_up_for_by_the_other(tmp_path, table):
    once(tmp_path, "AAaB", table, deaths=1)


@pytest.mark.long  # takes ten seconds or more
def test_every_interleaving_of_two_runners_of_a_small_stage(tmp_path, table):
    every(tmp_path, SMALL[0], "AB", table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", [*STAGES, LAST_SLOT])
def test_every_interleaving_of_two_runners(tmp_path, name, table):
    every(tmp_path, name, "AB", table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", SMALL)
def test_every_interleaving_of_three_runners(tmp_path, name, table):
    every(tmp_path, name, "ABC", table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", SMALL)
def test_every_interleaving_of_two_runners_of_which_one_is_killed_anywhere(tmp_path, name, table):
    every(tmp_path, name, "AB", table, deaths=1)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("seed", SEEDS)
def test_runners_that_take_turns_request_by_request(tmp_path, seed, table):
    draw = random.Random(seed)
    name, letters = draw.choice([*STAGES, LAST_SLOT]), draw.choice(["AB", "ABC"])
    with begun(tmp_path, name) as harbour:
        start = Start.of(harbour, name)
        for deaths in (0, 1):
            start.race(letters, _drawn(draw, len(letters)), table, deaths, every=True)


def _drawn(draw: random.Random, runners: int):
    """Any that may go on; a death is rare enough to come after a while."""

    def pick(choices: list[str]) -> str:
        deaths = [choice for choice in choices if choice.islower()]
        alive = [choice for choice in choices if choice.isupper()]
        return draw.choice(deaths) if deaths and draw.random() < 0.01 * runners else draw.choice(alive)

    return pick
