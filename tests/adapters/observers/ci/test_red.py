"""A red default branch: found, with the first bad commit where there is exactly one, and gone when it is green again.

Each history is planted in the shape in which GitHub tells it; the fake's replies are checked against its description.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.findings.ranking import rank
from ralph_mission.mission.model.mission import Severity, Signal
from tests.adapters.observers.ci.ci_world import CI, DOCS, NIGHTLY, CiWorld, ci_world

OWN = ".github/workflows/ralph-loop.yml"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CiWorld]:
    with ci_world(tmp_path) as made:
        yield made


def blamed(signal: Signal) -> str:
    return str(dict(signal.facts).get("first bad commit", ""))


def only(world: CiWorld, days: float = 0) -> Signal:
    (signal,) = world.red(days)
    return signal


def test_the_one_commit_between_green_and_red_is_the_first_bad_one(world: CiWorld) -> None:
    world.push()
    bad = world.push("failure", by="robin")
    told = only(world)
    assert (blamed(told), told.author, told.path) == (bad[:12], "robin", CI)
    assert told.title == f"main is red: ci fails since {bad[:8]} by robin: test, Run pytest"
    assert (told.severity, told.essence, told.occurrence) == (Severity.HIGH, ("broken-build", CI, "run 1001"), "")
    assert [(quote.text, quote.run, quote.commit) for quote in told.quotes] == [
        ("test, Run pytest", 1002, ""),
        ("Change 2, by robin", 0, bad),
    ]
    assert "E       assert 1 == 2" not in told.title and "assert 1 == 2" in told.detail
    assert "nothing of importance" not in told.detail and "Cleaning up" not in told.detail


@pytest.mark.parametrize("conclusion", ["timed_out", "startup_failure"])
def test_a_branch_whose_runs_time_out_or_cannot_start_is_red(world: CiWorld, conclusion: str) -> None:
    world.push()
    bad = world.push(conclusion, by="robin")
    assert blamed(only(world)) == bad[:12]
    world.push(conclusion)
    assert len(world.red()) == 1  # though no run of that kind is asked for again so soon
    assert len(world.red(days=2)) == 1


def test_later_red_commits_do_not_change_who_broke_it(world: CiWorld) -> None:
    world.push()
    bad = world.push("failure", by="robin")
    world.push("failure"), world.push("failure")
    told = only(world)
    assert (blamed(told), dict(told.facts)["red runs"]) == (bad[:12], 3)


@pytest.mark.parametrize("commits", [2, 14])
def test_of_several_commits_pushed_at_once_none_is_picked(world: CiWorld, commits: int) -> None:
    world.push()
    world.push("failure", commits=commits)
    told = only(world)
    assert blamed(told) == "" and told.author == ""
    assert f"since one of {commits} commits" in told.title and f"one of {commits} commits that came" in told.detail


@pytest.mark.parametrize("between", ["cancelled", None])
def test_what_neither_passed_nor_failed_widens_the_choice_and_is_not_red(world: CiWorld, between: str | None) -> None:
    world.push()
    world.push(between)
    assert world.red() == []
    world.push("failure")
    assert "since one of 2 commits" in only(world).title


def test_a_run_that_goes_on_after_a_red_one_leaves_it_red(world: CiWorld) -> None:
    world.push()
    bad = world.push("failure")
    world.push(None)
    assert blamed(only(world)) == bad[:12]


def test_a_red_run_that_is_tried_again_is_not_red_meanwhile_and_green_when_it_passes(world: CiWorld) -> None:
    world.push()
    world.push("failure")
    assert len(world.red()) == 1
    world.hub.fake.workflow_run(
        1002, "in_progress", None, "push", path=CI, attempt=2, head_sha=world.hub.fake.branch("main")
    )
    assert world.red() == []
    world.again(1002, "success")
    assert world.red() == []


def test_fixed_is_gone_and_broken_anew_is_news(world: CiWorld) -> None:
    world.push()
    world.push("failure")
    first = only(world)
    world.push()
    assert world.look().signals == ()
    world.push("failure")
    second = only(world)
    assert first.essence[:2] == second.essence[:2] and first.essence != second.essence


def test_a_commit_without_a_run_of_its_own_is_one_of_those_that_may_be_it(world: CiWorld) -> None:
    world.push()
    world.commit()
    world.push("failure")
    assert "since one of 2 commits" in only(world).title


def test_a_merge_is_one_commit_with_the_authors_of_what_it_merges(world: CiWorld) -> None:
    world.push()
    person = world.hub.fake.person("robin")
    person.push("idea", {"a.py": b"1\n"}), person.push("idea", {"a.py": b"2\n"})
    number = person.open_pull("idea", "main", "An idea")
    merged = world.hub.fake.person("mara").merge(number, "merge")
    world.run("failure")
    told = only(world)
    assert (blamed(told), told.author) == (merged[:12], "robin")
    assert "merges 2 commits" in told.detail


def test_two_red_workflows_are_two_findings_each_with_its_own_commit(world: CiWorld) -> None:
    world.push(), world.run("success", path=DOCS)
    first = world.push("failure")
    world.run("success", path=DOCS)
    second = world.push("failure")
    world.run("failure", path=DOCS, jobs=[("build", "mkdocs")])
    assert {signal.path: blamed(signal) for signal in world.red()} == {CI: first[:12], DOCS: second[:12]}


def test_jobs_of_a_matrix_that_fail_are_one_finding(world: CiWorld) -> None:
    world.push()
    world.push("failure", jobs=[(f"test ({version}, linux)", "Run pytest") for version in ("3.11", "3.12", "3.13")])
    told = only(world)
    assert told.detail.count("failed: test (") == 3
    assert "test (3.11, linux), Run pytest" in told.title


@pytest.mark.long  # a longer history of the same
def test_red_since_before_everything_that_is_read_names_nobody(world: CiWorld) -> None:
    for _ in range(4):
        world.push("failure")
    told = only(world)
    assert blamed(told) == "" and "since before" in told.title
    assert "no run that passed is among the last 4" in told.detail


@pytest.mark.long  # a longer history of the same
def test_a_pass_further_back_than_the_first_page_is_found(world: CiWorld) -> None:
    world.push()
    bad = world.push("failure")
    for _ in range(60):
        world.run("failure", jobs=())
    assert blamed(only(world)) == bad[:12]


@pytest.mark.long  # a longer history of the same
def test_what_stays_red_for_longer_than_is_read_stays_the_same_finding(world: CiWorld, monkeypatch) -> None:
    monkeypatch.setattr("ralph_mission.adapters.observers.ci.PAGE", 2)
    monkeypatch.setattr("ralph_mission.adapters.observers.ci.FAR", 3)
    world.push()
    for _ in range(3):
        world.push("failure")
        told = only(world)
    world.push("failure")
    later = only(world)
    assert told.essence == later.essence and "since before" in later.title


def test_rewritten_history_names_nobody(world: CiWorld) -> None:
    world.push(head_sha="a" * 40)
    world.push("failure")
    told = only(world)
    assert blamed(told) == "" and "history was rewritten" in told.detail


def test_another_fault_that_came_while_it_was_red_has_its_own_first_commit(world: CiWorld) -> None:
    world.push()
    world.push("failure", jobs=[("lint", "Run ruff")])
    bad = world.push("failure", jobs=[("lint", "Run ruff"), ("test", "Run pytest")])
    world.push("failure", jobs=[("test", "Run pytest")])
    told = only(world)
    assert blamed(told) == bad[:12] and "test, Run pytest" in told.title


def test_a_step_that_an_earlier_failure_of_its_job_hid_is_laid_to_all_commits_since_green(world: CiWorld) -> None:
    world.push()
    world.push("failure", jobs=[("test", "Install")])
    world.push("failure", jobs=[("test", "Run pytest")])
    assert "since one of 2 commits" in only(world).title


def test_a_nightly_run_that_fails_on_the_commit_that_had_passed_blames_nobody(world: CiWorld) -> None:
    world.commit()
    world.nightly("success")
    world.nightly("failure")
    once = only(world)
    assert (once.severity, blamed(once)) == (Severity.MEDIUM, "")
    assert "on a commit that had passed" in once.title and "no commit is to blame" in once.detail
    world.nightly("failure")
    assert only(world).severity is Severity.HIGH


def test_a_nightly_run_counts_the_commits_of_the_day(world: CiWorld) -> None:
    world.commit()
    world.nightly("success")
    world.commit(3)
    world.nightly("failure")
    assert "since one of 3 commits" in only(world).title


def test_a_push_that_passes_does_not_mend_what_fails_at_night_but_the_next_night_does(world: CiWorld) -> None:
    world.push(path=NIGHTLY)
    world.nightly("success")
    world.commit()
    world.nightly("failure"), world.commit(), world.nightly("failure")
    world.push(path=NIGHTLY)
    assert [signal.path for signal in world.red()] == [NIGHTLY]
    world.nightly("success")
    assert world.red() == []


@pytest.mark.long  # a longer history of the same
def test_a_pass_of_the_very_commit_by_hand_ends_it_and_a_failure_by_hand_is_nobodys_alarm(world: CiWorld) -> None:
    world.push()
    world.run("failure", "workflow_dispatch")
    assert world.red() == []
    world.push("failure")
    assert len(world.red()) == 1
    world.run("success", "workflow_dispatch")
    assert world.red() == []


@pytest.mark.parametrize(
    "rest",
    [{"head_branch": "idea"}, {"from_fork": True}],
)
def test_runs_of_other_branches_and_forks_say_nothing(world: CiWorld, rest: dict[str, object]) -> None:
    world.push()
    world.push("failure", **rest)
    assert world.look().signals == ()


@pytest.mark.parametrize("event", ["pull_request", "release", "issues", "workflow_run", "delete"])
def test_runs_about_something_else_say_nothing(world: CiWorld, event: str) -> None:
    world.push()
    world.run("failure", event)
    assert world.look().signals == ()


def test_a_workflow_that_was_renamed_or_removed_is_red_no_more(world: CiWorld) -> None:
    world.push()
    world.push("failure")
    assert len(world.red()) == 1
    world.push(files={CI: None, ".github/workflows/tests.yml": b"on: push\n"}, path=".github/workflows/tests.yml")
    assert world.red() == []


@pytest.mark.long  # a longer history of the same
def test_a_workflow_that_is_not_scheduled_any_more_is_red_no_more(world: CiWorld) -> None:
    world.commit()
    world.nightly("failure"), world.nightly("failure")
    assert len(world.red()) == 1
    world.commit(files={NIGHTLY: b"on: push\n"})
    assert world.red() == []


@pytest.mark.long  # a longer history of the same
def test_a_failure_of_long_ago_is_no_news_but_what_is_red_stays_so(world: CiWorld) -> None:
    world.push()
    world.push("failure")
    assert world.red(days=40) == []
    world.cursor = ""
    assert len(world.red(days=1)) == 1
    assert len(world.red(days=40)) == 1


def test_workflows_can_be_left_out(world: CiWorld) -> None:
    world.push(path=NIGHTLY)
    world.push("failure", path=NIGHTLY)
    world.settings = type(world.settings)(exclude=("nightly.yml",))
    assert world.look().signals == ()


def test_our_own_workflow_is_told_once_for_all(world: CiWorld) -> None:
    world.commit(files={OWN: b"on: {schedule: []}\n"})
    world.nightly("success", OWN)
    world.nightly("failure", OWN)
    first = only(world)
    world.nightly("success", OWN), world.look()
    world.nightly("failure", OWN)
    assert only(world).essence == first.essence


def test_names_from_outside_are_cut_and_stand_on_one_line(world: CiWorld) -> None:
    world.hub.fake.workflow(CI, "C\x1b[31mI\n" + "x" * 300)
    world.push()
    world.push("failure", jobs=[("@everyone\n" * 40, "step " * 100)])
    told = only(world)
    assert len(told.title) <= 120 and "\n" not in told.title and "\x1b" not in told.title + told.detail
    assert len(told.detail) <= 2000


def test_it_ranks_before_everything_else(world: CiWorld) -> None:
    world.push()
    world.push("failure")
    others = [
        Signal("x", "vulnerability", "v", ("v",), severity=Severity.HIGH, confidence=1.0),
        Signal("x", "bug", "b", ("b",), severity=Severity.HIGH, confidence=1.0),
        *(Signal("x", "todo", f"{n}", (f"{n}",)) for n in range(30)),
    ]
    assert rank(identify([*others, *world.red()]), {}, {})[0].kind == "broken-build"


def test_a_token_that_may_not_read_runs_is_one_line(world: CiWorld) -> None:
    world.hub.token = world.hub.fake.token(permissions={"contents": "read", "issues": "write"})
    seen = world.look()
    assert seen.status == "unavailable" and "actions: read" in seen.detail and "\n" not in seen.detail


def test_a_log_or_jobs_that_are_gone_leave_the_rest_to_be_told(world: CiWorld) -> None:
    world.push()
    bad = world.push("failure", jobs=())
    told = only(world)
    assert blamed(told) == bad[:12] and "no single job failed" in told.detail


# --- what it costs --------------------------------------------------------------------


def count_requests(world: CiWorld) -> tuple[int, int]:
    """Requests about actions in a look, and those of them that counted."""
    world.hub.fake.journal.clear()
    world.look()
    own = [one for one in world.hub.fake.journal if "/actions/" in one.path]
    return len(own), sum(one.status != 304 for one in own)


def test_where_nothing_changed_and_all_is_green_one_request_asks_and_none_counts(world: CiWorld) -> None:
    world.push("failure"), world.push()
    world.look()
    assert count_requests(world) == (1, 0)


def test_a_workflow_that_stays_red_costs_one_more(world: CiWorld) -> None:
    world.push(), world.push("failure")
    world.look()
    assert count_requests(world) == (2, 0)
