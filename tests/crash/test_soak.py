"""Hundreds of cycles in bad times end with nothing lost, nothing twice and no limit broken; then it comes to rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.github.dashboard import KEY as STANDING
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.ledger import Rhythm
from tests.crash.chaos import Chaos, bad_times
from tests.crash.history import audit
from tests.crash.stages import come_to_rest
from tests.crash.witness import duplicates, key_in, open_state
from tests.figures import Table, shown
from tests.helpers import git
from tests.integration.hub import Hub


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("soak")
    yield made
    shown(request.config, made)


RARELY = {
    "effects": 3,
    "replayed": 4,
    "wrong clocks": 8,
    "deaths": 12,
    "cycles with faults": 12,
    "races": 30,
    "wakes": 30,
}
"""By figure: one in how many cycles it has to be at least, or the soak was too idle to prove anything."""


def soak(folder, seed: int, cycles: int, table: Table) -> None:
    with bad_times(folder, seed) as chaos:
        again = f".venv/bin/python -m tests.crash.chaos {seed} {cycles}"
        chaos.live(cycles)
        assert chaos.wrong == [], (again, chaos.told[-3:])
        rest = calmed(chaos)
        memory, unknown_to_memory = audit(chaos.hub.fake.bare), orphans(chaos.hub)
        row, wakes = f"seed {seed}", len(chaos.hub.fake.dispatches)
        table.count(row, **chaos.counted, wakes=wakes)
        table.count(row, commits=memory.commits, entries=memory.entries, not_converged=int(not rest))
        table.count(row, duplicates=len(duplicates(chaos.hub)), cap_breaches=len(memory.breaches))
        table.count(row, lost=len(unknown_to_memory) + sum("lost" in wrong for wrong in memory.wrong))
        assert unproven({**chaos.counted, "wakes": wakes}) == [], again
        assert rest, again
        assert (memory.wrong, memory.breaches, unknown_to_memory, duplicates(chaos.hub)) == ([], [], [], []), again
        assert set(chaos.hub.learned) <= set(chaos.hub.memory().splitlines()), again
        assert [check for check in chaos.hub.house().store.checks() if not check.ok] == [], again


def unproven(counted: Mapping[str, int]) -> list[str]:
    """What hardly happened, so that it proves little that nothing went wrong with it."""
    cycles = counted["cycles"]
    found = {name: counted.get(name, 0) for name in RARELY}
    return [f"{found[name]} {name} in {cycles} cycles" for name, of in RARELY.items() if found[name] < cycles // of]


def calmed(chaos: Chaos) -> bool:
    """Nothing goes wrong any more, clocks are right, and people answer doubts: does it rest, and wake in its time?"""
    hub = chaos.hub
    hub.runner, hub.skew, hub.actions = "last", timedelta(0), {}
    hub.now += timedelta(days=3)  # clocks were two days fast at most
    rests = [come_to_rest(hub).converged for _ in range(3)]
    due = schedule.is_due(_next_due(hub), hub.now + timedelta(hours=7), Rhythm().longest)
    return rests[-1] and due and hub.cycle(force=False)[0].outcome == "done"


def _next_due(hub: Hub):
    recalled = hub.house().store.recall()
    assert recalled is not None
    return recalled.memory.header.next_due_at


def orphans(hub: Hub) -> list[str]:
    """Threads of ours, by their marks, of which memory does not know that they were made."""
    known = git(hub.fake.bare, "ls-tree", "-r", "--name-only", "ralph-memory", "memory/ledger")
    ours = {key_in(t.body) for t in hub.threads if t.author.is_bot} - {STANDING, ""}
    return sorted(key for key in ours if f"/{key}.json" not in known or key in open_state(hub).effects)


def test_a_soak_in_which_little_happens_proves_little():
    enough = {name: 120 // of for name, of in RARELY.items()}
    assert unproven({"cycles": 120, **enough}) == []
    assert unproven({"cycles": 120, **enough, "deaths": 9}) == ["9 deaths in 120 cycles"]
    idle = {name: count for name, count in enough.items() if name != "wakes"}
    assert unproven({"cycles": 120, **idle}) == ["0 wakes in 120 cycles"]


@pytest.mark.long  # takes half a minute
def test_two_dozen_cycles_in_bad_times_lose_nothing_and_do_nothing_twice(tmp_path, table):
    soak(tmp_path, 1, 24, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize(("seed", "cycles"), [(2, 300), (3, 120)])
def test_hundreds_of_cycles_in_bad_times_lose_nothing_and_do_nothing_twice(tmp_path, seed, cycles, table):
    soak(tmp_path, seed, cycles, table)
