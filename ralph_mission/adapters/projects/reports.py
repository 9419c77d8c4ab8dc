"""What the tools that run tests say of them, as `SuiteReport`s. Text in, values out: nothing runs here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from ralph_mission.mission.proof.judge import CaseResult, CaseStatus, SuiteReport
from ralph_mission.values import compile_regex

LONGEST = 4_000  # characters of a message
MOST_FRAMES = 50
ANSI = compile_regex(r"\x1b\[[0-9;]*[A-Za-z]")
NAMED = compile_regex(r"^(?:Uncaught )?((?:[A-Za-z_$][\w$]*\.)*[A-Za-z_$][\w$]*)(?: \[(\w+)\])?: ?(.*)", re.DOTALL)
"""How an error begins in JavaScript: its name, a code of Node.js's, what it says."""
FRAME = compile_regex(r"^\s*(?:at\s|\u276f\s).*?((?:file://)?/[^\s()]+?):(\d+)(?::\d+)?\)?$", re.MULTILINE)
RUST_CASE = compile_regex(r"^test (.+?) \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
RUST_RUN = compile_regex(r"^\s*(?:Running|Doc-tests) (?:unittests )?([^\s(]+)", re.MULTILINE)
RUST_PANIC = compile_regex(
    r"^thread '(.+?)'.*? panicked at (?:'(.*)', )?([^\s:]+):(\d+)(?::\d+)?:?\n?(.*)", re.MULTILINE
)
RUST_STATUS: Mapping[str, CaseStatus] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
GO_STATUS: Mapping[str, CaseStatus] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
GO_PLACE = compile_regex(r"([\w./-]+\.go):(\d+)")

Parse = Callable[[str, str], SuiteReport]
"""(the report's text, the root of the clone)."""


def parse_report(tool: str, text: str, root: str) -> SuiteReport:
    """The report of a tool. Raises ValueError for what is none."""
    try:
        return PARSERS[tool](text, root)
    except (KeyError, TypeError, AttributeError, ElementTree.ParseError, RecursionError) as error:
        raise ValueError(f"no report of {tool}: {type(error).__name__}") from None


def unloaded(output: str) -> SuiteReport:
    """Of a run that ended before there was a report: it gave the reason."""
    error, message = _name_of(output)
    return SuiteReport((CaseResult("", "", "error", error, message[:LONGEST], phase="load"),), output or "no report")


def _pytest(text: str, root: str) -> SuiteReport:
    found = [CaseResult(**{**case, "frames": _frames(case)}) for case in json.loads(text)["cases"]]
    return SuiteReport(tuple(_each_once(found)))


def _frames(case: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((str(path), int(line)) for path, line in case.get("frames", ()))


def _mocha(text: str, root: str) -> SuiteReport:
    document = json.loads(text[max(text.rfind('{\n  "stats"'), text.find('{"stats"'), 0) :])
    pending = {(one["fullTitle"], one.get("file")) for one in document["pending"]}
    listed = {
        id(one): one for one in (*document["tests"], *(f for f in document["failures"] if f not in document["tests"]))
    }
    return SuiteReport(tuple(_each_once(_mocha_case(one, pending, root) for one in listed.values())))


def _mocha_case(one: Mapping[str, Any], pending: Iterable[tuple[str, Any]], root: str) -> CaseResult:
    file, name, failed = _inside(one.get("file") or "", root), str(one["fullTitle"]), one.get("err") or {}
    status: CaseStatus = "skipped" if (name, one.get("file")) in pending else "failed" if failed else "passed"
    phase = "set-up" if re.match(r'"(?:before|after)(?: each| all)?" hook', str(one.get("title"))) else "call"
    message = str(failed.get("stack") or failed.get("message") or "")
    return _of_stack(f"{file} > {name}", file, status, message, root, phase)


def _jest(text: str, root: str) -> SuiteReport:
    """Of Jest, and of Vitest, which writes the same."""
    found: list[CaseResult] = []
    for suite in json.loads(text)["testResults"]:
        file = _inside(suite["name"], root)
        for one in suite["assertionResults"]:
            status: CaseStatus = one["status"] if one["status"] in ("passed", "failed") else "skipped"
            message = "\n".join(map(str, one.get("failureMessages") or ()))
            name = f"{file} > {one['fullName'].strip()}"
            found.append(_of_stack(name, file, status, message, root))
        if suite["status"] == "failed" and not any(case.file == file and case.status == "failed" for case in found):
            found.append(_of_stack(file, file, "error", str(suite.get("message") or ""), root, "load"))
    return SuiteReport(tuple(_each_once(found)))


def _of_stack(id: str, file: str, status: CaseStatus, stack: str, root: str, phase: str = "call") -> CaseResult:
    text = ANSI.sub("", stack)
    error, message = _name_of(text)
    places = ((_inside(path, root), int(line)) for path, line in FRAME.findall(text))
    frames = [place for place in places if place[0]][:MOST_FRAMES]
    return CaseResult(id, file, status, error, message[:LONGEST], tuple(reversed(frames)), phase)


def _name_of(text: str) -> tuple[str, str]:
    """(the error's name, what it says)."""
    found = NAMED.match(text.strip())
    if found is None or not re.search(r"Error|Exception|Failure|^[A-Z]\w+$", found[1]):
        return "", text.strip()
    return (found[2] if found[2] == "ERR_MODULE_NOT_FOUND" else found[1]), found[3].strip()


def _inside(path: str, root: str) -> str:
    """A path of the repository, relative to its top; "" for any other."""
    full = path.removeprefix("file://")
    return os.path.relpath(full, root) if full.startswith(f"{root}/") and "/node_modules/" not in full else ""


def _junit(text: str, root: str) -> SuiteReport:
    """Of Node.js's own runner."""
    found = []
    for case in ElementTree.fromstring(text).iter("testcase"):
        failure, skipped = case.find("failure"), case.find("skipped")
        message = "" if failure is None else f"{failure.get('message') or ''}\n{failure.text or ''}"
        status: CaseStatus = "failed" if failure is not None else "skipped" if skipped is not None else "passed"
        stack = re.search(r"(?:^|\n)\s*(?:cause: )?([A-Z]\w*Error(?: \[\w+\])?: .*)", message, re.DOTALL)
        file = _inside(case.get("file") or "", root)
        found.append(_of_stack(case.get("name") or "", file, status, stack[1] if stack else message.strip(), root))
    return SuiteReport(tuple(_each_once(found)))


def _cargo(text: str, root: str) -> SuiteReport:
    panics = {name: (path, line, old or message) for name, old, path, line, message in RUST_PANIC.findall(text)}
    found = []
    target = ""
    for line in text.splitlines():
        if run := RUST_RUN.match(line):
            target = run[1]
        elif case := RUST_CASE.match(line):
            path, number, message = panics.get(case[1], ("", "0", "")) if case[2] == "FAILED" else ("", "0", "")
            status = RUST_STATUS[case[2]]
            frames = ((path, int(number)),) if path else ()
            error = "panic" if case[2] == "FAILED" else ""
            found.append(CaseResult(f"{target} {case[1]}", target, status, error, message[:LONGEST], frames))
    if not found:
        raise ValueError("no test was run")
    return SuiteReport(tuple(_each_once(found)))


def _go(text: str, root: str) -> SuiteReport:
    outputs: dict[tuple[str, str], list[str]] = {}
    ended: dict[tuple[str, str], str] = {}
    for line in filter(str.strip, text.splitlines()):
        event = json.loads(line)
        key = (str(event.get("Package", event.get("ImportPath", ""))), str(event.get("Test", "")))
        if "output" in event["Action"]:
            outputs.setdefault(key, []).append(str(event.get("Output", "")))
        elif event["Action"] in ("pass", "fail", "skip"):
            ended[key] = event["Action"]
    return SuiteReport(tuple(_go_cases(outputs, ended)))


def _go_cases(
    outputs: Mapping[tuple[str, str], list[str]], ended: Mapping[tuple[str, str], str]
) -> Iterator[CaseResult]:
    packages = {package for (package, test), how in ended.items() if test and how == "fail"}
    for (package, test), how in ended.items():
        output = "".join(outputs.get((package, test), ()))
        frames = tuple((path, int(line)) for path, line in GO_PLACE.findall(output))[:MOST_FRAMES]
        if test:
            status = GO_STATUS[how]
            error = ("panic" if "panic:" in output else "assertion") if how == "fail" else ""
            yield CaseResult(
                f"{package}.{test}", frames[-1][0] if frames else "", status, error, output[-LONGEST:], frames
            )
        elif how == "fail" and package not in packages:
            yield CaseResult(package, "", "error", "", output[-LONGEST:], phase="load")


def _each_once(cases: Iterable[CaseResult]) -> Iterator[CaseResult]:
    """Cases of one name are told apart by their number."""
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.id] = number = counts.get(case.id, 0) + 1
        if number == 1:
            yield case
        else:
            yield CaseResult(
                f"{case.id} #{number}", case.file, case.status, case.error, case.message, case.frames, case.phase,
                case.sources, case.connected,
            )  # fmt: skip  # one value


PARSERS: dict[str, Parse] = {
    "pytest": _pytest,
    "mocha": _mocha,
    "jest": _jest,
    "vitest": _jest,
    "node": _junit,
    "cargo": _cargo,
    "go": _go,
}
