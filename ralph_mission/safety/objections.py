"""Objections to a patch, from its blobs alone, and what a reviewer must look at first.

Objections are the same whoever made the patch: a fixer, an agent, or a person who runs `ralph policy check`. Without
any, the patch may become an automatic pull request.

Weakened tests and files that decide what is run are a heuristic for a note at the top of a pull request; it blocks
nothing. Counts before and after are compared over the whole change, so moving or re-indenting tests raises no alarm.
Weakening a test without removing or rewording an assertion (an early return, a changed input, a mocked subject) is not
detected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ralph_mission.safety.bumps import counted_patch, holds_versions, only_patches
from ralph_mission.safety.markdown import CONTROL, SURROGATE, invisible
from ralph_mission.safety.patch import (
    EXECUTABLE,
    REGULAR,
    FileChange,
    Measure,
    Patch,
    is_binary,
    measure,
    split_lines,
    touched_lines,
)
from ralph_mission.safety.paths import fixer_may_write, protected_path, unsafe_path
from ralph_mission.safety.secrets import find_secrets
from ralph_mission.values import compile_regex, dataclass

MAX_LINES = 49
"""An automatic fix has under 50 changed lines."""
MAX_BYTES = 16_384
"""Bytes of changed lines: 49 lines of prose, each as wide as still counts as one, are 24 kB."""
MAX_FILES = 24
"""Files in an automatic change: as many as 49 lines allow if each has one line replaced."""
NOTHING: Mapping[str, int] = MappingProxyType({})
DENIES = frozenset({"scope", "secret"})
"""Rules whose objection no approval can lift; for all others a person decides."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A rule's objection. `path` is "" for the patch as a whole; `why` completes "PATH …"."""

    rule: str
    path: str
    why: str


def inspect(
    patch: Patch,
    *,
    max_lines: int = MAX_LINES,
    allowed_paths: frozenset[str] | None = None,
    recent: Mapping[str, int] = NOTHING,
    secrets: Sequence[str] = (),
    bumps: bool = False,
    announced: bool = False,
    by_fixer: bool = False,
) -> tuple[Objection, ...]:
    """All objections to carrying out `patch` without asking; () if there are none.

    `allowed_paths` are the only paths the change may touch (None: any), `recent` the automatic lines per path within
    the budget's window, `secrets` known values that must not appear. `bumps`: manifests and lock files may be
    changed, as far as nothing but patch-level versions moves; lines of a lock file that follow from them do not count.
    `announced`: that was so when they were announced, and cannot be seen again without the old text.
    `by_fixer`: it comes from our own fixers, which correct prose and source code and nothing else.
    """
    fitting = holds_versions if announced else only_patches
    size = measure(counted_patch(patch, fitting) if bumps else patch)
    found = [*_whole(size, max_lines), *_budget(size, max_lines, recent)]
    for change in patch.changes:
        found += _path(change, allowed_paths)
        if not (bumps and fitting(change) and _by_name_alone(change)):
            found += _protection(change, by_fixer)
        found += _mode(change)
        found += _content(change, secrets)
    return tuple(dict.fromkeys(found))


def verdict(objections: Sequence[Objection]) -> str:
    """`deny` if no approval can lift an objection, `hold` if a person must be asked, else `allow`."""
    rules = {objection.rule for objection in objections}
    return "deny" if rules & DENIES else "hold" if rules else "allow"


def _whole(size: Measure, max_lines: int) -> Iterator[Objection]:
    if size.lines > max_lines:
        yield Objection("diff-size", "", f"changes {size.lines:,} lines; {max_lines} need no approval")
    if size.bytes > MAX_BYTES:
        yield Objection("diff-size", "", f"changes {size.bytes:,} bytes of text; {MAX_BYTES:,} is the most")
    if len(size.files) > MAX_FILES:
        yield Objection("diff-size", "", f"changes {len(size.files)} files; {MAX_FILES} is the most")
    for file in size.files:
        if file.binary:
            yield Objection("diff-size", file.path, "is not text, so its size says nothing")


def _budget(size: Measure, max_lines: int, recent: Mapping[str, int]) -> Iterator[Objection]:
    for file in size.files:
        earlier = recent.get(file.path, 0)
        if earlier and earlier + file.lines > max_lines:
            why = f"had {earlier} automatic lines in the past week; with these {file.lines} it is more than {max_lines}"
            yield Objection("diff-size", file.path, why)


def _path(change: FileChange, allowed: frozenset[str] | None) -> Iterator[Objection]:
    if why := unsafe_path(change.path):
        yield Objection("scope", change.path, why)
    elif allowed is not None and change.path not in allowed:
        yield Objection("scope", change.path, "is outside what this change is about")


def _by_name_alone(change: FileChange) -> bool:
    """Whether only a file's name can protect it, not its folder."""
    return not protected_path(f"{change.path.rpartition('/')[0]}/x".lstrip("/"))


def _protection(change: FileChange, by_fixer: bool) -> Iterator[Objection]:
    if what := protected_path(change.path):
        yield Objection("protected-path", change.path, f"touches {what}")
    elif by_fixer and not fixer_may_write(change.path):
        yield Objection("protected-path", change.path, "is no prose and no source code: fixers correct nothing else")


def _mode(change: FileChange) -> Iterator[Objection]:
    modes = {mode for mode in (change.old_mode, change.new_mode) if mode}
    stays = change.old_mode == change.new_mode == EXECUTABLE
    if modes != {REGULAR} and not stays:
        was, now = change.old_mode or "nothing", change.new_mode or "nothing"
        why = f"goes from mode {was} to {now}; only ordinary files ({REGULAR}) need no approval"
        yield Objection("file-mode", change.path, why)


