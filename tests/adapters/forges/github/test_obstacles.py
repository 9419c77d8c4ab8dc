"""Refusals that a person must lift name what is to be changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ralph_mission.adapters.forges.github import GitHubForge
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Effect, PushBranch
from ralph_mission.mission.model.mission import FailureReason
from tests.adapters.forges.github.making import Making, new_branch, new_pull, opening_issue, opening_pull
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import KEY, WHEN, merge_pull, new_file, open_issue, pulled


def refusal(world: GitHubWorld, effect: Effect, forge: GitHubForge | None = None) -> str:
    receipt = (forge or world.forge).perform(effect)
    assert receipt.status == "failed" and receipt.reason is FailureReason.NEEDS_PERSON, receipt
    return receipt.detail


@pytest.mark.parametrize(
    ("setting", "value", "effect", "named"),
    [
        (
            "actions_can_create_pulls",
            False,
            lambda world: new_pull(world, "x"),
            "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests",
        ),
        ("archived", True, lambda world: open_issue(labels=()), "Unarchive"),
        ("allow_squash_merge", False, lambda world: merge_pull(pulled(world)), "forge.merge_method"),
    ],
)
def test_setting_that_stands_in_the_way_is_named(
    world: GitHubWorld, setting: str, value: bool, effect: Callable[[GitHubWorld], Effect], named: str
) -> None:
    wanted = effect(world)
    world.forge.identity()
    setattr(world.fake.settings, setting, value)
    assert named in refusal(world, wanted)


@pytest.mark.parametrize(("missing", "making"), [("issues", opening_issue), ("pull_requests", opening_pull)])
def test_missing_permission_is_named(world: GitHubWorld, missing: str, making: Making) -> None:
    effect, _ = making(world, "x")
    rights = {"contents": "write", "issues": "write", "pull_requests": "write", missing: "read"}
    token = world.fake.token(permissions=rights)
    assert f"permissions: {missing.replace('_', '-')}: write" in refusal(world, effect, world.connected(token))


def test_missing_right_to_merge_is_named(world: GitHubWorld) -> None:
    opened = pulled(world)
    rights = {"contents": "read", "pull_requests": "write", "issues": "write", "actions": "read"}
    token = world.fake.token(permissions=rights)
    assert "permissions: contents: write" in refusal(world, merge_pull(opened), world.connected(token))


def test_missing_right_to_read_is_named(world: GitHubWorld) -> None:
    forge = world.connected(world.fake.token(permissions={"contents": "read", "issues": "write"}))
    with pytest.raises(UserError) as caught:
        forge.pulls()
    assert caught.value.who == "you" and "pull-requests: read" in caught.value.next_step


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("restrict_pushes", ("ralph/x is protected", "Settings, Rules")),
    ],
)
def test_rule_of_a_branch_is_named(world: GitHubWorld, rule: str, words: tuple[str, str]) -> None:
    world.fake.protect("ralph/x", **{rule: True})
    detail = refusal(world, new_branch(world, "x"))
    assert all(word in detail for word in words)


def test_workflow_files_need_their_own_permission(world: GitHubWorld) -> None:
    base = world.forge.default_branch().sha
    effect = PushBranch(KEY, "ralph/x", base, "CI", WHEN, (new_file(".github/workflows/ci.yml", "on: push\n"),))
    assert "workflow` permission" in refusal(world, effect)


READ_403 = {
    "Repository was archived so is read-only.": "Unarchive this repository",
    "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this "
    "organization.": "single sign-on",
    "Although you appear to have the correct authorization credentials, the `harbour` organization has an IP allow "
    "list enabled, and your IP address is not permitted to access this resource.": "IP allow list: add",
    "Repository access blocked": "GitHub Support",
}


@pytest.mark.parametrize("words", READ_403)
def test_refusal_to_read_names_the_setting_behind_it(world: GitHubWorld, words: str) -> None:
    def refuse_request(request: Any, response: Any) -> None:
        if request.below == "/issues":
            response.status, response.content = 403, json.dumps({"message": words}).encode()

    world.fake.after(refuse_request)
    with pytest.raises(UserError) as caught:
        world.forge.issues()
    assert caught.value.who == "you" and READ_403[words] in caught.value.next_step
    assert "permissions:" not in caught.value.next_step and world.slept == []


def test_token_that_single_sign_on_keeps_out_is_told_when_it_is_asked_whose_it_is(world: GitHubWorld) -> None:
    def refuse_request(request: Any, response: Any) -> None:
        if request.path == "/user":
            words = "Resource protected by organization SAML enforcement."
            response.status, response.content = 403, json.dumps({"message": words}).encode()

    world.fake.after(refuse_request)
    with pytest.raises(UserError) as caught:
        world.connected(world.fake.token("robin")).identity()
    assert "single sign-on" in caught.value.next_step


def test_whether_actions_may_open_pulls_is_found_out_before_the_first_push(world: GitHubWorld) -> None:
    world.fake.settings.actions_can_create_pulls = False
    detail = refusal(world, new_branch(world, "x"))
    assert "Allow GitHub Actions to create and approve pull requests" in detail and "/settings/actions" in detail
    assert (world.fake.branch("ralph/x"), world.fake.count("git", "POST", "/git-receive-pack")) == ("", 0)
    world.fake.settings.actions_can_create_pulls = True
    assert world.forge.perform(new_branch(world, "x")).status == "done"
    world.forge.close()
    asked = world.fake.count("graphql", below="/graphql")
    assert world.connected().perform(new_branch(world, "y")).status == "done"
    assert world.fake.count("graphql", below="/graphql") == asked + 1  # who we are, and nothing else
    assert world.fake.threads == {}


@pytest.mark.parametrize("fault", ["reset_applied", "500", "garbage", "404"])
def test_that_question_is_asked_again_where_its_answer_was_lost(world: GitHubWorld, fault: str) -> None:
    world.fake.settings.actions_can_create_pulls = False
    world.forge.identity()
    lost = world.fake.fail(fault, ("POST", "/graphql"))
    assert "Allow GitHub Actions to create and approve pull requests" in refusal(world, new_branch(world, "x"))
    assert (lost.used, world.fake.branch("ralph/x")) == (1, "")


def test_no_branch_is_pushed_for_a_pull_that_a_rate_limit_keeps_from_being_opened(world: GitHubWorld) -> None:
    world.forge.identity()
    world.fake.fail("rate_secondary", ("POST", "/graphql"))
    receipt = world.forge.perform(new_branch(world, "x"))
    assert receipt.not_attempted and "rate limit" in receipt.detail
    assert world.fake.branch("ralph/x") == ""


def test_a_person_is_not_asked_whether_actions_may_open_pulls(world: GitHubWorld) -> None:
    world.token = world.fake.token("robin")
    world.fake.settings.actions_can_create_pulls = False
    assert world.connected().perform(new_branch(world, "x")).status == "done"
