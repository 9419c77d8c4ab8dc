"""Excerpts of a failed command's output: why it failed in one line, the first lines that say why (the last ones often
name a log that is gone), whether packages are missing, and new complaints compared with another run; whether no
test ran; and the lines of a job's log that say why it failed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ralph_mission.safety.markdown import without_controls, without_unseen
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex

LINES, LONGEST = 5, 300
READ = 200_000  # bytes, from both ends of each stream
NOISE = compile_regex(
    r"^\W*$|complete log of this run|debug-\d+\.log|^npm (?:error|ERR!)(?: code)?\s*$|^npm (?:warn|notice)\b"
    r"|^(?:warning|warn|notice|info)\b|^\[?(?:\d+/\d+)\]|^➤ YN0000|^\$ |^> |^(?!E\s).*deprecat"
    r"|^\s*at .+\(node:internal"
    r"|^(?:error )?Command failed with exit code \d+\.?$|\bELIFECYCLE\b|^make(?:\[\d+\])?: \*\*\* .+ Error \d+$",
    re.IGNORECASE,
)
FAILURE = compile_regex(
    r"\berror\b|\bERR_?|^E[A-Z]{4,}|\bfail|\bfatal\b|cannot|can't|could not|couldn't|not found|no such|missing|denied"
    r"|exception|traceback|unable|unsupported|requires?\b|incompatible|✖|✕|^E\s|^\s*not ok \d",
    re.IGNORECASE,
)

FAILURES = tuple(
    compile_regex(pattern)
    for pattern in (
        r"^(?:FAILED|ERROR) \S|^\s*not ok \d",
        r"^E\s{2,}\S|^(?:\w+\.)*\w+(?:Error|Exception): ",
        r"\berror\b(?! code\b)",
    )
)
"""A line that tells why by itself, the best ones first."""
ROOT = compile_regex(r"^\s*(?:cause|caused by):? ?(?=\S)", re.IGNORECASE)
"""A line of a chain of causes, of which the last one counts."""
PREFIX = compile_regex(r"^(?:E\s+|(?:npm |yarn )?(?:error|ERR!|fatal)\b:?\s+(?=\S+ ))+", re.IGNORECASE)
AUTHORITY = compile_regex(
    r"UnknownIssuer|self[- ]signed cert|local issuer cert|CERTIFICATE_VERIFY_FAILED|unknown authority|SELF_SIGNED_CERT"
    r"|UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)|invalid peer certificate",
    re.IGNORECASE,
)
HEAD, REASON = 120, 240  # characters of the first line, where another follows, and of both

_NAME = r"[`'\"\u2018\u201c]+(?P<name>[^`'\"\u2019\u201d]+)[`'\"\u2019\u201d]+"
MISSING = tuple(
    compile_regex(pattern.replace("NAME", _NAME))
    for pattern in (
        "Cannot find (?:module|package) NAME",  # node, tsc (TS2307), jest
        "(?:Unable to resolve path to module|Failed to resolve import|Can't resolve) NAME",  # eslint, vite, webpack
        "Module NAME has no exported member",  # tsc (TS2305), where a client is generated
        "Cannot find (?:implementation or library stub for )?module named NAME",  # mypy
        "No module named NAME",
        "can't find crate for NAME",
        r"no required module provides package (?P<name>[\w./-]+)",
        r"cannot find package (?P<name>[\w./-]+)",
    )
)
GENERATED = compile_regex(r"^@prisma/client$|^\.prisma/")
"""Packages with generated contents: a missing member is not the importer's fault."""
NOT_SET_UP = "not set up"
STORM_NAMES, STORM_PLACES = 2, 5
"""Missing packages, and places, from which on the set-up is missing rather than the code wrong; a single missing
package may as well be an undeclared dependency."""
_NUMBERS = compile_regex(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*")


def not_set_up(lines: Iterable[str]) -> str:
    """A sentence that packages are not installed, if a command's output says so in many places; else ""."""
    found = Counter(filter(None, map(_missing_package, lines)))
    places = sum(found.values())
    if places < STORM_PLACES or (len(found) < STORM_NAMES and not any(map(GENERATED.search, found))):
        return ""
    named = ", ".join(name for name, _ in found.most_common(3))
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{NOT_SET_UP}: {named}{more} cannot be found, in {places} places"


def _missing_package(line: str) -> str:
    """The package a line reports as missing; the project's own files (`./x`, `@/x`, `~/x`) do not count."""
    for pattern in MISSING:
        found = pattern.search(line)
        name = found["name"].strip() if found else ""
        if found and "no exported member" in found[0]:
            return name if GENERATED.search(name) else ""
        if name and (not name.startswith((".", "/", "@/", "~", "#")) or GENERATED.search(name)):
            return name
    return ""


def output_lines(stdout: bytes, stderr: bytes, root: Path | None = None) -> list[str]:
    """A command's output, errors first, without control characters, package managers' noise and paths of a clone."""
    lines = [line for stream in (stderr, stdout) for line in _lines(stream, root)]
    return [line for line in lines if not NOISE.search(line)] or lines


def complaints(lines: list[str]) -> Mapping[str, int]:
    """How often each complaint occurs, ignoring numbers (lines, seconds, results)."""
    return Counter(_NUMBERS.sub("#", line) for line in lines if FAILURE.search(line))


_FAILURES = compile_regex(
    r"\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b|\b(?:failed|failures|errors)\b\s*[:=]?\s*(\d+)\b",
    re.IGNORECASE,
)


def count_failures(lines: Iterable[str]) -> int:
    """The largest number of failures that an output counts, as in `3 failed, 200 passed`; 0 for none."""
    found = (match for line in lines for match in _FAILURES.finditer(line))
    return max((int((match[1] or match[2])[:9]) for match in found), default=0)


def is_worse(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    """Whether any complaint is new or more frequent."""
    return any(times > before.get(line, 0) for line, times in now.items())


def excerpt(stdout: bytes, stderr: bytes, root: Path | None = None) -> str:
    """At most five lines, from the first that says what went wrong; else the last ones."""
    useful = output_lines(stdout, stderr, root)
    start = next((number for number, line in enumerate(useful) if FAILURE.search(line)), max(0, len(useful) - LINES))
    return "\n".join(useful[start : start + LINES])


def find_cause(stdout: bytes, stderr: bytes, root: Path | None = None) -> str:
    """Why a command failed, in one line: what failed and, of a chain of causes, the last one; "" for no output."""
    useful = output_lines(stdout, stderr, root)
    likely = [line for line in useful if FAILURE.search(line)]
    found = (line for pattern in FAILURES for line in likely if pattern.search(line))
    first = next(found, likely[0] if likely else useful[-1] if useful else "")
    first = PREFIX.sub("", first.strip())
    last = next((ROOT.sub("", line).strip() for line in reversed(useful) if ROOT.search(line)), "")
    return truncate(f"{truncate(first, HEAD)}: {last}" if last and last not in first else first, REASON)


def is_untrusted(cause: str) -> bool:
    """Whether a server's certificate was refused, as behind a company's own certificate authority."""
    return bool(AUTHORITY.search(cause))


def _lines(stream: bytes, root: Path | None) -> list[str]:
    cut = stream if len(stream) <= 2 * READ else stream[:READ] + b"\n" + stream[-READ:]
    plain = without_unseen(cut.decode(errors="replace"))
    if root is not None:
        plain = plain.replace(f"{root}/", "")
    return [truncate(line.rstrip(), LONGEST) for line in plain.splitlines() if line.strip()]


# --- what test runners say

NO_TESTS = compile_regex(
    r"^=* ?no tests ran in|^collected 0 items|^=* ?(?:\d+ (?:skipped|deselected|warnings?),? )+in [\d.]+s"
    r"|^Ran 0 tests? |^Ran (?P<all>\d+) tests? in [^\n]*\n+OK \(skipped=(?P=all)\)$"
    r"|^No tests? (?:files? )?(?:were )?(?:found|executed|to run)|^\[INFO\] No tests to run|^\[INFO\] Tests run: 0,"
    r"|^Tests:\s+(?:\d+ (?:skipped|todo), )+\d+ total|^[ \t]*Tests\s+(?:\d+ (?:skipped|todo)[ |]*)+\(\d+\)"
    r"|^[ \t]*0 passing\b|^(?:#|\u2139) tests 0$|^1\.\.0\b|\[no test files\]|\[no tests to run\]"
    r"|^\t\S+\t\tcoverage: 0\.0% of statements|^running 0 tests$|^test result: \w+\. 0 passed; 0 failed"
    r"|^0 (?:examples|runs|tests),|^ok \| 0 passed|^> Task :\S*[tT]est\S* NO-SOURCE"
    r"|Executed 0 tests|^There are no tests",
    re.MULTILINE,
)
SOME_TESTS = compile_regex(
    r"^=* ?(?:\d+ \w+, )*[1-9]\d* (?:passed|failed|xfailed|xpassed|errors?)\b.* in [\d.]+s"
    r"|^[ \t]*[1-9]\d* passed \([\d.]+m?s\)"
    r"|^Ran (?P<all>[1-9]\d*) tests? (?!in [^\n]*\n+OK \(skipped=(?P=all)\)$)"
    r"|^[ \t]*Tests:?\s+(?:\d+ \w+[,| ]+)*[1-9]\d* (?:passed|failed)|^[ \t]*[1-9]\d* passing\b|^(?:#|\u2139) pass [1-9]"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\])|^[ \t]*--- PASS: |\"Action\":\"pass\".*\"Test\":"
    r"|^test result: \w+\. (?:[1-9]\d* passed|\d+ passed; [1-9])|\b[1-9]\d* tests? run:|\bTests run: [1-9]"
    r"|^[ \t]*ok [1-9]\d*\b(?!.*# (?:SKIP|TODO))|tests passed, .* out of [1-9]|\b[1-9]\d* tests? (?:passed|ok)\b"
    r"|^[ \t]*[1-9]\d* (?:examples?|runs|tests), |^Tests [1-9]\d* OK\b|^OK \([1-9]|\bPASS(?:ED)?:? [1-9]|^ok \| [1-9]"
    r"|^\[  PASSED  \] [1-9]|Executed [1-9]\d* tests?",
    re.MULTILINE,
)
COLOUR = compile_regex(r"\x1b\[[\d;]*m")
LABEL = compile_regex(r"^[\w@./-]+(?: [\w:-]+)?(?:: | +\| )", re.MULTILINE)
"""Prefixes of lines by runners of several packages: `packages/a test: `, `web  | `."""


