"""The fake GitHub: pulls, how they follow their branch, files, reviews."""

from __future__ import annotations

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git

# --- opening


def test_pull_tells_its_branches_and_whether_it_merges(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    pull = api("GET", f"./pulls/{number}").json
    assert (pull["head"]["ref"], pull["head"]["sha"]) == ("topic", fake.branch("topic"))
    assert (pull["base"]["ref"], pull["base"]["sha"]) == ("main", fake.branch("main"))
    assert pull["head"]["repo"]["full_name"] == "harbour/slackwater"
    assert (pull["mergeable"], pull["mergeable_state"], pull["merged"]) == (True, "clean", False)
    assert (pull["commits"], pull["additions"], pull["deletions"], pull["changed_files"]) == (1, 1, 1, 1)
    assert git(fake.bare, "rev-parse", f"refs/pull/{number}/head") == fake.branch("topic")


def test_commit_of_an_open_pulls_trial_merge_is_no_sign_of_a_merge(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    trial = api("GET", f"./pulls/{number}").json["merge_commit_sha"]
    assert trial and git(fake.bare, "rev-parse", f"refs/pull/{number}/merge") == trial
    assert fake.branch("main") != trial and api("GET", f"./pulls/{number}/merge").status == 404


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"head": "topic"}, "A pull request already exists for harbour:topic."),
        ({"head": "harbour:topic"}, "A pull request already exists for harbour:topic."),
        ({"head": "same"}, "No commits between main and same"),
        ({"head": "none"}, "invalid"),
        ({"head": "topic", "base": "none"}, "invalid"),
        ({"head": "stranger:topic"}, "invalid"),
    ],
)
def test_pull_that_cannot_be_is_refused(fake: FakeGitHub, api: Client, fields: dict[str, str], problem: str) -> None:
    api.pull()
    git(fake.bare, "branch", "same", "main")
    answer = api("POST", "./pulls", {"title": "x", "base": "main", **fields})
    assert answer.said == (422, "Validation Failed")
    assert problem in (answer.json["errors"][0].get("message"), answer.json["errors"][0]["code"])


def test_second_pull_is_possible_once_the_first_is_closed(fake: FakeGitHub, api: Client) -> None:
    first = api.pull()
    fake.person("mara").close_pull(first)
    assert api("POST", "./pulls", {"title": "x", "head": "topic", "base": "main"}).status == 201


def test_actions_may_not_open_pulls_unless_allowed(fake: FakeGitHub, api: Client) -> None:
    fake.settings.actions_can_create_pulls = False
    fake.push("topic", {"a": b"a\n"})
    fields = {"title": "x", "head": "topic", "base": "main"}
    assert api("POST", "./pulls", fields).said == (
        403,
        "GitHub Actions is not permitted to create or approve pull requests.",
    )
    assert Client(fake, fake.token("ralph[bot]"))("POST", "./pulls", fields).status == 201
    assert Client(fake, fake.token("mara"))("GET", "./actions/permissions/workflow").status == 403
    told = Client(fake, fake.token("harbour"))("GET", "./actions/permissions/workflow").json
    assert told == {"default_workflow_permissions": "write", "can_approve_pull_request_reviews": False}


def test_pulls_are_listed_by_state_and_head(fake: FakeGitHub, api: Client) -> None:
    one, two = api.pull("one"), api.pull("two")
    fake.person("mara").close_pull(one)

    def numbers(**query: str) -> list[int]:
        return [pull["number"] for pull in api("GET", "./pulls", **query).json]

    assert (numbers(), numbers(state="all"), numbers(state="closed")) == ([two], [two, one], [one])
    assert numbers(state="all", head="harbour:one") == [one]
    assert numbers(state="all", direction="asc", base="main") == [one, two]
    assert numbers(base="other") == []


# --- following the branch


