"""Merging on GitHub: everything is looked at once more, and what is missing is named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.adapters.forges.effects import ForgeRefused
from ralph_mission.adapters.forges.github import merging
from ralph_mission.mission.model.effects import MergePull
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import merge_pull, outcome, pulled
from tests.mission.build import HEAD, MARA, review

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
    assert forge.api.kept.get(f"details {opened.number}") is None


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
    opened = pulled(world)
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


MERGE = MergePull("k", 4, HEAD, "squash", "Fix\n", "main", MARA.id)


READY = SimpleNamespace(
    number=4, state="open", status="open", ours=True, mergeable_state="clean", base=SimpleNamespace(ref="main")
)


@dataclass
class Table:
    """As much of `Threads` as merging asks. `sent` are the mutations, `asked` how reviews were asked for."""

    wire: Any
    approvals: Sequence[Any] = (review(),)
    sent: list[Any] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)

    @property
    def api(self) -> Table:
        return self

    def pull(self, number: int, fresh: bool) -> Any:
        assert fresh, "what was kept may be another pull by now"
        return self.wire

    def reviews(self, number: int, fresh: bool = False) -> Sequence[Any]:
        self.asked.append(fresh)
        return self.approvals

    def send(self, method: str, path: str, body: Any) -> Any:
        self.sent.append((method, path, body))
        return {"sha": "e" * 40}

    def sleep(self, seconds: float) -> None:
        """No time passes here."""


def merged(effect: MergePull = MERGE, **wire: Any) -> Table:
    table = Table(SimpleNamespace(**{**vars(READY), **wire}))
    merging.merge(table, effect, lambda _: True)  # type: ignore[arg-type]  # as much of Threads as is asked
    return table


@pytest.mark.attack(52, 53)
def test_a_merge_names_the_commit_that_was_approved_and_reads_reviews_afresh() -> None:
    table = merged()
    (method, path, order) = table.sent[0]
    assert (method, path, order["sha"], table.asked) == ("PUT", "/pulls/4/merge", HEAD, [True])


@pytest.mark.parametrize(
    "wire",
    [
        {"ours": False},
        {"state": "closed", "status": "closed"},
        {"mergeable_state": "dirty"},
        {"mergeable_state": "behind"},
        {"mergeable_state": "draft"},
        {"mergeable_state": "unknown"},
    ],
    ids=lambda wire: "-".join(map(str, wire.values())),
)
def test_what_may_not_be_merged_is_not(wire: dict[str, Any]) -> None:
    with pytest.raises(ForgeRefused):
        merged(**wire)


def test_another_way_of_merging_is_refused() -> None:
    with pytest.raises(ForgeRefused, match="method"):
        merged(replace(MERGE, method="rebase"))
