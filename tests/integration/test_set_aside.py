"""What a person says of a pull request that was set aside, or of a refused merge, is neither lost nor undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from ralph_mission.mission.memory.text import parse_memory
from tests.integration.coding import agent_world
from tests.integration.hub import Hub, open_hub
from tests.integration.test_missions_by_agent import begun
from tests.integration.world import statuses

SOON = timedelta(minutes=20)
BASE = {"docs/guide.md": b"# Guide\n\nThis is definately the way to read a table.\n"}
CONFLICT = {"docs/guide.md": b"# Guide\n\nThis is definately one way to read a table.\n"}
ASIDE = {"ralph:parked", "ralph:escalated"}


def later(hub: Hub, cycles: int = 1) -> list[str]:
    return [*(statuses(hub.cycle(SOON)[0]) for _ in range(cycles))][-1]


def check_run(hub: Hub, number: int) -> Callable[..., object]:
    """Sets how the checks of a pull request's head stand."""
    head = hub.fake.branch(hub.head_name(number))
    return partial(hub.fake.workflow_run, 5, event="pull_request", path=".github/workflows/ci.yml", head_sha=head)


def labels(hub: Hub, number: int) -> set[str]:
    return ASIDE & set(hub.fake.threads[number].labels)


@pytest.fixture
def refused(reviewed: Hub) -> Hub:
    """One whose approved merge has conflicts."""
    (pull,) = reviewed.pulls
    reviewed.person().review(pull.number, "approved")
    reviewed.fake.push("main", CONFLICT)
    return reviewed


def test_an_approved_pull_request_that_a_person_parks_is_not_merged_until_it_is_approved_again(reviewed):
    (pull,) = reviewed.pulls
    run = check_run(reviewed, pull.number)
    run("in_progress")
    reviewed.person().review(pull.number, "approved")
    assert later(reviewed) == ["IN_REVIEW"]
    reviewed.person().comment(pull.number, "/ralph park")
    assert later(reviewed) == ["PARKED"]
    run("completed", conclusion="success")
    before = len(reviewed.said(pull.number))
    assert later(reviewed, 2) == ["PARKED"] and not reviewed.merged(pull.number)
    assert len(reviewed.said(pull.number)) == before
    reviewed.person().review(pull.number, "approved")
    assert later(reviewed) == ["COMPLETED"] and reviewed.merged(pull.number) and not labels(reviewed, pull.number)


def test_a_parked_pull_request_that_is_approved_waits_for_its_checks_as_any_other(reviewed):
    (pull,) = reviewed.pulls
    run = check_run(reviewed, pull.number)
    run("in_progress")
    reviewed.person().comment(pull.number, "/ralph park")
    assert later(reviewed) == ["PARKED"]
    reviewed.person().review(pull.number, "approved")
    assert later(reviewed, 2) == ["IN_REVIEW"]
    run("completed", conclusion="success")
    assert later(reviewed) == ["COMPLETED"]


def test_of_parking_and_approving_the_later_word_counts(reviewed):
    (pull,) = reviewed.pulls
    reviewed.person().comment(pull.number, "/ralph park")
    reviewed.person().review(pull.number, "approved")
    assert later(reviewed) == ["COMPLETED"]


def closed_by_nobody(hub):
    """An approved pull request that somebody without a say closed, which sets it aside."""
    (pull,) = hub.pulls
    hub.person().review(pull.number, "approved")
    hub.person("stale", "triage").close_pull(pull.number)
    assert later(hub) == ["PARKED"]
    return pull


def test_a_pull_request_that_was_closed_by_somebody_without_a_say_is_merged_once_it_is_open_again(reviewed):
    pull = closed_by_nobody(reviewed)
    reviewed.person().reopen(pull.number)
    assert later(reviewed) == ["COMPLETED"]


def test_an_approved_pull_request_that_somebody_without_a_say_closes_is_set_aside_once(reviewed):
    pull = closed_by_nobody(reviewed)
    before = [*reviewed.said(pull.number)]
    assert later(reviewed, 3) == ["PARKED"] and reviewed.said(pull.number) == before


def test_a_queued_pull_request_that_needs_a_person_leaves_the_queue(tmp_path):
    with open_hub(tmp_path) as hub:
        hub.token = hub.fake.token("ralph-app[bot]")
        hub.cycle()
        (pull,) = hub.pulls
        hub.fake.ruleset("main", merge_queue=True)
        hub.person().review(pull.number, "approved")
        assert later(hub) == ["IN_REVIEW"] and pull.pull.queued
        hub.fake.push("main", CONFLICT)
        assert later(hub) == ["ESCALATED"] and not pull.pull.queued


