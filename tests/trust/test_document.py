"""docs/trust.md says what was measured and nothing else; what it names is there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bench import endurance, load
from tests.crash.kinds import LISTED, REFUSED
from tests.crash.recoveries import PATHS
from tests.crash.stages import EVERY
from tests.crash.test_cases import GROUPS as FAULTS
from tests.trust import named
from tests.trust.attacks import CASES
from tests.trust.document import FILE, document
from tests.trust.promises import PROMISES
from tests.trust.suites import GROUPS, ROOT, SUITES, Measured, kept
from tests.trust.table import Table, Told

WRONG = ("duplicates", "cap_breaches", "not_converged", "wrong", "forbidden", "breaches", "survived", "untried")
"""Columns in which a published figure is 0, as is `lost` where it stands beside breaches of caps."""


def test_the_document_is_what_the_figures_say():
    assert FILE.read_text("utf-8") == document(kept()), "write it anew: python -m tests.trust"


def test_every_test_that_a_promise_names_is_there():
    named_by = [check for promise in PROMISES for check in promise.checks]
    assert [check for check in named_by if f"tests/{check}" not in named.tests()] == []


def test_every_promise_is_checked_once_and_in_order():
    assert [promise.name for promise in PROMISES] == [f"I{number}" for number in range(1, 25)]
    assert all(promise.checks for promise in PROMISES)


def test_every_attack_case_has_a_test_that_carries_its_number():
    assert list(named.attacked()) == list(CASES)


def test_nothing_that_is_published_went_wrong():
    tables = ((name, row, figures) for one in kept().values() for name, rows in one.tables.items()
              for row, figures in rows.items())  # fmt: skip  # as one reads it
    assert [(name, row) for name, row, figures in tables if wrong(figures)] == []


def wrong(figures: Mapping[str, float]) -> bool:
    """Whether anything in a row should not have been."""
    return any(map(figures.get, WRONG)) or bool("cap_breaches" in figures and figures.get("lost"))


def test_a_figure_that_should_be_none_is_seen():
    assert wrong({"cases": 3, "untried": 1}) and wrong({"cap_breaches": 0, "lost": 1})
    assert not wrong({"cases": 3, "lost": 0, "cap_breaches": 0, "unknown": 2})


HUNT = "canaries at the hardest isolation"
PARTS = [name for name in SUITES if name.startswith("crash-")]


@pytest.mark.skipif(not set(PARTS) <= kept().keys(), reason="the enumeration of crashes is not measured whole yet")
def test_every_fault_and_every_way_of_going_on_has_fired_in_what_is_published():
    tables = [kept()[name].tables for name in PARTS]
    struck = {kind for one in tables for kind, row in one.get("crashes by kind of fault", {}).items() if row["cases"]}
    fired = {path for one in tables for path, row in one.get("recovery paths", {}).items() if row["fired"]}
    assert {*LISTED, REFUSED} - struck == set()
    assert set(PATHS) - fired == set()


def test_the_parts_of_the_enumeration_are_all_of_it():
    """Each group of faults has its part, and no word of one is in the name of another one's tests."""
    assert [[word for word in GROUPS if word in group] for group in FAULTS] == [[word] for word in GROUPS]
    assert [name for name in EVERY if any(word in name for word in GROUPS)] == []


def test_every_table_that_a_promise_names_is_counted_somewhere():
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file.parent.name != "trust")
    names = {table for promise in PROMISES for table in promise.tables}
    assert {name for name in names if f'Table("{name}"' not in sources} == set()


@pytest.mark.skipif(bool(SUITES.keys() - kept().keys()), reason="some suites are not measured yet")
def test_every_table_that_a_promise_names_is_published():
    assert left_out(kept()) == set()


def left_out(suites: Mapping[str, Measured]) -> set[str]:
    """The tables that promises rest on and nothing is kept of: the tests that count them may all have been skipped."""
    there = {name for one in suites.values() for name, rows in one.tables.items() if rows}
    return {table for promise in PROMISES for table in promise.tables} - there


def test_a_promise_whose_table_was_not_counted_is_seen():
    tables = {table: {"all": {"cases": 1}} for promise in PROMISES for table in promise.tables}
    assert left_out({"all": measured(tables)}) == set()
    assert left_out({"all": measured({**tables, HUNT: {}})}) == {HUNT}
    assert left_out({"all": measured({table: rows for table, rows in tables.items() if table != HUNT})}) == {HUNT}


