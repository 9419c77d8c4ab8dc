"""Runs of workflows as GitHub tells them: which count, what failed in them, and what they kept."""

from __future__ import annotations

import io
import zipfile

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import OWN as OWN_WORKFLOWS
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import pulled

OWN = sorted(OWN_WORKFLOWS)
CI = ".github/workflows/ci.yml"
ALL = {"contents": "write", "issues": "write", "pull_requests": "write"}


def archive(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, content in files.items():
            opened.writestr(f"{name}.xml", content)
    return made.getvalue()


def test_runs_are_those_of_the_default_branch_of_this_very_repository_newest_first(world: GitHubWorld) -> None:
    for number, (conclusion, rest) in enumerate(
        [("success", {}), ("failure", {}), ("failure", {"head_branch": "idea"}), ("failure", {"from_fork": True})], 1
    ):
        world.fake.clock.advance(60)
        world.fake.workflow_run(number, "completed", conclusion, "push", path=CI, **rest)
    world.fake.workflow_run(9, "in_progress", None, "push", path=".github/workflows/other.yml")
    runs = world.forge.workflow_runs()
    assert [(run.id, run.conclusion, run.path) for run in runs] == [
        (9, "", ".github/workflows/other.yml"),
        (2, "failure", CI),
        (1, "success", CI),
    ]
    assert [run.id for run in world.forge.workflow_runs(ended="failure")] == [2]
    assert [run.id for run in world.forge.workflow_runs(runs[1].workflow)] == [2, 1]
    assert [run.id for run in world.forge.workflow_runs(event="schedule")] == []


def test_asking_again_for_what_did_not_change_costs_one_request_that_does_not_count(world: GitHubWorld) -> None:
    world.fake.workflow_run(1, "completed", "failure", "push", path=CI)
    world.forge.workflow_runs(ended="failure")
    world.forge.forget_lists()
    before = world.forge.requests.total
    world.forge.workflow_runs(ended="failure")
    assert (world.forge.requests.total - before, world.forge.requests.not_modified) == (1, 1)


def test_more_runs_than_a_page_are_read_until_there_are_enough(world: GitHubWorld) -> None:
    for number in range(1, 121):
        world.fake.workflow_run(number, "completed", "failure", "push", path=CI)
    assert len(world.forge.workflow_runs(most=50)) == 50
    assert [run.id for run in world.forge.workflow_runs(most=200)] == list(range(120, 0, -1))


def test_a_run_tells_its_failed_jobs_and_their_first_failed_step_by_attempt(world: GitHubWorld) -> None:
    world.fake.workflow_run(1, "completed", "failure", "push", path=CI, attempt=2)
    steps = [("Set up", "success"), ("Run pytest", "failure"), ("Upload", "failure")]
    world.fake.workflow_job(1, "lint", "failure", attempt=1)
    world.fake.workflow_job(1, "test (3.12)", "failure", steps, b"2026-05-04T12:00:00.1Z boom\n", attempt=2)
    world.fake.workflow_job(1, "docs", "success", attempt=2)
    (run,) = world.forge.workflow_runs()
    (job,) = world.forge.failed_jobs(run, log=True)
    assert (job.name, job.step, job.log) == ("test (3.12)", "Run pytest", "2026-05-04T12:00:00.1Z boom\n")
    assert world.forge.failed_jobs(run)[0].log == ""


def test_a_job_that_failed_is_found_in_a_matrix_of_any_size(world: GitHubWorld) -> None:
    world.fake.workflow_run(1, "completed", "failure", "push", path=CI)
    for place in range(130):
        world.fake.workflow_job(1, f"test ({place})", "failure" if place == 129 else "success")
    (run,) = world.forge.workflow_runs()
    assert [job.name for job in world.forge.failed_jobs(run)] == ["test (129)"]


def test_a_log_that_is_gone_is_no_error(world: GitHubWorld) -> None:
    world.fake.workflow_run(1, "completed", "failure", "push", path=CI)
    world.fake.workflow_job(1, "test")
    (run,) = world.forge.workflow_runs()
    assert [job.log for job in world.forge.failed_jobs(run, log=True)] == [""]


def test_reports_of_tests_are_the_xml_files_of_archives_that_look_like_it(world: GitHubWorld) -> None:
    world.fake.workflow_run(1, "completed", "failure", "push", path=CI)
    world.fake.artifact(1, "junit-results", archive(a=b"<testsuite/>"))
    world.fake.artifact(1, "dist", archive(b=b"<other/>"))
    world.fake.artifact(1, "old-test-results", archive(c=b"<old/>"), expired=True)
    world.fake.artifact(1, "test-noise", b"no archive at all")
    (run,) = world.forge.workflow_runs()
    assert world.forge.test_reports(run) == (b"<testsuite/>",)


def test_a_token_that_may_not_read_actions_is_told_the_permission(world: GitHubWorld) -> None:
    with pytest.raises(UserError) as caught:
        world.connected(world.fake.token(permissions=ALL)).workflow_runs()
    assert caught.value.next_step == "give the job `permissions: actions: read`"


LOG = b"""2026-05-04T12:00:00.0Z ##[group]Run pytest
##[endgroup]
E       assert 1 == 2
##[error]Process completed with exit code 1.
"""


def test_what_failed_at_the_head_of_a_pull_of_ours_is_told_with_the_lines_that_say_why(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.workflow_run(1, "completed", "failure", "pull_request", path=CI, head_sha=opened.sha)
    world.fake.workflow_job(1, "test", steps=[("Run pytest", "failure")], log=LOG)
    for number, own in enumerate(OWN, 20):
        world.fake.workflow_run(number, "completed", "failure", "pull_request", path=own, head_sha=opened.sha)
    world.fake.workflow_run(3, "completed", "failure", "push", path=CI)
    (failed,) = world.connected().pull(opened.number).failed
    assert (failed.name, failed.step, failed.log) == ("test", "Run pytest", "E assert 1 == 2")
    world.push("topic", {"t.txt": b"t\n"})
    theirs = world.human("mara").open_pull("topic", "main", "Mine")
    assert world.connected().pull(theirs).failed == ()
    world.fake.workflow_run(4, "completed", "success", "pull_request", path=CI, head_sha=opened.sha)
    assert world.connected().pull(opened.number).failed == ()


def test_runs_that_wait_for_a_person_are_told_of_a_pull_of_ours_until_it_is_set_aside(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.workflow_run(1, "completed", "action_required", "pull_request", path=CI, head_sha=opened.sha)
    for number, own in enumerate(OWN, 20):
        world.fake.workflow_run(number, "completed", "action_required", "pull_request", path=own, head_sha=opened.sha)
    (page,) = world.connected().pull(opened.number).held
    assert page.endswith("/actions/runs/1")
    world.human("mara").label(opened.number, ("ralph:parked",))
    world.fake.journal.clear()
    assert world.connected().pull(opened.number).held == ()
    assert not [r.below for r in world.fake.journal if "/actions/" in r.below]


def test_what_failed_is_read_once(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.workflow_run(1, "completed", "failure", "pull_request", path=CI, head_sha=opened.sha)
    world.fake.workflow_job(1, "test", steps=[("Run pytest", "failure")], log=b"boom")
    forge = world.connected()
    first = forge.pull(opened.number).failed
    forge.close()
    world.fake.journal.clear()
    assert world.connected().pull(opened.number).failed == first
    assert [r.below for r in world.fake.journal if "/actions/" in r.below] == ["/actions/runs"]


def test_red_checks_of_other_apps_at_the_head_are_told_with_what_they_say_of_themselves(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "tests", "failure")  # a job of GitHub Actions, which is told by its run
    world.fake.check(opened.sha, "spelling", "failure", app="spellbot", title="before")
    summary = "in README.md, line 3\n" * 500
    world.fake.check(opened.sha, "spelling", "timed_out", app="spellbot", title="2 words", summary=summary)
    world.fake.check(opened.sha, "licence", "action_required", app="licencebot")
    world.fake.check(opened.sha, "size", "neutral", app="sizebot")
    world.fake.check(opened.sha, "slow", None, app="slowbot")
    spelling, licence = world.connected().pull(opened.number).failed
    assert (spelling.name, spelling.step, licence.name, licence.log) == ("spelling", "", "licence", "action_required")
    assert spelling.log.startswith("timed_out: 2 words\nin README.md, line 3\n") and len(spelling.log) == 2_000
    assert "/runs/" in spelling.url and not world.connected().pull(opened.number).passed


def test_a_pull_whose_checks_are_those_of_another_app_alone_passes_by_them(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "spelling", "failure", app="spellbot")
    assert [job.name for job in world.connected().pull(opened.number).failed] == ["spelling"]
    world.fake.check(opened.sha, "spelling", "success", app="spellbot")
    pull = world.connected().pull(opened.number)
    assert (pull.failed, pull.passed) == ((), True)


def test_what_is_red_on_a_second_page_is_found(world: GitHubWorld) -> None:
    opened = pulled(world)
    world.fake.workflow_run(70, "completed", "action_required", event="pull_request", path=CI, head_sha=opened.sha)
    for n in range(100):
        other = f".github/workflows/{n}.yml"
        world.fake.workflow_run(100 + n, "completed", "success", event="pull_request", path=other, head_sha=opened.sha)
    for n in range(101):
        world.fake.status(opened.sha, f"part {n}", "error" if n in (0, 100) else "success")
    pull = world.connected().pull(opened.number)
    assert len(pull.held) == 1 and {job.name for job in pull.failed} == {"part 0", "part 100"} and not pull.passed


@pytest.mark.parametrize("hidden", ["*/check-runs*", "*/status*"])
def test_checks_of_other_services_that_the_token_may_not_see_are_left_out(world: GitHubWorld, hidden: str) -> None:
    opened = pulled(world)
    world.fake.check(opened.sha, "spelling", "failure", app="spellbot")
    world.fake.status(opened.sha, "coverage", "error")
    world.fake.fail("403", ("GET", hidden))
    (left,) = world.connected().pull(opened.number).failed
    assert left.name == ("coverage" if "check-runs" in hidden else "spelling")
