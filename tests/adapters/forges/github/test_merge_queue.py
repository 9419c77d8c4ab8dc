"""Where a branch is merged into by a queue alone: put in once, at the approved head, and followed to its end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.mission.lifecycle.checkboxes import box, tick
from ralph_mission.mission.model.effects import LeaveQueue, MergePull
from ralph_mission.mission.model.mission import FailureReason
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.dashboard import ANCHOR
from tests.contract.forge_world import KEY, Opened, merge_pull, outcome, pulled
from tests.fakes.github.actions import pulls as actions

WAITS = ("failed", "queued: it waits in the merge queue of main, at position 1")
PATH = "/graphql"


@pytest.fixture(autouse=True)
def by_account(world: GitHubWorld) -> None:
    """What a workflow's own token queues starts no checks."""
    world.token = world.fake.token("ralph")


@pytest.fixture
def opened(world: GitHubWorld) -> Opened:
    """A pull that a person approved."""
    made = pulled(world)
    world.human("mara").review(made.number, "approved")
    world.fake.ruleset("main", merge_queue=True)
    return made


def merging(world: GitHubWorld, opened: Opened) -> MergePull:
    return replace(merge_pull(opened), base="main", approver=world.human("mara").actor.id)


def enqueued(world: GitHubWorld) -> int:
    return sum(r.transport == "graphql" and "enqueuePullRequest" in str(r.body) for r in world.fake.journal)


def test_it_is_put_in_once_and_followed_until_it_is_merged(world: GitHubWorld, opened: Opened) -> None:
    effect = merging(world, opened)
    assert [outcome(world.connected().perform(effect)) for _ in range(3)] == [WAITS] * 3
    assert enqueued(world) == 1
    world.fake.leave_queue(opened.number)
    receipt = world.connected().perform(effect)
    assert (receipt.status, receipt.sha) == ("adopted", world.fake.branch("main"))
    assert world.fake.branch("ralph/fix") == ""


def test_what_a_workflows_own_token_would_queue_for_ever_is_left_to_a_person(world: GitHubWorld) -> None:
    world.token = world.fake.token()
    opened = pulled(world)
    world.human("mara").review(opened.number, "approved")
    world.fake.ruleset("main", merge_queue=True)
    receipt = world.connected().perform(merging(world, opened))
    assert receipt.explanation.startswith("needs a person: main has a merge queue") and enqueued(world) == 0


def test_it_leaves_the_queue_when_somebody_who_may_write_asks_for_changes(world: GitHubWorld, opened: Opened) -> None:
    effect = merging(world, opened)
    world.connected().perform(effect)
    world.human("nora").review(opened.number, "changes_requested")
    receipt = world.connected().perform(effect)
    assert receipt.reason is FailureReason.NEEDS_PERSON and "nora asks for changes" in receipt.detail
    assert not world.fake.pull(opened.number).pull.queued


def test_what_the_queue_removed_is_told_and_put_in_again_after_a_newer_yes_alone(
    world: GitHubWorld, opened: Opened
) -> None:
    effect = merging(world, opened)
    world.connected().perform(effect)
    world.fake.leave_queue(opened.number, "failed_checks")
    for _ in range(2):
        detail = world.connected().perform(effect).explanation
        assert detail.startswith("needs a person: the merge queue of main removed it (failed checks)")
    assert enqueued(world) == 1
    world.human("mara").review(opened.number, "approved")
    assert outcome(world.connected().perform(effect)) == WAITS
    assert enqueued(world) == 2


