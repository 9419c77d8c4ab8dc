"""Tries that are not the issue's fault, and tries that would come to nothing: the flow with hands of the test's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.loop.hats import IDLE_PAUSE
from ralph_mission.loop.model.order import RunLimits
from ralph_mission.mission.issues.agent import IssueJob, keep_working
from ralph_mission.mission.issues.tasks import SPARED, WorkResult
from ralph_mission.mission.memory.schedule import LEAST
from tests.integration.at_work import FAILED, FORGES, READY, Place, Scripted, ended, made


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with FORGES["local"](tmp_path) as found:
        yield found


def away(job: IssueJob) -> WorkResult:
    """A loop whose agent could not be reached."""
    return WorkResult(1, "failures: 3 sessions in a row failed: 401 Unauthorized", sessions=3, away=True)


def test_an_agent_that_could_not_be_reached_costs_no_try_and_the_next_ones_count(here):
    number = here.ready()
    hands = Scripted([away, away, ended(1, "stuck"), away, made()])
    rounds = [here.work(hands) for _ in range(5)]
    assert [report.outcome for report in rounds] == ["waiting"] * 4 + ["done"]
    assert [report.record.number for report in rounds if report.record] == [1, 1, 1, 2, 2]
    assert [report.code for report in rounds] == [1, 1, 1, 1, 0]
    told = [said for said in here.comments(number) if "came to nothing" in said]
    assert ["does not count" in said for said in told] == [True, True, False, True]


def test_an_agent_that_can_never_be_reached_comes_to_an_end(here):
    number = here.ready()
    hands = Scripted([away])
    outcomes = [here.work(hands).outcome for _ in range(SPARED + 3)]
    assert outcomes == ["waiting"] * (SPARED + 1) + ["failed", "idle"]
    assert here.labels(number) == {FAILED}


def test_nothing_is_claimed_while_the_usual_agent_is_not_there(here):
    number = here.ready()
    hands = Scripted(missing=("",))
    report = here.work(hands)
    assert (report.outcome, report.code, hands.jobs) == ("held", 1, [])
    assert here.labels(number) == {READY} and here.comments(number) == []


def test_a_try_does_not_begin_with_what_is_left_of_a_day_s_money(here):
    number = here.ready()
    day = here.house().charter.limits.usd_per_day
    here.work(Scripted([lambda job: WorkResult(2, "cost", sessions=1, usd=day - LEAST / 2)]))
    hands = Scripted()
    assert (here.work(hands).outcome, hands.jobs, here.labels(number)) == ("held", [], {READY})
    assert here.work(hands, usd_per_issue=LEAST / 4).outcome == "done", "somebody set less for one issue"


def test_a_try_takes_no_longer_than_is_left_of_the_whole_run(here):
    here.ready()
    hands = Scripted([ended(130, "interrupted")])
    keep_working(here.worker(hands), RunLimits(runtime=600.0))
    assert 0 < hands.jobs[0].seconds <= 600.0


def test_an_agent_that_is_away_is_waited_for_longer_than_after_a_failure(here):
    here.ready()
    hands = Scripted([away, ended(130, "interrupted")])
    keep_working(here.worker(hands))
    assert here.slept == [IDLE_PAUSE]
