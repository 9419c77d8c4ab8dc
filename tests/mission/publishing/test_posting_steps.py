"""The steps of a mission that publishes, as values: what the issue shows is sent, and nothing that memory says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.mission.lifecycle import approval
from ralph_mission.mission.lifecycle.steps import next_step as step
from ralph_mission.mission.lifecycle.table import interpret_facts
from ralph_mission.mission.model.cycle import NO_VERDICT, MissionFacts, MissionStep, ShownPosts, StepContext
from ralph_mission.mission.model.effects import Publish
from ralph_mission.mission.model.forge import Branch, Chart, Issue, Post
from ralph_mission.mission.model.ledger import EffectRecord, Record
from ralph_mission.mission.model.mission import Action, Mission, Status
from ralph_mission.mission.publishing import content, posting
from tests.mission.build import BASE, BOT, DAY, MARA, NOW, OUTSIDER, issue, labelled, make_failure, mission, remark

CHART = Chart("APR", "%", ((NOW, 1.0), (NOW + DAY, 2.0)), "From 1 % to 2 %")
POST = Post("twitter", ("The table is longer.",), (20,), 280, CHART)
LATER_ON = NOW + DAY


def make_issue(*posts: Post, labels: frozenset[str] = frozenset(), **changes: Any) -> Issue:
    return issue(body=content.render(posts), labels=labels, **changes)


def publishing(found: Issue, **changes: Any) -> Mission:
    digest = approval.content_hash(found.title, found.body)
    made = mission(kind="content", action=Action.PUBLISH, status=Status.DISCOVERED, pull=0, proposal_hash=digest)
    return replace(made, **changes)


def planned(made: Mission, post: Post, state: str = "planned", detail: str = "") -> dict[str, Record]:
    (effect,) = posting.publishing(made.key, [post])
    receipt = replace(make_failure(effect.key, detail), status=state) if state not in ("planned", "intended") else None  # type: ignore[arg-type]  # one of its states
    return {effect.key: EffectRecord(effect.key, "a", Action.PUBLISH, "content", state, effect, 1, NOW, 1, receipt)}


def next_step(made: Mission, found: Issue, records: dict[str, Record], *posts: Post, wrong: str = "") -> MissionStep:
    facts = MissionFacts(
        found, None, frozenset({MARA.id}), us=BOT.id, shown=ShownPosts(posts, (wrong,) if wrong else ())
    )
    around = StepContext(2, LATER_ON, ("mara",), "squash", records, Branch("main", BASE))
    return step(made, facts, interpret_facts(made, facts, LATER_ON), around)[-1]


def approved(*posts: Post, by: Any = MARA) -> Issue:
    event = labelled("content:approved", by, LATER_ON)
    return make_issue(*posts, labels=frozenset({"content:approved"}), events=(event,))


def sent(found: MissionStep) -> list[Post]:
    effects = found.proposal.effects if found.proposal else ()
    return [effect.post for effect in effects if isinstance(effect, Publish)]


def bare(post: Post) -> Post:
    """As it is read back from the issue."""
    return replace(post, chart=None)


def test_the_chart_that_the_issue_names_goes_with_its_text() -> None:
    found = approved(POST)
    made = publishing(found)
    assert sent(next_step(made, found, planned(made, POST), bare(POST))) == [POST]


def test_another_chart_than_the_issue_names_stays_at_home() -> None:
    found = approved(POST)
    made = publishing(found)
    forged = replace(POST, chart=replace(CHART, title="Buy anchors"), parts=("Buy anchors",))
    assert sent(next_step(made, found, planned(made, forged), bare(POST))) == [bare(POST)]


def test_a_chart_that_was_taken_out_below_its_network_stays_at_home() -> None:
    other = replace(POST, network="discord")
    line = next(line for line in content.render([POST]).splitlines() if line.startswith("With a chart"))
    body = content.render([POST, other]).replace(line, "", 1)
    found = replace(approved(POST, other), body=body)
    made = publishing(found)
    records = planned(made, POST) | planned(made, other)
    assert sent(next_step(made, found, records, bare(POST), bare(other))) == [bare(POST), other]


def test_without_the_records_the_text_goes_alone() -> None:
    found = approved(POST)
    assert sent(next_step(publishing(found), found, {}, bare(POST))) == [bare(POST)]


@pytest.mark.attack(12, 14)
@pytest.mark.parametrize("by", [BOT, OUTSIDER])
def test_a_bots_or_a_strangers_label_is_no_yes(by: Any) -> None:
    found = approved(POST, by=by)
    made = publishing(found)
    told = next_step(made, found, planned(made, POST), bare(POST))
    assert sent(told) == [] and told.mission.status is Status.DISCOVERED


def test_that_label_says_yes_to_nothing_else() -> None:
    found = approved(POST)
    other = publishing(found, action=Action.OPEN_PROPOSAL, kind="feature")
    assert approval.on_issue(found, other, frozenset({MARA.id})) == NO_VERDICT
    assert approval.on_issue(found, publishing(found), frozenset({MARA.id})).state == "approved"


@pytest.mark.parametrize("state", ["done", "adopted", "unknown"])
def test_what_was_or_may_have_been_sent_is_over(state: str) -> None:
    found = approved(POST)
    made = publishing(found, status=Status.EXECUTING)
    told = next_step(made, found, planned(made, POST, state), bare(POST))
    assert sent(told) == [] and told.proposal is not None and told.proposal.action is Action.FINISH


@pytest.mark.parametrize(
    ("detail", "again"), [("later: rate limit", 1), ("not attempted: stopped", 1), ("forbidden", 0)]
)
def test_only_what_certainly_may_come_later_is_sent_again(detail: str, again: int) -> None:
    found = approved(POST)
    made = publishing(found, status=Status.EXECUTING)
    assert len(sent(next_step(made, found, planned(made, POST, "failed", detail), bare(POST)))) == again


def test_a_network_that_wants_to_be_left_alone_is_waited_for() -> None:
    found = approved(POST)
    made = publishing(found, status=Status.EXECUTING)
    ((key, record),) = planned(made, POST, "failed", "later: rate limit").items()
    assert isinstance(record, EffectRecord) and record.receipt
    for wait, posts in ((DAY.total_seconds() + 60, []), (DAY.total_seconds(), [POST])):
        records: dict[str, Record] = {key: replace(record, receipt=replace(record.receipt, at=NOW, wait=wait))}
        told = next_step(made, found, records, bare(POST))
        assert sent(told) == posts
        assert told.mission.status is Status.EXECUTING and (told.proposal is None) is not bool(posts)


def test_an_edit_that_leaves_no_text_ends_nothing_that_was_not_said() -> None:
    found = approved(POST)
    made = publishing(found, status=Status.EXECUTING)
    records = planned(made, POST, "failed", "later: rate limit")
    made = replace(made, pending=tuple(records))
    gone = replace(found, body="Nothing here.")
    told = next_step(made, gone, records)
    assert told.proposal is not None and told.proposal.after is not None
    assert told.proposal.after.status is Status.DISCOVERED


def test_a_network_that_is_not_set_up_in_this_run_is_not_given_up() -> None:
    found = approved(POST)
    made = publishing(found, status=Status.EXECUTING)
    records = planned(made, POST, "failed", "later: rate limit")
    told = next_step(
        replace(made, pending=tuple(records)), found, records, wrong="`twitter`: nothing is published there"
    )
    assert told.proposal is not None and told.proposal.action is Action.ANSWER
    assert told.mission.status is Status.EXECUTING


def test_without_a_yes_that_stands_the_rest_is_not_sent() -> None:
    found = make_issue(POST)
    made = publishing(found, status=Status.EXECUTING)
    assert sent(next_step(made, found, planned(made, POST, "failed", "later: rate limit"), bare(POST))) == []


def test_our_own_label_ends_it_even_where_a_run_died_before_it_could_tell() -> None:
    event = labelled("content:published", BOT, LATER_ON)
    found = make_issue(
        POST, labels=frozenset({"content:published"}), events=(event,), state="closed", closed_by=BOT,
        remarks=(remark("done", BOT),),
    )  # fmt: skip  # one issue
    made = publishing(found, status=Status.EXECUTING)
    told = next_step(made, found, planned(made, POST, "done"), bare(POST))
    assert told.proposal is not None and told.proposal.after is not None
    assert told.proposal.after.status is Status.COMPLETED
