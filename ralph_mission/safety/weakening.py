"""A measured guess at changes that make checks weaker: fewer tests, fewer assertions, new mutes, lost guards.

A heuristic, not a proof: it sends such a change to a person (`kind-tier`), it never lets one
through that another rule would stop. It compares counts before and after, so moving or
re-indenting code raises no alarm; `tests/safety/test_weakening.py` holds its measured rates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ralph_mission.safety.patch import FileChange, split


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
    r"^[ \t]*class[ \t]+Test",
    r"^[ \t]*(?:it|test|describe|context|specify)(?:\.each)?[ \t]*[(`'\" ]",
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
MUTES = {
    "skips a test": _any(
        r"@(?:unittest|pytest\.mark|nose)\.?\w*\.?(?:skip|xfail)",
        r"\bpytest\.(?:skip|xfail|importorskip)\b",
        r"\bskipTest\b",
        r"\bSkipTest\b",
        r"\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing|only)\b",
        r"\bt\.Skip",
        r"#\[ignore",
        r"^[ \t]*(?:xit|xdescribe|xtest|xcontext|fit|fdescribe)[ \t]*\(",
        r"@(?:Ignore|Disabled)\b",
        r"\bcollect_ignore\b",
        r"__test__[ \t]*=[ \t]*False",
        r"GTEST_SKIP",
        r"\bxfail\b",
        r"\bpytestmark\b.*skip",
    ),
    "mutes a checker": _any(
        r"#[ \t]*noqa\b",
        r"#[ \t]*(?:type|pyright|pyre|mypy|pytype)[ \t]*:[ \t]*(?:ignore|disable|basic)",
        r"#[ \t]*nosec\b",
        r"#[ \t]*pylint[ \t]*:[ \t]*disable",
        r"#[ \t]*pragma:[ \t]*no cover",
        r"#[ \t]*fmt:[ \t]*off",
        r"#[ \t]*ruff:[ \t]*noqa",
        r"@ts-(?:ignore|nocheck|expect-error)",
        r"eslint-disable",
        r"//[ \t]*nolint",
        r"#!?\[allow\(",
        r"#\[expect\(",
        r"(?:tslint|biome|stylelint|oxlint|deno-lint|prettier|jshint|standard)[:-](?:disable|ignore)",
        r"@SuppressWarnings",
        r"rubocop:disable",
        r"\bNOLINT",
        r"phpcs:(?:ignore|disable)",
        r"(?:istanbul|c8|v8) ignore",
        r"shellcheck disable",
        r"hadolint ignore",
        r"codespell:ignore",
        r"nosemgrep",
        r"gitleaks:allow",
        r"#pragma warning[ \t]*\(?[ \t]*disable",
        r"warnings\.(?:simple)?filter\w*\(.*ignore",
        r"@no_type_check",
    ),
    "swallows a failure": _any(
        r"\|\|[ \t]*(?:true\b|:(?!:)|exit 0)",
        r"\bset \+e\b",
        r"continue-on-error",
        r"ignore_errors",
        r"allow_failure",
        r"\bif:[ \t]*(?:false|\$\{\{[ \t]*false)",
        r"--no-verify",
        r"suppress\((?:Base)?Exception\)",
        r"passWithNoTests",
        r"\bexcept(?:[ \t]+(?:Base)?Exception)?[ \t]*:\s{1,40}(?:pass|\.\.\.|continue)\b",
        r"--exit-zero",
        r"\bexit\(0\)",
        r"\bexcept(?:[ \t]+(?:Base)?Exception)?[ \t]*:[ \t]*(?:pass|\.\.\.|continue)",
        r"catch[ \t]*(?:\([^)\n]*\))?[ \t]*\{\s{0,40}\}",
    ),
    "disables code": _any(
        r"\b(?:if|while)[ \t]+(?:False|0)[ \t]*:",
        r"\bif[ \t]*\([ \t]*(?:false|0)[ \t]*\)",
        r"#if[ \t]+0\b",
        r"\bif[ \t]+(?:True|1)[ \t]*:",
        r"\bif[ \t]*\([ \t]*(?:true|1)[ \t]*\)",
        r"(?:\bor\b|\|\|)[ \t]*True\b",
        r"(?:\band\b|&&)[ \t]*False\b",
    ),
    "turns off verification": _any(
        r"\bverify[ \t]*=[ \t]*False",
        r"rejectUnauthorized[ \t]*:[ \t]*false",
        r"InsecureSkipVerify[ \t]*:[ \t]*true",
        r"NODE_TLS_REJECT_UNAUTHORIZED",
        r"\bCERT_NONE\b",
        r"check_hostname[ \t]*=[ \t]*False",
        r"_create_unverified_context",
        r"csrf_exempt",
        r"permitAll\(",
        r"\bAllowAny\b",
        r"--insecure\b",
        r"autoescape[ \t]*=[ \t]*False",
        r"dangerouslySetInnerHTML",
        r"\bmark_safe\(",
    ),
}
"""What is added where a check is silenced; each counted before and after."""
GUARDING = _any(r"\b(?:if|elif|unless|when|guard|assert|raise|throw|return|abort|require|and|or|not)\b")
GUARDED = _any(
    r"permission|authori[sz]|authenticat|csrf|signature|forbidden|unauthorized|not_?allowed|sanitiz|sanitis|escape\(",
    r"is_?admin|is_?staff|is_?owner|is_?superuser|has_?role|has_?perm|has_?access|can_(?:edit|view|delete|write|read|access)",
    r"allow_?list|deny_?list|compare_digest|rate_?limit|\b40[13]\b",
)
"""A guard is a line that holds a word of each."""
GUARD_CALL = _any(
    r"^[ \t]*@[\w.]*(?:login_required|requires?_|permission|authenticat|authori[sz]|csrf_protect|role|throttle)",
    r"(?:check|verify|require|ensure|validate|enforce)_?"
    r"(?:permission|access|auth|token|signature|csrf|role|owner|admin|origin)\w*[ \t]*\(",
    r"\b(?:escape|sanitize|sanitise|compare_digest)\w*[ \t]*\(",
)
"""Or one of these: a decorator, or a call that checks or cleans."""
PIECE = 2_000
COMMENT_LINE = re.compile(r"^[ \t]*(?:#(?!\[|if|!)|//|\*|/\*|--|<!--|\"\"\"|''')")


def weakens(change: FileChange) -> tuple[str, ...]:
    """In what ways one change may make a check weaker; () when nothing of the kind was seen."""
    return tuple(dict.fromkeys(_reasons(change)))


def _reasons(change: FileChange) -> Iterator[str]:
    is_test = bool(TEST_PATH.search(change.path))
    if change.old is not None and change.new is None and is_test:
        yield "deletes a test file"
    elif not PROSE.search(change.path):
        yield from _compare(_text(change.old), _text(change.new), is_test)


def _compare(old: str, new: str, is_test: bool) -> Iterator[str]:
    if is_test and _count(TEST, new) < _count(TEST, old):
        yield "removes a test"
    if _assertions(old) - _assertions(new) and (is_test or _count(ASSERTION, new) < _count(ASSERTION, old)):
        yield "removes or changes an assertion"
    if _count(TRIVIAL, new) > _count(TRIVIAL, old):
        yield "adds an assertion that always holds"
    for reason, pattern in MUTES.items():
        if _count(pattern, new) > _count(pattern, old):
            yield reason
    if not is_test and _guards(old) - _guards(new):
        yield "removes or changes a guard"


def _text(content: bytes | None) -> str:
    return "\n".join(piece for line in split(content or b"") for piece in _pieces(line.rstrip()))


def _pieces(line: str) -> list[str]:
    """A line in overlapping pieces, so that a hostile one costs linear time and still hides nothing."""
    return [line[start : start + PIECE] for start in range(0, max(1, len(line)), PIECE - 200)]


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _assertions(text: str) -> Counter[str]:
    return Counter(_shape(line) for line in _code(text) if ASSERTION.search(line))


def _guards(text: str) -> Counter[str]:
    return Counter(_shape(line) for line in _code(text) if _is_guard(line))


def _is_guard(line: str) -> bool:
    return bool(GUARD_CALL.search(line) or (GUARDED.search(line) and GUARDING.search(line)))


def _code(text: str) -> list[str]:
    return [line for line in text.split("\n") if not COMMENT_LINE.match(line)]


def _shape(line: str) -> str:
    """A line as a formatter cannot change it: no spaces, no trailing comment, one kind of quote."""
    return re.sub(r"\s+|,(?=[)\]}])", "", re.sub(r"\s+(?:#|//).*$", "", line)).replace("'", '"').rstrip(",;")