def test_head_follows_pushes_and_direct_moves(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    second = fake.push("topic", {"b": b"b\n"})
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == second
    assert [commit["sha"] for commit in api("GET", f"./pulls/{number}/commits").json][-1] == second
    git(fake.bare, "update-ref", "refs/heads/topic", f"{second}^")
    assert api("GET", f"./pulls/{number}").json["head"]["sha"] == git(fake.bare, "rev-parse", f"{second}^")
    assert git(fake.bare, "rev-parse", f"refs/pull/{number}/head") == fake.branch("topic")
    assert api("GET", f"./issues/{number}/events").json[-1]["event"] == "head_ref_force_pushed"


def test_deleted_branch_closes_the_pull(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    git(fake.bare, "update-ref", "-d", "refs/heads/topic")
    assert api("GET", f"./pulls/{number}").json["state"] == "closed"
    answer = api("PATCH", f"./pulls/{number}", {"state": "open"})
    assert answer.status == 422 and "cannot be reopened" in answer.json["errors"][0]["message"]


def test_pull_whose_commits_reach_the_base_by_push_is_merged(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    git(fake.bare, "update-ref", "refs/heads/main", fake.branch("topic"))
    pull = api("GET", f"./pulls/{number}").json
    assert (pull["state"], pull["merged"], pull["merge_commit_sha"]) == ("closed", True, fake.branch("main"))


def test_mergeability_takes_a_while_to_know(fake: FakeGitHub, api: Client) -> None:
    fake.mergeable_lag = 2
    number = api.pull()  # the reply to the creation is the first to not know it
    states = [api("GET", f"./pulls/{number}").json["mergeable_state"] for _ in range(2)]
    assert states == ["unknown", "clean"]


# --- files


def test_files_tell_renames_binaries_and_hunks(fake: FakeGitHub, api: Client) -> None:
    lines = "".join(f"line {n}\n" for n in range(40)).encode()
    fake.push("main", {"old name.txt": lines, "gone": b"x\n"})
    fake.push("topic", {"old name.txt": None, "neu ü.txt": lines + b"more\n", "gone": None, "p.png": b"\0\1\2"})
    number = fake.person("mara").open_pull("topic", "main", "Files")
    files = {file["filename"]: file for file in api("GET", f"./pulls/{number}/files").json}
    assert {name: file["status"] for name, file in files.items()} == {
        "neu ü.txt": "renamed",
        "gone": "removed",
        "p.png": "added",
    }
    assert files["neu ü.txt"]["previous_filename"] == "old name.txt"
    assert files["neu ü.txt"]["patch"] == "@@ -38,3 +38,4 @@ line 36\n line 37\n line 38\n line 39\n+more"
    assert "patch" not in files["p.png"] and files["gone"]["deletions"] == 1


def test_files_are_those_since_the_branch_left(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    fake.push("main", {"other": b"o\n"})
    assert [file["filename"] for file in api("GET", f"./pulls/{number}/files").json] == ["README.md"]


# --- reviews


def test_reviews_name_commit_and_state(fake: FakeGitHub, api: Client) -> None:
    number, first = api.pull(), fake.branch("topic")
    mara = fake.person("mara")
    mara.review(number, "changes_requested", "Too loud")
    second = fake.push("topic", {"b": b"b\n"})
    mara.review(number, "approved")
    mara.dismiss(number, message="Wrong one")
    reviews = api("GET", f"./pulls/{number}/reviews").json
    assert [(one["state"], one["commit_id"], one["body"]) for one in reviews] == [
        ("CHANGES_REQUESTED", first, "Too loud"),
        ("DISMISSED", second, ""),
    ]
    event = api("GET", f"./issues/{number}/events").json[-1]
    assert event["dismissed_review"]["dismissal_message"] == "Wrong one"


def test_a_review_is_edited_by_its_author_alone_and_stays_at_its_commit(fake: FakeGitHub, api: Client) -> None:
    number, first = api.pull(), fake.branch("topic")
    made = api("POST", f"./pulls/{number}/reviews", {"event": "COMMENT", "body": "Hm"}).json["id"]
    theirs = fake.person("mara").review(number, "commented", "Hm")
    fake.push("topic", {"b": b"b\n"})
    edited = api("PUT", f"./pulls/{number}/reviews/{made}", {"body": "Fine"})
    assert (edited.status, edited.json["body"], edited.json["commit_id"]) == (200, "Fine", first)
    assert api("PUT", f"./pulls/{number}/reviews/{theirs}", {"body": "Fine"}).status == 403
    assert api("PUT", f"./pulls/{number}/reviews/{made}", {"body": " "}).status == 422
    assert api("PUT", f"./pulls/{number}/reviews/1", {"body": "Fine"}).status == 404


def test_own_pull_is_not_approved(fake: FakeGitHub, api: Client) -> None:
    number = api.pull()
    answer = api("POST", f"./pulls/{number}/reviews", {"event": "APPROVE"})
    assert (answer.status, answer.json["errors"]) == (422, ["Can not approve your own pull request"])
    assert api("POST", f"./pulls/{number}/reviews", {"event": "COMMENT", "body": "Hm"}).json["state"] == "COMMENTED"


def test_actions_may_not_approve_unless_allowed(fake: FakeGitHub, api: Client) -> None:
    fake.settings.actions_can_create_pulls = False
    fake.push("topic", {"a": b"a\n"})
    number = fake.person("mara").open_pull("topic", "main", "Mine")
    answer = api("POST", f"./pulls/{number}/reviews", {"event": "APPROVE"})
    assert answer.json["errors"] == ["GitHub Actions is not permitted to approve pull requests."]
