"""Whole lives of missions on GitHub, cycle by cycle: what people see, click and are refused."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleSummary
from tests.crash.setups import LONG, agreed, let_check_stand
from tests.fakes.github.nouns import Request
from tests.helpers import Result, cli_here, git
from tests.integration.hub import Hub, open_hub, unpaced
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import TYPOS, statuses, verdicts


@pytest.fixture
def fresh(tmp_path):
    """One on which no cycle has run."""
    with open_hub(tmp_path) as made:
        yield made


def opened(hub: Hub) -> int:
    """The number of the pull in which the first mission lives."""
    report, _ = hub.cycle()
    assert (statuses(report), hub.issues) == (["IN_REVIEW"], [])
    return hub.pulls[0].number


def refusals(report) -> set[str]:
    return {rule for action, verdict, rules in verdicts(report) if verdict == "deny" for rule in rules}


def test_a_fix_is_discovered_reviewed_merged_at_that_commit_and_told_everywhere(reviewed):
    pull = reviewed.pulls[0].number
    head = reviewed.fake.branch(reviewed.head_name(pull))
    assert (reviewed.issues, set(reviewed.fake.pull(pull).labels)) == ([], {"ralph:mission", "ralph:auto-fix"})
    reviewed.person().review(pull, "approved")
    report, cycle_summary = reviewed.cycle()
    assert statuses(report) == ["COMPLETED"]
    assert reviewed.merged(pull) and reviewed.fake.pull(pull).pull.head_sha == head
    assert git(reviewed.fake.bare, "diff", "--stat", head, "main") == ""
    assert reviewed.said(pull) == []
    assert "- Outcome: merged" in reviewed.memory()
    assert [request.body["sha"] for request in reviewed.fake.journal if request.method == "PUT"] == [head]
    assert any("approved by mara" in line for line in cycle_summary.why)


def test_what_was_dropped_from_the_default_branch_while_a_cycle_waited_does_not_come_back(fresh):
    before = fresh.fake.branch("main")
    fresh.fake.push("main", {"secret.txt": b"hunter2\n"})
    app = fresh.house()
    git(fresh.fake.bare, "update-ref", "refs/heads/main", before)
    with unpaced():
        run_cycle(app.ports, app.settings, CycleRequest(force=True), app.secrets)
    (pull,) = fresh.pulls
    assert git(fresh.fake.bare, "merge-base", "main", fresh.head_name(pull.number)) == before
    assert git(fresh.fake.bare, "rev-list", "--count", f"main..{fresh.head_name(pull.number)}") == "1"


@pytest.mark.attack(52)
def test_an_approval_of_another_head_is_refused(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.person().review(pull, "approved")
    reviewed.fake.push(reviewed.head_name(pull), {"evil.txt": b"x\n"})
    report, cycle_summary = reviewed.cycle()
    assert refusals(report) == {"foreign-commit", "approval-head"}
    assert any("approval-head" in line for line in cycle_summary.held)
    assert statuses(report) == ["ESCALATED"]
    assert any("someone else pushed" in body for body in reviewed.said(pull))
    assert not reviewed.merged(pull)


@pytest.mark.attack(52)
def test_a_head_that_moves_between_judgement_and_merge_is_not_merged(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.person().review(pull, "approved")
    branch = reviewed.head_name(pull)

    def pushed(request):
        if request.method == "PUT" and request.below.endswith("/merge"):
            undo()
            reviewed.fake.push(branch, {"evil.txt": b"x\n"})

    undo = reviewed.fake.before(pushed)
    report, cycle_summary = reviewed.cycle()
    assert not reviewed.merged(pull)
    assert statuses(report) == ["IN_REVIEW"]
    assert any("approval-head" in line for line in cycle_summary.remarks)


@pytest.mark.attack(53)
def test_an_approval_dismissed_between_judgement_and_merge_does_not_count(reviewed):
    pull = reviewed.pulls[0].number
    mara = reviewed.person()
    mara.review(pull, "approved")
    jonas = reviewed.fake.person("jonas", "maintain")

    def dismissed(request):
        if request.below == "/git-receive-pack":
            undo()
            jonas.dismiss(pull)

    undo = reviewed.fake.before(dismissed)
    _, cycle_summary = reviewed.cycle()
    assert not reviewed.merged(pull)
    assert any("approval-author" in line for line in cycle_summary.remarks)


CHECKS = {
    "failed": "not green: tests ended with failure",
    "still runs": "not green: tests has not finished",
    "is held": "its checks wait for a click on “Approve workflows to run”",
    "was cancelled": "not green: tests was cancelled",
    "is required and missing": (
        "blocked: the required check tests has not run: Settings → Rules → Rulesets, Require status checks to pass"
    ),
    "cannot be read now": "GitHub does not say now how its checks stand",
    "passed, or there is none": "",
}
"""How a check stands, and what the dashboard names of it; "" where the pull request is merged."""


@pytest.mark.parametrize(("state", "named"), CHECKS.items())
def test_an_approved_pull_is_merged_or_its_check_is_named(reviewed, state, named):
    (pull,) = reviewed.pulls
    if state == "cannot be read now":
        reviewed.fake.fail("502_not_applied", ("GET", "*/check-runs*"), times=99)
    elif named:
        let_check_stand(reviewed, state)
    reviewed.person("mara").review(pull.number, "approved")
    reviewed.cycle()
    (page,) = (thread.body for thread in reviewed.fake.threads.values() if thread.title == "Ralph")
    assert (reviewed.merged(pull.number), named in page) == (not named, True)


@pytest.mark.parametrize("checked", [True, False, None], ids=["passed", "none ran", "not to be seen"])
def test_a_merge_that_no_check_stood_before_says_so(reviewed, checked):
    (pull,) = reviewed.pulls
    if checked:
        reviewed.fake.check(reviewed.fake.branch(reviewed.head_name(pull.number)), "lint", "success", app="lintbot")
    if checked is None:
        reviewed.fake.fail("403", ("GET", "*/check-runs*"), times=9)
    reviewed.person("mara").review(pull.number, "approved")
    _, told = reviewed.cycle()
    assert reviewed.merged(pull.number)
    said = reviewed.fake.world.bare.commit(reviewed.fake.branch("main")).message
    assert ("No check ran on it." in said) is (checked is False)
    assert any("no check ran on it" in line for line in told.why) is (checked is False)


def test_a_yes_that_is_taken_back_takes_it_out_of_the_merge_queue(tmp_path):
    with open_hub(tmp_path) as hub:
        hub.token = hub.fake.token("ralph-app[bot]")  # what a workflow's own token queues starts no checks
        hub.cycle()
        queue_and_take_back(hub)


def queue_and_take_back(hub) -> None:
    (pull,) = hub.pulls
    hub.fake.ruleset("main", merge_queue=True)
    hub.person("mara").review(pull.number, "approved")
    hub.cycle()
    assert pull.pull.queued
    for _ in range(2):
        hub.person("mara").dismiss(pull.number)
        hub.cycle()
        assert not pull.pull.queued
        hub.person("mara").review(pull.number, "approved")
        hub.cycle()
        assert pull.pull.queued


@pytest.mark.attack(12)
def test_an_outsiders_approval_is_refused(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.person("eve", "triage").review(pull, "approved")
    report, _ = reviewed.cycle()
    assert refusals(report) == {"approval-author"}
    assert not reviewed.merged(pull)


@pytest.mark.long  # a variation of the life above; its rule has a pure test
@pytest.mark.attack(13, 14)
def test_a_bot_with_a_look_alike_name_is_refused(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.person("mara")
    reviewed.fake.bot("m\u0430ra[bot]").review(pull, "approved")
    report, _ = reviewed.cycle()
    assert refusals(report) == {"approval-author"}
    assert not reviewed.merged(pull)


def test_what_a_fix_is_about_is_gone_so_its_pull_is_closed_and_its_branch_deleted(reviewed):
    pull, branch = reviewed.pulls[0].number, reviewed.head_name(reviewed.pulls[0].number)
    reviewed.fake.push("main", {"README.md": b"# Harbour\n", "docs/guide.md": b"# Guide\n"})
    assert statuses(reviewed.cycle()[0]) == ["COMPLETED"]
    assert (reviewed.fake.pull(pull).state, reviewed.fake.branch(branch)) == ("closed", "")
    assert any("gone by itself" in body for body in reviewed.said(pull))


def test_closed_pull_request_is_never_reopened(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.person().close_pull(pull)
    assert statuses(reviewed.cycle()[0]) == ["REJECTED"]
    for _ in range(2):
        reviewed.cycle()
    assert [thread.number for thread in reviewed.pulls] == [pull]
    assert reviewed.fake.pull(pull).state == "closed"
    assert "ralph:rejected" in reviewed.fake.pull(pull).labels and len(reviewed.said(pull)) == 1


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_where_pulls_may_not_be_opened_the_issue_carries_the_change_and_names_the_setting(fresh):
    fresh.fake.settings.actions_can_create_pulls = False
    report, _ = fresh.cycle()
    assert statuses(report) == ["ESCALATED"]
    (issue,) = fresh.issues
    assert "+Tides are separate from waves." in issue.body
    setting = "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests"
    link = f"([open it]({fresh.fake.url}/{fresh.fake.repository}/settings/actions))"
    assert issue.body.startswith(f"**Needs a person.** {setting} {link}. Once that is fixed, comment `/ralph retry`.")
    assert fresh.said(issue.number) == [] and not git(fresh.fake.bare, "branch", "--list", "ralph/*")
    assert fresh.cycle()[0].effects == ()
    fresh.fake.settings.actions_can_create_pulls = True
    fresh.person().unlabel(issue.number, ("ralph:escalated",))
    fresh.cycle()
    assert statuses(fresh.cycle()[0]) == ["IN_REVIEW"]
    assert len(fresh.pulls) == 1


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_pull_that_github_refuses_again_and_again_is_never_said_to_wait_for_a_review(fresh):
    fresh.fake.fail("422", ("POST", "/pulls"), times=9)
    for _ in range(4):
        report, _ = fresh.cycle()
    assert statuses(report) == ["EXECUTING"] and fresh.pulls == []
    (page,) = (thread.body for thread in fresh.threads if thread.title == "Ralph")
    assert "Its pull request could not be opened" in page and "A person reviews it" not in page


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_where_pulls_may_no_longer_be_opened_the_setting_is_linked_and_the_next_one_is_not_pushed(reviewed):
    reviewed.fake.settings.actions_can_create_pulls = False
    reviewed.fake.push("main", {"new.md": b"This sentense is new, and seperate.\n"})
    reviewed.cycle()
    (issue,) = (thread for thread in reviewed.issues if "Needs a person" in (thread.body or ""))
    assert f"({reviewed.fake.url}/{reviewed.fake.repository}/settings/actions)" in issue.body
    before = git(reviewed.fake.bare, "branch", "--list", "ralph/*")
    reviewed.fake.push("main", {"newer.md": b"Anothr adress.\n"})
    reviewed.cycle()
    assert git(reviewed.fake.bare, "branch", "--list", "ralph/*") == before


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_base_that_must_be_merged_in_first_is_and_the_review_asked_again(reviewed):
    pull = reviewed.pulls[0].number
    branch = reviewed.head_name(pull)
    before = reviewed.fake.branch(branch)
    reviewed.fake.protect("main", strict=True, required_checks=("tests",))
    reviewed.fake.push("main", {"other.txt": b"o\n"})
    reviewed.fake.check(before, "tests", "success")
    reviewed.person().review(pull, "approved")
    reviewed.cycle()
    assert statuses(reviewed.cycle()[0]) == ["IN_REVIEW"]
    head = reviewed.fake.branch(branch)
    parents = git(reviewed.fake.bare, "rev-list", "--parents", "-1", head).split()[1:]
    assert parents == [before, reviewed.fake.branch("main")]
    assert refusals(reviewed.cycle()[0]) == {"approval-head"}
    reviewed.fake.check(head, "tests", "success")
    reviewed.person().review(pull, "approved")
    assert statuses(reviewed.cycle()[0]) == ["COMPLETED"]
    assert reviewed.merged(pull)


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_failing_required_check_keeps_a_merge_back_and_is_named(reviewed):
    pull = reviewed.pulls[0].number
    reviewed.fake.check(reviewed.fake.branch(reviewed.head_name(pull)), "tests", "failure", required=True)
    reviewed.person().review(pull, "approved")
    _, cycle_summary = reviewed.cycle()
    assert not reviewed.merged(pull)
    assert any("tests" in line for line in cycle_summary.remarks)


@pytest.mark.long  # a variation of the life above; its rule has a pure test
@pytest.mark.attack(17)
def test_a_persons_label_makes_a_mission_and_an_outsiders_does_not(fresh):
    number = fresh.person().create_issue("Paint the quay", "It is grey.")
    fresh.fake.person("eve", "triage").label(number, ("ralph:mission",))
    assert all(line.issue != number for line in fresh.cycle()[0].missions)
    mara = fresh.person()
    mara.unlabel(number, ("ralph:mission",))
    mara.label(number, ("ralph:mission",))
    assert any(line.issue == number for line in fresh.cycle()[0].missions)


def test_staged_changes_nothing_on_the_server_or_in_the_clone(fresh):
    clone = fresh.clone
    before = git(clone, "for-each-ref"), git(fresh.fake.bare, "for-each-ref")
    report, _ = fresh.cycle(staged=True)
    assert any(line.status == "staged" for line in report.effects)
    assert (git(clone, "for-each-ref"), git(fresh.fake.bare, "for-each-ref")) == before
    assert {request.method for request in fresh.fake.journal if request.transport == "rest"} <= {"GET"}
    assert fresh.threads == []
    assert not (clone / ".git" / "ralph").exists() and not (clone / ".ralph").exists()


def test_memory_that_was_rolled_back_on_the_server_stops_the_next_runner(fresh):
    fresh.cycle()
    old = fresh.fake.branch("ralph-memory")
    fresh.person().review(fresh.pulls[0].number, "approved")
    fresh.cycle()
    git(fresh.fake.bare, "update-ref", "refs/heads/ralph-memory", f"{old}")
    fresh.runner = "two"
    with pytest.raises(UserError, match="rolled back"):
        fresh.cycle()


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_work_ready_now_is_dispatched_at_once_and_after_memory(tmp_path):
    both = BUG.replace("fixers: []", "fixers: [typos]")
    with open_hub(tmp_path, {**TYPOS, **BUGS}, both) as hub:
        report, _ = hub.cycle()
        (dispatch,) = hub.fake.dispatches
        assert dispatch.event_type == "ralph-loop-trigger"
        assert dispatch.client_payload["generation"] == 1
        assert report.effects[-1].kind == "dispatch" and report.effects[-1].status == "done"
        kinds = [(r.method, r.below) for r in hub.fake.journal]
        assert kinds[-1] == ("POST", "/dispatches")


@pytest.mark.parametrize("hours", [-48, 48])
def test_a_wrong_clock_refuses_no_yes_and_loses_no_label(tmp_path, hours):
    with open_hub(tmp_path, BUGS, BUG) as buggy:
        buggy.skew = timedelta(hours=hours)
        assert statuses(buggy.cycle()[0]) == ["DISCOVERED"]
        issue, mara = buggy.issues[0].number, buggy.person()
        mara.edit_issue(issue, body="Edited. " + buggy.fake.issue(issue).body)
        mara.label(issue, ("ralph:approved",))
        assert "approval-content" in refusals(buggy.cycle()[0])
        buggy.person().comment(issue, "/ralph approve")
        assert statuses(buggy.cycle()[0]) == ["PLANNED"]


@pytest.mark.parametrize("hours", [-48, 48])
@pytest.mark.long  # seven seconds
def test_a_wrong_clock_brings_an_escalated_mission_back(fresh, hours):
    fresh.skew = timedelta(hours=hours)
    pull = opened(fresh)
    fresh.person().review(pull, "changes_requested", "hm")
    assert statuses(fresh.cycle()[0]) == ["ESCALATED"]
    fresh.person().dismiss(pull)
    fresh.person().unlabel(pull, ("ralph:escalated",))
    assert statuses(fresh.cycle()[0]) == ["IN_REVIEW"]


# --- A token that may open nothing: nothing gets through, cycle after cycle, and somebody hears of it. ---

WEAK = {"contents": "write", "issues": "read", "pull_requests": "read", "actions": "read"}


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_cycle_in_which_everything_was_refused_has_failed_and_says_what_to_change(fresh):
    strong, fresh.token = fresh.token, fresh.fake.token(permissions=WEAK)
    report, cycle_summary = fresh.cycle()
    assert report.outcome == "failed"
    assert "pull-requests: write" in cycle_summary.refusal
    for missing in ("pull-requests: write", "issues: write"):
        assert any(missing in line for line in cycle_summary.remarks)
    fresh.token = strong
    report, cycle_summary = fresh.cycle()
    assert (report.outcome, cycle_summary.refusal) == ("done", "")
    assert fresh.pulls


def run(hub: Hub, token: str) -> Result:
    """The command of the action."""
    with unpaced():
        return cli_here(
            "cycle", "--force", "--forge", "github", repo=hub.clone, env={**hub.environ, "GITHUB_TOKEN": token}
        )


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_the_command_fails_when_everything_was_refused(fresh):
    assert run(fresh, fresh.fake.token(permissions=WEAK)).code == 1


# --- Whole cycles where GitHub says no for good: the person reads the very setting or permission that is to change. ---

ALL = {"contents": "write", "issues": "write", "pull_requests": "write", "actions": "read"}
SIGNED = "exempt ralph/** and the memory branch from `Require signed commits` in Settings, Rules"


def may_only(hub: Hub, **less: str) -> None:
    """From now on the job's token may less."""
    hub.token = hub.fake.token(permissions={**ALL, **less})


