"""Lives of a repository that nobody thought of, found by chance; one that goes wrong is told in few steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.crash.past import Snapshot
from tests.fakes.github import Request
from tests.figures import Table, shown
from tests.integration.hub import Hub, hub
from tests.integration.world import TYPOS
from tests.stateful.machine import RULES, SCHEDULE
from tests.stateful.people import Town
from tests.stateful.promises import deeds

FILES = {**TYPOS, "a.py": "# TODO: one\nx = 1\n"}
CONFIG = "hands: {fixers: [codespell]}\n"
INTERRUPTED = "a_cycle_that_is_interrupted"
FREE = (SCHEDULE, INTERRUPTED, "a_cycle", "a_cycle_if_it_is_due", "a_cycle_that_dies", "a_cycle_that_hears_no_answer")
"""Whose cycles may do something; all others have to stand still."""
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


def of(harbour: Hub, table: Table, rules: Collection[str] = ()) -> type[Town]:
    """The lives of one repository, by these rules alone if some are named."""
    left_out = dict.fromkeys(set(RULES) - set(rules or RULES))
    return type("Town", (Town,), {"harbour": harbour, "starts": starts(harbour), "table": table, **left_out})


def live(
    folder,
    table: Table,
    lives: int,
    steps: int,
    drawn: int | None = None,
    shrunk: bool = True,
    rules: Collection[str] = (),
) -> None:
    """So many lives of so many steps, each from the same beginning; by a seed, so that each can be had again.

    `shrunk`: whether one that goes wrong is told in as few steps as may be, which takes minutes.
    """
    with hub(folder, FILES, CONFIG) as harbour:
        harbour.fake.validate = False
        town = of(harbour, table, rules)
        run_state_machine_as_test(
            town if drawn is None else seed(drawn)(town),
            settings=settings(
                max_examples=lives,
                stateful_step_count=steps,
                derandomize=drawn is None,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink) if shrunk else (Phase.generate,),
            ),
        )


@pytest.mark.long  # four seconds; the walks are shorter
def test_a_few_lives_break_no_promise(tmp_path, table):
    live(tmp_path, table, lives=2, steps=8)


@pytest.mark.long  # takes a minute
def test_some_lives_break_no_promise(tmp_path, table):
    live(tmp_path, table, lives=5, steps=25)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("part", range(2))
def test_many_lives_break_no_promise(request, tmp_path, part):
    lived = Table("stateful")
    live(tmp_path, lived, lives=50, steps=30, drawn=part)
    assert unproven(lived) == []
    shown(request.config, lived)


def unproven(lived: Table) -> list[str]:
    """Why it proves little that no promise was broken: rules that never fired, or cycles that did next to nothing."""
    never = sorted(name for name in RULES if not lived.rows.get(name, {}).get("fired"))
    free = sum((row for name, row in lived.rows.items() if name in FREE), Counter())
    cycles, done, acted = free["cycles"], free["done"], free["acted"]
    wrong = [f"never fired: {', '.join(never)}"] if never else []
    wrong += [] if lived.rows.get(INTERRUPTED, {}).get("interrupted") else ["nobody did anything while a cycle ran"]
    wrong += [] if 3 * done >= 2 * cycles else [f"only {done} of {cycles} cycles came to their end"]
    return wrong + ([] if 6 * acted >= cycles else [f"only {acted} of {cycles} cycles did anything"])


def test_lives_in_which_little_happens_prove_little():
    lived = Table("stateful")
    for name in RULES:
        lived.count(name, fired=1)
    lived.count(SCHEDULE, cycles=30, done=20, acted=5)
    lived.count(INTERRUPTED, interrupted=1)
    assert unproven(lived) == []
    lived.count("a_cycle", cycles=30, done=19)
    lived.rows["the_next_runner"]["fired"] = 0
    lived.rows[INTERRUPTED]["interrupted"] = 0
    told = [
        "never fired: the_next_runner",
        "nobody did anything while a cycle ran",
        "only 39 of 60 cycles came to their end",
        "only 5 of 60 cycles did anything",
    ]
    assert unproven(lived) == told


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
