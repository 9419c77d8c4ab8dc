"""Lives of a repository that nobody thought of, found by chance; one that goes wrong is told in few steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.crash.past import Snapshot
from tests.fakes.github import Request
from tests.integration.hub import Hub, hub
from tests.integration.world import TYPOS
from tests.stateful.people import Town
from tests.stateful.promises import deeds
from tests.trust.table import Table, shown

FILES = {**TYPOS, "a.py": "# TODO: one\nx = 1\n"}
CONFIG = "hands: {fixers: [codespell]}\n"
ASKING = f"{CONFIG}limits: {{auto_prs_per_cycle: 0}}\n"


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("stateful")
    yield made
    shown(request.config, made)


def starts(harbour: Hub) -> dict[str, Snapshot]:
    """Where lives begin: before the first cycle, after one that made a change, and after one that asked about it."""
    start = {"nothing": Snapshot.of(harbour, "nothing")}
    harbour.cycle()
    start["a change was made"] = Snapshot.of(harbour, "made")
    start["nothing"].restore(harbour)
    harbour.fake.push("main", {"ralph.yml": ASKING.encode()})
    harbour.cycle()
    return {**start, "a person was asked": Snapshot.of(harbour, "asked")}


def of(harbour: Hub, table: Table) -> type[Town]:
    """The lives of one repository."""
    return type("Town", (Town,), {"harbour": harbour, "starts": starts(harbour), "table": table})


def live(folder, table: Table, lives: int, steps: int, drawn: int | None = None) -> None:
    """So many lives of so many steps, each from the same beginning; by a seed, so that each can be had again."""
    with hub(folder, FILES, CONFIG) as harbour:
        harbour.fake.validate = False
        town = of(harbour, table)
        run_state_machine_as_test(
            town if drawn is None else seed(drawn)(town),
            settings=settings(
                max_examples=lives,
                stateful_step_count=steps,
                derandomize=drawn is None,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            ),
        )


@pytest.mark.long  # four seconds; the walks are shorter
def test_a_few_lives_break_no_promise(tmp_path, table):
    live(tmp_path, table, lives=2, steps=8)


@pytest.mark.long  # takes a minute
def test_some_lives_break_no_promise(tmp_path, table):
    live(tmp_path, table, lives=5, steps=25)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("part", range(4))
def test_many_lives_break_no_promise(tmp_path, table, part):
    live(tmp_path, table, lives=25, steps=40, drawn=part)


@pytest.mark.long  # takes five seconds
def test_what_two_cycles_do_passes_no_cap_of_one(tmp_path, table):
    with hub(tmp_path, FILES, CONFIG) as harbour:
        harbour.fake.validate = False
        life = of(harbour, table)()
        life.begins(0)
        life.a_cycle(7)
        life.somebody_pushes("misspelt")
        life.a_cycle(7)
        life.every_promise_holds()
        life.teardown()
        assert len(harbour.pulls) == 2


@pytest.mark.parametrize("status", [201, 502, 0, 422])
def test_whatever_was_answered_a_write_was_a_deed(status):
    sent = Request("POST", "/repos/harbour/slackwater/issues", {}, status=status, below="/issues")
    assert deeds([sent]) == ["POST /issues"]
