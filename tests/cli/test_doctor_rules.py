"""`ralph doctor` on GitHub: branch protection and rulesets that would stop a push or a merge, and what they ask for."""

from __future__ import annotations

from typing import Any, get_args
from urllib.parse import quote

import pytest

from ralph_mission.cli.checks_rules import PUSH
from tests.cli.doctor_place import Place, Rules, statuses


@pytest.mark.parametrize("kind", ["creation", "update", "pull_request", "required_signatures", "branch_name_pattern"])
def test_a_rule_that_stops_our_branches_is_wrong(here: Place, kind: str) -> None:
    here.rules = {quote("ralph/any", safe=""): [{"type": kind}], "ralph-memory": [{"type": kind}]}
    checks = here.checks()
    assert checks["branches ralph/*"].status == checks["memory branch"].status == "wrong"
    assert checks["branches ralph/*"].mend == "exclude `ralph/**` in Settings → Rules"


def test_every_rule_that_is_looked_for_is_one_of_github_s() -> None:
    from githubkit_schemas.v2022_11_28 import models

    shapes = [getattr(models, name) for name in dir(models) if name.startswith("RepositoryRule")]
    kinds = {
        kind
        for shape in shapes
        if "type" in getattr(shape, "model_fields", ())
        for kind in get_args(shape.model_fields["type"].annotation)
    }
    assert {*PUSH, "merge_queue", "required_linear_history", "deletion", "non_fast_forward"} <= kinds


def test_rules_that_stop_nothing_of_ours_are_ok(here: Place) -> None:
    harmless: Rules = [{"type": "deletion"}, {"type": "non_fast_forward"}, {"type": "required_linear_history"}]
    here.rules = {quote("ralph/any", safe=""): harmless, "ralph-memory": harmless, "main": harmless}
    assert statuses(here.checks()) == {"opening pull requests": "note"}


def test_a_rule_on_a_memory_branch_that_was_pushed_before_is_a_note(here: Place) -> None:
    here.fake.push("ralph-memory", {"x": b"1"})
    here.rules = {"ralph-memory": [{"type": "pull_request"}]}
    assert here.checks()["memory branch"].status == "note"


def test_a_protected_memory_branch_is_a_note(here: Place) -> None:
    here.fake.push("ralph-memory", {"x": b"1"})
    here.fake.protect("ralph-memory")
    assert "GH006" in here.checks()["memory branch"].found


def test_another_name_for_the_memory_branch_is_the_one_that_is_looked_at(here: Place) -> None:
    here.rules = {"memory": [{"type": "update"}]}
    assert here.checks(memory_branch="memory")["memory branch"].status == "wrong"


def test_rules_that_cannot_be_seen_are_said_so(here: Place) -> None:
    here.rules = None
    checks = here.checks()
    assert {checks[name].found for name in ("branches ralph/*", "memory branch", "default branch")} == {
        "cannot be seen with this token"
    }


@pytest.mark.parametrize(
    ("rule", "method", "status"),
    [
        ({"type": "merge_queue"}, "squash", "wrong"),
        ({"type": "update"}, "squash", "wrong"),
        ({"type": "required_linear_history"}, "merge", "wrong"),
        ({"type": "required_linear_history"}, "squash", "ok"),
        ({"type": "pull_request", "parameters": {"allowed_merge_methods": ["rebase"]}}, "squash", "wrong"),
        ({"type": "pull_request", "parameters": {"allowed_merge_methods": ["squash"]}}, "squash", "ok"),
        ({"type": "pull_request", "parameters": {"required_approving_review_count": 2}}, "squash", "note"),
        ({"type": "required_signatures"}, "squash", "ok"),
    ],
)
def test_rules_of_the_default_branch_that_keep_us_from_merging(
    here: Place, rule: dict[str, Any], method: str, status: str
) -> None:
    here.rules = {"main": [rule]}
    assert here.checks(merge_method=method)["default branch"].status == status


def test_protection_that_cannot_be_seen_is_a_note_and_what_can_is_looked_at(here: Place, owner: Place) -> None:
    here.fake.protect("main", required_reviews=1)
    assert here.checks()["default branch"].status == "note"
    assert owner.checks()["default branch"].status == "ok"
    here.fake.protect("main", required_reviews=3)
    assert owner.checks()["default branch"].found == "main needs 3 approvals before anything is merged"
    here.fake.protect("main", restrict_pushes=True)
    assert owner.checks()["default branch"].status == "wrong"


# --- what a merge takes -----------------------------------------------------------------


def test_rulesets_say_what_a_merge_takes_as_a_branch_s_own_protection_does(here: Place, owner: Place) -> None:
    takes = "main, protected; a merge takes 1 approval, the checks ci, lint, signed commits; nothing there keeps an "
    here.fake.ruleset("main", required_reviews=1, required_checks=("ci", "lint"), required_signatures=True)
    assert owner.checks()["default branch"].found.startswith(takes)
    here.fake.world.rulesets.clear()
    here.fake.protect("main", required_reviews=1, required_checks=("ci", "lint"), required_signatures=True)
    assert owner.checks()["default branch"].found.startswith(takes)


def test_two_rulesets_and_protection_are_told_together(here: Place, owner: Place) -> None:
    here.fake.ruleset("main", required_checks=("ci",))
    here.fake.ruleset("~ALL", required_checks=("lint", "ci"))
    here.fake.protect("main", required_checks=("docs",))
    assert "the checks ci, lint, docs;" in owner.checks()["default branch"].found


def test_two_rulesets_are_both_asked_how_many_approvals_they_want(here: Place, owner: Place) -> None:
    here.fake.ruleset("main", required_reviews=3)
    here.fake.ruleset("~ALL", required_reviews=1)
    assert owner.checks()["default branch"].found == "main needs 3 approvals before anything is merged"


def test_a_job_sees_all_of_a_branch_that_rulesets_alone_protect(here: Place) -> None:
    here.fake.ruleset("main", required_reviews=1)
    check = here.checks()["default branch"]
    assert (check.status, check.found[:44]) == ("ok", "main, protected; a merge takes 1 approval; n")


def test_checks_that_no_pull_of_the_job_s_own_token_would_start_are_a_note(here: Place, owner: Place) -> None:
    here.fake.ruleset("main", required_checks=("ci",))
    check = here.checks()["default branch"]
    assert (check.status, check.found) == (
        "note",
        "main needs the check ci; no workflow starts for pulls of the job's own token",
    )
    assert "github-token" in check.mend
    assert owner.checks()["default branch"].status == "ok"


@pytest.mark.parametrize(("method", "status"), [("squash", "ok"), ("merge", "wrong")])
def test_signed_commits_are_made_by_a_squash_and_not_by_a_merge_of_ours(
    here: Place, owner: Place, method: str, status: str
) -> None:
    here.fake.ruleset("main", required_signatures=True)
    check = owner.checks(merge_method=method)["default branch"]
    assert check.status == status
    if status == "wrong":
        assert check.mend == "set forge.merge_method: squash in ralph.yml"


def test_checks_that_a_ruleset_wants_before_a_push_stop_our_branches(here: Place) -> None:
    here.fake.ruleset("ralph/**", required_signatures=True, required_checks=("ci",))
    check = here.checks()["branches ralph/*"]
    assert check.found == "rules forbid pushing before checks have passed, commits without a signature"
