"""Two and three runners that wake together, in every order of effects that matters: one acts, the others leave.

Between two effects a runner only reads, so a schedule of effects is all that there is to choose. Where a runner is
killed on the way, whoever comes next ends up where one undisturbed runner would have. Longer races, in which each
request is a step, are drawn by a seed. `ralph publish` is in no concurrency group with a cycle: it may act beside one,
and waits for its turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.mission import execute
from tests.crash.ends import differences, lost, portrait
from tests.crash.history import audit
from tests.crash.interleaving import LAST_SLOT, PUBLISHER, TEXTS, Race, begun, every_schedule, following, race, replay
from tests.crash.limit_checks import beyond
from tests.crash.snapshots import Snapshot
from tests.crash.stages import EVERY, NOW, STAGES, Rest, come_to_rest
from tests.crash.witness import Witness, duplicates, watched
from tests.figures import Table, shown
from tests.integration.hub import Hub

QUIET = {"lost", "not_due"}
SMALL = ("an approved proposal is carried on", "a list is brought up to date")
NETWORKS = (TEXTS, "approved content goes to three networks, one of which fails")
DRAWN = (*STAGES, LAST_SLOT, TEXTS)
SEEDS = range(6)
FEW = 2  # interruptions: with any number there are too many schedules of longer races


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("interleavings")
    yield made
    shown(request.config, made)


@dataclass(frozen=True)
class Start:
    """A stage's beginning, and what one runner alone makes of it."""

    hub: Hub
    name: str
    snapshot: Snapshot
    ends: tuple[dict[str, Any], ...]  # after one cycle, after two, until none is due
    rest: dict[str, Any]

    @classmethod
    def of(cls, hub: Hub, name: str) -> Start:
        """Rehearse it."""
        snapshot, ends = Snapshot.of(hub, "start"), []
        while hub.cycle(NOW, force=False)[0].outcome == "done":
            ends.append(portrait(hub))
        come_to_rest(hub)
        EVERY[name].expect(hub)
        return cls(hub, name, snapshot, tuple(ends), portrait(hub))

    def race(self, letters: str, pick, table: Table, deaths: int = 0, every: bool = False) -> Race:
        """One race from there, held to all that must be true of it."""
        self.snapshot.restore(self.hub)
        with watched(self.hub) as witness:
            ran = race(self.hub, letters, pick, deaths, every)
            again = replay(self.name, ran.schedule, every)
            row = self.row(letters, every)
            table.count(row, interleavings=1, steps=len(ran.schedule))
            if ran.killed or PUBLISHER in letters:
                self._rests(ran, table, row, again)
            else:
                self._one_acted(ran, again)
        self._held(witness, table, row, again)
        return ran

    def row(self, letters: str, every: bool) -> str:
        """Its row in the table."""
        who = "`ralph publish` beside a cycle" if PUBLISHER in letters else f"{len(letters)} runners"
        return f"{self.name}, {who}{', request by request' if every else ''}"

    def _one_acted(self, ran: Race, again: str) -> None:
        acted = [outcome for outcome, _ in ran.ends if outcome not in QUIET]  # what is on the dashboard is no effect
        idle = [effects for outcome, effects in ran.ends if outcome in QUIET]
        assert len(ran.ends) == len(ran.runners) and not any(idle), (ran.ends, again)
        assert acted and set(acted) == {"done"} and len(acted) <= len(self.ends), (ran.ends, again)
        assert differences(self.ends[len(acted) - 1], portrait(self.hub)) == [], again

    def _rests(self, ran: Race, table: Table, row: str, again: str) -> None:
        rest = come_to_rest(self.hub)
        found = portrait(self.hub)
        missing = lost(self.rest, found, (*rest.doubts, *rest.posts))  # of those a person was asked
        unknown = len(set(rest.doubts))
        open_ends = int(not rest.converged)
        table.count(row, killed=int(ran.killed), lost=len(missing), not_converged=open_ends, unknown=unknown)
        assert rest.converged and rest.untold == () and (ran.killed or not unknown), (rest, again)
        assert (missing, self._otherwise(rest, found)) == ([], []), again

    def _otherwise(self, rest: Rest, found: dict[str, Any]) -> list[str]:
        """How the end differs; where a post is in doubt, it may be missing, and the receipts say so."""
        differ = differences(self.rest, found, rest.doubts, late=True)
        return [line for line in differ if not (rest.posts and line.startswith(("posts:", "comments:", "completed:")))]

    def _held(self, witness: Witness, table: Table, row: str, again: str) -> None:
        twice, memory, over = duplicates(self.hub), audit(self.hub.fake.bare), beyond(self.hub)
        table.count(row, duplicates=len(twice), cap_breaches=len(over) + len(memory.breaches))
        assert (twice, witness.wrong, memory.wrong, memory.breaches, over) == ([], [], [], [], []), again


def every(tmp_path, name: str, letters: str, table: Table, deaths: int = 0, interruptions: float = math.inf) -> None:
    with begun(tmp_path, name) as hub:
        start = Start.of(hub, name)
        races = every_schedule(lambda pick: start.race(letters, pick, table, deaths), interruptions)
        seen = [ran.schedule for ran in races]
    assert len(seen) == len(set(seen)) > 1


def once(tmp_path, schedule: str, table: Table, deaths: int = 0) -> None:
    with begun(tmp_path, SMALL[0]) as hub:
        ran = Start.of(hub, SMALL[0]).race("AB", following(schedule), table, deaths)
    assert ran.schedule.startswith(schedule)


