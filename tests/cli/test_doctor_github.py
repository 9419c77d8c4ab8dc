"""`ralph doctor` on GitHub: each thing that would stop it is found, said with its mend, and only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest
import requests

from ralph_mission.cli.checks_github import PERMISSIONS, asking, github
from ralph_mission.cli.checks_line import Check, Hub
from ralph_mission.cli.checks_rules import PUSH
from ralph_mission.cli.checks_schedule import wait_timers, wakes, waking
from ralph_mission.forges.github.labels import LABELS
from ralph_mission.mission.trouble import Trouble
from ralph_mission.wakers.facts import Facts
from tests.fakes.github import FakeGitHub, routing
from tests.forges.github_world import GitHubWorld
from tests.forges.github_world import github as github_world
from tests.helpers import NOON, cli_here

WORKFLOW = """
on: {repository_dispatch: {types: [ralph-loop-trigger]}, schedule: [{cron: "7 * * * *"}]}
permissions: {}
jobs:
  lint: {runs-on: x, permissions: {contents: read}, steps: []}
  cycle:
    permissions: {contents: write, issues: write, pull-requests: write, actions: read}
    steps: [{uses: ./}]
"""
Rules = list[dict[str, Any]]


@dataclass
class Place:
    """The fake GitHub as a token sees it; what it does not serve (rulesets, dates) the test says itself."""

    fake: FakeGitHub
    token: str = ""
    rules: dict[str, Rules] | None = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, path: str) -> tuple[int, Any]:
        """As `Get`, over the wire."""
        self.asked.append(path)
        if path.startswith("/rules/branches/"):
            name = path.removeprefix("/rules/branches/")
            return (404, None) if self.rules is None else (200, self.rules.get(name, []))
        address = path[1:] if path.startswith("//") else f"/repos/{self.fake.repository}{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = requests.get(self.fake.api_url + address, headers=headers, timeout=5)
        body = answer.json()
        return answer.status_code, body | self.changes if path == "" and answer.ok else body

    def hub(self, **changes: Any) -> Hub:
        account = next(t.account.login for t in self.fake.world.tokens.values() if t.value == self.token)
        environment = {"GITHUB_TOKEN": self.token, **self.environment}
        made = Hub(self.get, account, self.fake.clock.now, workflow=WORKFLOW, environment=environment)
        return replace(made, **changes)

    def checks(self, **changes: Any) -> dict[str, Check]:
        """The worst line of each name."""
        found: dict[str, Check] = {}
        for check in github(self.hub(**changes)):
            if check.name not in found or check.status == "wrong":
                found[check.name] = check
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubWorld]:
    with github_world(tmp_path) as made:
        made.fake.workflow(".github/workflows/ralph-loop.yml")
        for name in LABELS:
            made.fake.world.label(name)
        yield made


@pytest.fixture
def here(world: GitHubWorld) -> Place:
    return Place(world.fake, world.token)


@pytest.fixture
def owner(world: GitHubWorld) -> Place:
    """As a person who may see every setting."""
    return Place(world.fake, world.fake.token(world.fake.owner))


def statuses(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.status for name, check in checks.items() if check.status != "ok"}


# --- nothing is wrong -----------------------------------------------------------------


def test_a_sound_repository_has_nothing_wrong_and_says_what_it_cannot_see(here: Place) -> None:
    checks = here.checks()
    assert statuses(checks) == {"opening pull requests": "note"}
    assert checks["opening pull requests"].found == "cannot be seen with this token"
    assert checks["token"].found == "the workflow's or an app's own, as github-actions[bot]"
    assert checks["writing"].found == "the workflow grants contents, issues, pull-requests, actions"


def test_the_owner_sees_that_nothing_is_wrong(owner: Place) -> None:
    assert "wrong" not in statuses(owner.checks()).values()


def test_it_only_reads_and_asks_little(here: Place) -> None:
    here.checks()
    assert {request.method for request in here.fake.journal} == {"GET"}
    assert len(here.asked) <= 20


def test_every_line_that_is_wrong_says_how_to_mend_it(here: Place) -> None:
    here.fake.settings.archived = here.fake.settings.has_issues = True
    here.fake.settings.allow_squash_merge = False
    here.rules = {quote("ralph/any", safe=""): [{"type": "creation"}]}
    wrong = [
        check for check in here.checks(workflow="jobs: {a: {permissions: {}}}").values() if check.status == "wrong"
    ]
    assert len(wrong) == 4
    assert all(check.mend for check in wrong)


# --- the token ------------------------------------------------------------------------


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


def test_a_network_that_is_down_is_the_only_line(here: Place) -> None:
    def down(path: str) -> tuple[int, Any]:
        raise Trouble("GitHub cannot be reached", "try again", who="network")

    assert [check.found for check in github(replace(here.hub(), get=down))] == ["GitHub cannot be reached"]


def test_one_check_that_cannot_be_made_says_so_and_the_others_go_on(here: Place) -> None:
    def limping(path: str) -> tuple[int, Any]:
        if path.startswith("/labels"):
            raise Trouble("GitHub answers 502", "try again", who="forge")
        return here.get(path)

    checks = {check.name: check for check in github(replace(here.hub(), get=limping))}
    assert checks["labels"].found == "could not be checked: GitHub answers 502"
    assert checks["workflow"].status == "ok"


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


@pytest.mark.parametrize(("name", "key"), [("contents", "contents"), ("pull-requests", "pull_requests"),
                                           ("actions", "actions")])  # fmt: skip
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


# --- settings -------------------------------------------------------------------------


def test_an_archived_repository_is_wrong(here: Place) -> None:
    here.fake.settings.archived = True
    assert here.checks()["repository on GitHub"].status == "wrong"


def test_issues_that_are_switched_off_are_wrong(here: Place) -> None:
    here.fake.settings.has_issues = False
    checks = here.checks()
    assert checks["issues"].mend == "Settings → General → Features → Issues"
    assert checks["reading"].status == "ok"


def test_a_merge_method_that_is_not_allowed_is_wrong(here: Place) -> None:
    here.fake.settings.allow_squash_merge = False
    assert "merge" in here.checks()["merging"].mend
    assert here.checks(merge_method="merge")["merging"].status == "ok"


def test_a_reader_cannot_see_how_merging_is_done(here: Place) -> None:
    here.fake.person("joe", "read")
    here.token = here.fake.token("joe")
    assert here.checks()["merging"].found == "cannot be seen with this token"


def test_labels_that_are_missing_are_a_note(here: Place) -> None:
    del here.fake.world.labels["ralph:parked"], here.fake.world.labels["agent:claude"]
    check = here.checks()["labels"]
    assert (check.status, check.found) == ("note", "made when first needed: ralph:parked, agent:claude")


def test_labels_are_looked_for_on_every_page(here: Place) -> None:
    for number in range(150):
        here.fake.world.label(f"a{number}")
    assert here.checks()["labels"].status == "ok"


# --- protection and rules -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["creation", "update", "pull_request", "required_signatures", "branch_name_pattern"])
def test_a_rule_that_stops_our_branches_is_wrong(here: Place, kind: str) -> None:
    here.rules = {quote("ralph/any", safe=""): [{"type": kind}], "ralph-memory": [{"type": kind}]}
    checks = here.checks()
    assert checks["branches ralph/*"].status == checks["memory branch"].status == "wrong"
    assert checks["branches ralph/*"].mend == "exclude `ralph/**` in Settings → Rules"


def test_every_rule_that_is_looked_for_is_one_of_github_s() -> None:
    from githubkit_schemas.v2022_11_28 import models

    shapes = [getattr(models, name) for name in dir(models) if name.startswith("RepositoryRule")]
    kinds = {kind for shape in shapes if "type" in getattr(shape, "model_fields", ())
             for kind in get_args(shape.model_fields["type"].annotation)}  # fmt: skip
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


# --- runner and schedule --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "private", "status"),
    [("self-hosted", False, "wrong"), ("self-hosted", True, "ok"), ("github-hosted", False, "note"), ("", False, None)],
)
def test_a_self_hosted_runner_of_a_public_repository_is_wrong(
    here: Place, kind: str, private: bool, status: str | None
) -> None:
    here.environment = {"RUNNER_ENVIRONMENT": kind}
    here.changes = {"private": private}
    check = here.checks().get("runner")
    assert (check.status if check else None) == status
    if check and status == "wrong":
        assert check.mend.startswith("never use a self-hosted runner on a public repository")


@pytest.mark.parametrize(
    ("state", "status"),
    [("active", "ok"), ("disabled_inactivity", "wrong"), ("disabled_fork", "wrong"), ("disabled_manually", "note")],
)
def test_a_workflow_that_is_switched_off_is_found(here: Place, state: str, status: str) -> None:
    here.fake.workflow(".github/workflows/ralph-loop.yml", state=state)
    assert here.checks()["workflow"].status == status


def test_a_workflow_that_is_missing_is_wrong(here: Place) -> None:
    here.fake.world.workflows.clear()
    here.fake.workflow(".github/workflows/ci.yml")
    assert here.checks()["workflow"].found == "the default branch has no ralph-loop.yml"


@pytest.mark.parametrize(("days", "private", "status"), [(44, False, "ok"), (46, False, "note"), (300, True, None)])
def test_a_public_repository_that_falls_asleep_is_told_in_time(
    here: Place, days: int, private: bool, status: str | None
) -> None:
    at = here.fake.clock.now - timedelta(days=days)
    here.changes = {"pushed_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "private": private}
    check = here.checks().get("schedule")
    assert (check.status if check else None) == status


@pytest.mark.parametrize(("drifts", "status"), [((), None), ((0, 40, 9_000), "ok"), ((9_000, 9_000, 0), "note")])
def test_how_late_the_last_wakes_were(drifts: tuple[int, ...], status: str | None) -> None:
    found = list(wakes([(NOON, drift) for drift in drifts]))
    assert [check.status for check in found] == ([status] if status else [])
    if status:
        assert "2 h 30 min" in found[0].found


def test_the_way_of_waking_that_is_in_force_is_named() -> None:
    cron = 'types: [ralph-loop-trigger]\n  schedule:\n    - cron: "7 * * * *"\n'
    (check,) = waking("auto", Facts(cron))
    assert (check.status, check.found) == ("ok", "heartbeat: 1 cron line in the workflow")
    (check,) = waking("timer", Facts(cron, instance="srv-repo"))
    assert check.status == "wrong" and "ralph init --wake timer" in check.mend
    (check,) = waking("auto", Facts())
    assert check.found.startswith("nothing wakes it")


def test_wait_timers_of_environments_are_read(here: Place) -> None:
    here.fake.environment("ralph-wait-high", wait_minutes=15)
    here.fake.environment("ralph-wait-low")
    names = ("ralph-wait-high", "ralph-wait-medium", "ralph-wait-low")
    assert wait_timers(here.get, names) == {"ralph-wait-high": 15, "ralph-wait-low": 0}
    here.token = here.fake.token(permissions={"contents": "read"})
    assert wait_timers(here.get, names) is None


# --- over the forge's own requests ----------------------------------------------------


def test_the_forge_s_own_requests_give_the_same_lines(world: GitHubWorld, here: Place) -> None:
    ask: Callable[[str], tuple[int, Any]] = asking(world.forge.api)
    assert ask("/branches/nowhere") == (404, None)
    assert ask("/actions/permissions/workflow") == (403, None)

    def get(path: str) -> tuple[int, Any]:
        return here.get(path) if path.startswith("/rules") else ask(path)

    assert github(replace(here.hub(), get=get)) == github(here.hub())


# --- as a person runs it --------------------------------------------------------------


def test_the_command_says_all_of_it(world: GitHubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "ROUTES", list(routing.ROUTES))
    template = f"{routing.REPO}/rules/branches/{{branch:path}}"
    routing.route("GET", template, role="read")(lambda call: [])
    world.fake.validate = False  # for the one route of our own: nothing says how its reply looks
    environment = {
        "GITHUB_TOKEN": world.token, "GITHUB_REPOSITORY": world.fake.repository, "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": world.fake.api_url, "GITHUB_SERVER_URL": world.fake.url, "RUNNER_ENVIRONMENT": "self-hosted",
    }  # fmt: skip
    told = cli_here("doctor", "--json", repo=world.clone, env=environment)
    assert told.code == 1
    wrong = {check["name"] for check in told.json["checks"] if check["status"] == "wrong"}
    assert wrong == {"runner", "waking"}
    assert {"forge", "token", "labels", "memory branch", "memory"} <= {check["name"] for check in told.json["checks"]}
    assert {request.method for request in world.fake.journal if request.transport == "rest"} == {"GET"}
    assert world.token not in told.out + told.err
