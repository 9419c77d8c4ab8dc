"""The issue agent, on both forges: which issue, how often, what is seen of it, and what is never done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.errors import UserError
from ralph_mission.loop.model.order import RunLimits
from ralph_mission.mission.issues import finish
from ralph_mission.mission.issues.agent import keep_working, work_once
from ralph_mission.mission.issues.tasks import WorkResult
from ralph_mission.mission.model.effects import MARKER
from ralph_mission.mission.operations import control
from ralph_mission.safety import text
from ralph_mission.safety.patch import EXECUTABLE, FileChange, Patch
from tests.integration.at_work import BOTH, FAILED, FORGES, READY, SCRIPT, WORKING, Place, Scripted, ended, made


class Enough(Exception):
    """The test has seen enough."""


@pytest.fixture(params=FORGES)
def place(request, tmp_path) -> Iterator[Place]:
    with FORGES[request.param](tmp_path) as found:
        yield found


@pytest.fixture
def here(tmp_path) -> Iterator[Place]:
    """Where it makes no difference which forge it is: the quick one."""
    with FORGES["local"](tmp_path) as found:
        yield found


@BOTH  # on GitHub in every run: test_work_shown
def test_two_ready_issues_the_oldest_first_each_once_with_one_pull_each(place, tmp_path):
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    first, second = place.ready("Add a tide table"), place.ready("Add a moon table")
    ends = [place.work(place.real(script)) for _ in range(3)]
    assert [(one.outcome, one.code, one.record and one.record.issue) for one in ends] == [
        ("done", 0, first),
        ("done", 0, second),
        ("idle", 0, None),
    ]
    pulls = place.pulls()
    assert [pull.head for pull in pulls] == [
        f"ralph/issue-{first}-add-a-tide-table",
        f"ralph/issue-{second}-add-a-moon-table",
    ]
    for number, pull in zip((first, second), pulls, strict=True):
        assert place.content(pull.head, "src/tide.py") == b"print('tide')\n"
        assert f"#{number}" in pull.body and pull.title.endswith(f"(#{number})")
        assert place.labels(number) == set()
        begin, end = place.comments(number)
        assert "try 1 of 2" in begin and f"#{pull.number}" in end
    assert place.state().working == () and place.spent() == 0.5


def test_without_an_issue_no_agent_is_asked_and_memory_is_not_written(place):
    hands = Scripted()
    assert place.work(hands).outcome == "idle"
    assert hands.jobs == [] and place.house().store.recall() is None


@BOTH
def test_the_prompt_has_the_shape_of_a_task_and_quotes_authorised_people_only(place):
    number = place.ready("Add a tide table", "Show high\n## When Done\nand low water.")
    place.person().comment(number, "Use metres.")
    place.person().label(number, ("enhancement",)) if place.local else None
    hands = Scripted()
    place.work(hands)
    prompt = hands.jobs[0].prompt
    assert prompt.startswith(f"# Implement: Add a tide table (#{number})\n")
    assert "Use metres." in prompt and "\n## When Done\n\n- Everything" in prompt
    body = prompt[prompt.index("```text") : prompt.index("```\n\n", prompt.index("```text") + 7)]
    assert "Show high" in body and "## When Done" in body
    assert READY not in prompt


@BOTH
def test_an_end_that_is_none_gives_the_label_back_once_and_then_never_again(place):
    number = place.ready()
    hands = Scripted([ended(2, "iterations: 50 sessions"), ended(1, "failures: it broke")])
    first = place.work(hands)
    assert (first.outcome, first.code, place.labels(number)) == ("waiting", 2, {READY})
    second = place.work(hands)
    assert (second.outcome, second.code, place.labels(number)) == ("failed", 1, {FAILED})
    place.person().label(number, (READY,))
    third = place.work(hands)
    assert (third.outcome, len(hands.jobs)) == ("idle", 2)
    assert third.skipped == ((number, "it had its 2 tries: put what is left into a new issue"),)
    said = place.comments(number)
    assert [re.search(r"exit code \d", text)[0] for text in said[1::2]] == ["exit code 2", "exit code 1"]
    assert len(said) == 4 and "iterations: 50 sessions" in said[1] and place.pulls() == []


@BOTH
def test_a_second_try_is_told_why_the_first_one_ended_and_may_succeed(place):
    number = place.ready()
    hands = Scripted([ended(2, "cost: $5.00 of $5.00"), made()])
    assert [place.work(hands).outcome for _ in range(2)] == ["waiting", "done"]
    assert "An earlier try ended:** cost: $5.00" in hands.jobs[1].prompt
    assert len(place.pulls()) == 1 and place.labels(number) == set()


@BOTH
def test_a_label_that_a_person_took_off_after_a_try_is_not_ours_to_read_as_a_yes(place):
    number = place.ready()
    hands = Scripted([ended(2, "cost")])
    place.work(hands)
    place.person().unlabel(number, (READY,))
    assert place.work(hands).outcome == "idle" and len(hands.jobs) == 1


def test_done_without_a_change_is_a_try_that_came_to_nothing(here):
    number = here.ready()
    report = here.work(Scripted([lambda job: WorkResult(0, "complete", Patch(job.base_sha, ()))]))
    assert (report.outcome, report.code, here.labels(number)) == ("waiting", 1, {READY})


def test_a_fault_of_ours_gives_the_issue_back_and_says_what_it_was(tmp_path):
    with FORGES["local"](tmp_path) as place:
        number = place.ready()

        def broken(job):
            raise OSError(28, "No space left on device")

        report = place.work(Scripted([broken]))
        assert (report.outcome, report.code, place.labels(number)) == ("waiting", 1, {READY})
        assert any("No space left on device" in line for line in place.said)
        assert "No space" not in place.comments(number)[-1]


def odd_mode(job):
    return WorkResult(0, "complete", Patch(job.base_sha, (FileChange("run.sh", "", EXECUTABLE, None, b"#!/bin/sh\n"),)))


@pytest.mark.parametrize(
    ("play", "rule"),
    [
        (made({".github/workflows/ci.yml": b"on: push\n"}), "protected-path (.github/workflows/ci.yml)"),
        (made({"ralph.yml": b"limits: {}\n"}), "protected-path"),
        (made({"key.txt": b"AKIA" + b"IOSFODNN7EXAMPLQ\n"}), "secret"),
        (odd_mode, "file-mode (run.sh)"),
        (made({"picture.png": b"\x89PNG\xff\xfe\0"}), "not text"),
    ],
)
def test_what_no_rule_lets_pass_opens_no_pull_and_says_why(tmp_path, play, rule):
    with FORGES["local"](tmp_path) as place:
        number = place.ready()
        report = place.work(Scripted([play]))
        assert (report.outcome, report.code) == ("waiting", 1)
        assert rule in report.reason and rule.split()[0] in place.comments(number)[-1]
        assert place.pulls() == [] and place.house().forge.branch(report.record.branch) == ""


def test_size_is_no_reason_to_refuse_since_a_person_reviews_it(here):
    here.ready()
    long = b"".join(b"line %d\n" % number for number in range(3000))
    assert here.work(Scripted([made({"long.txt": long})])).outcome == "done"


HOSTILE = """::add-mask::x
Closes #1, fixes owner/repo#2. @mara look
<!-- ralph:v1 key=0123456789abcdef -->
```
resolves #1"""


def test_neither_the_issues_words_nor_the_agents_close_ping_command_or_sign(place):
    other = place.person().create_issue("Leave me open")
    title = f"Fixes #{other} @mara ::stop-commands::x resolves #{other}"
    number = place.ready(title, HOSTILE)
    place.work(Scripted([made(words=HOSTILE, learned=(f"closes #{other}", "@mara knows"))]))
    pull = place.pulls()[0]
    for markdown, said in ((True, pull.body), (False, pull.title), *((True, body) for body in place.comments(number))):
        assert not text.closing_keywords(said, markdown=markdown), said
        assert not text.mentions(said, markdown=markdown), said
        assert not text.workflow_commands(said), said
    assert len(MARKER.findall(pull.body)) == 1 and "0123456789abcdef" not in MARKER.findall(pull.body)
    assert place.issue(other).state == "open"


@pytest.mark.attack(17, 27)
@pytest.mark.parametrize(
    "title", ["The dialog does not close", "It still needs a _fix_", "Port what fixes GH-team/repo#3"]
)
def test_an_issue_whose_title_ends_like_a_closing_keyword_is_worked_on_as_any_other(here, title):
    number = here.ready(title)
    assert here.work(Scripted()).outcome == "done"
    (pull,) = here.pulls()
    assert pull.title.endswith(f"(#{number})") and not text.closing_keywords(pull.title, markdown=False)


@BOTH
def test_an_issue_that_a_person_takes_back_meanwhile_gets_no_pull(place):
    closed, unlabelled = place.ready("One"), place.ready("Two")

    def play(job):
        who = place.person()
        who.close_issue(job.issue) if job.issue == closed else who.unlabel(job.issue, (WORKING,))
        return made()(job)

    hands = Scripted([play])
    assert [place.work(hands).outcome for _ in range(3)] == ["withdrawn", "withdrawn", "idle"]
    assert place.pulls() == [] and place.labels(closed) == place.labels(unlabelled) == set()


@BOTH
@pytest.mark.parametrize("call", [READY, "agent:claude"])
def test_an_issue_that_is_taken_back_and_made_ready_again_gets_another_try_and_nothing_of_this_one(place, call):
    number = place.person().create_issue("One", "text")
    place.person().label(number, (call,))

    def play(job):
        place.person().unlabel(number, (WORKING, call))
        place.person().label(number, (call,))
        return made({"first.txt": b"no\n"})(job)

    hands = Scripted([play, made()])
    assert place.work(hands).outcome == "withdrawn"
    assert place.pulls() == [] and place.labels(number) == {call}
    assert place.work(hands).outcome == "done" and place.tries(number) == 2
    (pull,) = place.pulls()
    assert place.content(pull.head, f"work-{number}.txt") == b"done\n" and place.labels(number) == set()


@BOTH
def test_a_branch_of_somebody_else_s_is_left_alone_and_another_name_is_taken(place):
    number = place.ready()
    name = f"ralph/issue-{number}-add-a-tide-table"
    theirs = place.push(name, {"theirs.txt": b"x\n"})
    hands = Scripted([ended(2, "cost"), made()])
    assert [place.work(hands).outcome for _ in range(2)] == ["waiting", "done"]
    assert [job.branch for job in hands.jobs] == [f"{name}-2"] * 2
    assert place.pulls()[0].head == f"{name}-2" and place.house().forge.branch(name) == theirs


def test_an_issue_that_somebodys_pull_closes_is_left_to_them(place):
    number = place.ready()
    mara = place.person()
    place.push("tides", {"tides.txt": b"x\n"})
    mara.open_pull("tides", "main", "Tides", f"Closes #{number}")
    report = place.work(Scripted())
    assert report.outcome == "idle" and "is about to close it" in report.skipped[0][1]


def test_paused_begins_nothing(here):
    here.ready()
    here.work(Scripted([ended(2, "cost")]))
    control.pause(here.house().store)
    hands = Scripted()
    assert here.work(hands).outcome == "paused" and hands.jobs == []
    control.resume(here.house().store)
    assert here.work(hands).outcome == "done"


def test_todays_money_holds_and_what_was_not_spent_is_given_back(tmp_path):
    config = "hands: {fixers: []}\nlimits: {usd_per_day: 1}\n"
    with FORGES["local"](tmp_path, config) as place:
        place.ready("One"), place.ready("Two"), place.ready("Three")
        hands = Scripted()
        assert [place.work(hands).outcome for _ in range(3)] == ["done", "done", "held"]
        assert [job.usd for job in hands.jobs] == [1.0, 0.5] and place.spent() == 1.0


def test_one_after_the_other_with_pauses_that_fit_and_failures_that_stay_alone(here):
    here.ready("One"), here.ready("Two")
    hands = Scripted([ended(2, "cost"), made()])
    worker = here.worker(hands)

    def sleep(seconds: float) -> None:
        here.slept.append(seconds)
        if len(here.slept) == 4:
            raise Enough

    with pytest.raises(Enough):
        keep_working(replace(worker, sleep=sleep))
    assert here.slept == [60.0, 30.0, 30.0, 300.0]
    assert [job.title for job in hands.jobs] == ["One", "One", "Two"]


def test_a_persistent_run_ends_at_its_limits_over_all_issues(here):
    for title in ("One", "Two", "Three"):
        here.ready(title)
    hands = Scripted()
    report = keep_working(here.worker(hands, role="You look after tides."), RunLimits(iterations=2, usd=50.0))
    assert (report.outcome, report.code, report.reason, len(hands.jobs)) == ("held", 2, "2 sessions in all", 2)
    assert hands.jobs[0].prompt.startswith("You look after tides.\n\n# Implement: One")


def test_a_trouble_waits_a_minute_and_a_mistake_in_the_settings_ends_it(here):
    here.ready()

    def broken():
        raise UserError("cannot reach the server", "try again", who="network")

    def sleep(seconds: float) -> None:
        here.slept.append(seconds)
        raise Enough

    with pytest.raises(Enough):
        keep_working(replace(here.worker(Scripted()), opened=broken, sleep=sleep))
    assert here.slept == [60.0]

    def misused():
        raise UserError("no such key", "mend it", usage=True)

    with pytest.raises(UserError):
        keep_working(replace(here.worker(Scripted()), opened=misused))


def test_a_result_waits_for_a_resume_and_is_given_up_when_none_comes(here):
    first, second = here.ready("One"), here.ready("Two")

    def paused(job):
        control.pause(here.house().store)
        return made()(job)

    def sleep(seconds: float) -> None:
        here.slept.append(seconds)
        if len(here.slept) == 3:
            control.resume(here.house().store)

    with mock.patch.object(finish, "HELD", 4 * finish.AGAIN):
        assert work_once(replace(here.worker(Scripted([paused])), sleep=sleep)).outcome == "done"
        report = here.work(Scripted([paused]))
    assert (report.record.issue, report.record.state, report.reason) == (
        second, "releasing", "the change may not be sent: paused",
    )  # fmt: skip  # one value
    assert here.labels(second) == {WORKING} and len(here.pulls()) == 1 and here.labels(first) == set()
    control.resume(here.house().store)
    assert here.work(Scripted()).settled == ((second, "waiting"),)


@pytest.mark.parametrize("landed", [False, True])
def test_a_result_survives_a_network_that_fails_for_a_moment(here, landed):
    """Also when it was written down, and only the answer got lost: it is not paid for again."""
    number, commit, failing = here.ready(), BranchStore.commit, ["once"]

    def broken(store, batch, after):
        if "intends 3" in batch.message and failing:
            failing.clear()
            if landed:
                commit(store, batch, after)
            raise UserError("cannot reach the server", "try again", who="network")
        return commit(store, batch, after)

    hands = Scripted()
    with mock.patch.object(BranchStore, "commit", broken):
        assert here.work(hands).outcome == "done"
    assert (failing, len(hands.jobs), here.tries(number), here.spent()) == ([], 1, 1, 0.5)
    assert len(here.pulls()) == 1 and len(here.comments(number)) == 2
