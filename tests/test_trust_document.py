"""docs/trust.md says what was measured and nothing else; what it names is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.crash import test_cases
from tests.crash.fault_kinds import ELSEWHERE, LISTED, REFUSED
from tests.crash.recoveries import PATHS
from tests.promises import PROMISES
from tools.trust import named
from tools.trust.attacks import CASES
from tools.trust.document import EVIDENCE, FILE, TRIED, WRONG, document, evidence
from tools.trust.suites import ROOT, SUITES, kept


def test_the_document_is_what_the_figures_say():
    assert FILE.read_text("utf-8") == document(kept()), "write it again: python -m tools.trust"
    assert EVIDENCE.read_text("utf-8") == evidence(kept()), "write it again: python -m tools.trust"


def test_everything_that_the_page_counts_was_measured():
    measured = {name for one in kept().values() for name in one.tables}
    assert TRIED.keys() - measured == set()


def test_every_test_that_a_promise_names_is_there():
    named_by = [check for promise in PROMISES for check in promise.checks]
    assert [check for check in named_by if not named.is_test(f"tests/{check}")] == []


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


PARTS = [name for name in SUITES if name.startswith("crash-")]


@pytest.mark.skipif(not set(PARTS) <= kept().keys(), reason="the enumeration of crashes is not measured whole yet")
def test_every_fault_and_every_way_of_going_on_has_fired_in_what_is_published():
    tables = [kept()[name].tables for name in PARTS]
    struck = {kind for one in tables for kind, row in one.get("crashes by kind of fault", {}).items() if row["cases"]}
    fired = {path for one in tables for path, row in one.get("recovery paths", {}).items() if row["fired"]}
    assert {*LISTED, REFUSED, ELSEWHERE} - struck == set()
    assert set(PATHS) - fired == set()


def test_the_parts_of_the_enumeration_are_all_of_it():
    """Each of its tests is in one part, by a word of its name."""
    words = [SUITES[name][-1] for name in PARTS if "-k" in SUITES[name]]
    marks = {name: getattr(test, "pytestmark", ()) for name, test in vars(test_cases).items()}
    played = [name for name, given in marks.items() if any(mark.name == "crash" for mark in given)]
    assert {name: sum(word in name for word in words) for name in played} == dict.fromkeys(played, 1)


def test_every_table_that_a_promise_names_is_counted_somewhere():
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py"))
    names = {table for promise in PROMISES for table in promise.tables}
    assert {name for name in names if f'Table("{name}"' not in sources} == set()


def test_every_file_with_an_enumeration_is_in_a_suite():
    measured = tuple(one for arguments in SUITES.values() for one in arguments if one.startswith("tests/"))
    files = (file for file in (ROOT / "tests").rglob("test_*.py") if "mark.crash" in file.read_text("utf-8"))
    names = {file.relative_to(ROOT).as_posix() for file in files if file != Path(__file__)}
    assert {name for name in names if not name.startswith(measured)} == set()
