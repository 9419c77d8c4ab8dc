"""The lines of a job's log that say why it failed, and the tests that a report names. All of it is untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, ParseError, fromstring

from ralph_mission.adapters.observers.text import one_line
from ralph_mission.adapters.projects.excerpt import excerpt
from ralph_mission.safety.markdown import without_controls
from ralph_mission.values import compile_regex

LINES, WIDTH = 10, 200
FAULT = compile_regex(r"\w*([Ff]ailure|[Ee]rror)")  # `flakyFailure` and `rerunError` are those of a second try
TESTS = 50_000  # cases that are read of one report
STAMP = compile_regex(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ")
ENDS = compile_regex(r"^##\[error\]\s*(?:Process completed with exit code|The operation was canceled)")
PLAIN = compile_regex(
    r"^E\s{2,}\S|^FAILED |^ERROR |^error(?:\[\w+\])?:|^\s*(?:\w+\.)*\w*(?:Error|Exception): |panicked at|--- FAIL"
    r"|^\s*[✕✖●] |\berror TS\d+|^\S+:\d+(?::\d+)?:? (?:error|fatal error)\b|AssertionError|^npm (?:ERR!|error) code"
)
"""What a test runner, a compiler or an interpreter says of a failure, and hardly anybody else."""


def failing_lines(log: str) -> str:
    """At most ten lines: from the first that names the failure on, of the step that failed; "" for an empty log."""
    lines = [STAMP.sub("", line) for line in without_controls(log).splitlines()]
    end = next((place for place, line in enumerate(lines) if ENDS.match(line)), None)
    if end is None:
        end = next((place for place, line in enumerate(lines) if line.startswith("##[error]")), len(lines) - 1)
    begins = (place for place in range(end, -1, -1) if lines[place].startswith("##[group]Run "))
    said = [line for line in _said(lines[next(begins, 0) : end + 1]) if line.strip()]
    start = next((place for place, line in enumerate(said) if PLAIN.search(line)), None)
    chosen = said[start : start + LINES] if start is not None else excerpt("\n".join(said).encode(), b"").splitlines()
    return "\n".join(one_line(line, WIDTH) for line in chosen)


def _said(lines: Iterable[str]) -> Iterable[str]:
    """What the step itself printed: without the lines that show how it was called."""
    shown = True
    for line in lines:
        if line.startswith("##[group]Run "):
            shown = False
        elif line.startswith("##[endgroup]"):
            shown = True
        elif line.startswith("##[error]"):
            if not ENDS.match(line):
                yield f"error: {line.removeprefix('##[error]')}"
        elif shown and not line.startswith("##["):
            yield line


def failed_tests(report: bytes) -> tuple[str, ...]:
    """The names of tests that failed at least once, of a report in JUnit's form; none of what is not one.

    One with a document type is not read: entities are defined there.
    """
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report:
        return ()
    try:
        cases = list(fromstring(report).iter("testcase"))[:TESTS]
    except (ParseError, ValueError, LookupError, RecursionError):
        return ()
    return tuple(dict.fromkeys(_name(case) for case in cases if any(FAULT.fullmatch(child.tag) for child in case)))


def _name(case: Element) -> str:
    return one_line("::".join(part for part in (case.get("classname"), case.get("name")) if part))
