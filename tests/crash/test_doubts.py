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


def by_hand(harbour: Hub, key: str, *answer: str) -> None:
    """What the report says to type."""
    done = cli("journal", "resolve", key, *answer, repo=harbour.clone, env=harbour.environ | {"GITHUB_ACTIONS": "true"})
    assert done.code == 0, done.err


def test_an_issue_that_was_never_sent_wedges_nothing_once_a_person_has_said_so(tmp_path):
    with staged(tmp_path, "a proposal is made") as harbour:
        with dying(harbour, number_of(harbour, INTENTS), "after"):
            harbour.cycle(NOW)
        _, cycle_summary = harbour.cycle(NOW)
        (key,) = open_state(harbour).unknown
        assert any(f"ralph journal resolve {key}" in line for line in cycle_summary.remarks)
        assert (harbour.issues, harbour.pulls) == ([], [])
        assert harbour.cycle()[0].outcome == "done" and harbour.issues == []
        by_hand(harbour, key, "--not-sent")
        assert statuses(harbour.cycle()[0]) == ["DISCOVERED"]
        assert (len(harbour.issues), open_state(harbour).unknown) == (1, ())


def test_an_issue_that_arrived_and_no_list_shows_is_carried_on_under_the_number_a_person_names(tmp_path):
    with staged(tmp_path, "a proposal is made") as harbour:
        sent = number_of(harbour, "POST /issues")
        harbour.fake.list_lag = 100
        with dying(harbour, sent, "after"):
            harbour.cycle(NOW)
        harbour.cycle(NOW)
        (key,) = open_state(harbour).unknown
        with pytest.raises(UserError, match="which one"):  # without it, the mission would wait for ever
            control.resolve(harbour.house().store, key, sent=True)
        number = made_as(harbour, key)
        by_hand(harbour, key, "--sent", "--number", str(number))
        assert statuses(harbour.cycle(NOW)[0]) == ["DISCOVERED"]
        harbour.fake.list_lag = 0
        assert [issue.number for issue in harbour.issues] == [number]


@pytest.mark.parametrize(("call", "when"), [(INTENTS, "after"), ("POST /pulls", "before"), ("POST /pulls", "after")])
def test_a_fix_whose_runner_died_leaves_no_doubt_and_one_pull(tmp_path, call, when):
    with staged(tmp_path, "a fix is opened") as harbour:
        harbour.fake.list_lag = 2
        with dying(harbour, number_of(harbour, call), when):
            harbour.cycle(NOW)
        for _ in range(2):
            assert statuses(harbour.cycle(NOW)[0]) == ["IN_REVIEW"]
        harbour.fake.list_lag = 0
        assert (harbour.issues, len(harbour.pulls), open_state(harbour).unknown) == ([], 1, ())


def recovered(harbour: Hub, *options: str) -> str:
    done = cli("memory", "recover", *options, repo=harbour.clone, env=harbour.environ | {"GITHUB_ACTIONS": "true"})
    assert done.code == 0, done.err
    return done.out


def test_a_claim_of_a_lost_machine_is_lifted_by_a_persons_word_alone_and_its_doubts_are_hers(tmp_path):
    with staged(tmp_path, "an approved pull is merged") as harbour:
        with dying(harbour, number_of(harbour, INTENTS), "after"):
            harbour.cycle(NOW)
        harbour.runner = "another"
        assert harbour.cycle(NOW)[0].outcome == "lost"
        assert "keeps its claim" in recovered(harbour)
        assert harbour.cycle(NOW)[0].outcome == "lost"
        assert "is lifted" in recovered(harbour, "--take-over")
        report, cycle_summary = harbour.cycle(NOW)
        keys = open_state(harbour).unknown
        assert report.outcome == "done" and keys
        assert all(any(f"resolve {key}" in line for line in cycle_summary.remarks) for key in keys)
        for key in keys:
            by_hand(harbour, key, "--not-sent")
        harbour.cycle(NOW)
        assert harbour.cycle()[0].outcome == "done"
        assert (open_state(harbour).unknown, duplicates(harbour)) == ((), [])


def test_a_claim_that_nobody_lets_go_of_is_said_aloud_after_a_day(tmp_path):
    with staged(tmp_path, "a fix is opened") as harbour:
        with dying(harbour, number_of(harbour, INTENTS), "after"):
            harbour.cycle(NOW)
        harbour.runner = "two"
        assert harbour.cycle(timedelta(hours=23))[0].outcome == "lost"
        with pytest.raises(UserError, match="holds the cycle since") as caught:
            harbour.cycle(timedelta(hours=2))
        assert "recover --take-over" in caught.value.next_step