def escalated(hub: Hub) -> str:
    """What the cycle that was refused says, and the issue in which it asks a person."""
    report, cycle_summary = hub.cycle()
    assert statuses(report) == ["ESCALATED"]
    (issue,) = hub.issues
    assert issue.body.startswith("**Needs a person.** ")
    assert "ralph:escalated" in issue.labels and "+Tides are separate from waves." in issue.body
    return "\n".join((*cycle_summary.remarks, issue.body.partition("\n")[0]))


def refused(cycle_summary: CycleSummary, kind: str) -> list[str]:
    words = {
        "open_issue": "open its issue",
        "open_pull": "open its pull request",
        "merge_pull": "merge its pull request",
    }
    return [line for line in cycle_summary.remarks if line.startswith(f"could not {words.get(kind, kind)}: ")]


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_where_signed_commits_are_wanted_everywhere_a_fix_lives_as_it_does_elsewhere(fresh: Hub) -> None:
    fresh.fake.ruleset("**", required_signatures=True)
    number = opened(fresh)
    assert fresh.fake.world.bare.commit(fresh.fake.branch(fresh.head_name(number))).signed


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_fix_that_github_will_not_sign_where_that_is_wanted_escalates_and_names_the_setting(fresh: Hub) -> None:
    fresh.fake.ruleset("ralph/**", "ralph/-/**", required_signatures=True)

    def refuse(request: Request) -> None:
        if request.transport == "graphql" and '"branchName": "ralph/' in json.dumps(request.body):
            fresh.fake.fail("403", (request.method, request.below))

    fresh.fake.before(refuse)
    said = escalated(fresh)
    assert said.count(f"takes signed commits only: {SIGNED}") >= 2
    assert fresh.pulls == []


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_person_for_whom_github_signs_no_first_commit_is_stopped_before_anything_and_told_the_setting(
    fresh: Hub,
) -> None:
    fresh.token = fresh.fake.token("robin")
    fresh.fake.ruleset("**", required_signatures=True)
    for _ in range(2):
        with pytest.raises(UserError) as problem:
            fresh.cycle()
        assert "ralph-memory takes signed commits only" in problem.value.what
        assert problem.value.next_step == SIGNED
    assert (fresh.issues, fresh.pulls) == ([], [])


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_token_that_may_not_open_pulls_escalates_and_names_its_permission(fresh: Hub) -> None:
    may_only(fresh, pull_requests="read")
    said = escalated(fresh)
    assert said.count("give the job `permissions: pull-requests: write`") >= 2


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_token_that_may_not_open_issues_opens_a_fix_all_the_same(fresh: Hub) -> None:
    may_only(fresh, issues="read")
    opened(fresh)


