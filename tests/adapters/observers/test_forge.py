"""The forge observer: issues nobody took, pulls nobody reviewed, questions nobody answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.observers import forge
from ralph_mission.adapters.observers.forge import triage
from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.effects import Comment, Label, marker
from ralph_mission.mission.model.mission import Quote
from tests.adapters.observers.forge_world import World
from tests.helpers import commit, git

# --- stale issues ---------------------------------------------------------------------


def test_an_issue_nobody_took_is_told_after_two_weeks(world: World) -> None:
    number = world.mara.create_issue("Crash on start")
    world.later(14)
    assert world.seen("stale-issue") == ()
    world.later(1)
    (signal,) = world.seen("stale-issue")
    assert signal.title == "#1 is unassigned and has been quiet for 15 days: Crash on start"
    assert (signal.reference, signal.author, signal.age_days) == (number, "mara", 15)


def test_activity_makes_an_issue_fresh_again(world: World) -> None:
    number = world.mara.create_issue("Crash on start")
    world.later(15)
    (before,) = identify(world.seen("stale-issue"))
    world.joe.comment(number, "Me too.")
    assert world.seen("stale-issue") == ()
    world.later(15)
    (after,) = identify(world.seen("stale-issue"))
    assert before.fingerprint == after.fingerprint
    assert before.signal.occurrence != after.signal.occurrence


def test_an_assigned_issue_is_not_stale(world: World) -> None:
    number = world.mara.create_issue("Crash on start")
    world.forge.perform(Label("cd" * 8, number, assign=("joe",)))
    world.later(30)
    assert world.seen("stale-issue") == ()


def test_our_own_issues_are_left_out(world: World) -> None:
    world.ours(labels=("ralph:mission",))
    world.later(30)
    assert world.look().signals == ()


def test_an_outsiders_mission_label_hides_nothing(world: World) -> None:
    world.joe.create_issue("Look away", labels=("ralph:mission",))
    world.later(30)
    assert [signal.reference for signal in world.seen("stale-issue")] == [1]


def test_a_closed_issue_is_left_out(world: World) -> None:
    world.mara.close_issue(world.mara.create_issue("Crash on start?"))
    world.later(30)
    assert world.look().signals == ()


def test_the_patience_is_configured(world: World) -> None:
    world.mara.create_issue("Crash on start")
    world.later(2)
    assert len(world.seen("stale-issue", stale_after="1d")) == 1


# --- pulls ----------------------------------------------------------------------------


def test_a_pull_nobody_reviewed_is_told_after_three_days(world: World) -> None:
    number = world.pull()
    world.later(3)
    assert world.seen("pull-waiting") == ()
    world.later(1)
    (signal,) = world.seen("pull-waiting")
    assert signal.title == f"#{number} has waited 4 days for a review: Add a thing"
    assert signal.occurrence == git(world.place.path, "rev-parse", "topic")[:12]


@pytest.mark.parametrize("state", ["approved", "changes_requested"])
def test_a_reviewed_pull_does_not_wait_for_a_review(world: World, state: str) -> None:
    world.joe.review(world.pull(), state, "Read it.")
    world.later(1)
    assert world.seen("pull-waiting") == ()


def test_a_pull_with_changes_requested_waits_for_its_author_alone(world: World) -> None:
    world.joe.review(world.pull(), "changes_requested", "Not yet.")
    world.later(10)
    assert world.seen("pull-waiting") == ()


def test_an_approved_pull_that_nobody_merges_is_told_after_two_days(world: World) -> None:
    number = world.pull()
    world.joe.review(number, "approved", "Fine.")
    world.later(2)
    assert world.seen("pull-waiting") == ()
    world.later(1)
    (signal,) = world.seen("pull-waiting")
    assert signal.title == f"#{number} was approved 3 days ago, is green and not merged: Add a thing"
    assert "approved by joe at its present commit" in signal.detail


def test_an_approval_of_an_older_commit_does_not_count(world: World) -> None:
    world.joe.review(world.pull(), "approved", "Fine.")
    world.push()
    world.later(10)
    (signal,) = world.seen("pull-waiting")
    assert "has waited" in signal.title


def test_a_pull_with_conflicts_is_told_with_the_files_and_leaves_nothing_in_the_repository(world: World) -> None:
    number = world.pull()
    world.joe.review(number, "approved", "Fine.")
    commit(world.place.path, {"topic": "another"})
    world.later(10)
    before = git(world.place.path, "count-objects")
    (signal,) = world.seen("pull-waiting")
    assert signal.title == f"#{number} has conflicts with main: Add a thing"
    assert "merging it into main stops at topic." in signal.detail
    assert git(world.place.path, "count-objects") == before


# --- likely duplicates and traces -----------------------------------------------------

TWICE = "Download stops at half of the file with a slow proxy"


def twins(world: World) -> tuple[int, int]:
    return (
        world.mara.create_issue(TWICE, "It just stops."),
        world.joe.create_issue("With a slow proxy the download stops at half of the file", "Same every day."),
    )


def test_likely_duplicates_are_told_with_what_each_says(world: World) -> None:
    older, newer = twins(world)
    (signal,) = world.seen("triage")
    assert signal.title.startswith(f"#{newer} is likely the same as #{older}: ")
    assert [(quote.reference, quote.text[:8]) for quote in signal.quotes] == [(newer, "With a s"), (older, "Download")]


def test_issues_that_somebody_related_are_not_told(world: World) -> None:
    older, newer = twins(world)
    world.joe.comment(newer, f"See #{older}.")
    assert world.seen("triage") == ()


def test_likely_duplicates_are_gone_once_one_is_closed(world: World) -> None:
    _, newer = twins(world)
    first = world.look()
    world.mara.close_issue(newer)
    world.later(1)
    assert world.look(first.cursor).gone == (("duplicate", str(newer)),)


TRACE = """It fails:

