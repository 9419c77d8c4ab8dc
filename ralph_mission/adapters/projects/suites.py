"""Which tool runs a repository's tests, the command that runs some or all of them and leaves a report, and what the
report says, as a `SuiteReport`.

The tool and its options are those of the repository: of its pytest settings, of the script in package.json. Only what
it prints is another. Reading a report is text in, values out: nothing runs here.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ralph_mission.adapters.projects.detection import Read, detect_project, lies_in
from ralph_mission.adapters.projects.manifests import read_json, table
from ralph_mission.mission.proof.judge import CaseResult, CaseStatus, SuiteReport
from ralph_mission.values import compile_regex, dataclass

PROBES = Path(__file__).parent
SCRIPTS = ("test:unit", "test-unit", "unit", "test", "tests", "test:node", "mocha", "jest", "vitest")
"""Scripts of package.json that run tests; the smaller ones first, as others may need a browser."""
NODE_TOOLS = ("vitest", "jest", "mocha")
DROPPED = {
    "mocha": (
        "--reporter",
        "-R",
        "--reporter-option",
        "--reporter-options",
        "-O",
        "--watch",
        "-w",
        "--parallel",
        "--bail",
        "-b",
    ),
    "jest": (
        "--reporters",
        "--watch",
        "--watchAll",
        "--coverage",
        "--json",
        "--outputFile",
        "--verbose",
        "--bail",
        "-b",
    ),
    "vitest": ("run", "watch", "dev", "--reporter", "--outputFile", "--watch", "--coverage", "--ui", "--run", "--bail"),
}
VALUED = frozenset(
    """
    --reporter -R --reporter-option --reporter-options -O --reporters --outputFile --require -r --timeout -t --grep -g
    --ui -u --config -c --file --extension --ignore --exclude --retries --slow --loader --import --node-option -n
    --test-reporter --test-reporter-destination
    --project --root --environment --pool --testTimeout --maxWorkers
    --selectProjects --rootDir --preset --dir
    """.split()
)
"""Options whose value is the next word."""
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


@dataclass(frozen=True, slots=True)
class SuiteTool:
    """What runs the tests in `folder` ("" is the top): "pytest", "mocha", "jest", "vitest", "node", "cargo" or "go".

    `options` are the repository's own, `paths` what it runs when all are run.
    """

    name: str
    folder: str
    options: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def command(self, files: Sequence[str], report: Path) -> str:
        """For `/bin/sh` in the folder. `files`: paths of the repository; () for all tests."""
        here = [os.path.relpath(path, self.folder or ".") for path in files]
        if self.name == "cargo":
            words = [*self.options, *(f"--test={Path(path).stem}" for path in here)]
            return f"cargo test --offline --no-fail-fast {shlex.join(words)} > {shlex.quote(str(report))}"
        if self.name == "go":
            packages = sorted({f"./{posixpath.dirname(path)}" for path in here}) or ["./..."]
            return f"go test -json {shlex.join(packages)} > {shlex.quote(str(report))}"
        if self.name == "pytest":
            quiet = "-q -p ralph_probe -p no:cacheprovider -p no:randomly"
            return f"python -m pytest {quiet} {shlex.join((*self.options, *here))}".rstrip()
        out = f" > {shlex.quote(str(report))}" if self.name == "mocha" else ""
        return f'PATH="$PWD/node_modules/.bin:$PATH" {shlex.join(self._node(here, report))}{out}'

    def _node(self, files: Sequence[str], report: Path) -> Iterator[str]:
        paths = list(files) or self.paths
        if self.name == "mocha":
            # To its output, in all versions; without the full trace it cuts the paths of a stack.
            yield from ("mocha", *self.options, "--full-trace", "--reporter", "json", *paths)
        elif self.name == "jest":
            yield from ("jest", *self.options, "--ci", "--json", f"--outputFile={report}", "--coverage=false")
            yield from ("--runTestsByPath", *files) if files else self.paths
        elif self.name == "vitest":
            yield from ("vitest", "run", *self.options, "--reporter=json", f"--outputFile={report}", *paths)
        else:
            out = ("--test-reporter=junit", f"--test-reporter-destination={report}")
            yield from ("node", "--test", *out, *self.options, *paths)

    def environment(self, home: Path, root: Path, report: Path, watched: Collection[str]) -> Mapping[str, str]:
        """What the probes in a run's `home` need to know; they are put there. `watched`: files under test."""
        folder = home / "probe"
        folder.mkdir(parents=True, exist_ok=True)
        variables = {"ROOT": str(root), "WATCHED": json.dumps(sorted(watched))}
        if self.name == "pytest":
            (folder / "ralph_probe.py").write_bytes((PROBES / "pytest_probe.py").read_bytes())
            variables |= {"REPORT": str(report)}
            return {"PYTHONPATH": str(folder), **{f"RALPH_PROBE_{name}": value for name, value in variables.items()}}
        if self.name == "go":  # what was compiled, and results of tests, are of one run alone
            return {"GOCACHE": str(home / "go-build")}
        if self.name == "cargo":
            return {}
        probe = folder / "node_probe.cjs"
        probe.write_bytes((PROBES / "node_probe.cjs").read_bytes())
        variables |= {name.upper(): str(notes_file(home, name)) for name in ("hosts", "sources")}
        return {
            "NODE_OPTIONS": f"--require={probe}",
            **{f"RALPH_PROBE_{name}": value for name, value in variables.items()},
        }