def ran_no_test(output: str) -> bool:
    """Whether a test runner says that it ran no tests, or skipped all; not if another one ran some. Without a known
    runner's message nothing is known."""
    plain = COLOUR.sub("", output)
    whole = f"{plain}\n{LABEL.sub('', plain)}"
    return NO_TESTS.search(whole) is not None and SOME_TESTS.search(whole) is None


# --- the log of a job of GitHub Actions

LOGGED, WIDTH = 10, 200  # lines of a job's log, and their characters
STAMP = compile_regex(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ")
ENDS = compile_regex(r"^##\[error\]\s*(?:Process completed with exit code|The operation was canceled)")
SAYS_WHY = compile_regex(
    r"^E\s{2,}\S|^FAILED |^ERROR |^error(?:\[\w+\])?:|^\s*(?:\w+\.)*\w*(?:Error|Exception): |panicked at|--- FAIL"
    r"|^\s*[✕✖●] |\berror TS\d+|^\S+:\d+(?::\d+)?:? (?:error|fatal error)\b|AssertionError|^npm (?:ERR!|error) code"
)
"""Messages typical of failures in test runners, compilers and interpreters."""


def failing_lines(log: str) -> str:
    """At most ten lines of the failed step, from the first that names the failure; "" for an empty log."""
    lines = [STAMP.sub("", line) for line in without_controls(log).splitlines()]
    end = next((place for place, line in enumerate(lines) if ENDS.match(line)), None)
    if end is None:
        end = next((place for place, line in enumerate(lines) if line.startswith("##[error]")), len(lines) - 1)
    begins = (place for place in range(end, -1, -1) if lines[place].startswith("##[group]Run "))
    printed = [line for line in _printed(lines[next(begins, 0) : end + 1]) if line.strip()]
    start = next((place for place, line in enumerate(printed) if SAYS_WHY.search(line)), None)
    chosen = (
        printed[start : start + LOGGED] if start is not None else excerpt("\n".join(printed).encode(), b"").splitlines()
    )
    return "\n".join(truncate(" ".join(line.split()), WIDTH) for line in chosen)


def _printed(lines: Iterable[str]) -> Iterable[str]:
    """The step's own output, without the lines that show its command."""
    printing = True
    for line in lines:
        if line.startswith("##[group]Run "):
            printing = False
        elif line.startswith("##[endgroup]"):
            printing = True
        elif line.startswith("##[error]"):
            if not ENDS.match(line):
                yield f"error: {line.removeprefix('##[error]')}"
        elif printing and not line.startswith("##["):
            yield line
