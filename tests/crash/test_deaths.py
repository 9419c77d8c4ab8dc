"""Every request to GitHub is a moment to die at: the end is the one that it would have come to undisturbed.

The requests of a cycle are counted once, undisturbed; then it is run anew for each, and ends there. Between two
writes nothing changes anywhere but what this process remembers, so the suite dies after each write of a fix's
life; `make crash` dies before and after every request of every stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.crash.dying import Life, dying, told, writes
from tests.crash.past import INTENTS, Snapshot, number_of
from tests.crash.stages import (
    NOW,
    STAGES,
    Rest,
    come_to_rest,
    differences,
    lost,
    portrait,
    staged,
)
from tests.crash.witness import duplicates, open_state, watched
from tests.integration.hub import Hub
from tests.trust.table import Table, shown

pytestmark = pytest.mark.long  # takes ten seconds or more

DAILY = ("a fix is opened", "an approved pull is merged")
PARTS = 4  # a test of each stage's requests, so that none takes minutes
Next = Callable[[Hub], None]


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("deaths")
    yield made
    shown(request.config, made)


def points(life: Life) -> list[tuple[int, str]]:
    """After each write, and before the first."""
    written = [at for at, request in enumerate(life.requests, 1) if writes(request)]
    return [(written[0], "before"), *((at, "after") for at in written)]


def deeds(life: Life) -> list[tuple[int, str]]:
    """After each write that is more than a label."""
    return [(at, kind) for at, kind in points(life) if kind == "after" and "/labels" not in life.requests[at - 1].below]


def share(part: int, kind: str):
    """Every fourth request, before or after."""

    def chosen(life: Life) -> list[tuple[int, str]]:
        return [(at, kind) for at in range(1, len(life.requests) + 1) if at % PARTS == part]

    return chosen


def same_clone(harbour: Hub) -> None:
    """The process is started again where it died."""


def die_everywhere(harbour: Hub, name: str, chosen, table: Table, goes_on: Next = same_clone) -> None:
    """Die at each of the chosen points, go on, and compare."""
    start = Snapshot.of(harbour, "start")
    with dying(harbour) as life:
        harbour.cycle(NOW)
    assert come_to_rest(harbour).converged
    expected = portrait(harbour)
    for at, kind in chosen(life):
        start.restore(harbour)
        died = f"died {kind} request {at}, {told(life.requests[at - 1])}"
        with watched(harbour) as witness:
            with dying(harbour, at, kind) as this:
                harbour.cycle(NOW)
            assert this.over, died
            goes_on(harbour)
            rest = come_to_rest(harbour)
        found = portrait(harbour)
        counted(table, name, rest, lost(expected, found), duplicates(harbour))
        assert rest.converged and rest.untold == (), died
        assert (differences(expected, found, rest.doubts), duplicates(harbour), witness.wrong) == ([], [], []), died


def counted(table: Table, name: str, rest: Rest, missing: list[str], twice: list[str]) -> None:
    doubted = len(set(rest.doubts))
    table.count(
        name, points=1, duplicates=len(twice), lost=len(missing), not_converged=int(not rest.converged), unknown=doubted
    )


@pytest.mark.parametrize("name", DAILY)
def test_a_death_around_any_write_ends_as_if_nothing_had_happened(tmp_path, name, table):
    with staged(tmp_path, name) as harbour:
        die_everywhere(harbour, name, deeds, table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("name", STAGES)
def test_a_death_at_any_request_of_any_stage_ends_as_if_nothing_had_happened(tmp_path, name, kind, part, table):
    with staged(tmp_path, name) as harbour:
        die_everywhere(harbour, name, share(part, kind), table)


# --- on another machine -----------------------------------------------------------------


def as_run(harbour: Hub, number: int, status: str, conclusion: str | None = None) -> None:
    """From now on a workflow run of that number is the runner."""
    harbour.fake.workflow_run(number, status, conclusion)
    harbour.actions = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": str(number),
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_JOB": "cycle",
        "RUNNER_NAME": f"runner-{number}",
    }


def elsewhere(harbour: Hub) -> None:
    """The run is over, and the next one is on another machine with a fresh clone."""
    harbour.fake.workflow_run(1, "completed", "failure")
    as_run(harbour, 2, "in_progress")
    harbour.runner = f"another-{len(list(harbour.folder.iterdir()))}"


def on_runners(harbour: Hub, name: str, chosen, table: Table) -> None:
    as_run(harbour, 1, "in_progress")

    def first_runner_again(life: Life) -> Iterator[tuple[int, str]]:
        for point in chosen(life):
            as_run(harbour, 1, "in_progress")
            yield point

    die_everywhere(harbour, f"{name}, then on another machine", first_runner_again, table, elsewhere)


def test_another_machine_carries_on_once_the_dead_run_is_over(tmp_path, table):
    with staged(tmp_path, "an approved pull is merged") as harbour:
        on_runners(harbour, "an approved pull is merged", lambda life: deeds(life)[:1], table)


@pytest.mark.crash  # takes minutes
@pytest.mark.parametrize("name", STAGES)
def test_another_machine_carries_on_from_a_death_around_any_write(tmp_path, name, table):
    with staged(tmp_path, name) as harbour:
        on_runners(harbour, name, points, table)


def test_a_claim_of_a_run_that_may_still_be_alive_is_left_alone(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as harbour:
        as_run(harbour, 1, "in_progress")
        with dying(harbour, number_of(harbour, INTENTS), "after") as life:
            harbour.cycle(NOW)
        assert life.over and open_state(harbour).claim is not None
        as_run(harbour, 2, "in_progress")
        harbour.runner = "another"
        before = harbour.fake.branch("ralph-memory")
        assert harbour.cycle(NOW)[0].outcome == "lost"
        assert harbour.fake.branch("ralph-memory") == before
        assert not harbour.merged(harbour.pulls[0].number)