@pytest.mark.parametrize("fault", ["502_not_applied", "403"])
def test_a_refused_merge_is_asked_about_also_where_its_place_in_a_queue_is_unknown(refused, fault):
    def fail(request):
        if request.transport == "graphql" and "mergeQueueEntry" in json.dumps(request.body):
            refused.fake.fail(fault, ("POST", "*graphql"))

    refused.fake.before(fail)
    assert later(refused) == ["ESCALATED"]


@pytest.mark.parametrize("word", ["approved", "/ralph retry"])
def test_an_answer_to_a_question_whose_label_failed_is_not_lost(refused, word):
    (pull,) = refused.pulls
    refused.fake.fail("502_not_applied", ("POST", "*/labels"), times=4)
    assert later(refused) == ["IN_REVIEW"] and "has conflicts" in refused.said(pull.number)[-1]
    refused.fake.faults.clear()
    refused.fake.push("main", BASE)
    person = refused.person()
    person.comment(pull.number, word) if word.startswith("/") else person.review(pull.number, word)
    later(refused, 3)
    assert refused.merged(pull.number) and not labels(refused, pull.number)


def test_an_approval_of_somebody_elses_commit_is_answered_once_with_what_to_do(refused):
    (pull,) = refused.pulls
    assert later(refused) == ["ESCALATED"]
    refused.person().push(refused.head_name(pull.number), {"docs/guide.md": CONFLICT["docs/guide.md"] + b"More.\n"})
    refused.person().review(pull.number, "approved")
    assert later(refused) == ["ESCALATED"]
    before = [*refused.said(pull.number)]
    assert before[-1].startswith("**Needs a person.** Comment `/ralph retry`;")
    assert later(refused) == ["ESCALATED"] and refused.said(pull.number) == before


def test_who_did_not_approve_somebody_elses_commit_is_not_told_that_they_did(refused):
    (pull,) = refused.pulls
    assert later(refused) == ["ESCALATED"]
    refused.person().push(refused.head_name(pull.number), {"docs/guide.md": CONFLICT["docs/guide.md"] + b"More.\n"})
    refused.person().review(pull.number, "changes_requested", "Not so.")
    before = [*refused.said(pull.number)]
    assert later(refused, 2) == ["ESCALATED"] and refused.said(pull.number) == before


def test_a_label_that_could_not_be_taken_off_goes_with_the_merge(refused):
    (pull,) = refused.pulls
    assert later(refused) == ["ESCALATED"]
    refused.fake.push("main", BASE)
    refused.person().review(pull.number, "approved")
    fault = refused.fake.fail("502_not_applied", ("DELETE", "*labels*"))
    later(refused)
    assert fault.used and labels(refused, pull.number)
    assert later(refused) == ["COMPLETED"] and not labels(refused, pull.number)


def test_an_approved_merge_that_waits_for_its_base_is_looked_at_soon(reviewed):
    (pull,) = reviewed.pulls
    reviewed.fake.check(reviewed.fake.branch(reviewed.head_name(pull.number)), "ci", "success")
    reviewed.fake.protect("main", required_checks=("ci",), strict=True)
    reviewed.fake.push("main", {"other.md": b"hello\n"})
    reviewed.person().review(pull.number, "approved")
    assert later(reviewed) == ["IN_REVIEW"] and not reviewed.merged(pull.number)
    assert parse_memory(reviewed.memory()).header.next_due_at == reviewed.now + timedelta(minutes=15)


def test_a_fix_beside_a_parked_pull_request_does_not_wait_for_it(tmp_path):
    lines = "# Guide\n\nThis is definately the way.\n{}\n\n\n\nlast\n"
    with open_hub(tmp_path, files={"docs/guide.md": lines.format("More here.")}) as hub:
        hub.cycle()
        (pull,) = hub.pulls
        hub.person().comment(pull.number, "/ralph park")
        assert later(hub) == ["PARKED"]
        hub.fake.push("main", {"docs/guide.md": lines.format("We recieve here.").encode()})
        assert later(hub) == ["PARKED", "IN_REVIEW"]


def test_a_pull_request_is_labelled_as_parked_beside_its_issue(tmp_path):
    with agent_world(tmp_path, "github") as shop:
        issue = begun(shop)
        shop.person().comment(issue, "/ralph park")
        assert statuses(shop.cycle()[0]) == ["PARKED"]
        assert "ralph:parked" in shop.pull().labels and "ralph:parked" in shop.issue(issue).labels
