"""The fake GitHub: merging, and what protection asks for."""

from __future__ import annotations

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git


def text(fake: FakeGitHub, name: str) -> str:
    return git(fake.bare, "show", name)


# --- merging


def test_squash_is_one_commit_of_the_authors_by_github(fake: FakeGitHub, api: Client) -> None:
    number, before = api.pull(), fake.branch("main")
    answer = api.merge(number, sha=fake.branch("topic"), commit_title="T", commit_message="M\n\nMore")
    assert (answer.status, answer.json["sha"]) == (200, fake.branch("main"))
    assert text(fake, "main:README.md") == "# Better"
    told = git(fake.bare, "log", "-1", "--format=%P|%an|%cn|%B", "main")
    assert told == f"{before}|github-actions[bot]|GitHub|T\n\nM\n\nMore"
    pull = api("GET", f"./pulls/{number}").json
    assert (pull["merged"], pull["merged_by"]["id"], pull["merge_commit_sha"]) == (True, 41898282, fake.branch("main"))
    assert pull["head"]["sha"] == fake.branch("topic")
    assert [event["event"] for event in api("GET", f"./issues/{number}/events").json] == ["merged", "closed"]
    assert api("GET", f"./pulls/{number}/merge").status == 204


def test_merge_commit_has_two_parents(fake: FakeGitHub, api: Client) -> None:
    number, before = api.pull(), fake.branch("main")
    assert api.merge(number, merge_method="merge").status == 200
    assert git(fake.bare, "log", "-1", "--format=%P|%s", "main") == (
        f"{before} {fake.branch('topic')}|Merge pull request #{number} from harbour/topic"
    )


def test_head_that_moved_is_409(fake: FakeGitHub, api: Client) -> None:
    number, seen, before = api.pull(), fake.branch("topic"), fake.branch("main")
    fake.push("topic", {"evil": b"x\n"})
    assert api.merge(number, sha=seen).said == (409, "Head branch was modified. Review and try the merge again.")
    assert fake.branch("main") == before