@pytest.mark.skipif("real" not in kept(), reason="the real clients are not measured yet")
def test_each_real_client_has_hunted_within_walls():
    assert never_hunted(kept()["real"]) == set()


def never_hunted(real: Measured) -> set[str]:
    """The clients without a hunt within walls: where there are none, its test is skipped, and the suite passes."""
    rows = (row.split(", level ") for row in real.tables.get(HUNT, {}))
    return {"claude", "codex"} - {client for client, level in rows if level != "env"}


def test_a_hunt_that_was_skipped_is_seen():
    whole = {"claude, level bwrap": {"found": 0}, "codex, level uid": {"found": 0}}
    assert never_hunted(measured({HUNT: whole})) == set()
    assert never_hunted(measured({})) == {"claude", "codex"}
    assert never_hunted(measured({HUNT: {**whole, "codex, level env": {"found": 0}}})) == set()
    assert never_hunted(measured({HUNT: {"claude, level uid": {}, "codex, level env": {}}})) == {"codex"}


def measured(tables: Told) -> Measured:
    return Measured("real", "pytest", "c0ffee", "2026-05-04", 1.0, tables)


def test_every_file_with_an_enumeration_is_in_a_suite():
    measured = tuple(one for arguments in SUITES.values() for one in arguments if one.startswith("tests/"))
    files = (file for file in (ROOT / "tests").rglob("test_*.py") if "mark.crash" in file.read_text("utf-8"))
    names = {file.relative_to(ROOT).as_posix() for file in files if file.parent.name != "trust"}
    assert {name for name in names if not name.startswith(measured)} == set()


def test_a_sum_adds_up_what_can_be_added_up():
    tables = {"model": {"a fix": {"depth": 12, "states": 26}, "a stop": {"depth": 17, "states": 268}}}
    page = document({"model": Measured("model", "pytest", "c0ffee", "2026-05-04", 1.0, tables)})
    assert "| **all 2** | **17** | **294** |" in page


def test_of_a_table_that_a_promise_rests_on_and_that_is_not_there_the_page_says_so():
    page = document({"soak": measured({"soak": {"seed 2": {"cycles": 300}}, "stateful": {}})})
    assert "tables: soak, stateful (not measured yet)" in page


def test_the_points_of_a_stage_are_told_once_however_many_parts_play_it():
    table = Table("crashes by stage")
    for stage, points in (("idle", 19), ("idle", 19), ("monitoring", 29)):
        table.count(stage, points=points, cases=2)
    assert "[crashes by stage] idle: 19 points, 4 cases" in table.lines
    assert "[crashes by stage] all 2: 48 points, 6 cases" in table.lines


def test_the_rate_of_what_is_in_doubt_is_told():
    tables = {"pairs": {"one": {"pairs": 30, "unknown": 0}, "two": {"pairs": 10, "unknown": 6}}}
    page = document({"pairs": Measured("pairs", "pytest", "c0ffee", "2026-05-04", 1.0, tables)})
    assert "In doubt: 6 effects in 40 pairs, 0.15 in each." in page


def test_a_table_that_is_too_wide_to_read_has_a_line_for_each_figure():
    tables = {"soak": {"seed 2": {f"kind_{number}": number for number in range(20)}}}
    page = document({"soak": Measured("soak", "pytest", "c0ffee", "2026-05-04", 1.0, tables)})
    assert "|  | seed 2 |\n| --- | --- |\n| kind 0 | 0 |\n" in page


def test_a_table_of_load_says_what_bounds_its_figures():
    bounds = {case.title: case.bounds for case in load.CASES} | endurance.BOUNDS
    tables = {title: {"after 10": {"seconds": 0.1}} for title in bounds}
    page = document({"load": Measured("load", "python -m bench.load", "c0ffee", "2026-05-04", 1.0, tables)})
    for title, lines in bounds.items():
        shown = page.partition(f"### {title}\n")[2].partition("###")[0]
        assert [line for line in lines if f"- {line}" not in shown] == []
        assert "| after 10 | 0.1 |" in shown
