"""Merging on GitHub: everything is looked at once more, and what is missing is named."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ralph_mission.adapters.forges.github import merging
from ralph_mission.mission.model.effects import ClosePull
from ralph_mission.safety.patch import Edit, FileDelta
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import KEY, merge_pull, outcome, pulled

pytestmark = pytest.mark.long  # takes ten seconds or more


@pytest.mark.attack(53)
def test_approval_dismissed_between_judging_and_merging_is_noticed(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert world.forge.pull(opened.number).reviews[0].state == "approved"
    mara.dismiss(opened.number)
    assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")


@pytest.mark.attack(52)
def test_head_that_moves_in_the_moment_of_merging_is_not_merged(world: GitHubWorld) -> None:
    opened, before = pulled(world), world.fake.branch("main")

    def pushed(request: Any) -> None:
        if request.method == "PUT":
            world.fake.push("ralph/fix", {"evil.txt": b"x\n"})

    world.fake.before(pushed)
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", "approval-head")
    assert world.fake.branch("main") == before


def test_refused_merge_is_reason_to_read_the_pull_anew(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    world.fake.clock.advance(900)
    forge = world.connected()
    forge.pulls(), forge.pull(opened.number)
    mara.dismiss(opened.number)
    forge.perform(replace(merge_pull(opened), approver=mara.id, base="main"))
    assert forge.api.read_cache.get(f"details {opened.number}") is None


@pytest.mark.attack(53)
def test_approver_who_lost_their_rights_is_noticed(world: GitHubWorld) -> None:
    opened, mara = pulled(world), world.human("mara")
    mara.review(opened.number, "approved")
    assert world.forge.may_approve(mara.actor)
    mara.set_permission("read")
    merge = replace(merge_pull(opened), approver=mara.id, base="main")
    assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")


def test_branch_that_must_be_up_to_date_is_behind(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.protect("main", strict=True)
    world.fake.push("main", {"other.txt": b"x\n"})
    assert world.forge.perform(merge_pull(opened)).explanation.startswith("behind: ")


def test_required_check_that_failed_blocks_by_name(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure", required=True)
    said = "blocked: the required check tests ended with failure"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", said)


def test_required_check_that_takes_its_time_is_no_failure(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", None, required=True)
    said = "not attempted: the required check tests has not finished"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", said)


def test_required_check_that_the_token_may_not_see_is_not_said_to_be_missing(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure", required=True)
    world.fake.fail("403", ("GET", "/commits/*/check-runs*"), times=9)
    world.fake.fail("403", ("GET", "/commits/*/status*"), times=9)
    detail = world.forge.perform(merge_pull(opened)).detail
    assert "has not passed" in detail and "checks: read" in detail


def test_missing_review_blocks_even_who_could_overrule_it(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.protect("main", required_reviews=1, enforce_admins=False)
    world.fake.person("robin", "admin")
    receipt = world.connected(world.fake.token("robin")).perform(merge_pull(opened))
    assert receipt.status == "failed" and receipt.detail.startswith("blocked: a review or check")


def test_merge_waits_until_github_knows_whether_it_can(world: GitHubWorld) -> None:
    world.fake.mergeable_lag = 4
    opened = pulled(world)
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert world.slept == [1, 2]


def test_merge_that_github_cannot_judge_is_put_off(world: GitHubWorld) -> None:
    world.fake.mergeable_lag = 99
    opened = pulled(world)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted
    assert world.fake.count(method="PUT") == 0


# --- checks that nobody requires


GREEN = ("success", "neutral", "skipped")
RED = ("failure", "cancelled", "timed_out")


@pytest.mark.parametrize("result", GREEN)
def test_green_check_lets_the_merge_through(world: GitHubWorld, result: str) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", result)
    world.fake.status(opened.sha, "coverage", "success")
    assert world.forge.perform(merge_pull(opened)).status == "done"


@pytest.mark.parametrize(
    ("result", "said"),
    [*((name, "") for name in RED), (None, "tests has not finished"), ("action_required", "Approve")],
)
def test_check_that_has_not_ended_well_keeps_the_merge_waiting_and_is_named(
    world: GitHubWorld, result: str | None, said: str
) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "lint", "success")
    world.fake.check(opened.sha, "tests", result)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and world.fake.count(method="PUT") == 0
    assert said in receipt.detail and "/runs/" in receipt.detail and "lint" not in receipt.detail
    world.fake.check(opened.sha, "tests", "success")  # it ran again
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_check_of_another_app_that_asks_a_person_to_act_is_no_run_to_approve(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "licence", "action_required", app="licencebot")
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "licence asks a person to act" in receipt.detail
    assert "Approve" not in receipt.detail


@pytest.mark.parametrize("state", ["error", "failure", "pending"])
def test_commit_status_that_is_not_green_keeps_the_merge_waiting(world: GitHubWorld, state: str) -> None:
    opened = pulled(world)
    world.fake.status(opened.sha, "coverage", state)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "coverage" in receipt.detail


@pytest.mark.parametrize(
    ("status", "conclusion", "said"),
    [
        ("completed", "action_required", "Approve workflows to run"),
        ("queued", None, "CI has not finished"),
        ("completed", "startup_failure", "CI could not be started"),
    ],
)
def test_workflow_run_without_a_check_run_keeps_the_merge_waiting(
    world: GitHubWorld, status: str, conclusion: str | None, said: str
) -> None:
    opened = pulled(world)
    world.fake.workflow(".github/workflows/ci.yml", "CI")
    world.fake.workflow_run(
        77, status, conclusion, event="pull_request", path=".github/workflows/ci.yml", head_sha=opened.sha
    )
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and said in receipt.detail and "/actions/runs/77" in receipt.detail


CI, LOOP = ".github/workflows/ci.yml", ".github/workflows/ralph-loop.yml"


def run_on(world: GitHubWorld, sha: str, number: int, conclusion: str | None, path: str = CI, **more: Any) -> None:
    """A workflow run of a pull's head, with one job called tests."""
    status = "completed" if conclusion else "in_progress"
    world.fake.workflow_run(number, status, conclusion, **{"event": "pull_request", **more}, path=path, head_sha=sha)
    world.fake.check(sha, "tests", conclusion, suite=number)


