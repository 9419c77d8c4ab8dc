"""What memory and money keep of a try: no secret of its words, and no more of a day's money than it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission import execute
from ralph_mission.mission.issues import record as plans
from ralph_mission.mission.issues.agent import IssueJob
from ralph_mission.mission.issues.tasks import WorkResult
from ralph_mission.mission.model.ledger import work_key
from ralph_mission.mission.operations import control
from tests.integration.at_review import Told, proposed, read
from tests.integration.at_work import FAILED, FORGES, READY, WORKING, Place, Scripted, ended, made, on_hub

SECRET = "zq7Kd93LmPx04TtR"  # a value that only the runner knows for one


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with FORGES["local"](tmp_path) as found:
        yield found


def knowing(place: Place, secret: str) -> Place:
    """The same with a secret in the runner's environment."""
    opened = place._opened
    place._opened = lambda: replace(opened(), secrets=(*opened().secrets, secret))  # type: ignore[method-assign]  # as its runner would
    return place


def test_a_secret_in_the_reason_of_a_failure_reaches_neither_memory_nor_a_comment_and_the_issue_is_given_back(here):
    number = knowing(here, SECRET).ready()
    report = here.work(Scripted([ended(1, f"3 sessions in a row failed: key {SECRET} is bad")]))
    store = here.house().store
    record = store.records([work_key(number)], store.recall())[work_key(number)]
    assert SECRET not in repr(record) and SECRET not in "".join(here.comments(number))
    assert (report.outcome, here.labels(number)) == ("waiting", {READY})
    assert report.reason.startswith("3 sessions in a row failed")


def test_a_secret_in_the_last_words_does_not_spoil_a_change_that_holds_none(here):
    knowing(here, SECRET).ready()
    report = here.work(Scripted([made(words=f"I found {SECRET} on the way.", learned=(f"the key is {SECRET}",))]))
    assert report.outcome == "done"
    assert SECRET not in here.house().forge.pull(here.pulls()[0].number).body


@pytest.mark.attack(33)
def test_a_secret_that_the_issue_itself_tells_is_not_told_to_the_agent(here):
    knowing(here, SECRET).ready(body=f"Use {SECRET}, or {SECRET} for a mirror.")
    hands = Scripted()
    assert here.work(hands).outcome == "done"
    (job,) = hands.jobs
    assert "[redacted: known-value]" in job.prompt
    assert SECRET not in job.prompt


def test_what_is_given_back_after_midnight_is_not_taken_from_what_others_spent_by_then(here):
    assert here.local is not None
    first, second = here.ready(), here.ready("Add a moon table")

    def over_midnight(job: IssueJob) -> WorkResult:
        assert here.local is not None
        here.local.now += timedelta(hours=13)
        here.work(Scripted([lambda _: WorkResult(2, "cost", sessions=1, usd=4.0)]))
        return WorkResult(2, "cost", sessions=1, usd=1.0)

    assert here.work(Scripted([over_midnight])).record.issue == first
    assert (here.tries(second), here.spent()) == (1, 4.0)


def test_a_review_over_midnight_gives_nothing_back_to_the_new_day(here):
    assert here.local is not None
    number = proposed(here)
    here.ready()

    def over_midnight(job):
        here.local.now += timedelta(hours=13)
        here.work(Scripted([lambda _: WorkResult(2, "cost", sessions=1, usd=4.0)]))
        return '{"issues": []}'

    read(here, number, Told(here, (over_midnight,), usd=0.25))
    assert here.spent() == 4.0


def test_an_issue_that_cannot_be_labelled_costs_nothing(tmp_path):
    with on_hub(tmp_path) as place:
        assert place.hub is not None
        number, hands = place.ready(), Scripted()
        place.hub.fake.fail("403", ("POST", "/issues/*/labels"))
        report = place.work(hands)
        assert (report.outcome, hands.jobs, place.spent()) == ("waiting", [], 0.0)
        assert WORKING not in place.labels(number)


