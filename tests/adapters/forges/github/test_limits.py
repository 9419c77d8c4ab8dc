""""""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github import committing, effects, merging
from ralph_mission.adapters.forges.github.limits import (
    FURTHEST,
    LONGEST,
    SECONDARY,
    ApiAnswer,
    error_text,
    refusal_of,
    refused_mutation,
    wait_for,
)
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import Anchor
from ralph_mission.mission.model.mission import FailureReason
from tests.adapters.forges.github.making import an_issue, new_pull
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import merge_pull, open_issue, pulled

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


SLOWER = {"message": "You have exceeded a secondary rate limit"}


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (ApiAnswer(403, {"retry-after": "7"}), 7.0),
        (ApiAnswer(429, {"retry-after": "9" * 12}), FURTHEST),
        (ApiAnswer(429, {"retry-after": "soon"}), SECONDARY),
        (ApiAnswer(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() + 30:.0f}"}), 30.0),
        (ApiAnswer(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "٣٠"}), SECONDARY),
        (ApiAnswer(403, {}, SLOWER), SECONDARY),
        (ApiAnswer(403, {}, {"message": "Resource not accessible by integration"}), None),
        (ApiAnswer(500, {"retry-after": "7"}, SLOWER), None),
    ],
)
def test_a_limit_is_told_from_a_refusal_and_lasts_a_day_at_most(answer: ApiAnswer, seconds: float | None) -> None:
    assert wait_for(answer, NOW) == seconds


@pytest.mark.parametrize(
    ("mutation", "needed"),
    [
        (committing.COMMIT, "contents: write"),
        (effects.PULL, "pull-requests: write"),
        (merging.ENQUEUE, "pull-requests: write, contents: write"),
        (merging.DEQUEUE, "pull-requests: write, contents: write"),
        ("mutation($input: PinIssueInput!) { pinIssue(input: $input) { issue { number } } }", "issues: write"),
    ],
)
def test_a_mutation_that_the_token_may_not_make_names_its_permission(mutation: str, needed: str) -> None:
    errors = [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]
    refused = refused_mutation(errors, ApiAnswer(200, {}), mutation)
    assert isinstance(refused, ForgeRefused) and refused.reason is FailureReason.NEEDS_PERSON
    assert refused.what == f"give the job `permissions: {needed}` (Resource not accessible by integration)"


def test_a_mutation_that_is_refused_for_another_reason_names_no_permission() -> None:
    errors = [{"type": "UNPROCESSABLE", "message": "Pull request is closed"}]
    refused = refused_mutation(errors, ApiAnswer(200, {}), merging.ENQUEUE)
    assert isinstance(refused, ForgeRefused) and (refused.what, refused.reason) == (
        "GitHub refused: Pull request is closed",
        None,
    )


def test_the_merge_queue_that_the_token_may_not_use_names_the_permission(world: GitHubWorld) -> None:
    world.token = world.fake.token("ralph")  # what a workflow's own token queues starts no checks
    opened = pulled(world)
    world.fake.ruleset("main", merge_queue=True)

    def forbidden(request: Any, response: Any) -> None:
        if "enqueuePullRequest" in str(request.body):
            error = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
            response.content = json.dumps({"data": None, "errors": [error]}).encode()

    world.fake.after(forbidden)
    explained = world.connected().perform(merge_pull(opened)).explanation
    assert explained.startswith("needs a person: give the job `permissions: pull-requests: write, contents: write`")


@pytest.mark.attack(52)
def test_a_conflict_at_a_merge_is_a_head_that_moved() -> None:
    assert refusal_of("PUT", "/repos/mara/slackwater/pulls/3/merge", ApiAnswer(409, {})).what == "approval-head"


@pytest.mark.attack(60)
def test_what_was_moved_is_not_sent_on() -> None:
    assert "nothing is sent on" in refusal_of("POST", "/repos/mara/slackwater/issues", ApiAnswer(307, {})).what


@pytest.mark.attack(15)
def test_words_of_githubs_are_few() -> None:
    assert len(error_text(ApiAnswer(422, {}, {"message": "no " * 1_000}))) == LONGEST


# --- Lists that are late are waited for, and reads are patient, within limits. ---

ANCHOR = Anchor("lineage", 1, "c" * 40)