def _content(change: FileChange, secrets: Sequence[str]) -> Iterator[Objection]:
    for kind in _leaks(change, secrets):
        yield Objection("secret", change.path, f"adds what looks like a secret ({kind})")
    if not is_binary(change.new) and (new := _unseen(change.new) - _unseen(change.old)):
        yield Objection("scope", change.path, f"adds text that no reader sees ({', '.join(sorted(new)[:5])})")


def _leaks(change: FileChange, secrets: Sequence[str]) -> set[str]:
    """Kinds in the path and the added lines."""
    added = "".join(touched_lines(change)[1])
    return {*find_secrets(added, secrets), *find_secrets(change.path, secrets)}


def _unseen(content: bytes | None) -> Counter[str]:
    """Invisible characters of a file, except a leading byte order mark."""
    text = SURROGATE.sub("", _text(content).removeprefix("\ufeff"))
    controls = (f"U+{ord(found):04X}" for found in CONTROL.findall(text) if found != "\0")
    return Counter((*invisible(text), *controls))


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "surrogateescape")


def _any(*patterns: str) -> re.Pattern[str]:
    return compile_regex("|".join(patterns), re.MULTILINE | re.IGNORECASE)


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
SUPPRESSION = _any(
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
CONDITIONAL = _any(r"\bskip(?:if|unless)\b")
SCRIPT = compile_regex(r"\.(?:sh|bats|t|feature)$")
"""Test files without a word that only tests have."""
BESIDE_CODE = compile_regex(rb"#\[(?:cfg\(test\)|(?:\w+::)?test\b)")
PIECE = 2_000
COMMENT_LINE = compile_regex(r"^[ \t]*(?:#(?!\[|if|!)|//|\*|/\*|--|<!--|\"\"\"|''')")


def find_tests(path: str, content: bytes) -> bytes:
    """The part of a file that is tests, b"" for none: all of a file of tests, of Rust what stands below its code."""
    if path.endswith(".rs") and not TEST_PATH.search(path):
        found = BESIDE_CODE.search(content)
        return content[found.start() :] if found else b""
    if not may_hold_tests(path):
        return b""
    text = _side_text(content)
    return content if SCRIPT.search(path) or TEST.search(text) or ASSERTION.search(text) else b""


def may_hold_tests(path: str) -> bool:
    """Whether a file of this name can hold tests, whatever its content is."""
    return path.endswith(".rs") or bool(TEST_PATH.search(path) and not PROSE.search(path))


def lines_of_tests(path: str, content: bytes) -> tuple[str, ...]:
    """What `find_tests` finds, without comments, blank lines and spacing; () for no tests."""
    lines = _side_text(find_tests(path, content)).splitlines()
    return tuple("".join(line.split()) for line in lines if line.strip() and not COMMENT_LINE.match(line))


def describe_weakening(patch: Patch) -> tuple[str, ...]:
    """How a change may weaken checks: "removes or rewords 3 assertions"; () if nothing was detected."""
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
        (_difference(SUPPRESSION, code), "silences a check in one place", "silences checks in {} places"),
    )
    return tuple(one if number == 1 else many.format(f"{number:,}") for number, one, many in counts if number > 0)


def describe_idle_tests(patch: Patch) -> str:
    """How tests in a change test nothing: "it skips tests"; "" if nothing was detected."""
    tests = [change for change in patch.changes if TEST_PATH.search(change.path)]
    if _difference(TRIVIAL, tests) > 0:
        return "it adds an assertion that always holds"
    return "it skips tests" if _difference(SKIP, tests) > max(0, _difference(CONDITIONAL, tests)) else ""


def describe_touched(patch: Patch) -> dict[str, tuple[str, ...]]:
    """The changed paths that decide what is run, installed, released or told to an agent, by what they decide."""
    found: dict[str, list[str]] = {}
    for path in patch.paths:
        if kind := protected_path(path):
            found.setdefault(kind, []).append(path)
    return {kind: tuple(paths) for kind, paths in found.items()}


def _is_moved(gone: FileChange, tests: Iterable[FileChange]) -> bool:
    return any(other.old is None and other.new == gone.old for other in tests)


def _difference(pattern: re.Pattern[str], changes: Iterable[FileChange]) -> int:
    """The number of matches after the change minus before."""
    return sum(_count(pattern, change.new) - _count(pattern, change.old) for change in changes)


def _count(pattern: re.Pattern[str], content: bytes | None) -> int:
    return sum(1 for _ in pattern.finditer(_side_text(content)))


def _assertions(changes: Iterable[FileChange], side: str) -> Counter[str]:
    lines = (line for change in changes for line in _side_text(getattr(change, side)).split("\n"))
    return Counter(_shape(line) for line in lines if ASSERTION.search(line) and not COMMENT_LINE.match(line))


def _side_text(content: bytes | None) -> str:
    return "\n".join(piece for line in split_lines(content or b"") for piece in _pieces(line.rstrip()))


def _pieces(line: str) -> list[str]:
    """A line in overlapping pieces, so that a hostile one takes linear time and still hides nothing."""
    return [line[start : start + PIECE] for start in range(0, max(1, len(line)), PIECE - 200)]


def _shape(line: str) -> str:
    """A line without what formatters change: spaces, trailing comments, kinds of quotes."""
    return re.sub(r"\s+|,(?=[)\]}])", "", re.sub(r"\s+(?:#|//).*$", "", line)).replace("'", '"').rstrip(",;")