def notes_file(home: Path, of: str) -> Path:
    """Where processes of Node.js note the "hosts" that they look for, and the "sources" that their tests read."""
    return home / "probe" / of


def find_suite(paths: Collection[str], read: Read, near: str) -> SuiteTool | None:
    """What runs the test at the path `near`; None where nobody knows."""
    suffix = near.rpartition(".")[2].lower()
    if suffix == "py":
        checks = [c for c in detect_project(paths, read).checks if c.name == "test" and "pytest" in c.command]
        found = [check.folder for check in checks if lies_in(near, check.folder)]
        return SuiteTool("pytest", max(found, key=len)) if found else _plain_pytest(paths, near)
    if suffix in ("rs", "go"):
        manifest, name = ("Cargo.toml", "cargo") if suffix == "rs" else ("go.mod", "go")
        folder = next((place for place in _above(near) if posixpath.join(place, manifest) in paths), None)
        return None if folder is None else SuiteTool(name, folder)
    for folder in _above(near):
        manifest = posixpath.join(folder, "package.json")
        if manifest in paths and (tool := _node_tool(read(manifest), folder)):
            return tool
    return None


def _plain_pytest(paths: Collection[str], near: str) -> SuiteTool | None:
    """Where nothing is set up for pytest, but the test is named as pytest wants it."""
    named = posixpath.basename(near).startswith("test_") or near.endswith("_test.py")
    return SuiteTool("pytest", "") if named and any(path.endswith(".py") for path in paths) else None


def _above(path: str) -> Iterator[str]:
    """The folders around a file, the nearest first."""
    while path:
        path = posixpath.dirname(path)
        yield path


def _node_tool(manifest: str, folder: str) -> SuiteTool | None:
    scripts = table(read_json(manifest), "scripts")
    ordered = [*(name for name in SCRIPTS if name in scripts), *scripts]
    for name in dict.fromkeys(ordered):
        for segment in str(scripts[name]).replace("||", "&&").replace(";", "&&").split("&&"):
            try:
                words = shlex.split(segment)
            except ValueError:
                continue
            if tool := _node_words(words, folder):
                return tool
    return None


def _node_words(words: Sequence[str], folder: str) -> SuiteTool | None:
    for position, word in enumerate(words):
        name = posixpath.basename(word)
        if name in NODE_TOOLS and word != "--runner":
            return SuiteTool(name, folder, *_options(words[position + 1 :], DROPPED[name]))
        if name == "node" and "--test" in words[position + 1 :]:
            rest = [word for word in words[position + 1 :] if word != "--test"]
            return SuiteTool("node", folder, *_options(rest, ("--test-reporter", "--test-reporter-destination")))
    return None


def _options(words: Sequence[str], dropped: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options that stay, and the paths."""
    options: list[str] = []
    paths: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        option = [word, *words[position + 1 : position + 2]] if word in VALUED else [word]
        position += len(option)
        if word.partition("=")[0] in dropped:
            continue
        (options if word.startswith("-") else paths).extend(option)
    return tuple(options), tuple(paths)


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
    """Cases of one name are distinguished by their number."""
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