def test_cycle_that_a_review_starts_on_the_head_does_not_wait_for_itself(world: GitHubWorld) -> None:
    opened = pulled(world)
    for number, conclusion in ((70, "cancelled"), (71, "skipped"), (72, None)):
        run_on(world, opened.sha, number, conclusion, LOOP, event="pull_request_review")
    assert world.forge.perform(merge_pull(opened)).status == "done"


@pytest.mark.parametrize("conclusion", ["failure", "action_required", "cancelled", None])
def test_review_by_an_agent_that_failed_is_held_or_runs_does_not_stop_the_merge(
    world: GitHubWorld, conclusion: str | None
) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, conclusion, ".github/workflows/ralph-review.yml")
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_checks_of_two_workflows_with_one_name_both_count(world: GitHubWorld) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, "failure")
    run_on(world, opened.sha, 71, "success", ".github/workflows/other.yml")
    world.fake.status(opened.sha, "tests", "success")
    assert "tests ended with failure" in world.forge.perform(merge_pull(opened)).detail


@pytest.mark.parametrize("before", ["cancelled", "failure"])
def test_new_run_of_a_workflow_on_the_same_commit_replaces_the_one_before(world: GitHubWorld, before: str) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, before)
    run_on(world, opened.sha, 71, "success")
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_failure_is_not_made_up_for_by_a_run_in_which_the_check_is_skipped(world: GitHubWorld) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, "failure")
    run_on(world, opened.sha, 71, "skipped")
    assert "tests ended with failure" in world.forge.perform(merge_pull(opened)).detail


@pytest.mark.attack(53)
@pytest.mark.parametrize("before", ["failure", "action_required", "cancelled"])
@pytest.mark.parametrize("elsewhere", [{"from_fork": True}, {"head_branch": "another"}])
def test_a_green_run_of_a_fork_or_another_branch_with_the_same_commit_lets_nothing_through(
    world: GitHubWorld, before: str, elsewhere: dict[str, Any]
) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, before)
    run_on(world, opened.sha, 71, "success", **elsewhere)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "/runs/70" in receipt.detail