def test_issue_that_no_list_shows_yet_is_unknown_and_never_sent_again(world: GitHubWorld) -> None:
    world.fake.list_lag = 50
    world.fake.fail("timeout_applied", ("POST", "/issues"))
    assert world.connected(timeout=0.5).perform(open_issue(labels=())).status == "unknown"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_issue_that_a_list_shows_a_little_later_is_adopted(world: GitHubWorld) -> None:
    world.fake.list_lag = 3
    world.fake.fail("reset_applied", ("POST", "/issues"))
    assert world.forge.perform(open_issue(labels=())).status == "adopted"
    assert world.fake.count(method="POST", below="/issues") == 1


def test_pull_that_no_list_shows_yet_is_not_opened_twice(world: GitHubWorld) -> None:
    effect = new_pull(world, "x")
    world.fake.list_lag = 4
    assert world.forge.perform(effect).status == "done"
    assert world.connected().perform(effect).status == "failed"
    world.fake.list_lag = 0
    for _ in range(4):
        receipt = world.connected().perform(effect)
    assert receipt.status == "adopted"
    assert len([thread for thread in world.fake.threads.values() if thread.pull]) == 1


def test_pull_that_was_closed_and_that_no_list_shows_yet_is_found(world: GitHubWorld) -> None:
    effect = new_pull(world, "x")
    world.fake.list_lag = 100
    number = world.forge.perform(effect).number
    world.human("mara").close_pull(number)
    world.fake.push("theirs", {"theirs.txt": b"x\n"})
    world.human("mara").open_pull("theirs", "main", "Not ours")
    found = world.connected().find(effect)
    assert found and (found.status, found.number) == ("adopted", number)
    assert world.connected().find(replace(effect, head="ralph/y")) is None


def test_anchor_is_made_once_even_when_lists_are_late(world: GitHubWorld) -> None:
    world.fake.list_lag = 100
    for serial in (1, 2):
        world.forge.show_dashboard(f"Page {serial}", Anchor("lineage", serial, "c" * 40))
        world.connected().show_dashboard(f"Page {serial} again", Anchor("lineage", serial, "d" * 40))
    assert len(world.fake.threads) == 1
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)


def test_anchor_whose_making_is_in_doubt_is_left_to_the_next_cycle(world: GitHubWorld) -> None:
    world.fake.fail("reset_applied", ("POST", "/issues"))
    world.forge.show_dashboard("Page", ANCHOR)
    assert "could not be written" in world.notes[-1]
    world.connected().show_dashboard("Page", ANCHOR)
    assert len(world.fake.threads) == 1 and world.connected().anchor() == ANCHOR


def test_read_is_tried_again(world: GitHubWorld) -> None:
    number = an_issue(world)
    fault = world.fake.fail("502_not_applied", ("GET", "/issues/*"), times=3)
    assert world.forge.issue(number).number == number
    assert (fault.used, world.slept) == (3, [1, 2, 4])


@pytest.mark.parametrize(
    ("kind", "who"),
    [("502_not_applied", "forge"), ("reset_not_applied", "network"), ("500", "forge"), ("garbage", "forge")],
)
def test_read_that_keeps_failing_is_one_line(world: GitHubWorld, kind: str, who: str) -> None:
    fault = world.fake.fail(kind, ("GET", "/issues"), times=9)
    with pytest.raises(UserError) as caught:
        world.forge.issues()
    assert (caught.value.who, fault.used) == (who, 4)
    assert "\n" not in caught.value.what
    world.fake.faults.clear()


@pytest.mark.parametrize("kind", ["rate_secondary", "rate_secondary_429"])
def test_read_waits_for_a_rate_limit_within_a_cap(world: GitHubWorld, kind: str) -> None:
    world.fake.fail(kind, ("GET", "/issues"), times=2)
    assert world.forge.issues() == ()
    assert world.slept == [60, 60] and world.notes == ["GitHub's rate limit: waiting 60 s"] * 2
    world.fake.fail(kind, ("GET", "/labels"))
    with pytest.raises(UserError, match="rate limit") as caught:
        world.forge.api.get("/labels")
    assert caught.value.who == "forge" and "12:03 UTC" in caught.value.next_step
    assert world.slept == [60, 60]


def test_limit_that_lifts_too_late_is_told_with_its_time(world: GitHubWorld) -> None:
    world.fake.fail("rate_primary", ("GET", "/issues"))
    with pytest.raises(UserError) as caught:
        world.forge.issues()
    assert "12:30 UTC" in caught.value.next_step and world.slept == []


def test_token_that_is_not_accepted_is_the_users_to_mend(world: GitHubWorld) -> None:
    world.fake.revoke(world.token)
    with pytest.raises(UserError, match="does not accept the token") as caught:
        world.forge.issues()
    assert (caught.value.who, world.slept) == ("you", [])
