"""`ralph doctor` on GitHub: whose token it is, and what it may do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.cli.checks_github import PERMISSIONS, github
from tests.cli.doctor_place import WORKFLOW, Place


def test_a_token_that_is_not_valid_is_the_only_line(here: Place) -> None:
    hub = here.hub()
    here.fake.revoke(here.token)
    assert [(check.name, check.status) for check in github(hub)] == [("token", "wrong")]


def test_a_repository_that_the_token_may_not_see_is_the_only_line(here: Place) -> None:
    here.token = here.fake.token("joe")
    here.fake.person("joe", "none")
    assert here.get("")[0] == 200  # it is public
    hub = replace(here.hub(), get=lambda path: (404, {"message": "Not Found"}))
    assert [check.name for check in github(hub)] == ["repository on GitHub"]


def test_a_person_s_token_opens_pulls_that_the_person_cannot_approve(here: Place) -> None:
    here.token = here.fake.token("mara")
    check = here.checks()["token"]
    assert (check.status, check.found) == ("note", "classic, as mara, whose own pull requests mara cannot approve")


def test_a_person_who_may_not_write_is_wrong(here: Place) -> None:
    here.fake.person("joe", "read")
    here.token = here.fake.token("joe")
    assert here.checks()["writing"].found == "joe may not write here"


@pytest.mark.parametrize(
    ("prefix", "words"), [("ghp_", "`repo`"), ("github_pat_", "Contents, Issues and Pull requests")]
)
def test_the_scopes_that_a_person_s_token_needs_are_named(here: Place, prefix: str, words: str) -> None:
    here.token = here.fake.token("mara")
    check = here.checks(environment={"GITHUB_TOKEN": prefix})["writing"]
    assert check.status == "note" and words in check.mend


def test_no_line_holds_the_token(here: Place) -> None:
    assert here.token not in repr(here.checks())
    assert here.token not in repr(replace(here.hub(), get=print))


# --- permissions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"), [("contents", "contents"), ("pull-requests", "pull_requests"), ("actions", "actions")]
)
def test_what_the_token_may_not_read_is_named_with_the_line_to_add(here: Place, name: str, key: str) -> None:
    every = {"contents": "write", "issues": "write", "pull_requests": "write", "actions": "read"}
    here.token = here.fake.token(permissions={k: v for k, v in every.items() if k != key})
    check = here.checks()["reading"]
    assert check.found == f"the token may not read {name}"
    assert check.mend == f"give the job `permissions: {{{name}: {PERMISSIONS[name]}}}`"


@pytest.mark.parametrize(
    ("workflow", "missing"),
    [
        ("permissions: {contents: write}\njobs: {a: {}}", "issues, pull-requests, actions"),
        ("permissions: write-all\njobs: {a: {permissions: {issues: write}}}", "contents, pull-requests, actions"),
        ("permissions: read-all\njobs: {a: {}}", "contents, issues, pull-requests"),
        ("permissions: {}\njobs: {a: {}}", "contents, issues, pull-requests, actions"),
    ],
)
def test_what_the_workflow_does_not_grant_is_named(here: Place, workflow: str, missing: str) -> None:
    check = here.checks(workflow=workflow)["writing"]
    assert (check.status, check.found) == ("wrong", f"the workflow does not grant {missing}")
    assert check.mend.startswith("give the job `permissions: {")


@pytest.mark.parametrize("workflow", ["permissions: write-all\njobs: {a: {}}", WORKFLOW])
def test_a_workflow_that_grants_enough_is_ok(here: Place, workflow: str) -> None:
    assert here.checks(workflow=workflow)["writing"].status == "ok"


@pytest.mark.parametrize("workflow", ["", "jobs: {a: {}}", "jobs: [", "7", "jobs: {}"])
def test_a_workflow_that_tells_nothing_is_a_note_with_all_it_needs(here: Place, workflow: str) -> None:
    check = here.checks(workflow=workflow)["writing"]
    assert check.status == "note"
    assert all(f"{name}: {level}" in check.mend for name, level in PERMISSIONS.items())


def test_without_a_word_of_permissions_the_repository_s_default_holds(here: Place) -> None:
    def get(path: str) -> tuple[int, Any]:
        known = {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": False}
        return (200, known) if path == "/actions/permissions/workflow" else here.get(path)

    checks = {check.name: check for check in github(replace(here.hub(), get=get, workflow="jobs: {a: {}}"))}
    assert checks["writing"].found == "the workflow does not grant contents, issues, pull-requests, actions"
    assert checks["opening pull requests"].status == "wrong"
    assert "Allow GitHub Actions to create and approve pull requests" in checks["opening pull requests"].mend