def test_an_issue_of_which_nothing_may_be_said_does_not_keep_the_next_one_from_its_turn(here):
    first = knowing(here, SECRET).ready()
    here.person().comment(first, f"/ralph guidance use the key {SECRET}")
    second = here.ready("Add a moon table")
    report = here.work(Scripted())
    assert (report.outcome, report.record.issue, here.labels(first)) == ("done", second, {READY})
    assert report.skipped == ((first, "rules speak against what would be said there: secret"),)


class Locked:
    """A desk that cannot be written to any more."""

    def pending(self) -> tuple[()]:
        return ()

    def acknowledge(self, ids: object) -> None:
        raise UserError("another process has held it for 30 seconds", "see who")


def test_what_was_made_is_sent_though_guidance_of_this_machine_cannot_be_marked_as_given(here):
    here.ready()
    assert here.work(Scripted(), desk=Locked()).outcome == "done"


def test_a_secret_in_the_name_of_a_file_that_may_not_be_sent_is_told_nowhere(here):
    number = knowing(here, SECRET).ready()
    report = here.work(Scripted([made({f".github/{SECRET}.yml": b"on: push\n"})]))
    store = here.house().store
    record = store.records([work_key(number)], store.recall())[work_key(number)]
    assert (report.outcome, here.labels(number)) == ("waiting", {READY})
    assert "protected-path" in report.reason and SECRET not in report.reason + repr(record)


def held_up(place: Place) -> int:
    """An issue whose try came to nothing, for a reason that nobody may be told by the time it can be said."""

    def paused(job: IssueJob) -> WorkResult:
        control.pause(place.house().store)
        return WorkResult(1, f"key {SECRET} is bad", sessions=1, usd=0.5)

    number = place.ready()
    assert place.work(Scripted([paused])).outcome == "releasing"
    control.resume(place.house().store)
    knowing(place, SECRET)
    return number


def test_an_end_that_no_rule_lets_be_told_is_told_without_its_reason_after_three_refusals(here):
    number, hands = held_up(here), Scripted([ended(2, "cost")])
    rounds = [here.work(hands).settled for _ in range(plans.REFUSALS)]
    assert rounds == [((number, "releasing"),)] * 2 + [((number, "waiting"),)]
    told = next(said for said in here.comments(number) if "came to nothing" in said)
    assert plans.UNSAID in told and "for a second try" in told and SECRET not in told
    assert len(hands.jobs) == 1, "its second try, in the round that gave it back"


def test_an_end_of_which_not_a_word_may_be_told_is_an_end_all_the_same(here):
    number = held_up(here)
    with mock.patch.object(plans, "UNSAID", SECRET):
        rounds = [here.work(Scripted()) for _ in range(plans.REFUSALS + 1)]
    assert [report.settled for report in rounds] == [((number, "releasing"),)] * 2 + [((number, "failed"),), ()]
    assert here.tries(number) == 1 and here.labels(number) == {WORKING} and FAILED not in here.labels(number)


def stopped_from(asked: int) -> object:
    """A pause that comes right before the answer number `asked` to whether there is one."""
    found, counted = execute.is_stopped, iter(range(1, 1000))
    return mock.patch.object(execute, "is_stopped", lambda ports: next(counted) >= asked or found(ports))


@pytest.mark.parametrize(("asked", "said"), [(3, False), (4, True)], ids=["nothing was sent", "its label was"])
def test_a_pause_between_a_claim_and_its_first_word_costs_neither_money_nor_a_try(here, asked, said):
    number, hands = here.ready(), Scripted([ended(1, "stuck")])
    here.person().comment(number, "/ralph guidance use metres")
    with stopped_from(asked):
        assert here.work(hands).outcome == "paused"
    assert (hands.jobs, here.spent(), WORKING in here.labels(number)) == ([], 0.0, said)
    assert [here.work(hands).outcome for _ in range(3)] == ["waiting", "failed", "idle"]
    assert len(hands.jobs) == 2 and "use metres" in hands.jobs[0].prompt
    told = [text for text in here.comments(number) if "paused before a session began" in text]
    assert ["does not count" in text for text in told] == [True] * said
    assert "try 1 of 2" in next(text for text in here.comments(number) if "At work" in text)
