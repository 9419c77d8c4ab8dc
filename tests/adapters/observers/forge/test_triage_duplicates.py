"""Which open issues are likely the same, and which only sound alike."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers.forge.triage import error_lines, likely_duplicates
from ralph_mission.mission.model.forge import Actor, Issue
from tests.helpers import NOON


def issue(number: int, title: str, body: str = "", author: int = 0) -> Issue:
    who = Actor(author or number, f"person{author or number}")
    return Issue(number, title, body, "open", who, NOON, NOON, f"issues/{number}")


def pairs(*issues: Issue) -> list[tuple[int, int]]:
    return [(pair.older.number, pair.newer.number) for pair in likely_duplicates(issues)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Crash when loading an empty settings file", "Crash loading empty settings files"),
        ("Download stops at half of the file with slow proxy", "With a slow proxy, download stops at half the file"),
        ("Progress bar flickers when the terminal is resized", "Progress bar flickers when terminal resized"),
        ("[Bug]: Crash when opening empty archive", "Crash when opening an empty archive"),
        ("Dark mode toggle resets after reload", "dark mode toggle resets after reloading"),
    ],
)
def test_titles_that_say_the_same_are_likely_one(one: str, other: str) -> None:
    assert pairs(issue(1, one), issue(2, other)) == [(1, 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Add support for Python 3.13 wheels", "Add support for Python 3.14 wheels"),
        ("Installer fails silently on Windows 11", "Installer fails silently on macOS 15"),
        ("Build fails with webpack and strict mode", "Build fails with vite and strict mode"),
        ("Translate getting started guide to French", "Translate getting started guide to German"),
        ("Conversion from PNG to JPG loses colours", "Conversion from JPG to PNG loses colours"),
        ("Login works with wrong password twice", "Login works without wrong password twice"),
        ("Add type hints to `load_config` helper function", "Add type hints to `save_config` helper function"),
        ("parse_dates option ignored when reading", "parse_times option ignored when reading"),
        ("Option --quiet ignored by the installer", "Option --verbose ignored by the installer"),
        ("Crash on start", "Crash on start"),  # too short to tell anything
        ("Panel editor: buttons overlap each other", "Table editor: buttons overlap each other"),
        ("Timeout after 30 seconds while uploading", "Timeout after 300 seconds while uploading"),
    ],
)
def test_titles_about_different_things_are_not(one: str, other: str) -> None:
    assert pairs(issue(1, one), issue(2, other)) == []


TITLE = "Export of large tables hangs for ever"


def test_those_that_name_each_other_are_known_to_be_related() -> None:
    assert pairs(issue(1, TITLE), issue(2, TITLE, "Not the same as #1, see there.")) == []
    assert pairs(issue(1, TITLE, "https://example.org/issues/2"), issue(2, TITLE)) == []
    assert pairs(issue(1, TITLE), issue(2, TITLE, "As in #12.")) == [(1, 2)]


def test_a_title_that_is_a_form_proves_nothing() -> None:
    assert pairs(*(issue(number, TITLE) for number in (1, 2, 3))) == []
    assert pairs(issue(1, TITLE, "July", author=9), issue(2, TITLE, "August", author=9)) == []
    assert pairs(issue(1, TITLE, "Twice sent", author=9), issue(2, TITLE, "Twice  sent", author=9)) == [(1, 2)]


ERROR = "shop.errors.CartError: cannot add item {} to a cart that was paid already at {}"


def test_the_same_rare_error_and_words_make_it_likely() -> None:
    one = issue(1, "Adding an item to a paid cart fails", f"I see\n\n```\n{ERROR.format(4, '/home/a/x.py')}\n```")
    other = issue(2, "Paid cart: error on adding", f"Log:\n> {ERROR.format(4, '/srv/b/y.py')}")
    (pair,) = likely_duplicates([one, other])
    signal = pair.signal()
    assert [(quote.reference, "CartError" in quote.text) for quote in signal.quotes] == [(2, True), (1, True)]
    assert signal.essence == ("duplicate", "2") and signal.occurrence == "of-1"


def test_an_error_of_other_numbers_or_of_many_issues_or_of_unlike_titles_is_not_enough() -> None:
    title = "Adding an item to a paid cart fails"
    same = [issue(number, title + f" {word}", ERROR.format(4, "x")) for number, word in ((1, "always"), (2, "again"))]
    assert pairs(*same) == [(1, 2)]
    assert pairs(same[0], issue(2, title + " again", ERROR.format(5, "x"))) == []
    assert pairs(*same, issue(3, "Paid cart", ERROR.format(4, "x"))) == []
    assert pairs(same[0], issue(2, "Invoice has no logo", ERROR.format(4, "x"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "TypeError: Cannot read properties of undefined (reading 'map')",
        "error[E0502]: cannot borrow `cart` as mutable because it is also borrowed",
        "java.lang.IllegalStateException: the cart is closed for good",
        "panic: runtime error: index out of range [3] with length 3",
    ],
)
def test_a_line_of_an_error_is_known(line: str) -> None:
    assert list(error_lines(f"text\n    {line}\nmore").values()) == [line]


@pytest.mark.parametrize(
    "line", ["It fails with an error", "Error", "I expected no error here at all", "- [ ] I searched"]
)
def test_what_people_say_of_errors_is_none(line: str) -> None:
    assert error_lines(line) == {}


def test_an_issue_is_in_one_pair_at_most() -> None:
    error = ERROR.format(4, "x")
    issues = (issue(1, TITLE), issue(2, TITLE, error), issue(3, "Large tables cannot be exported", error))
    assert pairs(*issues) == [(1, 2)]
