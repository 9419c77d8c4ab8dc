"""A person speaks before the next cycle is due: that is acted on at once, and nothing else is looked at."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github.api import Api, ReadCache
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.threads import ThreadNews
from ralph_mission.cli.mission import wakes
from ralph_mission.errors import UserError
from ralph_mission.mission import cycle
from ralph_mission.mission.cycle import run_patiently
from ralph_mission.mission.memory.text import parse_memory
from tests.crash.dying import writes
from tests.crash.witness import open_state
from tests.fakes.github.shapes.basics import node
from tests.helpers import cli_here
from tests.integration.hub import Hub, open_hub, unpaced
from tests.integration.world import CALM, statuses

SOON = timedelta(minutes=2)


def spoken(hub: Hub):
    return hub.cycle(SOON, force=False, trigger="person")


def test_a_persons_word_is_answered_by_a_reaction_at_the_gate_and_another_once_it_was_obeyed(reviewed, tmp_path):
    (pull,) = reviewed.pulls
    reviewed.person().review(pull.number, "approved")
    (review,) = reviewed.fake.world.reviews.values()
    subject = node("PRR", review.id)
    event = {"review": {"node_id": subject}, "pull_request": {"node_id": "PR", "number": pull.number}}
    with woken_by(reviewed, tmp_path / "event", "pull_request_review", event):
        assert cli_here("due", repo=reviewed.clone).code == 0
        assert reviewed.fake.world.reactions == {(subject, "EYES")}
        assert cli_here("cycle", "--repo", str(reviewed.clone)).code == 0
    assert reviewed.fake.world.reactions == {(subject, "THUMBS_UP")}
    assert reviewed.merged(pull.number)


@contextmanager
def woken_by(hub: Hub, place: Path, name: str, event: dict[str, Any]) -> Iterator[None]:
    """A workflow's run that an event of a person's started."""
    place.write_text(json.dumps(event))
    where = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(place)}
    where |= {"GITHUB_ACTOR_ID": str(hub.person().actor.id)}
    with mock.patch.dict(os.environ, hub.environ | where), unpaced():
        yield


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("/ralph aprove", "CONFUSED"),
        ("/ralph", "CONFUSED"),
        ("/ralph approve", "CONFUSED"),  # a pull request is approved by a review
        ("/ralph guidance Keep it short.", "EYES"),
        ("/ralph reject Not now.", "THUMBS_UP"),
    ],
)
def test_a_comment_of_which_nothing_came_gets_no_thumb(reviewed, tmp_path, words, answer):
    (pull,) = reviewed.pulls
    comment = reviewed.person().comment(pull.number, words)
    there = {"number": pull.number, "pull_request": {}}
    about = {"comment": {"node_id": node("IC", comment), "body": words}, "issue": there}
    with woken_by(reviewed, tmp_path / "event", "issue_comment", about):
        assert cli_here("due", repo=reviewed.clone).code == 0
        assert cli_here("cycle", "--now", f"{reviewed.now + SOON:%Y-%m-%dT%H:%M:%SZ}", repo=reviewed.clone).code == 0
    assert reviewed.fake.world.reactions == {(node("IC", comment), answer)}
    story = "".join(one.body for one in reviewed.fake.world.comments.values())
    assert ("a comment cannot approve a pull request" in story) == (words == "/ralph approve")


def test_a_command_that_another_run_obeyed_already_is_not_called_unclear(reviewed, tmp_path):
    (pull,) = reviewed.pulls
    comment = reviewed.person().comment(pull.number, "/ralph park")
    spoken(reviewed)
    about = {"comment": {"node_id": node("IC", comment), "body": "/ralph park"}, "issue": {"number": pull.number}}
    with woken_by(reviewed, tmp_path / "event", "issue_comment", about):
        assert cli_here("due", repo=reviewed.clone).code == 0
        assert cli_here("cycle", "--now", f"{reviewed.now + SOON:%Y-%m-%dT%H:%M:%SZ}", repo=reviewed.clone).code == 0
    assert reviewed.fake.world.reactions == {(node("IC", comment), "EYES")}


@pytest.mark.parametrize(("earlier", "answer"), [(False, "EYES"), (True, "CONFUSED")])
def test_an_approval_that_waits_keeps_the_eyes_and_one_that_is_refused_is_answered_once(
    reviewed, tmp_path, earlier, answer
):
    (pull,) = reviewed.pulls
    reviewed.person().review(pull.number, "approved")
    (review,) = reviewed.fake.world.reviews.values()
    review.sha = "d" * 40 if earlier else review.sha
    event = {"review": {"node_id": node("PRR", review.id)}, "pull_request": {"node_id": "PR", "number": pull.number}}
    reviewed.fake.check(reviewed.fake.branch(reviewed.head_name(pull.number)), "lint", None)
    with woken_by(reviewed, tmp_path / "event", "pull_request_review", event):
        assert cli_here("due", repo=reviewed.clone).code == 0
        for _ in range(2):
            assert (
                cli_here("cycle", "--now", f"{reviewed.now + SOON:%Y-%m-%dT%H:%M:%SZ}", repo=reviewed.clone).code == 0
            )
    assert reviewed.fake.world.reactions == {(node("PRR", review.id), answer)}
    told = "".join(comment.body for comment in reviewed.fake.world.comments.values())
    assert told.count("it was for an earlier commit") == int(earlier)


def header(hub: Hub):
    return parse_memory(hub.memory().encode()).header


def test_an_approval_is_merged_at_once_and_the_next_cycle_stays_due_when_it_was(reviewed):
    (pull,), before = reviewed.pulls, header(reviewed)
    reviewed.person().review(pull.number, "approved")
    assert reviewed.cycle(SOON, force=False)[0].outcome == "not_due"
    report, _ = spoken(reviewed)
    after = header(reviewed)
    assert (report.outcome, report.trigger, statuses(report)) == ("done", "person", ["COMPLETED"])
    assert reviewed.merged(pull.number)
    assert (after.next_due_at, after.urgency, after.dispatches) == (
        before.next_due_at,
        before.urgency,
        before.dispatches,
    )
    assert after.generation > before.generation


@pytest.mark.parametrize("result", [None, "failure"])
def test_while_an_approved_merge_waits_for_checks_the_next_cycle_is_due_before_long(reviewed, result):
    (pull,) = reviewed.pulls
    head = reviewed.fake.branch(reviewed.head_name(pull.number))
    reviewed.fake.check(head, "lint", result)
    reviewed.person().review(pull.number, "approved")
    spoken(reviewed)
    assert header(reviewed).next_due_at == reviewed.now + timedelta(minutes=15)
    assert reviewed.cycle(timedelta(minutes=15), force=False)[0].outcome == "done"
    assert header(reviewed).next_due_at == reviewed.now + timedelta(minutes=15)
    reviewed.cycle(timedelta(hours=24))  # whatever it is, it takes a person
    assert header(reviewed).next_due_at == reviewed.now + timedelta(hours=6)
    reviewed.fake.check(head, "lint", "success")
    reviewed.cycle()
    assert reviewed.merged(pull.number)


def test_held_checks_make_the_next_cycle_due_sooner_but_no_strangers_approval_nor_an_outdated_one(reviewed):
    (pull,) = reviewed.pulls
    head = reviewed.fake.branch(reviewed.head_name(pull.number))
    run = partial(reviewed.fake.workflow_run, 5, event="pull_request", path=".github/workflows/ci.yml", head_sha=head)
    reviewed.fake.check(head, "lint", None)
    reviewed.person().review(pull.number, "approved")
    spoken(reviewed)
    soon, later = timedelta(minutes=15), timedelta(hours=6)
    assert header(reviewed).next_due_at == reviewed.now + soon
    run("completed", conclusion="action_required")  # the click that lets them start is no event
    reviewed.cycle(soon)
    assert header(reviewed).next_due_at == reviewed.now + soon
    run("completed", conclusion="success")
    reviewed.cycle(soon)
    assert header(reviewed).next_due_at == reviewed.now + soon
    reviewed.cycle(timedelta(hours=24))
    reviewed.person("eve", "read").review(pull.number, "approved")
    reviewed.cycle(soon)
    assert header(reviewed).next_due_at == reviewed.now + later
    reviewed.person("kim", "write").review(pull.number, "approved")
    (*_, outdated) = reviewed.fake.world.reviews.values()
    outdated.sha = "d" * 40
    reviewed.cycle(soon)
    assert header(reviewed).next_due_at == reviewed.now + later


def test_a_merge_that_somebody_without_a_say_stops_names_them_on_the_pull_request_and_goes_on_once_they_agree(tmp_path):
    with open_hub(tmp_path, config=f"{CALM}owners: [mara]\n") as hub:
        hub.cycle()
        (pull,) = hub.pulls
        hub.person("nora").review(pull.number, "changes_requested")
        hub.person("mara").review(pull.number, "approved")
        report, _ = spoken(hub)
        assert statuses(report) == ["ESCALATED"] and not hub.merged(pull.number)
        assert any("nora asks for changes" in comment.body for comment in hub.fake.world.comments.values())
        assert header(hub).next_due_at > hub.now + timedelta(hours=1)
        hub.person("nora").review(pull.number, "approved")
        hub.person("mara").review(pull.number, "approved")
        spoken(hub)
        assert hub.merged(pull.number)


def test_an_approved_merge_that_rules_refuse_is_not_tried_again_and_again(reviewed):
    (pull,) = reviewed.pulls
    reviewed.fake.ruleset("main", required_reviews=2)
    reviewed.person().review(pull.number, "approved")
    reviewed.cycle(SOON)
    assert header(reviewed).next_due_at == reviewed.now + timedelta(hours=6)
    reviewed.person("jonas").review(pull.number, "approved")
    spoken(reviewed)
    assert reviewed.merged(pull.number)


def test_a_rewritten_pull_request_that_a_person_approved_waits_for_its_checks_as_any_other(reviewed):
    (pull,) = reviewed.pulls
    head = reviewed.fake.branch(reviewed.head_name(pull.number))
    run = partial(reviewed.fake.workflow_run, 5, event="pull_request", path=".github/workflows/ci.yml", head_sha=head)
    run("completed", conclusion="action_required")
    reviewed.person().edit_issue(pull.number, body="In my own words.")
    spoken(reviewed)
    reviewed.person().review(pull.number, "approved")
    spoken(reviewed)
    assert header(reviewed).next_due_at == reviewed.now + timedelta(minutes=15)
    reviewed.cycle(timedelta(minutes=15), force=False)
    (page,) = (thread for thread in reviewed.threads if thread.title == "Ralph")
    assert "Approve workflows to run" in page.body and "tampered" not in page.body
    run("completed", conclusion="success")
    reviewed.cycle(timedelta(minutes=15), force=False)
    assert reviewed.merged(pull.number)


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("approved", "reset_not_applied"),
        ("approved", "rate_secondary"),
        ("/ralph reject", "502_not_applied"),
        ("/ralph reject", "rate_secondary"),
    ],
)
def test_a_word_whose_step_fails_for_now_makes_the_next_cycle_due_sooner(reviewed, word, fault):
    (pull,) = reviewed.pulls
    if word == "approved":
        reviewed.person().review(pull.number, "approved")
    else:
        reviewed.person().comment(pull.number, word)
    reviewed.fake.fail(fault, ("PUT", "*/merge") if word == "approved" else ("PATCH", "*"), times=9)
    spoken(reviewed)
    assert not reviewed.merged(pull.number) and pull.state == "open"
    reviewed.fake.faults.clear()
    assert header(reviewed).next_due_at <= reviewed.now + timedelta(minutes=15)
    reviewed.cycle(timedelta(minutes=15), force=False)
    assert reviewed.merged(pull.number) == (word == "approved")
    assert pull.state == "closed"


@pytest.mark.long  # a variation of what is answered at once
def test_what_a_merge_waits_for_is_told_for_as_long_as_it_waits(reviewed):
    (pull,) = reviewed.pulls
    head = reviewed.fake.branch(reviewed.head_name(pull.number))
    reviewed.fake.check(head, "lint", "failure")
    reviewed.person().review(pull.number, "approved")
    for _ in range(4):
        _, told = spoken(reviewed)
        assert any("not green: lint ended with failure" in line.note for line in told.waiting), told.waiting
    reviewed.fake.check(head, "lint", "success")
    spoken(reviewed)
    assert reviewed.merged(pull.number)


@pytest.mark.long  # a variation of what is answered at once
def test_nothing_is_observed_and_nothing_new_is_opened(reviewed):
    threads = {thread.number for thread in reviewed.threads}
    reviewed.fake.push("main", {"notes.md": b"This sentense is new, and seperate.\n"})
    waiting = [finding.fingerprint for finding in open_state(reviewed).backlog]
    report, _ = spoken(reviewed)
    assert report.observers == () and {thread.number for thread in reviewed.threads} == threads
    assert [finding.fingerprint for finding in open_state(reviewed).backlog] == waiting


@pytest.mark.long  # a variation of what is answered at once
def test_words_that_change_nothing_do_not_make_a_mission_look_stuck(buggy):
    before = [mission.progress for mission in open_state(buggy).missions]
    for _ in range(5):
        spoken(buggy)
    assert [mission.progress for mission in open_state(buggy).missions] == before


@pytest.mark.long  # a variation of what is answered at once
def test_a_cycle_that_is_due_anyway_looks_at_everything(reviewed):
    report, _ = reviewed.cycle(timedelta(hours=7), force=False, trigger="person")
    assert report.observers


@pytest.mark.long  # a variation of what is answered at once
def test_a_paused_repository_stays_paused_whoever_speaks(reviewed, monkeypatch):
    monkeypatch.setenv("RALPH_PAUSED", "1")
    assert spoken(reviewed)[0].outcome == "paused"


@pytest.mark.long  # a variation of what is answered at once
def test_a_cycle_that_has_nothing_to_answer_writes_on_nothing_that_would_start_another_one(reviewed):
    """With a person's own token what Ralph writes looks like a person's word."""
    spoken(reviewed)
    before = len(reviewed.fake.journal)
    spoken(reviewed)
    written = [one for one in reviewed.fake.journal[before:] if one.method != "GET" and ".git/" not in one.path]
    touched = [int(one.path.rsplit("/", 1)[1]) for one in written if one.method == "PATCH"]
    assert [one.path for one in written if one.method != "PATCH" and "graphql" not in one.path] == []
    assert not any("ralph:mission" in reviewed.fake.threads[number].labels for number in touched)


def test_fifty_comments_of_strangers_in_an_hour_cost_no_write(reviewed):
    """Their events start no job (`tests/action/test_guards.py`); what the clock starts has nothing to answer."""
    (pull,), eve = reviewed.pulls, reviewed.person("eve", "read")
    seen = len(reviewed.fake.journal)
    for n in range(50):
        eve.comment(pull.number, ("/ralph approve", "/ralph reject", "/ralph retry", "Nice!")[n % 4])
        if n % 10 == 9:
            assert reviewed.cycle(timedelta(minutes=12), force=False)[0].outcome == "not_due"
    assert not any(writes(request) for request in reviewed.fake.journal[seen:])
    report, _ = reviewed.cycle(timedelta(hours=6))
    written = [request for request in reviewed.fake.journal[seen:] if writes(request)]
    assert report.effects == () and {request.below for request in written} == {"/git-receive-pack"}  # memory's commit


def test_watching_costs_one_conditional_request_until_a_person_speaks_and_no_write_for_strangers(reviewed):
    (pull,) = reviewed.pulls

    def minute():
        reviewed.now += timedelta(minutes=1)
        reviewed.fake.clock.now = reviewed.now
        reviewed.fake.journal.clear()
        return answer()

    at_this_moment = mock.patch.object(wakes, "open_app", lambda *_, **__: reviewed.house())
    with mock.patch.dict(os.environ, reviewed.environ), unpaced(), at_this_moment:
        answer = wakes.answer_people(reviewed.clone, None, mock.Mock())
        minute()
        for _ in range(3):
            assert minute() is None
            assert [(r.below, r.status) for r in reviewed.fake.journal] == [("/issues", 304)]
        reviewed.fake.person("passer-by", "read").comment(pull.number, "/ralph approve")
        assert minute() is None and not any(map(writes, reviewed.fake.journal))
        (stranger,) = reviewed.fake.world.comments.values()
        reviewed.person().comment(pull.number, "/ralph aprove")
        assert minute() is None
        words = [node("IC", one.id) for one in reviewed.fake.world.comments.values() if one is not stranger]
        assert reviewed.fake.world.reactions == {(words[0], "CONFUSED")}
        reviewed.person().review(pull.number, "approved")
        report = minute()
        (review,) = reviewed.fake.world.reviews.values()
        assert (node("PRR", review.id), "THUMBS_UP") in reviewed.fake.world.reactions
        assert (report.trigger, statuses(report), reviewed.merged(pull.number)) == ("person", ["COMPLETED"], True)
        assert minute() is None
        assert minute() is None and len(reviewed.fake.journal) == 1


def test_watching_reacts_to_nothing_that_was_said_before_a_thread_came_to_its_notice(reviewed):
    mara = reviewed.person()
    issue = mara.create_issue("A question", "Why?")
    mara.comment(issue, "/ralph guidance An old word.")
    api = reviewed.house().github.api
    news = ThreadNews(Api(api.place, ReadCache(None, "")))
    with mock.patch.dict(os.environ, reviewed.environ), unpaced():
        news.look()
        reviewed.fake.clock.now = reviewed.now + timedelta(minutes=1)
        mara.label(issue, ("agent:claude",))
        mara.comment(issue, "/ralph guidance A new word.")
        assert news.look()
        assert [word.text for word in news.find_words()] == ["/ralph guidance A new word."]


def approve_a_minute_later(reviewed: Hub) -> None:
    (pull,) = reviewed.pulls
    reviewed.now += timedelta(minutes=1)
    reviewed.fake.clock.now = reviewed.now
    reviewed.person().review(pull.number, "approved")


LOST = (mock.Mock(outcome="lost"), mock.Mock(answers=()))


@pytest.mark.parametrize(
    ("place", "name", "problems"),
    [
        (
            ThreadNews,
            "find_words",
            [UserError("no answer", "try again"), ForgeRefused("no answer"), Absent("/issues/1/comments", 404)],
        ),
        (wakes, "name_reaction", [Absent("/graphql", 404)]),
    ],
)
def test_watching_acts_on_a_word_that_it_cannot_react_to(reviewed, place, name, problems):
    at_this_moment = mock.patch.object(wakes, "open_app", lambda *_, **__: reviewed.house())
    with mock.patch.dict(os.environ, reviewed.environ), unpaced(), at_this_moment:
        answer = wakes.answer_people(reviewed.clone, None, mock.Mock())
        answer()
        approve_a_minute_later(reviewed)
        for problem in problems[:-1]:
            with (
                mock.patch.object(place, name, side_effect=problem),
                mock.patch.object(cycle, "run_cycle") as steer,
            ):
                steer.return_value = LOST
                assert answer().outcome == "lost"
        with mock.patch.object(place, name, side_effect=problems[-1]) as broken:
            report = answer()
    assert broken.called
    assert report and statuses(report) == ["COMPLETED"]
    assert reviewed.merged(reviewed.pulls[0].number)


@pytest.mark.parametrize("ends", [UserError("GitHub answered 502", "try again"), "lost"])
def test_watching_acts_in_the_next_minute_on_a_word_that_it_could_not_act_on(reviewed, ends):
    (pull,) = reviewed.pulls
    at_this_moment = mock.patch.object(wakes, "open_app", lambda *_, **__: reviewed.house())
    with mock.patch.dict(os.environ, reviewed.environ), unpaced(), at_this_moment:
        answer = wakes.answer_people(reviewed.clone, None, mock.Mock())
        answer()
        approve_a_minute_later(reviewed)
        with (
            mock.patch.object(cycle, "run_cycle", side_effect=[LOST if ends == "lost" else ends]),
            suppress(UserError),
        ):
            assert answer().outcome == "lost"
        assert not reviewed.merged(pull.number)
        report = answer()
        (review,) = reviewed.fake.world.reviews.values()
        assert (node("PRR", review.id), "THUMBS_UP") in reviewed.fake.world.reactions
        assert statuses(report) == ["COMPLETED"] and reviewed.merged(pull.number)
        assert answer() is None


def test_what_a_person_said_waits_for_the_runner_that_has_memory_but_not_for_ever():
    results = [(mock.Mock(outcome=outcome), mock.Mock()) for outcome in ("lost", "lost", "done")]
    pauses: list[float] = []
    assert run_patiently(iter(results).__next__, pauses.append) is results[2]
    assert pauses == [10.0, 10.0]
    pauses.clear()
    with pytest.raises(UserError, match="ten minutes"):
        run_patiently(lambda: results[0], pauses.append)
    assert sum(pauses) == 600.0


def test_watching_hears_what_was_said_before_its_first_look(reviewed):
    (pull,) = reviewed.pulls
    reviewed.person().review(pull.number, "approved")
    at_this_moment = mock.patch.object(wakes, "open_app", lambda *_, **__: reviewed.house())
    with mock.patch.dict(os.environ, reviewed.environ), unpaced(), at_this_moment:
        report = wakes.answer_people(reviewed.clone, None, mock.Mock())()
    assert report and statuses(report) == ["COMPLETED"]
    assert reviewed.merged(pull.number)
