"""docs/trust.md says what was measured and nothing else; what it names is there."""

from __future__ import annotations

from bench import endurance, load
from tests.trust import named
from tests.trust.attacks import CASES
from tests.trust.document import FILE, document
from tests.trust.promises import PROMISES
from tests.trust.suites import ROOT, SUITES, Measured, kept


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


def test_every_table_that_a_promise_names_is_counted_somewhere():
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file.parent.name != "trust")
    names = {table for promise in PROMISES for table in promise.tables}
    assert {name for name in names if f'Table("{name}"' not in sources} == set()


def test_every_file_with_an_enumeration_is_in_a_suite():
    measured = tuple(one for arguments in SUITES.values() for one in arguments if one.startswith("tests/"))
    files = (file for file in (ROOT / "tests").rglob("test_*.py") if "mark.crash" in file.read_text("utf-8"))
    names = {file.relative_to(ROOT).as_posix() for file in files if file.parent.name != "trust"}
    assert {name for name in names if not name.startswith(measured)} == set()


def test_a_table_of_load_says_what_bounds_its_figures():
    bounds = {case.title: case.bounds for case in load.CASES} | endurance.BOUNDS
    tables = {title: {"after 10": {"seconds": 0.1}} for title in bounds}
    page = document({"load": Measured("load", "python -m bench.load", "c0ffee", "2026-05-04", 1.0, tables)})
    for title, lines in bounds.items():
        shown = page.partition(f"### {title}\n")[2].partition("###")[0]
        assert [line for line in lines if f"- {line}" not in shown] == []
        assert "| after 10 | 0.1 |" in shown
