"""What stays in doubt after a death: later cycles carry on, a person settles the rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.operations import control
from tests.crash.dying import dying
from tests.crash.snapshots import INTENTS, number_of
from tests.crash.stages import NOW, made_as, staged
from tests.crash.witness import duplicates, open_state
from tests.helpers import cli
from tests.integration.hub import Hub
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more


# --- what only a person can tell --------------------------------------------------------


def by_hand(hub: Hub, key: str, *answer: str) -> None:
    """What the report says to type."""
    done = cli("journal", "resolve", key, *answer, repo=hub.clone, env=hub.environ | {"GITHUB_ACTIONS": "true"})
    assert done.code == 0, done.err


def test_an_issue_that_was_never_sent_wedges_nothing_once_a_person_has_said_so(tmp_path):
    with staged(tmp_path, "a proposal is made") as hub:
        with dying(hub, number_of(hub, INTENTS), "after"):
            hub.cycle(NOW)
        _, cycle_summary = hub.cycle(NOW)
        (key,) = open_state(hub).unknown
        assert any(f"ralph journal resolve {key}" in line for line in cycle_summary.remarks)
        assert (hub.issues, hub.pulls) == ([], [])
        assert hub.cycle()[0].outcome == "done" and hub.issues == []
        by_hand(hub, key, "--not-sent")
        assert statuses(hub.cycle()[0]) == ["DISCOVERED"]
        assert (len(hub.issues), open_state(hub).unknown) == (1, ())


def test_an_issue_that_arrived_and_no_list_shows_is_carried_on_under_the_number_a_person_names(tmp_path):
    with staged(tmp_path, "a proposal is made") as hub:
        sent = number_of(hub, "POST /issues")
        hub.fake.list_lag = 100
        with dying(hub, sent, "after"):
            hub.cycle(NOW)
        hub.cycle(NOW)
        (key,) = open_state(hub).unknown
        with pytest.raises(UserError, match="which one"):  # without it, the mission would wait for ever
            control.resolve(hub.house().store, key, sent=True)
        number = made_as(hub, key)
        by_hand(hub, key, "--sent", "--number", str(number))
        assert statuses(hub.cycle(NOW)[0]) == ["DISCOVERED"]
        hub.fake.list_lag = 0
        assert [issue.number for issue in hub.issues] == [number]


@pytest.mark.parametrize(("call", "when"), [(INTENTS, "after"), ("POST /pulls", "before"), ("POST /pulls", "after")])
def test_a_fix_whose_runner_died_leaves_no_doubt_and_one_pull(tmp_path, call, when):
    with staged(tmp_path, "a fix is opened") as hub:
        hub.fake.list_lag = 2
        with dying(hub, number_of(hub, call), when):
            hub.cycle(NOW)
        for _ in range(2):
            assert statuses(hub.cycle(NOW)[0]) == ["IN_REVIEW"]
        hub.fake.list_lag = 0
        assert (hub.issues, len(hub.pulls), open_state(hub).unknown) == ([], 1, ())


def recovered(hub: Hub, *options: str) -> str:
    done = cli("memory", "recover", *options, repo=hub.clone, env=hub.environ | {"GITHUB_ACTIONS": "true"})
    assert done.code == 0, done.err
    return done.out


def test_a_claim_of_a_lost_machine_is_lifted_by_a_persons_word_alone_and_its_doubts_are_hers(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as hub:
        with dying(hub, number_of(hub, INTENTS), "after"):
            hub.cycle(NOW)
        hub.runner = "another"
        assert hub.cycle(NOW)[0].outcome == "lost"
        assert "keeps its claim" in recovered(hub)
        assert hub.cycle(NOW)[0].outcome == "lost"
        assert "is lifted" in recovered(hub, "--take-over")
        report, cycle_summary = hub.cycle(NOW)
        keys = open_state(hub).unknown
        assert report.outcome == "done" and keys
        assert all(any(f"resolve {key}" in line for line in cycle_summary.remarks) for key in keys)
        for key in keys:
            by_hand(hub, key, "--not-sent")
        hub.cycle(NOW)
        assert hub.cycle()[0].outcome == "done"
        assert (open_state(hub).unknown, duplicates(hub)) == ((), [])


def test_a_claim_that_nobody_lets_go_of_is_said_aloud_after_a_day(tmp_path):
    with staged(tmp_path, "a fix is opened") as hub:
        with dying(hub, number_of(hub, INTENTS), "after"):
            hub.cycle(NOW)
        hub.runner = "two"
        assert hub.cycle(timedelta(hours=23))[0].outcome == "lost"
        with pytest.raises(UserError, match="holds the cycle since") as caught:
            hub.cycle(timedelta(hours=2))
        assert "recover --take-over" in caught.value.next_step