@pytest.mark.attack(53)
@pytest.mark.parametrize("conclusion", ["failure", "action_required", None])
def test_a_run_of_a_fork_with_the_same_commit_stops_nothing_and_is_not_told(
    world: GitHubWorld, conclusion: str | None
) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, "success")
    run_on(world, opened.sha, 71, conclusion, from_fork=True)
    seen = world.connected().pull(opened.number)
    assert (seen.held, seen.failed) == ((), ())
    assert world.forge.perform(merge_pull(opened)).status == "done"


@pytest.mark.parametrize("branch", ["", "refs/pull/1/head", "refs/pull/1/merge"])
@pytest.mark.parametrize("conclusion", ["failure", "action_required", None])
def test_a_run_that_names_the_pull_request_or_no_branch_counts(
    world: GitHubWorld, branch: str, conclusion: str | None
) -> None:
    """As of a deployment's tests, and of what GitHub sets up itself."""
    opened = pulled(world)
    assert opened.number == 1
    run_on(world, opened.sha, 70, "success")
    path = ".github/workflows/e2e.yml"
    run_on(world, opened.sha, 71, conclusion, path, event="deployment_status", head_branch=branch)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "/actions/runs/71" in receipt.detail
    seen = world.connected().pull(opened.number)
    assert (bool(seen.held), bool(seen.failed)) == (conclusion == "action_required", conclusion == "failure")


@pytest.mark.parametrize("of", [{"path": LOOP, "event": "pull_request_review"}, {"from_fork": True}])
def test_a_red_report_counts_though_github_puts_it_beside_the_jobs_of_a_run_that_does_not(
    world: GitHubWorld, of: dict[str, Any]
) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, "success")
    run_on(world, opened.sha, 72, None, **of)
    world.fake.check(opened.sha, "JUnit report", "failure", suite=72, by_api=True)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "JUnit report ended with failure" in receipt.detail


