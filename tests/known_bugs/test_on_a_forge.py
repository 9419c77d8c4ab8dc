"""What other bots did twice, lost, or took for something else on GitHub, each as a cycle that does not.

Every docstring names the fault first. Where a public project shows it, it is named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import CycleReport
from tests.crash.dying import dying, writes
from tests.crash.stages import NOW
from tests.crash.witness import duplicates, open_state, watched
from tests.fakes.github.actions import threads
from tests.fakes.github.faults import Crash
from tests.helpers import git
from tests.integration.hub import Hub, open_hub
from tests.integration.world import statuses, verdicts, world


def slower(value: str):
    """The same in another way, where there is time."""
    return pytest.param(value, marks=pytest.mark.long)  # `make test` has one of each


def made(hub: Hub) -> tuple[int, int]:
    """How many issues and pulls there are."""
    return len(hub.issues), len(hub.pulls)


def dies_after(hub: Hub, path: str) -> None:
    """A cycle whose process dies when the request that makes something at a path is done, and not yet answered."""
    with dying(hub) as life:

        def done(request, response) -> None:
            if (request.method, request.below) == ("POST", path):
                life.over = True
                raise Crash

        undo = hub.fake.after(done)
        try:
            hub.cycle(NOW)
        finally:
            undo()
    assert life.over


def merges(hub: Hub) -> list[Any]:
    """The bodies of the requests to merge."""
    return [one.body for one in hub.fake.journal if one.method == "PUT" and one.below.endswith("/merge")]


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
def test_a_crash_between_a_pull_and_its_record_opens_no_second_pull(fresh: Hub) -> None:
    """The process dies when the pull is open and nothing of it is written down, and the next run opens another.

    Bots that keep what they did in files or labels of their own have it; release-please repairs its labels by hand.
    """
    dies_after(fresh, "/pulls")
    assert len(fresh.pulls) == 1
    assert statuses(fresh.cycle(NOW)[0]) == ["IN_REVIEW"]
    assert (made(fresh), duplicates(fresh)) == ((0, 1), [])


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
@pytest.mark.parametrize("kind", ["rate_secondary", slower("rate_secondary_429"), slower("rate_primary")])
def test_a_second_call_that_is_rate_limited_repeats_nothing_of_the_first(fresh: Hub, kind: str) -> None:
    """The issue is there, the pull is refused by a rate limit, and the next run begins with another issue."""
    fresh.fake.fail(kind, ("POST", "/pulls"))
    report, _ = fresh.cycle(NOW)
    assert (made(fresh), report.outcome) == ((0, 0), "done")
    fresh.cycle()
    assert (made(fresh), duplicates(fresh)) == ((0, 1), [])
    assert fresh.fake.count(method="POST", below="/pulls") == 2  # the one that was refused, and one more


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
def test_what_a_list_does_not_show_yet_is_not_made_again(fresh: Hub) -> None:
    """A search or a list lags behind, the bot does not find what it made a moment ago, and makes it once more."""
    fresh.fake.list_lag = 12
    dies_after(fresh, "/pulls")
    told = [statuses(fresh.cycle(NOW)[0]) for _ in range(3)]
    assert (told[-1], made(fresh)) == (["IN_REVIEW"], (0, 1))
    assert not [one.path for one in fresh.fake.journal if "/search" in one.path]  # an index is later than any list


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
def test_a_word_after_more_than_a_hundred_comments_is_heard(opened: Hub) -> None:
    """Only the first page of comments is read, or its last one for ever by an ETag that knows of no next one."""
    issue = opened.pulls[0].number
    eve = opened.fake.person("eve", "read")
    for n in range(100 - len(opened.said(issue))):
        threads.comment(opened.fake.world, eve.account, opened.fake.threads[issue], f"Me too ({n})")
    opened.cycle()
    opened.cycle()  # by now every page is known by its ETag
    opened.person().comment(issue, "/ralph reject we spell it so")
    assert statuses(opened.cycle()[0]) == ["REJECTED"]


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
@pytest.mark.parametrize("status", ["422", slower("404"), slower("409")])
def test_a_refusal_clears_nothing_that_is_still_to_be_done(fresh: Hub, status: str) -> None:
    """Any answer of 400 and above is taken for an end: what was pending is struck off, and never done."""
    fresh.fake.fail(status, ("POST", "/pulls"))
    fresh.cycle(NOW)
    assert not fresh.pulls
    fresh.cycle()
    assert made(fresh) == (0, 1)


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
def test_two_concurrency_groups_run_one_cycle(fresh: Hub) -> None:
    """Two workflows (cron and dispatch, each in a concurrency group of its own) run at once, and both act."""
    other, found = replace(fresh, runner="other"), list[CycleReport]()
    assert other.clone.exists()

    def meanwhile(request, response) -> None:
        if not found and writes(request) and request.transport == "rest":
            found.append(other.cycle(NOW)[0])

    undo = fresh.fake.after(meanwhile)
    try:
        report, _ = fresh.cycle(NOW)
    finally:
        undo()
    assert [report.outcome, *(one.outcome for one in found)] == ["done", "lost"]
    assert (made(fresh), duplicates(fresh)) == ((0, 1), [])


def test_a_branch_name_that_differs_in_case_alone_is_another_ones(town, tmp_path) -> None:
    """`Ralph/fix-1` is there, `ralph/fix-1` is pushed beside it, and on a file system without cases they are one."""
    name = town.hub.head_name(town.after.restore(town.hub).pulls[0].number)
    with open_hub(tmp_path) as hub:
        hub.fake.push(name.upper(), {"theirs.txt": b"theirs\n"})
        hub.person("jonas").open_pull(name.upper(), "main", "Theirs")
        report, _ = hub.cycle()
        assert hub.fake.branch(name) == "" and len(hub.pulls) == 1
        assert ("open-fix", "deny", ("branch-name",)) in verdicts(report)


@pytest.mark.long  # whole lives; the rule that holds it off has a quick test
@pytest.mark.parametrize(("ends", "outcome", "taught"), [("merge", "COMPLETED", 1), ("close_pull", "REJECTED", 0)])
def test_merged_is_a_yes_and_closed_is_a_no(opened: Hub, ends: str, outcome: str, taught: int) -> None:
    """`state: closed` is read as done, or as refused, whichever it was: GitHub says closed of a merged pull too."""
    getattr(opened.person(), ends)(opened.pulls[0].number)
    assert statuses(opened.cycle()[0]) == [outcome]
    tallies = dict(open_state(opened).acceptance).values()
    assert [(tally.accepted, tally.rejected) for tally in tallies] == [(taught, 1 - taught)]


def test_a_409_is_never_answered_by_a_merge_without_the_commit(opened: Hub) -> None:
    """The head moved, the merge at the approved commit is a 409, and it is sent again without the commit."""
    pull = opened.pulls[0].number
    branch, approved = opened.head_name(pull), opened.fake.branch(opened.head_name(pull))
    opened.person().review(pull, "approved")
    opened.fake.journal.clear()

    def push(request) -> None:
        if request.method == "PUT" and request.below.endswith("/merge") and opened.fake.branch(branch) == approved:
            opened.fake.push(branch, {"evil.py": b"import os\n"})

    undo = opened.fake.before(push)
    try:
        opened.cycle()
    finally:
        undo()
    assert merges(opened) and {body["sha"] for body in merges(opened)} == {approved}
    assert not opened.merged(pull)


def test_a_branch_that_outlives_its_closed_pull_is_not_proposed_again(opened: Hub) -> None:
    """A person closes the pull, and the branch stays: the next run finds a branch without an open pull, and opens one.

    Renovate had to learn to take a closed pull for a no.
    """
    pull = opened.pulls[0].number
    branch = opened.head_name(pull)
    opened.fake.ruleset(branch, forbidden=("deletion",))
    opened.person().close_pull(pull)
    for _ in range(2):
        opened.cycle()
    assert opened.fake.branch(branch) != ""
    assert (made(opened), opened.fake.pull(pull).state) == ((0, 1), "closed")


def test_memory_is_not_lost_where_main_is_checked_out(tmp_path) -> None:
    """The runner checks out main, where no memory is; each cycle begins with none, and says and does it all again."""
    here = world(tmp_path / "repo")
    for cycle in range(1, 3):
        here.git("checkout", "--quiet", "--force", "main")
        here.git("clean", "--quiet", "-fdx", "--exclude=.ralph")
        report, _ = here.cycle()
        assert report.cycle == cycle
    assert (len(here.issues), len(here.pulls)) == (0, 1)


def test_a_push_of_memory_that_is_rejected_is_not_ignored(fresh: Hub) -> None:
    """The push to the memory branch fails behind `|| true`, and the run goes on: nothing of it is remembered."""
    fresh.fake.ruleset("ralph-memory", forbidden=("creation", "update"))
    try:
        with pytest.raises(UserError, match="cannot write memory: ralph-memory is protected"):
            fresh.cycle(NOW)
    finally:
        fresh.fake.world.rulesets.clear()
    assert not [one for one in fresh.fake.journal if writes(one) and one.transport == "rest"]
    assert (fresh.issues, fresh.pulls, fresh.fake.branch("ralph-memory")) == ([], [], "")


@pytest.mark.long  # the races of `make crash` look for it everywhere
def test_a_memory_that_moved_is_never_pushed_over(fresh: Hub) -> None:
    """Not a fast-forward: the push is forced, and what the other runner knew is gone."""
    other = replace(fresh, runner="other")
    assert other.clone.exists()
    with watched(fresh) as witness:
        fresh.cycle(NOW)
        before = fresh.fake.branch("ralph-memory")
        other.cycle()
    git(fresh.fake.bare, "merge-base", "--is-ancestor", before, "ralph-memory")
    assert witness.wrong == []
