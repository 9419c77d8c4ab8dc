"""What whoever reviews a change must look at first: weaker tests, and files that decide what is run.

A measured guess for a note that stands at the top of a pull request; it holds nothing back. Counts before and after are
compared over the whole change, so moving or re-indenting tests raises no alarm. What weakens a test without removing or
rewording an assertion (an early return, a changed input, a mocked subject) is not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ralph_mission.safety.patch import FileChange, Patch, split_lines
from ralph_mission.safety.paths import protected_path


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE | re.IGNORECASE)


PROSE = _any(r"\.(?:md|markdown|rst|txt|adoc|org|html?|svg|po|csv)$")
TEST_PATH = _any(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__|e2e|features)/",
    r"(?:^|/)(?:test_[^/]*|[^/]*[._-](?:tests?|spec))\.[a-z]+$",
    r"(?-i:[a-z0-9]Tests?)\.[a-z]+$",
)
TEST = _any(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+test",
    r"^[ \t]*x?(?:it|test|specify)(?:\.\w+)?[ \t]*[(`'\" ]",
    r"^[ \t]*func[ \t]+(?:Test|Benchmark|Fuzz)",
    r"#\[(?:\w+::)?test\b",
    r"^[ \t]*@(?:Test|ParameterizedTest|pytest\.mark\.parametrize|given)\b",
    r"^[ \t]*TEST(?:_F|_P)?[ \t]*\(",
    r"^[ \t]*Scenario(?: Outline)?:",
)
ASSERTION = _any(
    r"\bassert\w*\b",
    r"\bexpect\w*[ \t]*\(",
    r"\bself\.(?:assert|fail)",
    r"\bt\.(?:Error|Fatal|Fail)\w*\(",
    r"\brequire\.\w+\(",
    r"\bpytest\.raises\b",
    r"\.should\b",
    r"\bverify\(",
)
TRIVIAL = _any(
    r"\bassert[ \t]*\(?[ \t]*(?:True|1|not False|1[ \t]*==[ \t]*1)[ \t]*(?:\)|,|;|$)",
    r"\bassertTrue\([ \t]*True",
    r"\bexpect\([ \t]*(?:true|1)[ \t]*\)",
    r"assert!\([ \t]*true",
    r"\bassert\b.*\bor[ \t]+True\b",
)
SKIP = _any(
    r"@(?:unittest|pytest\.mark|nose)\.?\w*\.?(?:skip|xfail)",
    r"\bpytest\.(?:skip|xfail|importorskip)\b",
    r"\bskipTest\b",
    r"\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing|only)\b",
    r"\bt\.Skip",
    r"#\[ignore",
    r"^[ \t]*(?:xit|xdescribe|xtest|xcontext|fit|fdescribe)[ \t]*\(",
    r"@(?:Ignore|Disabled)\b",
    r"\bcollect_ignore\b",
    r"GTEST_SKIP",
)
MUTE = _any(
    r"#[ \t]*(?:ruff:[ \t]*)?noqa\b",
    r"#[ \t]*(?:type|pyright|mypy)[ \t]*:[ \t]*ignore",
    r"#[ \t]*nosec\b",
    r"#[ \t]*pylint[ \t]*:[ \t]*disable",
    r"#[ \t]*pragma:[ \t]*no cover",
    r"@ts-(?:ignore|nocheck|expect-error)",
    r"eslint-disable",
    r"//[ \t]*nolint",
    r"#!?\[allow\(",
    r"@SuppressWarnings",
    r"rubocop:disable",
    r"\bNOLINT",
    r"(?:istanbul|c8|v8) ignore",
    r"shellcheck disable",
    r"\|\|[ \t]*true\b",
    r"continue-on-error",
    r"--no-verify",
)
PIECE = 2_000
COMMENT_LINE = re.compile(r"^[ \t]*(?:#(?!\[|if|!)|//|\*|/\*|--|<!--|\"\"\"|''')")


def describe_weakening(patch: Patch) -> tuple[str, ...]:
    """How a change may make checks weaker: "removes or rewords 3 assertions"; () when nothing of the kind was seen."""
    code = [change for change in patch.changes if not PROSE.search(change.path)]
    tests = [change for change in code if TEST_PATH.search(change.path)]
    deleted = [change for change in tests if change.new is None and not _is_moved(change, tests)]
    counts = (
        (len(deleted), "deletes a test file", "deletes {} test files"),
        (-_difference(TEST, tests), "removes a test", "removes {} tests"),
        (
            (_assertions(tests, "old") - _assertions(tests, "new")).total(),
            "removes or rewords an assertion",
            "removes or rewords {} assertions",
        ),
        (_difference(TRIVIAL, tests), "adds an assertion that always holds", "adds {} assertions that always hold"),
        (_difference(SKIP, code), "skips tests in one place", "skips tests in {} places"),
        (_difference(MUTE, code), "silences a check in one place", "silences checks in {} places"),
    )
    return tuple(one if number == 1 else many.format(f"{number:,}") for number, one, many in counts if number > 0)


def describe_touched(patch: Patch) -> dict[str, tuple[str, ...]]:
    """The paths of a change that decide what is run, installed, released or told to an agent, by what they decide."""
    found: dict[str, list[str]] = {}
    for path in patch.paths:
        if kind := protected_path(path):
            found.setdefault(kind, []).append(path)
    return {kind: tuple(paths) for kind, paths in found.items()}


def _is_moved(gone: FileChange, tests: Iterable[FileChange]) -> bool:
    return any(other.old is None and other.new == gone.old for other in tests)


def _difference(pattern: re.Pattern[str], changes: Iterable[FileChange]) -> int:
    """How many more matches there are after the change than before."""
    return sum(_count(pattern, change.new) - _count(pattern, change.old) for change in changes)


def _count(pattern: re.Pattern[str], content: bytes | None) -> int:
    return sum(1 for _ in pattern.finditer(_text(content)))


def _assertions(changes: Iterable[FileChange], side: str) -> Counter[str]:
    lines = (line for change in changes for line in _text(getattr(change, side)).split("\n"))
    return Counter(_shape(line) for line in lines if ASSERTION.search(line) and not COMMENT_LINE.match(line))


def _text(content: bytes | None) -> str:
    return "\n".join(piece for line in split_lines(content or b"") for piece in _pieces(line.rstrip()))


def _pieces(line: str) -> list[str]:
    """A line in overlapping pieces, so that a hostile one costs linear time and still hides nothing."""
    return [line[start : start + PIECE] for start in range(0, max(1, len(line)), PIECE - 200)]


def _shape(line: str) -> str:
    """A line as a formatter cannot change it: no spaces, no trailing comment, one kind of quote."""
    return re.sub(r"\s+|,(?=[)\]}])", "", re.sub(r"\s+(?:#|//).*$", "", line)).replace("'", '"').rstrip(",;")