def test_conflict_is_dirty_and_405(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    before = fake.push("main", {"README.md": b"# Other\n"})
    pull = api("GET", f"./pulls/{number}").json
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    assert api.merge(number).said == (405, "Pull Request is not mergeable")
    assert fake.branch("main") == before


def test_closed_or_merged_pull_is_405(fake: FakeGitHub, api: Client) -> None:
    one, two = api.pull("one"), api.pull("two")
    fake.person("mara").close_pull(one)
    fake.person("mara").merge(two)
    assert [api.merge(number).status for number in (one, two)] == [405, 405]


def test_method_that_is_not_allowed_is_405(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    fake.settings.allow_squash_merge = False
    assert api.merge(number).said == (405, "Squash merges are not allowed on this repository.")


def test_merging_closes_the_issues_it_names_on_the_default_branch_only(fake: FakeGitHub, api: Client) -> None:
    mara = fake.person("mara")
    one, two, three = (mara.create_issue("x") for _ in range(3))
    api.merge(api.pull(body=f"Closes #{one}, see #{two}"), commit_title="T", commit_message=f"fixes: #{three}")
    assert [fake.issue(number).state for number in (one, two, three)] == ["closed", "open", "closed"]
    closed = api("GET", f"./issues/{three}/events").json[-1]
    assert (closed["event"], closed["commit_id"]) == ("closed", fake.branch("main"))
    git(fake.bare, "branch", "release", "main~1")
    api.merge(api.pull("other", base="release", body=f"Closes #{two}"))
    assert fake.issue(two).state == "open"


def test_actions_token_does_not_merge_workflows(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {".github/workflows/ci.yml": b"on: push\n"})
    number = fake.person("mara").open_pull("topic", "main", "CI")
    answer = api.merge(number)
    assert answer.status == 403 and "without `workflows` permission" in answer.json["message"]
    assert Client(fake, fake.token("mara")).merge(number).status == 200


def test_branch_is_brought_up_to_date(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    fake.push("main", {"other": b"o\n"})
    assert api("PUT", f"./pulls/{number}/update-branch", {"expected_head_sha": fake.branch("topic")}).status == 202
    assert text(fake, "topic:other") == "o"
    assert api("PUT", f"./pulls/{number}/update-branch", {}).status == 422


def test_branch_goes_with_the_merge_when_so_set(fake: FakeGitHub, api: Client) -> None:
    fake.settings.delete_branch_on_merge = True
    number = api.pull()
    api.merge(number)
    assert fake.branch("topic") == "" and fake.pull(number).state == "closed"
    assert api("GET", f"./pulls/{number}/files").json[0]["filename"] == "README.md"


# --- protection and checks


def test_protection_blocks_until_it_is_satisfied(fake: FakeGitHub, api: Client) -> None:
    fake.protect("main", required_reviews=1, required_checks=("ci",))
    number, mara = api.pull(), fake.person("mara")

    def state() -> str:
        return str(api("GET", f"./pulls/{number}").json["mergeable_state"])

    assert state() == "blocked"
    assert api.merge(number).said == (405, "At least 1 approving review is required by reviewers with write access.")
    fake.person("guest", "read").review(number, "approved")
    assert "approving review" in api.merge(number).said[1]
    mara.review(number, "approved")
    assert api.merge(number).said == (405, 'Required status check "ci" is expected.')
    fake.check(fake.branch("topic"), "ci", None)
    assert api.merge(number).said == (405, 'Required status check "ci" is in progress.')
    fake.check(fake.branch("topic"), "ci", "success")
    fake.check(fake.branch("topic"), "docs", "failure")
    assert state() == "unstable"
    mara.review(number, "changes_requested", "No")
    assert (state(), api.merge(number).status) == ("blocked", 405)
    mara.dismiss(number)
    mara.review(number, "approved")
    assert api.merge(number).status == 200


def test_strict_protection_wants_the_head_up_to_date(fake: FakeGitHub, api: Client) -> None:
    fake.protect("main", strict=True)
    number = api.pull()
    fake.push("main", {"other": b"o\n"})
    assert api("GET", f"./pulls/{number}").json["mergeable_state"] == "behind"
    assert api.merge(number).status == 405


def test_new_commits_dismiss_approvals_when_so_protected(fake: FakeGitHub, api: Client) -> None:
    fake.protect("main", required_reviews=1, dismiss_stale=True)
    number = api.pull()
    fake.person("mara").review(number, "approved")
    fake.push("topic", {"more": b"m\n"})
    assert api.merge(number).status == 405


def test_protection_is_told_to_admins(fake: FakeGitHub, api: Client) -> None:
    admin = Client(fake, fake.token("harbour"))
    assert admin("GET", "./branches/main/protection").said == (404, "Branch not protected")
    assert api("GET", "./branches/main").json["protected"] is False
    assert Client(fake, fake.token("mara"))("GET", "./branches/main/protection").said == (404, "Not Found")
    fake.protect("main", required_reviews=2, required_checks=("ci",), required_signatures=True, restrict_pushes=True)
    told = admin("GET", "./branches/main/protection").json
    assert told["required_pull_request_reviews"]["required_approving_review_count"] == 2
    assert told["required_status_checks"]["contexts"] == ["ci"]
    assert (told["required_signatures"]["enabled"], told["restrictions"]["apps"]) == (True, [])
    assert api("GET", "./branches/main").json["protection"]["required_status_checks"]["contexts"] == ["ci"]


def test_checks_and_statuses_of_a_commit(fake: FakeGitHub, api: Client) -> None:
    sha = fake.push("topic", {"a": b"a\n"})
    fake.check(sha, "ci", None)
    fake.check(sha, "ci", "success", required=True)
    fake.status(sha, "cla", "pending")
    runs = api("GET", f"./commits/{sha}/check-runs").json
    assert [(run["name"], run["conclusion"]) for run in runs["check_runs"]] == [("ci", "success")]
    assert api("GET", "./commits/topic/status").json["state"] == "pending"
    assert fake.world.protections["main"].required_checks == ("ci",)
