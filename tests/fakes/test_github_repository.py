"""The fake GitHub: the repository, its branches and files, and what Actions tells."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from tests.fakes.client import Client
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git

# --- the repository


def test_branches_refs_and_commits(fake: FakeGitHub, api: Client) -> None:
    sha = fake.push("ralph/ä", {"x": b"x\n"}, message="Add x\n\nWhy not.")
    assert [one["name"] for one in api("GET", "./branches").json] == ["main", "ralph/ä"]
    assert api("GET", "./branches/ralph%2F%C3%A4").json["commit"]["sha"] == sha
    assert api("GET", "./git/ref/heads/ralph/%C3%A4").json["object"] == {
        "sha": sha,
        "type": "commit",
        "url": f"{fake.api_url}/repos/harbour/slackwater/git/commits/{sha}",
    }
    assert (api("GET", "./git/ref/heads/none").status, api("GET", "./branches/none").status) == (404, 404)
    commit = api("GET", f"./commits/{sha}").json
    assert (commit["commit"]["message"], commit["author"]["login"]) == ("Add x\n\nWhy not.", "somebody")
    assert [file["filename"] for file in commit["files"]] == ["x"]
    assert api("GET", f"./commits/{'0' * 40}").status == 422


def test_compare_tells_what_lies_between(fake: FakeGitHub, api: Client) -> None:
    sha = fake.push("topic", {"x": b"x\n"})
    told = api("GET", "./compare/main...topic").json
    assert (told["status"], told["ahead_by"], told["behind_by"]) == ("ahead", 1, 0)
    assert ([one["sha"] for one in told["commits"]], told["files"][0]["filename"]) == ([sha], "x")
    fake.push("main", {"y": b"y\n"})
    assert api("GET", "./compare/main...topic").json["status"] == "diverged"


def test_contents_are_files_and_folders(fake: FakeGitHub, api: Client) -> None:
    fake.push("topic", {"docs/a b.md": "ü\n".encode()})
    told = api("GET", "./contents/docs/a%20b.md", ref="topic").json
    assert (told["type"], base64.b64decode(told["content"]).decode()) == ("file", "ü\n")
    assert [(one["type"], one["path"]) for one in api("GET", "./contents/", ref="topic").json] == [
        ("file", "README.md"),
        ("dir", "docs"),
    ]
    assert api("GET", "./contents/docs/a%20b.md").status == 404
    raw = api("GET", "./contents/README.md", headers={"Accept": "application/vnd.github.raw+json"})
    assert raw.raw == b"# Sample\n"


def test_repository_tells_rights_and_ways_to_merge(fake: FakeGitHub, api: Client) -> None:
    told = api("GET", ".").json
    assert (told["permissions"]["push"], told["permissions"]["admin"]) == (True, False)
    assert (told["allow_squash_merge"], told["default_branch"], told["visibility"]) == (True, "main", "public")
    fake.person("guest", "read")
    assert "allow_squash_merge" not in Client(fake, fake.token("guest"))("GET", ".").json


def test_date_of_the_last_push_is_told_and_moves_with_every_branch(fake: FakeGitHub, api: Client) -> None:
    fake.pushed_at = fake.clock.now - timedelta(days=50)
    fake.clock.advance(60)
    api.issue()
    assert api("GET", ".").json["pushed_at"] == "2026-03-15T12:00:00Z"
    fake.push("topic", {"x": b"x\n"})
    assert api("GET", ".").json["pushed_at"] == "2026-05-04T12:01:01Z"
    fake.pushed_at = fake.clock.now - timedelta(days=50)
    git(fake.bare, "branch", "-D", "topic")
    assert api("GET", ".").json["pushed_at"] == "2026-05-04T12:01:01Z"


# --- another name for the default branch


def test_renamed_default_branch_is_the_default_under_its_new_name(fake: FakeGitHub, api: Client) -> None:
    sha = fake.branch("main")
    fake.protect("main", required_reviews=1)
    fake.rename_default("trunk")
    assert (fake.default_branch, fake.branch("trunk"), fake.branch("main")) == ("trunk", sha, "")
    assert api("GET", ".").json["default_branch"] == "trunk"
    assert git(fake.bare, "symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert (api("GET", "./branches/main").status, api("GET", "./branches/trunk").json["protected"]) == (404, True)
    assert git(fake.bare, "rev-parse", f"{fake.push('topic', {'x': b'x'})}~1") == sha
    assert api("GET", "./contents/README.md").status == 200


def test_open_pulls_follow_a_renamed_default_branch(fake: FakeGitHub, api: Client) -> None:
    number, closed, issue = api.pull(), api.pull("other"), api.issue()
    fake.person("mara").close_pull(closed)
    fake.rename_default("trunk")
    pull = api("GET", f"./pulls/{number}").json
    assert (pull["base"]["ref"], pull["state"], pull["mergeable"]) == ("trunk", "open", True)
    assert [one["number"] for one in api("GET", "./pulls", base="trunk", state="all").json] == [number]
    assert api("GET", f"./issues/{number}/events").json[-1]["event"] == "base_ref_changed"
    fake.person("mara").edit_issue(number, body=f"Closes #{issue}")
    assert api.merge(number).status == 200
    assert (git(fake.bare, "show", "trunk:README.md"), fake.issue(issue).state) == ("# Better", "closed")


def test_open_pulls_from_a_renamed_default_branch_are_closed(fake: FakeGitHub, api: Client) -> None:
    git(fake.bare, "branch", "release", "main")
    fake.push("main", {"x": b"x\n"})
    number = fake.person("mara").open_pull("main", "release", "Release")
    fake.rename_default("trunk")
    assert (fake.pull(number).state, fake.pull(number).pull.merged_at) == ("closed", None)


def test_default_branch_takes_no_name_that_is_taken(fake: FakeGitHub) -> None:
    fake.push("trunk", {"x": b"x\n"})
    with pytest.raises(ValueError, match="already"):
        fake.rename_default("trunk")
    assert fake.default_branch == "main"


# --- actions


def test_dispatches_are_remembered(fake: FakeGitHub, api: Client) -> None:
    payload = {"not_before": "2026-05-04T13:00:00Z", "generation": 3}
    body = {"event_type": "ralph-loop-trigger", "client_payload": payload}
    assert api("POST", "./dispatches", body).status == 204
    (received,) = fake.dispatches
    assert (received.event_type, received.client_payload) == ("ralph-loop-trigger", payload)
    for wrong in (
        {"event_type": "x" * 101},
        {"event_type": "x", "client_payload": dict.fromkeys("abcdefghijk", 1)},
        {"event_type": "x", "client_payload": {"a": "x" * 65_536}},
        {"event_type": ""},
    ):
        assert api("POST", "./dispatches", wrong).status == 422
    assert len(fake.dispatches) == 1


def test_runs_of_workflows_are_listed_and_read(fake: FakeGitHub, api: Client) -> None:
    fake.workflow_run(7, "in_progress")
    fake.clock.advance(60)
    fake.workflow_run(8, "completed", "cancelled", event="repository_dispatch")
    fake.workflow_run(9, "queued", path=".github/workflows/ci.yml")
    fake.workflow_run(7, "completed", "success")
    assert [run["id"] for run in api("GET", "./actions/runs").json["workflow_runs"]] == [9, 8, 7]
    mine = api("GET", "./actions/workflows/ralph-loop.yml/runs", status="completed").json
    assert (mine["total_count"], [run["conclusion"] for run in mine["workflow_runs"]]) == (2, ["cancelled", "success"])
    assert api("GET", "./actions/runs", event="repository_dispatch").json["total_count"] == 1
    run = api("GET", "./actions/runs/7").json
    assert (run["status"], run["run_started_at"]) == ("completed", "2026-05-04T12:00:00Z")
    assert api("GET", "./actions/runs/1").status == 404


def test_workflows_environments_and_runners(fake: FakeGitHub, api: Client) -> None:
    fake.workflow(".github/workflows/ralph-loop.yml", state="disabled_inactivity")
    fake.environment("ralph-wait", 360, reviewers=("mara",))
    fake.runner("attic", labels=("self-hosted", "linux"))
    assert api("GET", "./actions/workflows/ralph-loop.yml").json["state"] == "disabled_inactivity"
    assert api("GET", "./actions/workflows").json["total_count"] == 1
    assert api("GET", "./actions/workflows/none.yml").status == 404
    rules = api("GET", "./environments/ralph-wait").json["protection_rules"]
    assert [(rule["type"], rule.get("wait_timer")) for rule in rules] == [
        ("wait_timer", 360),
        ("required_reviewers", None),
    ]
    runners = Client(fake, fake.token("harbour"))("GET", "./actions/runners").json["runners"]
    assert [label["name"] for label in runners[0]["labels"]] == ["self-hosted", "linux"]
