"""The fake GitHub: rulesets, as they are told, and as they stop pushes and merges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import commit, git

FOUND = "Repository rule violations found"
APPROVAL = "At least 1 approving review is required by reviewers with write access."


@pytest.fixture
def clone(fake: FakeGitHub, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fake.bare), "clone")
    commit(tmp_path / "clone", {"direct.txt": "d\n"})
    return tmp_path / "clone"


def kinds(api: Client, branch: str) -> list[str]:
    return [rule["type"] for rule in api("GET", f"./rules/branches/{branch}").json]


# --- told


def test_rules_of_a_branch_are_told_with_their_parameters(fake: FakeGitHub, api: Client) -> None:
    assert api("GET", "./rules/branches/main").json == []
    number = fake.ruleset(
        "main",
        required_reviews=2,
        required_checks=("ci", "lint"),
        required_signatures=True,
        strict=True,
        dismiss_stale=True,
        forbidden=("deletion",),
    )
    rules = {rule["type"]: rule for rule in api("GET", "./rules/branches/main").json}
    assert list(rules) == ["deletion", "required_signatures", "pull_request", "required_status_checks"]
    assert {rule["ruleset_id"] for rule in rules.values()} == {number}
    asked = rules["pull_request"]["parameters"]
    assert (asked["required_approving_review_count"], asked["dismiss_stale_reviews_on_push"]) == (2, True)
    checks = rules["required_status_checks"]["parameters"]
    assert checks["required_status_checks"] == [{"context": "ci"}, {"context": "lint"}]
    assert checks["strict_required_status_checks_policy"] is True


def test_rules_are_told_of_branches_that_are_not_there_yet(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("ralph/*", "~DEFAULT_BRANCH", forbidden=("creation",))
    fake.ruleset("**/deep", forbidden=("update",))
    fake.ruleset("~ALL", required_signatures=True)
    assert kinds(api, "main") == ["creation", "required_signatures"]
    assert kinds(api, "ralph%2Fany") == kinds(api, "ralph/any") == ["creation", "required_signatures"]
    assert kinds(api, "ralph/a/b") == kinds(api, "mainly") == ["required_signatures"]
    assert kinds(api, "deep") == kinds(api, "very/very/deep") == ["update", "required_signatures"]


def test_rules_come_in_pages(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("main", forbidden=("creation", "update", "deletion"))
    assert [rule["type"] for rule in api("GET", "./rules/branches/main", per_page=2, page=2).json] == ["deletion"]


def test_ruleset_makes_a_branch_protected_without_a_protection(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("main", required_reviews=1)
    assert api("GET", "./branches/main").json["protected"] is True
    assert [one["name"] for one in api("GET", "./branches", protected="true").json] == ["main"]
    admin = Client(fake, fake.token("harbour"))
    assert admin("GET", "./branches/main/protection").said == (404, "Branch not protected")


def test_rule_that_the_fake_does_not_know_is_refused(fake: FakeGitHub) -> None:
    with pytest.raises(ValueError, match="merge_queue"):
        fake.ruleset("main", forbidden=("merge_queue",))


# --- pushing


def test_push_past_rules_is_gh013_with_each_violation(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.ruleset("main", required_reviews=0, required_checks=("ci", "lint"), required_signatures=True)
    before = fake.branch("main")
    told = api.git(clone, "push", "URL", "HEAD:refs/heads/main")
    assert told.returncode and fake.branch("main") == before
    for words in (
        "GH013: Repository rule violations found for refs/heads/main.",
        "(push declined due to repository",
        "- Changes must be made through a pull request.",
        "- 2 of 2 required status checks are expected.",
        "- Commits must have verified signatures.",
        "Found 1 violation:",
    ):
        assert words in told.stderr
    assert api.git(clone, "push", "URL", "HEAD:refs/heads/topic").returncode == 0


def test_push_with_the_check_that_a_ruleset_asks_for_is_taken(fake: FakeGitHub, api: Client, clone: Path) -> None:
    fake.ruleset("~DEFAULT_BRANCH", required_checks=("ci",))
    assert 'Required status check "ci" is expected.' in api.git(clone, "push", "URL", "HEAD:refs/heads/main").stderr
    fake.check(git(clone, "rev-parse", "HEAD"), "ci", "success")
    assert api.git(clone, "push", "URL", "HEAD:refs/heads/main").returncode == 0


@pytest.mark.parametrize(
    ("rule", "push", "words"),
    [
        ("creation", "HEAD:refs/heads/new", "Cannot create ref due to creations being restricted."),
        ("update", "HEAD:refs/heads/topic", "Cannot update this protected ref."),
        ("deletion", ":refs/heads/topic", "Cannot delete this branch"),
        ("non_fast_forward", "+HEAD:refs/heads/topic", "Cannot force-push to this branch"),
    ],
)
def test_forbidden_push_is_refused_and_every_other_goes_through(
    fake: FakeGitHub, api: Client, clone: Path, rule: str, push: str, words: str
) -> None:
    git(fake.bare, "branch", "topic", "main")
    if rule == "non_fast_forward":
        fake.push("topic", {"other": b"o\n"})
    fake.ruleset("*", forbidden=(rule,))
    told = api.git(clone, "push", "URL", push)
    assert told.returncode and words in told.stderr
    fake.world.rulesets.clear()
    fake.ruleset("*", forbidden=tuple({"creation", "update", "deletion", "non_fast_forward"} - {rule, "update"}))
    assert api.git(clone, "push", "URL", push).returncode == 0


def test_admins_do_not_pass_a_ruleset(fake: FakeGitHub, clone: Path) -> None:
    fake.ruleset("main", required_reviews=0)
    admin = Client(fake, fake.token("harbour"))
    assert "GH013" in admin.git(clone, "push", "URL", "HEAD:refs/heads/main").stderr


# --- merging


def test_ruleset_blocks_a_merge_until_it_is_satisfied(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("~DEFAULT_BRANCH", required_reviews=1)
    fake.ruleset("main", required_checks=("ci",))
    number = api.pull()
    assert api("GET", f"./pulls/{number}").json["mergeable_state"] == "blocked"
    expected = 'Required status check "ci" is expected.'
    assert api.merge(number).said == (405, f"{FOUND}\n\n{APPROVAL}\n\n{expected}\n\n")
    fake.person("mara").review(number, "approved")
    assert api.merge(number).said == (405, f"{FOUND}\n\n{expected}\n\n")
    fake.check(fake.branch("topic"), "ci", "success")
    assert api("GET", f"./pulls/{number}").json["mergeable_state"] == "clean"
    assert api.merge(number).status == 200


def test_restricted_updates_are_no_merges_either(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    fake.ruleset("main", forbidden=("update",))
    assert api.merge(number).said == (405, f"{FOUND}\n\nCannot update this protected ref.\n\n")


def test_strict_ruleset_wants_the_head_up_to_date(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("main", strict=True)
    number = api.pull()
    fake.push("main", {"other": b"o\n"})
    assert api("GET", f"./pulls/{number}").json["mergeable_state"] == "behind"
    assert api.merge(number).status == 405


def test_new_commits_dismiss_approvals_when_a_ruleset_says_so(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("main", required_reviews=1, dismiss_stale=True)
    number = api.pull()
    fake.person("mara").review(number, "approved")
    fake.push("topic", {"more": b"m\n"})
    assert api.merge(number).status == 405


def test_only_the_author_squashes_where_signatures_are_required(fake: FakeGitHub, api: Client) -> None:
    fake.ruleset("main", required_signatures=True)
    number, unsigned = api.pull(), f"{FOUND}\n\nCommits must have verified signatures.\n\n"
    assert Client(fake, fake.token("mara")).merge(number).said == (405, unsigned)
    assert api.merge(number, merge_method="merge").said == (405, unsigned)
    assert api.merge(number).status == 200
