"""What became of things that were reported: an item is fixed only where a person can have fixed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from ralph_mission.mission.backtest.follow import (
    HistoryLook,
    TrackedItem,
    follow,
    items_of,
    opened,
    plan_steps,
    stands_in,
)
from ralph_mission.mission.backtest.judge import JUDGED, ItemFate, fate
from ralph_mission.mission.model.mission import Observation, Signal
from ralph_mission.safety.patch import REGULAR, FileChange, Patch

START = datetime(2026, 1, 5, tzinfo=UTC)
WEEK = timedelta(weeks=1)
GUIDE = "docs/guide.md"


def spelling(text: str, path: str = GUIDE) -> Signal:
    """A file with `teh` and `recieve` in it, to be corrected."""
    new = text.replace("teh", "the").replace("recieve", "receive")
    change = FileChange(path, REGULAR, REGULAR, text.encode(), new.encode())
    return Signal("typos", "spelling", "misspellings", (text,), path=path, line=1, patch=Patch("b" * 40, (change,)))


def todo(text: str, path: str = "a.py", around: tuple[str, str] = ("before", "after")) -> Signal:
    return Signal("code", "todo", f"TODO in {path}: {text}", ("todo", text, *around), path=path, line=3)


def look(
    tracked: tuple[TrackedItem, ...],
    *signals: Signal,
    week: int = 0,
    files: dict[str, str] | None = None,
    complete: bool = True,
    gone: tuple[tuple[str, ...], ...] = (),
    status: Literal["ok", "unavailable"] = "ok",
    observer: str = "typos",
) -> tuple[TrackedItem, ...]:
    there = files if files is not None else {one.path: "" for one in signals}
    around = HistoryLook(
        START + week * WEEK,
        there,
        lambda path, text: stands_in(there[path], text),
        lambda path, texts: f"commit of {path}: {texts[0]}",
        lambda path: there.get(path, ""),
    )
    seen = Observation(observer, status, signals, complete=complete, gone=gone)
    return follow(tracked, seen, around)


def endings(tracked: tuple[TrackedItem, ...]) -> list[str]:
    return [one.ending for one in tracked]


def test_a_correction_is_one_item_for_each_word() -> None:
    items = items_of(spelling("teh end\n\nthey recieve it\n"))
    assert [(item.what, item.line) for item in items] == [("teh → the", 1), ("recieve → receive", 3)]


def test_two_words_of_one_line_are_two_items() -> None:
    assert [item.what for item in items_of(spelling("teh man can recieve\n"))] == ["teh → the", "recieve → receive"]


def test_a_count_is_nothing_that_can_be_followed() -> None:
    assert items_of(Signal("code", "todo", "300 markers", ("todo", "count"), facts=(("count", 300),))) == ()


def test_one_of_two_words_corrected_by_a_person_is_fixed_and_the_other_stays() -> None:
    tracked = look((), spelling("teh end\nthey recieve it\n"))
    tracked = look(tracked, spelling("the end\nthey recieve it\n"), week=1, files={GUIDE: "the end\nthey recieve it\n"})
    assert endings(tracked) == ["fixed", ""]
    assert tracked[0].ended_at == START + WEEK and tracked[0].commit == f"commit of {GUIDE}: teh end\n"


def test_an_edit_beside_the_word_fixes_nothing() -> None:
    tracked = look((), spelling("teh end\n"))
    tracked = look(tracked, spelling("teh very end\n"), week=1)
    assert endings(tracked) == [""]


def test_what_leaves_with_its_file_is_not_fixed() -> None:
    assert endings(look(look((), spelling("teh end\n")), week=1, files={})) == ["removed"]


def test_what_moves_with_its_file_lives_on_there() -> None:
    tracked = look((), spelling("teh end\n"))
    tracked = look(tracked, spelling("teh end\n", "docs/moved.md"), week=1)
    assert [(one.ending, one.item.path) for one in tracked] == [("", "docs/moved.md")]


def test_a_report_that_is_taken_back_while_its_line_stands_is_nobodys_fix() -> None:
    tracked = look(look((), spelling("teh end\n")), week=1, files={GUIDE: "  teh end\n"})
    assert endings(tracked) == ["withdrawn"]


def test_a_line_that_people_mend_after_its_report_was_taken_back_is_their_fix() -> None:
    tracked = look(look((), spelling("teh end\n")), week=1, files={GUIDE: "teh end\n"})
    tracked = look(tracked, week=2, files={GUIDE: "teh beginning\n"})
    assert endings(tracked) == ["withdrawn"]
    tracked = look(tracked, week=3, files={GUIDE: "the end\n"})
    assert endings(tracked) == ["fixed"]


def test_what_a_commit_of_our_own_fixed_is_no_fix_by_people() -> None:
    reported = look((), spelling("teh\n"))
    there = {GUIDE: "the\n"}
    mine = HistoryLook(START + WEEK, there, lambda *_: False, lambda *_: "c1", there.__getitem__, "c1".__eq__)
    (fixed,) = follow(reported, Observation("typos", "ok"), mine)
    assert (fixed.ending, fixed.commit) == ("own", "c1")
    assert fate(fixed, START, START + 40 * WEEK) is ItemFate.OWN not in JUDGED


def test_a_line_that_stands_elsewhere_too_is_counted() -> None:
    assert stands_in("teh\nx\nteh\n", "teh\n", "teh\nteh\n")
    assert not stands_in("teh\nx\n", "teh\n", "teh\nteh\n")


def test_lines_that_are_joined_are_one_item_and_fixed_once() -> None:
    old, new = 'a = 1\n"""\nWhether it is.\n"""\n', 'a = 1\n"""Whether it is."""\n'
    change = FileChange("a.py", REGULAR, REGULAR, old.encode(), new.encode())
    joined = Signal("ruff", "lint-fix", "a docstring", ("x",), path="a.py", patch=Patch("b" * 40, (change,)))
    (item,) = items_of(joined)
    assert item.text == '"""\nWhether it is.\n"""\n'
    assert endings(look(look((), joined, observer="ruff"), week=1, files={"a.py": new}, observer="ruff")) == ["fixed"]


def test_a_marker_named_as_gone_is_fixed_and_one_not_named_stays() -> None:
    first, second = todo("TODO: retry"), todo("TODO: cache it", around=("x", "y"))
    tracked = look((), first, second, complete=False, observer="code")
    tracked = look(tracked, week=1, files={"a.py": ""}, complete=False, gone=(first.essence,), observer="code")
    assert endings(tracked) == ["fixed", ""]


def test_a_marker_whose_neighbours_changed_before_it_went_is_fixed() -> None:
    first, twin = todo("TODO: retry"), todo("TODO: retry", "b.py", ("y", "z"))
    tracked = look((), first, twin, complete=False, observer="code")
    files = {"a.py": "other\n", "b.py": "TODO: retry\n"}
    gone = (("todo", "TODO: retry", "new line above", "after"),)
    assert endings(look(tracked, week=2, files=files, complete=False, gone=gone, observer="code")) == ["fixed", ""]


def test_a_reworded_marker_is_the_same_one() -> None:
    first = todo("TODO: retry once")
    tracked = look((), first, complete=False, observer="code")
    again = todo("TODO: retry once or twice")
    tracked = look(tracked, again, week=1, complete=False, gone=(first.essence,), observer="code")
    assert [(one.ending, one.item.identity[1]) for one in tracked] == [("", "TODO: retry once or twice")]


def test_an_observer_that_could_not_look_ends_nothing() -> None:
    assert endings(look(look((), spelling("teh end\n")), week=1, files={GUIDE: ""}, status="unavailable")) == [""]


def test_another_observer_says_nothing_of_what_this_one_saw() -> None:
    assert endings(look(look((), spelling("teh end\n")), week=1, files={GUIDE: ""}, observer="docs")) == [""]


def test_what_comes_back_is_a_new_item() -> None:
    tracked = look(look((), spelling("teh end\n")), week=1, files={GUIDE: ""})
    assert endings(look(tracked, spelling("teh end\n"), week=2)) == ["fixed", ""]


def test_what_was_told_is_marked_once() -> None:
    tracked = look((), spelling("teh end\n"))
    told = opened(tracked, [spelling("teh end\n")], START)
    assert [one.opened_at for one in opened(told, [spelling("teh end\n")], START + WEEK)] == [START]


def test_there_is_a_step_for_each_week_with_commits() -> None:
    line = [(START + day * timedelta(days=1), f"c{day}") for day in (0, 1, 8, 30)]
    steps = plan_steps(line, START, WEEK)
    assert [(step.commit, step.commits) for step in steps] == [("c0", 0), ("c1", 1), ("c8", 1), ("c30", 1)]


def test_the_last_commit_is_looked_at_on_its_own_day() -> None:
    steps = plan_steps([(START, "a"), (START + timedelta(days=10), "b")], START, WEEK)
    assert [(step.commit, step.at) for step in steps] == [("a", START), ("b", START + timedelta(days=10))]


def test_a_clock_that_went_back_does_not_turn_history_round() -> None:
    line = [(START, "a"), (START + 3 * WEEK, "b"), (START + WEEK, "c")]
    assert [step.commit for step in plan_steps(line, START, WEEK)] == ["a", "c"]


def test_a_repository_younger_than_asked_begins_with_its_first_commit() -> None:
    steps = plan_steps([(START, "a"), (START + 2 * WEEK, "b")], START - 9 * WEEK, WEEK)
    assert [step.commit for step in steps] == ["a", "b"]


def test_a_forge_is_looked_at_in_quiet_weeks_too() -> None:
    line = [(START, "a"), (START + 3 * WEEK, "b")]
    assert [(s.commit, s.commits) for s in plan_steps(line, START, WEEK, quiet=True)] == [("a", 0)] * 3 + [("b", 1)]


def test_no_commits_are_no_steps() -> None:
    assert plan_steps([], START, WEEK) == ()