def test_a_box_that_is_ticked_once_more_puts_in_again_what_the_queue_removed(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.ruleset("main", merge_queue=True)
    order = f"approve {opened.number} {opened.sha}"
    world.connected().show_dashboard(box("Merge it", order), ANCHOR)
    (page,) = (number for number, thread in world.fake.threads.items() if thread.title == "Ralph")
    for _ in range(2):
        for boxes in ((), {order}):
            world.fake.clock.advance(60)
            world.human("mara").edit_issue(page, body=tick(world.fake.issue(page).body, boxes))
        world.fake.clock.advance(60)
        assert outcome(world.connected().perform(merging(world, opened))) == WAITS
        world.fake.leave_queue(opened.number, "failed_checks")
    assert enqueued(world) == 2


def test_it_leaves_the_queue_when_a_yes_is_gone_in_the_moment_of_merging(world: GitHubWorld, opened: Opened) -> None:
    effect = merging(world, opened)
    world.connected().perform(effect)
    world.human("mara").review(opened.number, "changes_requested")
    assert outcome(world.connected().perform(effect)) == ("failed", "approval-author")
    thread = world.fake.pull(opened.number)
    assert thread.pull and not thread.pull.queued


def test_it_leaves_the_queue_once_unless_a_person_put_it_there(world: GitHubWorld, opened: Opened) -> None:
    leave = LeaveQueue(KEY, opened.number)
    assert world.connected().perform(leave).status == "adopted"
    world.connected().perform(merging(world, opened))
    assert [world.connected().perform(leave).status for _ in range(2)] == ["done", "adopted"]
    thread = world.fake.pull(opened.number)
    actions.enqueue(world.fake.world, world.fake.world.account("mara"), thread)
    assert world.connected().perform(leave).status == "adopted" and thread.pull and thread.pull.queued


def test_a_head_that_is_not_the_approved_one_is_not_put_in(world: GitHubWorld, opened: Opened) -> None:
    world.push("ralph/fix", {"x.txt": b"x\n"})
    assert outcome(world.connected().perform(merging(world, opened))) == ("failed", "approval-head")
    assert enqueued(world) == 0


def test_a_red_check_keeps_it_out_of_the_queue(world: GitHubWorld, opened: Opened) -> None:
    world.fake.check(opened.sha, "tests", "failure")
    assert "not green: tests" in world.connected().perform(merging(world, opened)).explanation
    assert enqueued(world) == 0


@pytest.mark.parametrize("kind", ["reset_applied", "502_applied"])
def test_an_answer_that_was_lost_is_looked_for_in_the_queue(world: GitHubWorld, opened: Opened, kind: str) -> None:
    effect = merging(world, opened)
    forge = world.connected()
    forge.identity()
    world.fake.fail(kind, ("POST", PATH), after=1)
    assert forge.perform(effect).status == "failed"
    assert outcome(world.connected().perform(effect)) == WAITS
    assert enqueued(world) == 1


def test_an_entry_that_can_never_be_merged_needs_a_person(world: GitHubWorld, opened: Opened) -> None:
    effect = merging(world, opened)
    world.connected().perform(effect)
    pull = world.fake.pull(opened.number).pull
    assert pull
    pull.queued = "UNMERGEABLE"
    assert world.connected().perform(effect).explanation.startswith("needs a person: the merge queue of main cannot")


def test_a_red_check_that_the_token_may_not_see_keeps_it_out_of_the_queue(world: GitHubWorld, opened: Opened) -> None:
    world.fake.check(opened.sha, "tests", "failure")
    rights = {"contents": "write", "pull_requests": "write", "issues": "write"}
    blind = world.connected(world.fake.token(permissions=rights))
    assert "checks: read and statuses: read" in blind.perform(merging(world, opened)).explanation
    assert enqueued(world) == 0


@pytest.mark.parametrize("parameter", ["require_code_owner_review", "required_review_thread_resolution"])
def test_what_a_ruleset_also_asks_of_reviews_is_left_to_the_queue_to_judge(
    world: GitHubWorld, opened: Opened, parameter: str
) -> None:
    world.fake.ruleset("main", required_reviews=1)

    def asks_for(request: Any, response: Any) -> None:
        if request.below.startswith("/rules/"):
            rules = [rule | {"parameters": rule.get("parameters", {}) | {parameter: True}} for rule in response.payload]
            response.content = json.dumps(rules).encode()

    world.fake.after(asks_for)
    assert outcome(world.connected().perform(merging(world, opened))) == WAITS