def test_a_token_that_may_open_nothing_does_nothing_and_names_its_permission(fresh: Hub) -> None:
    may_only(fresh, issues="read", pull_requests="read")
    fresh.cycle()
    report, cycle_summary = fresh.cycle()
    assert {line.status for line in report.effects if line.kind != "push_branch"} == {"failed"}
    assert "give the job `permissions: issues: write`" in refused(cycle_summary, "open_issue")[0]
    assert (fresh.issues, fresh.pulls) == ([], [])


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_token_that_may_not_push_stops_before_anything_and_names_its_permission(fresh: Hub) -> None:
    may_only(fresh, contents="read")
    with pytest.raises(UserError) as problem:
        fresh.cycle()
    assert problem.value.next_step == "give the job `permissions: contents: write`"
    assert (fresh.issues, fresh.pulls) == ([], [])


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_a_rejected_pull_that_a_person_reopens_is_hers_and_that_is_said_once(reviewed: Hub) -> None:
    reopened_and_left(reviewed)


@pytest.mark.long  # a variation of the life above; its rule has a pure test
def test_so_is_one_whose_mission_lived_in_an_issue(tmp_path: Path) -> None:
    with open_hub(tmp_path, LONG) as place:
        agreed(place)
        place.cycle()
        reopened_and_left(place)
        assert {"ralph:rejected"} <= set(place.issues[0].labels)


def reopened_and_left(hub: Hub) -> None:
    """A person closes the only pull request, and opens it again after Ralph has taken that for a no."""
    (pull,) = hub.pulls
    hub.person().close_pull(pull.number)
    head = hub.fake.pull(pull.number).pull.head_sha
    hub.cycle()
    git(hub.fake.bare, "update-ref", f"refs/heads/{hub.head_name(pull.number)}", head)
    hub.person().reopen(pull.number)
    before = len(hub.said(pull.number))
    for _ in range(3):
        report, _ = hub.cycle()
    assert report.effects == () and statuses(report) == []
    (said,) = hub.said(pull.number)[before:]
    assert said.startswith("This was rejected, so Ralph no longer follows it. Merge it yourself, or close it.")
