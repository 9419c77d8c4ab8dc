"""Every way of going on after a crash or a fault is taken, each by a case of its own, and leads to the same end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash import damage, recoveries
from tests.crash.cases import Case, Scene, brought_to_rest, scene, strike
from tests.crash.dying import describe_request, dying
from tests.crash.ends import differences, portrait
from tests.crash.recoveries import kept
from tests.crash.runners import NOW, as_run
from tests.crash.snapshots import INTENTS, number_of
from tests.crash.stages import EVERY, staged
from tests.crash.witness import duplicates, open_state
from tests.figures import Table, shown
from tests.integration.world import statuses

pytestmark = pytest.mark.crash  # takes minutes

FIX, ASK, MERGE, LIST = (
    "a fix is opened",
    "a proposal is made",
    "an approved pull is merged",
    "a list is brought up to date",
)
PUSH, MERGED = "POST /git-receive-pack", "PUT /pulls/1/merge"
HALTED = ("memory was corrupted", "memory was rolled back", "memory was deleted")
TAKEN = {
    "an effect of a dead runner is found and adopted": (MERGE, "crash-after", MERGED),
    "an effect that was proven not made is decided anew": (MERGE, "crash-before", MERGED),
    "an effect that cannot be proven either way becomes a person's": (ASK, "crash-before", "POST /issues"),
    recoveries.SETTLED: (ASK, "crash-before", "POST /issues"),
    recoveries.TAKEN_OVER: (FIX, "crash-after", "POST /pulls"),
    recoveries.LEFT: (MERGE, "cas-runner", PUSH),
    recoveries.MERGED: (MERGE, "cas-person", PUSH),
    recoveries.PUSHED: (MERGE, "answer-lost", PUSH),
    recoveries.PENDING: (MERGE, "crash-after", PUSH),
    recoveries.FAILED: (FIX, "422", "POST /pulls"),
    "foreign memory halts": (HALTED[0], "crash-before", ""),
    "memory that was rolled back halts": (HALTED[1], "crash-before", ""),
    "memory that is gone halts": (HALTED[2], "crash-before", ""),
    "a read waits for a rate limit": (MERGE, "read-rate-secondary", "GET /pulls"),
    "a rate limit that lasts halts": (MERGE, "read-rate-primary", "GET /pulls"),
    "a network that fails halts": (MERGE, "read-502", "POST /git-upload-pack"),
    "a server that refuses to be read halts": (MERGE, "read-rate-primary", "GET /info/refs?service=git-upload-pack"),
}
HERE = {
    "what was in doubt is found late and adopted",
    "the claim of a runner that may live is respected",
    "a position that cannot be read halts",
}


@pytest.fixture(scope="module")
def table(request) -> Iterator[Table]:
    made = Table("recovery paths")
    yield made
    shown(request.config, made)


def taken(table: Table, log: recoveries.Log, path: str) -> None:
    """It was."""
    assert log.taken[path] > 0, dict(log.taken)
    for name, times in log.taken.items():
        if times:
            table.count(name, fired=times)


def call_like(on: Scene, what: str) -> int:
    return next(call.at for call in on.calls if not what or describe_request(call.request) == what)


def test_every_way_has_its_case():
    assert {*TAKEN, *HERE} == set(recoveries.PATHS)


@pytest.mark.parametrize("path", TAKEN)
def test_every_way_of_going_on_is_taken_and_leads_to_the_same_end(tmp_path, path, table):
    stage, kind, what = TAKEN[path]
    with scene(tmp_path, stage) as on:
        struck = strike(on, Case(stage, kind, call_like(on, what)))
        assert struck.wrong == []
        taken(table, struck.end.log, path)


def test_a_dashboard_that_a_crash_kept_from_being_written_is_written_by_the_next_cycle(tmp_path):
    with scene(tmp_path, LIST) as on:
        struck = strike(on, Case(LIST, "crash-before", call_like(on, "PATCH /issues/1")))
        assert (struck.wrong, struck.hit) == ([], True)
        on.stage.expect(on.hub)


def test_the_claim_of_a_runner_that_may_live_is_left_alone(tmp_path, table):
    with scene(tmp_path, MERGE) as on:
        hub = on.start.restore(on.hub)
        as_run(hub, 1)
        with dying(hub, number_of(hub, INTENTS), "after"):
            hub.cycle(NOW)
        as_run(hub, 2)
        hub.runner = "another"
        before = hub.fake.branch("ralph-memory")
        with kept(hub) as log:
            assert hub.cycle(NOW)[0].outcome == "lost"
        assert hub.fake.branch("ralph-memory") == before
        taken(table, log, "the claim of a runner that may live is respected")


def test_an_issue_that_a_list_shows_later_is_carried_on_without_anybody(tmp_path, table):
    with staged(tmp_path, ASK) as hub:
        hub.fake.list_lag = 6
        with dying(hub, number_of(hub, "POST /issues"), "after"):
            hub.cycle(NOW)
        hub.cycle(NOW)
        assert open_state(hub).unknown != ()
        with kept(hub) as log:
            hub.cycle(NOW)
            assert statuses(hub.cycle(NOW)[0]) == ["DISCOVERED"]
        assert (len(hub.issues), open_state(hub).unknown) == (1, ())
        taken(table, log, "what was in doubt is found late and adopted")


# --- what a clone may be left as ----------------------------------------------------------


def hurt(on: Scene, how) -> None:
    """A runner that dies once the merge is done, and its clone after that."""
    hub = on.start.restore(on.hub)
    with dying(hub, call_like(on, MERGED), "after"):
        hub.cycle(NOW)
    how(hub)


@pytest.mark.parametrize("how", damage.HEALED)
def test_whatever_a_clone_is_left_as_the_next_cycle_comes_to_the_same_end(tmp_path, how, table):
    with scene(tmp_path, MERGE) as on:
        hurt(on, damage.HEALED[how])
        rest = brought_to_rest(on.hub, EVERY[MERGE])
        assert rest.converged and rest.untold == ()
        found = differences(on.expected, portrait(on.hub), rest.doubts)
        assert (found, duplicates(on.hub)) == ([], [])
        table.count(f"a clone is hurt: {how}", fired=1)