```
Traceback (most recent call last):
  File "/home/mara/venv/lib/python3.11/site-packages/shop/cart.py", line 3, in total
    return sum(prices) / len(prices)
  File "/usr/lib/python3.11/statistics.py", line 9, in mean
    raise StatisticsError('mean requires at least one data point')
```
"""
CART = "def total(prices):\n    prices = list(prices)\n    return sum(prices) / len(prices)\n"


def test_a_report_whose_trace_names_a_line_of_the_commit_is_told_with_the_line(world: World) -> None:
    head = commit(world.place.path, {"src/shop/cart.py": CART})
    number = world.mara.create_issue("Empty cart crashes", TRACE)
    seen = world.look()
    (signal,) = [signal for signal in seen.signals if signal.kind == "triage"]
    assert signal.title == f"#{number} has a stack trace through src/shop/cart.py:3: Empty cart crashes"
    assert signal.quotes == (Quote("return sum(prices) / len(prices)", "src/shop/cart.py", 3, head),)
    commit(world.place.path, {"src/shop/cart.py": CART.replace("len(prices)", "max(1, len(prices))")})
    assert world.look(seen.cursor).gone == (("trace", str(number)),)


def test_traces_are_looked_up_once_for_a_commit(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(world.place.path, {"src/shop/cart.py": CART})
    world.mara.create_issue("Empty cart crashes", TRACE)
    observer = forge.build(forge.ForgeSettings(), world.forge, world.place.git, tmp_path / "cache")
    first = observer.observe(world.place.context(now=world.now))
    monkeypatch.setattr(triage, "TracedCommit", None)
    assert observer.observe(world.place.context(now=world.now)).signals == first.signals != ()


def test_a_pull_waits_again_after_a_push(world: World) -> None:
    world.joe.review(world.pull(), "changes_requested", "Not yet.")
    world.push()
    world.later(10)
    (signal,) = world.seen("pull-waiting")
    assert "not at its present commit" in signal.detail


def test_a_question_on_a_pull_is_seen_too(world: World) -> None:
    world.joe.comment(world.pull(), "Why not use the other one?")
    world.later(2.5)
    assert [signal.kind for signal in world.look().signals] == ["question"]


# --- questions ------------------------------------------------------------------------


def test_an_unanswered_question_is_told_after_two_days(world: World) -> None:
    number = world.mara.create_issue("Help", "Which version should I use?")
    world.later(2)
    assert world.seen("question") == ()
    world.later(0.5)
    (signal,) = world.seen("question")
    assert (signal.reference, signal.author, signal.occurrence) == (number, "mara", "remark-0")
    assert "> Which version should I use?" in signal.detail


def test_an_answer_ends_the_question(world: World) -> None:
    number = world.mara.create_issue("Help", "Which version should I use?")
    world.joe.comment(number, "The last one.")
    world.later(5)
    assert world.seen("question") == ()


def test_our_answer_ends_the_question_even_when_it_asks_back(world: World) -> None:
    number = world.mara.create_issue("Help", "Which version should I use?")
    world.forge.perform(Comment("ef" * 8, number, f"Which one have you?\n\n{marker('ef' * 8)}"))
    world.later(5)
    assert world.seen("question") == ()


def test_a_new_question_is_a_new_instance(world: World) -> None:
    number = world.mara.create_issue("Help", "Which version?")
    world.later(5)
    (before,) = identify(world.seen("question"))
    world.joe.comment(number, "Any. But why?")
    world.later(5)
    (after,) = identify(world.seen("question"))
    assert before.fingerprint == after.fingerprint
    assert before.signal.occurrence != after.signal.occurrence


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("Does it work?", True),
        ("Does it work? :)", True),
        ("**Does it work?**\n\n<!-- hidden text -->", True),
        ("Does it work?\n\n> an old quote", True),
        ("It works.\n<!-- does it? -->", False),
        ("> Does it work?\n\nIt does.", False),
        ("Does it work? I think so.", False),
        ("See https://example.org/?a=b", False),
        ("", False),
        ("   \n\n", False),
    ],
)
def test_a_question_ends_with_a_question_mark(body: str, asked: bool) -> None:
    assert forge.asks(body) is asked


@pytest.mark.attack(15)
def test_foreign_text_comes_bounded_and_without_control_characters(world: World) -> None:
    world.mara.create_issue("x" * 500, "\x1b[31m" + "y" * 70_000 + "?")
    world.later(20)
    seen = world.look().signals
    assert [signal.kind for signal in seen] == ["stale-issue", "question"]
    for signal in seen:
        assert len(signal.title) <= 120 and len(signal.detail) <= 2_000
        assert "\x1b" not in signal.title + signal.detail