@pytest.mark.long  # a sample of what `make crash` plays whole
def test_of_two_that_wake_together_the_one_whose_claim_came_first_acts(tmp_path, table):
    once(tmp_path, "ABABAAA", table)


@pytest.mark.long  # takes five seconds
def test_what_a_killed_runner_left_is_made_up_for_by_the_other(tmp_path, table):
    once(tmp_path, "AAaB", table, deaths=1)


@pytest.mark.long  # takes five seconds
def test_a_push_is_an_effect_like_a_write_to_the_forge(tmp_path):
    with begun(tmp_path, "an approved pull is merged") as hub:
        ran = race(hub, "A", following(""))
    effects = [step.split()[1] for step in ran.steps[1:]]
    assert effects == ["POST", "PUT", "push", "POST", "PATCH"]  # intend, merge, delete the branch, commit, dashboard


BESIDE = [("AP", "AAAP", 0), ("AB", "AAAa", 1)]
"""A text is out and another one is not: `ralph publish` begins, or the runner dies. Who, their schedule, and deaths."""


@pytest.mark.long  # takes ten seconds
@pytest.mark.parametrize(("letters", "schedule", "deaths"), BESIDE)
def test_what_another_runner_has_sent_or_may_have_sent_is_not_sent_again(tmp_path, letters, schedule, deaths, table):
    with begun(tmp_path, TEXTS) as hub:
        Start.of(hub, TEXTS).race(letters, following(schedule), table, deaths)
        assert len(portrait(hub)["posts"]["twitter"]) == 1


@pytest.mark.long  # takes ten seconds
@pytest.mark.parametrize(("letters", "schedule", "deaths"), BESIDE)
def test_a_product_that_sends_a_text_again_is_found(tmp_path, letters, schedule, deaths):
    with begun(tmp_path, TEXTS) as hub:
        start = Start.of(hub, TEXTS)
        with (
            mock.patch.object(BranchStore, "proven_dead", _always),
            mock.patch.object(execute, "may_redo", _always),
            pytest.raises(AssertionError, match="post"),
        ):
            start.race(letters, following(schedule), Table("of a broken product"), deaths)
        assert any(one.startswith("post on twitter") for one in duplicates(hub))


def _always(*_: object) -> bool:
    """Claims of the living are taken over, and what they intended counts as not sent."""
    return True


@pytest.mark.long  # takes ten seconds or more
def test_every_interleaving_of_two_runners_of_a_small_stage(tmp_path, table):
    every(tmp_path, SMALL[0], "AB", table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", [*STAGES, LAST_SLOT, *NETWORKS])
def test_every_interleaving_of_two_runners(tmp_path, name, table):
    every(tmp_path, name, "AB", table)


@pytest.mark.crash  # takes minutes
def test_every_interleaving_of_three_runners(tmp_path, table):
    every(tmp_path, SMALL[0], "ABC", table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", SMALL)
def test_every_interleaving_of_two_runners_of_which_one_is_killed_anywhere(tmp_path, name, table):
    every(tmp_path, name, "AB", table, deaths=1)


@pytest.mark.crash  # takes a minute
def test_texts_at_every_death_of_one_runner_after_which_another_goes_on(tmp_path, table):
    every(tmp_path, TEXTS, "AB", table, deaths=1, interruptions=0)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("seed", SEEDS)
def test_runners_that_take_turns_request_by_request(tmp_path, seed, table):
    draw = random.Random(seed)
    drawn(tmp_path, draw.choice(DRAWN), draw.choice(["AB", "ABC"]), draw, table)


def in_between(tmp_path, name: str, most: int, table: Table) -> None:
    """A whole cycle of another runner before each request of one, or before so many of them."""
    with begun(tmp_path, name) as hub:
        start = Start.of(hub, name)
        for at in range(1, most):
            ran = start.race("AB", following("A" * at + "B"), table, every=True)
            if ran.schedule.count("A") == at:
                return


@pytest.mark.long  # takes ten seconds
def test_a_whole_cycle_of_another_runner_may_come_first(tmp_path, table):
    in_between(tmp_path, "an approved proposal is carried on", 4, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", ["a fix is opened", "an approved pull is merged"])
def test_a_whole_cycle_of_another_runner_may_come_between_its_requests(tmp_path, name, table):
    in_between(tmp_path, name, 1000, table)


@pytest.mark.crash  # takes minutes
def test_every_interleaving_of_a_publishing_and_a_cycle_with_few_interruptions(tmp_path, table):
    every(tmp_path, TEXTS, "AP", table, interruptions=FEW)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_publishing_and_a_cycle_that_take_turns_request_by_request(tmp_path, seed, table):
    drawn(tmp_path, TEXTS, "AP", random.Random(seed), table)


def drawn(tmp_path, name: str, letters: str, draw: random.Random, table: Table) -> None:
    with begun(tmp_path, name) as hub:
        start = Start.of(hub, name)
        table.count(start.row(letters, every=True), seeds=1)
        for deaths in (0, 1):
            start.race(letters, _drawn(draw, len(letters)), table, deaths, every=True)


def _drawn(draw: random.Random, runners: int):
    """Any that may go on; a death is rare enough to come after a while."""

    def pick(choices: list[str]) -> str:
        deaths = [choice for choice in choices if choice.islower()]
        alive = [choice for choice in choices if choice.isupper()]
        return draw.choice(deaths) if deaths and draw.random() < 0.01 * runners else draw.choice(alive)

    return pick
