"""A runner dies after any deed, and it or another machine carries on: the end is the one it would have come to anyway.

Between two writes nothing changes anywhere but what this process remembers, so `make test-long` dies after each write
of a fix's life. Every call of every stage is in `test_cases`; here another machine carries on besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.crash.cases import Case, Scene, scene, strike
from tests.crash.dying import told
from tests.crash.runners import elsewhere, on_a_run
from tests.crash.setups import nothing
from tests.crash.stages import STAGES
from tests.figures import Table, shown

pytestmark = pytest.mark.long  # takes ten seconds or more

DAILY = ("a fix is opened", "an approved pull is merged")


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("deaths")
    yield made
    shown(request.config, made)


def deeds(on: Scene) -> list[Case]:
    """After each write that is more than a label."""
    return [case for case in on.cases(["crash-after"]) if "/labels" not in told(on.calls[case.at - 1].request)]


def around_writes(on: Scene) -> list[Case]:
    """After each write, and before the first."""
    written = on.cases(["crash-after"])
    return [Case(on.name, "crash-before", written[0].at), *written]


def die_at(on: Scene, cases: Iterable[Case], table: Table, row: str, goes_on=nothing) -> None:
    """Die at each of them, go on, and compare."""
    for case in cases:
        struck = strike(on, case, goes_on)
        table.count(row, **struck.figures)
        assert struck.wrong == [], f"{struck.call}: {case.command}{' --elsewhere' * (goes_on is elsewhere)}"


@pytest.mark.parametrize("name", DAILY)
def test_a_death_after_any_deed_ends_as_if_nothing_had_happened(tmp_path, name, table):
    with scene(tmp_path, name) as on:
        die_at(on, deeds(on), table, name)


# --- on another machine -----------------------------------------------------------------


def test_another_machine_carries_on_once_the_dead_run_is_over(tmp_path, table):
    name = "an approved pull is merged"
    with scene(tmp_path, name, on_a_run) as on:
        die_at(on, deeds(on)[:1], table, f"{name}, then on another machine", elsewhere)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", STAGES)
def test_another_machine_carries_on_from_a_death_around_any_write(tmp_path, name, table):
    with scene(tmp_path, name, on_a_run) as on:
        die_at(on, around_writes(on), table, f"{name}, then on another machine", elsewhere)