def test_a_run_that_could_not_be_started_is_told_as_red(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.workflow_run(70, "completed", "startup_failure", event="pull_request", path=CI, head_sha=opened.sha)
    (red,) = world.connected().pull(opened.number).failed
    assert (red.name, red.url.endswith("/actions/runs/70")) == ("ci", True)


@pytest.mark.parametrize("before", ["action_required", "cancelled", "startup_failure", None])
def test_a_skipped_run_does_not_stand_for_one_that_never_ended_well(world: GitHubWorld, before: str | None) -> None:
    """As where a person sets a label, while the run of the push is held."""
    opened = pulled(world)
    status = "completed" if before else "queued"
    world.fake.workflow_run(70, status, before, event="pull_request", path=CI, head_sha=opened.sha)
    run_on(world, opened.sha, 71, "skipped")
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "/runs/70" in receipt.detail
    assert bool(world.connected().pull(opened.number).held) == (before == "action_required")


def test_red_job_behind_a_green_one_of_the_same_name_counts_until_its_run_is_tried_again(world: GitHubWorld) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, "failure")
    world.fake.check(opened.sha, "tests", "success", suite=70)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "ci ended with failure" in receipt.detail and "/runs/70" in receipt.detail
    world.fake.workflow_run(70, "completed", "success", event="pull_request", path=CI, head_sha=opened.sha, attempt=2)
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_what_github_calls_unstable_is_not_merged_though_every_check_passed(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure")
    world.fake.before(lambda request: hide(world) if "/check-runs" in request.path else None)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "unstable" in receipt.detail


@pytest.mark.parametrize(("hidden", "red"), [("*/check-runs*", "check"), ("*/status*", "status")])
def test_what_github_calls_unstable_is_not_put_down_to_ralphs_own_run_where_other_checks_cannot_be_seen(
    world: GitHubWorld, hidden: str, red: str
) -> None:
    opened = pulled(world)
    run_on(world, opened.sha, 70, None, LOOP, event="pull_request_review")
    make = world.fake.check if red == "check" else world.fake.status
    make(opened.sha, "coverage", "failure")
    world.fake.fail("403", ("GET", hidden), times=9)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "checks: read and statuses: read" in receipt.detail
    assert world.fake.count(method="PUT") == 0


def hide(world: GitHubWorld) -> None:
    world.fake.world.checks.clear()


@pytest.mark.parametrize("list_of", ["*/check-runs*", "*/status*", "*/actions/runs*"])
@pytest.mark.parametrize("queue", [False, True])
def test_list_of_checks_that_does_not_come_is_waited_for(world: GitHubWorld, list_of: str, queue: bool) -> None:
    opened = pulled(world)
    if queue:
        world.fake.ruleset("main", merge_queue=True)
    world.fake.fail("502_not_applied", ("GET", list_of), times=9)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and "GitHub answers 502" in receipt.detail


def test_every_page_of_checks_is_read(world: GitHubWorld) -> None:
    opened = pulled(world)
    for place in range(130):
        world.fake.check(opened.sha, f"matrix {place}", "failure" if place in (0, 129) else "success")
    detail = world.forge.perform(merge_pull(opened)).detail
    assert "matrix 0 ended" in detail and "matrix 129 ended" in detail


def test_checks_that_the_token_may_not_see_are_believed_as_github_sums_them_up(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure")
    rights = {"contents": "write", "pull_requests": "write", "issues": "write", "actions": "read"}
    blind = world.connected(world.fake.token(permissions=rights))
    receipt = blind.perform(merge_pull(opened))
    assert receipt.not_attempted and "checks: read" in receipt.detail
    world.fake.check(opened.sha, "tests", "success")
    assert blind.perform(merge_pull(opened)).status == "done"


def test_where_neither_checks_nor_runs_show_that_anything_ran_the_merge_waits(world: GitHubWorld) -> None:
    opened = pulled(world)
    rights = {"contents": "write", "pull_requests": "write", "issues": "write", "checks": "read", "statuses": "read"}
    blind = world.connected(world.fake.token(permissions=rights))
    receipt = blind.perform(merge_pull(opened))
    assert receipt.not_attempted and receipt.detail.endswith("give the job actions: read")
    world.fake.check(opened.sha, "tests", "success")
    assert blind.perform(merge_pull(opened)).status == "done"


def test_owner_may_let_required_checks_alone_decide(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure")
    may_write = partial(world.forge.people.may_write, fresh=True)
    assert merging.merge(world.forge.threads, merge_pull(opened), may_write, lambda: (), required_checks_only=True)


# --- rulesets


def settings(setting: str, number: int) -> str:
    return f"Settings → Rules → Rulesets, {setting} (ruleset {number} of harbour/slackwater)"


@pytest.mark.parametrize(
    ("conclusion", "begin", "said"),
    [
        ("failure", "blocked: ", "ended with failure"),
        ("", "blocked: ", "has not run"),
        (None, "not attempted: ", "has not finished"),
    ],
)
def test_required_check_of_a_ruleset_is_told_by_name_and_setting(
    world: GitHubWorld, conclusion: str | None, begin: str, said: str
) -> None:
    opened = pulled(world)
    number = world.fake.ruleset("~DEFAULT_BRANCH", required_checks=("lint", "tests"))
    world.fake.check(opened.sha, "lint", "success")
    if conclusion != "":
        world.fake.check(opened.sha, "tests", conclusion)
    where = settings("Require status checks to pass", number)
    told = f"{begin}the required check tests {said}: {where}"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", told)
    assert world.fake.count(method="PUT") == 0


def test_checks_of_protection_and_rulesets_are_told_together(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.protect("main", required_checks=("old",))
    world.fake.ruleset("main", required_checks=("new",))
    world.fake.check(opened.sha, "new", None)
    detail = world.forge.perform(merge_pull(opened)).detail
    assert detail.startswith("blocked: the required check old has not run; the required check new has not finished: ")


def test_review_that_a_ruleset_asks_for_is_told_with_its_setting(world: GitHubWorld) -> None:
    opened = pulled(world)
    number = world.fake.ruleset("main", required_reviews=2)
    world.human("mara").review(opened.number, "approved")
    where = settings("Require a pull request before merging", number)
    told = f"blocked: main asks for 2 approving reviews: {where}"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", told)
    world.human("jonas").review(opened.number, "approved")
    assert world.forge.perform(merge_pull(opened)).status == "done"


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("require_code_owner_review", "the approval of a code owner"),
        ("require_last_push_approval", "an approval by somebody else than who pushed last"),
        ("required_review_thread_resolution", "all conversations resolved"),
    ],
)
def test_wish_of_a_ruleset_is_told(world: GitHubWorld, parameter: str, said: str) -> None:
    opened = pulled(world)
    world.fake.ruleset("main", required_reviews=0, forbidden=("update",))

    def wished(request: Any, response: Any) -> None:
        if request.below.startswith("/rules/"):
            rules = [rule | {"parameters": {parameter: True}} for rule in response.payload]
            response.content = json.dumps(rules).encode()

    world.fake.after(wished)
    assert world.forge.perform(merge_pull(opened)).detail.startswith(f"blocked: main asks for {said}: Settings")


def test_signatures_that_a_ruleset_asks_for_need_a_person(world: GitHubWorld) -> None:
    opened = pulled(world, FileDelta("run", "100755", (Edit(0, 0, ("x",)),)))  # which GitHub does not sign
    number = world.fake.ruleset("main", required_signatures=True, required_reviews=0)
    where = settings("Require signed commits", number)
    told = f"needs a person: Commits must have verified signatures; {where}"
    assert outcome(world.forge.perform(merge_pull(opened, "merge"))) == ("failed", told)
    assert world.forge.perform(merge_pull(opened, "squash")).status == "done"


def test_branch_that_a_ruleset_closes_needs_a_person(world: GitHubWorld) -> None:
    opened = pulled(world)
    number = world.fake.ruleset("main", forbidden=("update", "deletion"))
    told = f"needs a person: main may not be merged into: {settings('Restrict updates', number)}"
    assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", told)


def test_review_that_is_there_already_is_not_said_to_be_missing(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.ruleset("main", required_reviews=1, forbidden=("update",))
    world.human("mara").review(opened.number, "approved")
    world.human("mara").review(opened.number, "commented", "Nice.")
    assert world.forge.perform(merge_pull(opened)).explanation.startswith("needs a person: main may not be merged into")


def test_rules_that_cannot_be_read_cost_only_their_names(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.ruleset("main", required_checks=("tests",))
    world.fake.fail("404", ("GET", "/rules/branches/*"))
    assert world.forge.perform(merge_pull(opened)).detail.startswith("blocked: a review or check that")


def test_rules_are_asked_for_only_when_they_stop_a_merge(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.ruleset("main", required_checks=("tests",))
    world.fake.check(opened.sha, "tests", "success")
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert world.fake.count(below="/rules/*") == 0


def test_draft_is_not_merged(world: GitHubWorld) -> None:
    opened = pulled(world)
    (thread,) = (found for found in world.fake.world.threads.values() if found.number == opened.number)
    thread.pull.draft = True
    assert "is a draft" in world.forge.perform(merge_pull(opened)).detail


def test_another_way_of_merging_is_refused(world: GitHubWorld) -> None:
    assert "method" in world.forge.perform(merge_pull(pulled(world), method="rebase")).detail


def test_a_branch_with_somebody_elses_commit_is_not_deleted(world: GitHubWorld) -> None:
    opened = pulled(world)
    theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
    assert world.forge.perform(ClosePull(KEY, opened.number, opened.sha)).status == "done"
    assert world.fake.branch("ralph/fix") == theirs


def test_a_branch_that_github_deleted_itself_is_asked_for_nothing(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.human("mara").merge(opened.number)
    world.fake.world.bare.delete_ref("refs/heads/ralph/fix")
    pushes = world.fake.count(below="/git-receive-pack")
    assert world.connected().perform(ClosePull(KEY, opened.number, opened.sha)).status == "adopted"
    assert world.fake.count(below="/git-receive-pack") == pushes


def test_a_death_between_merge_and_deletion_leaves_no_branch(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.human("mara").merge(opened.number)
    assert world.connected().perform(merge_pull(opened)).status == "adopted"
    assert world.fake.branch("ralph/fix") == ""


@pytest.mark.parametrize(
    ("status", "conclusion", "said"),
    [
        ("completed", "action_required", "its checks wait for a click on “Approve workflows to run”: http"),
        ("queued", None, "the required check tests has not finished"),
        ("in_progress", None, "the required check tests has not finished"),
    ],
)
def test_required_check_of_a_run_that_has_not_begun_is_waited_for(
    world: GitHubWorld, status: str, conclusion: str | None, said: str
) -> None:
    opened = pulled(world)
    world.fake.protect("main", required_checks=("tests",))
    world.fake.workflow_run(70, status, conclusion, event="pull_request", path=CI, head_sha=opened.sha)
    receipt = world.forge.perform(merge_pull(opened))
    assert receipt.not_attempted and receipt.detail.startswith(said)
