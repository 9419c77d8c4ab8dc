"""Observes through the repository's own checks: a command, and how to parse its output.

Each runs in a separate clone of the commit, in the sandbox for foreign code, and its results are cached per commit. One
observer per command, so that a failing one does not hide others.

`RECIPES` are ready-made `observers.commands` entries for `ralph init`, also shown in docs/fixers.md. Each is tested
with real output of its tool.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers import markers
from ralph_mission.adapters.observers.looking import block, one_line, plain, split_lines, surroundings
from ralph_mission.adapters.observers.markers import excluder
from ralph_mission.adapters.observers.results import GarbledOutput, Result, read_items, read_sarif, title_of
from ralph_mission.adapters.projects.setup import SECONDS as SETUP_SECONDS
from ralph_mission.adapters.projects.setup import LentSetup, ProjectSetup
from ralph_mission.adapters.sandbox.excerpt import not_set_up
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.config.observers import CommandSettings, JsonResults, Regex
from ralph_mission.errors import UserError
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal, SignalPart
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Observer
from ralph_mission.safety.secrets import find_secrets, redact
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun

_UNUSED = "[].{name: name, line: line, what: "


@dataclass(frozen=True, slots=True)
class Recipe:
    """`settings`: an item of `observers.commands`. `signs`: files that show a repository uses the tool."""

    tool: str
    summary: str
    signs: tuple[str, ...]
    settings: Mapping[str, Any]


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "tsc",
        "type errors of TypeScript",
        ("tsconfig.json",),
        {
            "name": "types",
            "setup": True,
            "run": "tsc --noEmit --pretty false",
            "parse": {
                "regex": r"^(?P<path>.+)\((?P<line>\d+),\d+\): (?P<level>error) (?P<code>TS\d+): (?P<message>.+)$"
            },
            "kind": "bug",
            "ok_codes": [0, 1, 2],
            "timeout": 600,
        },
    ),
    Recipe(
        "ruff",
        "lint of Python",
        ("ruff.toml", ".ruff.toml", "pyproject.toml"),
        {
            "name": "ruff",
            "run": "ruff check --no-fix --output-format sarif",
            "parse": "sarif",
            "kind": "code-quality",
        },
    ),
    Recipe(
        "eslint",
        "lint of JavaScript and TypeScript",
        ("eslint.config.js", "eslint.config.mjs"),
        {
            "name": "eslint",
            "setup": True,
            "run": "eslint --format json .",
            "parse": {
                "json": {
                    "items": "[]",
                    "nested": "messages",
                    "path": "filePath",
                    "line": "line",
                    "message": "message",
                    "code": "ruleId",
                    "level": "severity",
                }
            },
            "kind": "code-quality",
            "timeout": 600,
        },
    ),
    Recipe(
        "mypy",
        "type errors of Python",
        ("mypy.ini", ".mypy.ini"),
        {
            "name": "mypy",
            "setup": True,
            "run": "mypy --no-error-summary --no-pretty --no-color-output .",
            "parse": {
                "regex": r"^(?P<path>[^:]+):(?P<line>\d+)(?::\d+)?: (?P<level>error): "
                r"(?P<message>.+?)(?:  \[(?P<code>[a-z-]+)\])?$"
            },
            "kind": "bug",
            "timeout": 600,
        },
    ),
    Recipe(
        "vulture",
        "unused Python code",
        (),
        {
            "name": "vulture",
            "run": "vulture .",
            "parse": {
                "regex": r"^(?P<path>[^:]+):(?P<line>\d+): "
                r"(?P<message>(?P<code>un[a-z]+ [a-z]+).*) \(\d+% confidence"
            },
            "kind": "dead-code",
            "ok_codes": [0, 3],
        },
    ),
    Recipe(
        "knip",
        "unused files, exports and dependencies of JavaScript and TypeScript",
        ("knip.json", "knip.ts"),
        {
            "name": "knip",
            "setup": True,
            "run": "knip --reporter json",
            "parse": {
                "json": {
                    "items": "issues",
                    "nested": f"[files{_UNUSED}'file'}}, exports{_UNUSED}'export'}}, types{_UNUSED}'type'}}, "
                    f"dependencies{_UNUSED}'dependency'}}, devDependencies{_UNUSED}'dependency'}}][]",
                    "path": "file",
                    "line": "line",
                    "message": "join(' ', ['unused', what, name])",
                    "code": "what",
                }
            },
            "kind": "dead-code",
            "timeout": 600,
        },
    ),
)


def fitting(paths: Collection[str], pyproject: str = "") -> tuple[Recipe, ...]:
    """The recipes with a sign among `paths` (relative to the repository); `pyproject` is one for the tool it names."""
    return tuple(recipe for recipe in RECIPES if any(_shows(sign, recipe, paths, pyproject) for sign in recipe.signs))


def _shows(sign: str, recipe: Recipe, paths: Collection[str], pyproject: str) -> bool:
    return sign in paths and (sign != "pyproject.toml" or f"[tool.{recipe.tool}" in pyproject)


SET_UP = "let it install them: `setup: true` here, or the commands in hands.setup"
MOST = 500  # results of a command
AROUND = 60.0  # seconds
ENCODING = 2  # of what is cached
GRAVE = ("bug", "vulnerability")  # kinds whose errors are of high severity
_PLACES = compile_regex(r"\bline \d+|:\d+(?::\d+)?\b")


def build(
    settings: CommandSettings,
    git: Git,
    cache: Path | None = None,
    secrets: tuple[str, ...] = (),
    setup: ProjectSetup | None = None,
) -> Observer:
    """The observer for a command. `cache`: a folder for results, or None. `secrets`: values redacted in results.
    `setup`: installs what the command needs."""
    folder = cache / settings.name if cache and settings.cache else None
    return Command(settings, git, folder, secrets, setup if settings.setup else None)


@dataclass(frozen=True, slots=True)
class Command:
    """Runs a command on a commit."""

    settings: CommandSettings
    git: Git
    cache: Path | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    setup: ProjectSetup | None = None

    @property
    def name(self) -> str:
        """`commands.` and the command's name."""
        return f"commands.{self.settings.name}"

    @property
    def seconds(self) -> float:
        """The time limit: the command's own, plus ours for cloning and parsing."""
        return self.settings.timeout + AROUND + (SETUP_SECONDS if self.setup else 0.0)

    def observe(self, context: ObservationContext) -> Observation:
        """All results now; `unavailable` if the command failed or its output cannot be parsed."""
        commit = context.head.sha
        if not commit:
            return Observation(self.name, "ok", detail="no commits yet", cursor=context.cursor)
        try:
            results, note = self._results(commit, Path(context.scratch))
        except (GarbledOutput, UserError) as problem:
            return Observation(self.name, "unavailable", detail=one_line(str(problem), 300), cursor=context.cursor)
        excluded = excluder(self.settings.exclude)
        selection = [result for result in results if not result.path or not excluded(result.path)]
        detail = (
            count_noun(len(selection), "result")
            + note
            + (f", only the first {MOST} are reported" if len(selection) > MOST else "")
        )
        signals = self._signals(selection[:MOST], commit)
        return Observation(
            self.name, "ok", signals, detail=detail, cursor=commit, complete=len(selection) <= MOST, at_commit=True
        )

    def _results(self, commit: str, scratch: Path) -> tuple[list[Result], str]:
        cache, question = FileCache(self.cache), cache_key(str(ENCODING), commit, repr(self.settings))
        with suppress(TypeError):
            return [Result(**entry) for entry in cache.get(question)], ", as before on this commit"
        results, note = self._run(commit, scratch)
        nameable = (result for result in results if not find_secrets(result.path, self.secrets))
        results = [keep_secret(result, self.secrets) for result in nameable]
        cache.put(question, [asdict(result) for result in results])
        cache.tidy()
        return results, note

    def _run(self, commit: str, scratch: Path) -> tuple[list[Result], str]:
        home = scratch / f"home-{self.settings.name}"
        from ralph_mission.adapters.workspace.clone import clone  # an idle cycle makes none

        with clone(self.git, commit, scratch) as root:
            setup = (
                self.setup.lend(commit, root, scratch / f"tools-{self.settings.name}") if self.setup else LentSetup()
            )
            return run_check(self.settings, root, home, setup)

    def _signals(self, results: Sequence[Result], commit: str) -> tuple[Signal, ...]:
        blobs = self.git.blobs(f"{commit}:{result.path}" for result in results if result.path and result.line)
        texts = {name: split_lines(content) for name, content in blobs.items()}
        return tuple(self._signal(result, texts.get(f"{commit}:{result.path}", ()), commit) for result in results)

    def _signal(self, result: Result, text: Sequence[str], commit: str) -> Signal:
        number = _where(result, text)
        place = f"{result.path}:{number}" if number else result.path
        nearby = surroundings(text, number)
        # Otherwise about a text that is gone, a whole file, or no file.
        thing = nearby if any(nearby) else (normalise_line(result.snippet) or result.path,)
        if result.identity:
            thing = (normalise_line(result.identity),)
        line = f"\n{text[number - 1].strip()}" if any(nearby) else ""
        same = " ".join((result.code, normalise_line(_PLACES.sub("#", result.message)), nearby[0]))
        label = " ".join(filter(None, (result.code, f"in {place}" if place else "")))
        quote = Quote(text[number - 1].strip(), result.path, number, commit) if line else None
        return Signal(
            observer=self.name,
            kind=self.settings.kind,
            title=one_line(title_of(result, place)),
            essence=(self.settings.kind, result.code, normalise_line(_PLACES.sub("#", result.message)), *thing),
            severity=_severity(self.settings, result.level),
            confidence=0.9,
            effort=2.0,
            detail=block(f"{label}: {result.message}{line}\nReported by the command `{self.settings.name}`."),
            path=result.path,
            line=number,
            quotes=(quote,) if quote else (),
            parts=(SignalPart(same, same, 0),) if line else (),
        )


def run_check(settings: CommandSettings, root: Path, home: Path, setup: LentSetup) -> tuple[list[Result], str]:
    """The results of a command for the files in `root`, and a note on how it ended. Raises GarbledOutput."""
    done = run_foreign(
        settings.run,
        cwd=root,
        home=home,
        timeout=settings.timeout,
        output_cap=settings.output_cap,
        extra_env={**setup.environment, "PATH": search_path(setup.environment)},
    )
    _refuse_unfinished(done, settings)
    results = _tidy(_parse(settings, done, root, home), root)
    fine = done.code in settings.ok_codes
    if missing := not_set_up(result.message for result in results):
        raise GarbledOutput(f"{missing}; {SET_UP}")
    if not results and not fine:
        raise _failure(done, root, "no result")
    return results, "" if fine else f", exit code {done.code}"


def _parse(settings: CommandSettings, done: FinishedProcess, root: Path, home: Path) -> list[Result]:
    silent = not done.stdout.strip()
    # Like grep, which exits 1 silently if it finds nothing; a message on stderr is an error.
    if silent and (done.code == 0 or (isinstance(settings.parse, Regex) and not done.stderr.strip())):
        return []
    try:
        return _read(settings, done, root, home)
    except GarbledOutput as error:
        if done.code in settings.ok_codes and not silent:
            raise
        raise _failure(done, root, str(error)) from None


def _read(settings: CommandSettings, done: FinishedProcess, root: Path, home: Path) -> list[Result]:
    parse = settings.parse
    if isinstance(parse, JsonResults):
        return read_items(done.stdout, parse.at, root)
    if not isinstance(parse, Regex):
        return read_sarif(done.stdout, root)
    found = markers.read(done.stdout, parse.regex, root, home, MOST + 1)
    if not found and done.code != 0:
        raise GarbledOutput(f"no line of its output fits the regex (exit code {done.code})")
    return found


def keep_secret(result: Result, secrets: Sequence[str]) -> Result:
    """Redact before cutting: half a secret is not recognised."""
    return replace(
        result,
        code=redact(result.code, secrets),
        message=redact(result.message, secrets),
        identity=redact(result.identity, secrets),
        snippet=redact(result.snippet, secrets),
    )


def _where(result: Result, text: Sequence[str]) -> int:
    """The line of a result: where the text its tool saw is, nearest to the reported line; 0 if nowhere."""
    snippet = normalise_line(result.snippet.strip().partition("\n")[0])
    if not (snippet and text) or snippet in normalise_line("".join(text[result.line - 1 : result.line])):
        return result.line
    numbers = (number for number, line in enumerate(text, 1) if snippet in normalise_line(line))
    return min(numbers, key=lambda number: abs(number - result.line), default=0)


def _refuse_unfinished(done: FinishedProcess, settings: CommandSettings) -> None:
    if done.timed_out:
        raise GarbledOutput(f"not finished within {settings.timeout:g} s; raise `timeout` or narrow the command")
    if done.truncated:
        raise GarbledOutput(f"more than {settings.output_cap:,} bytes of output; narrow the command")


def _failure(done: FinishedProcess, root: Path, otherwise: str) -> GarbledOutput:
    output = plain(done.stderr.decode("utf-8", "replace")).replace(f"{root}/", "").strip()
    return GarbledOutput(f"exit code {done.code}: {one_line(output.splitlines()[-1], 200) if output else otherwise}")


def _tidy(results: Sequence[Result], root: Path) -> list[Result]:
    # The clone's folder differs each time, so it must not get into an identity or a text.
    here = f"{root}/"
    return [
        replace(
            result,
            line=result.line if result.path else 0,
            code=one_line(result.code, 80),
            message=block(result.message.replace(here, ""), 1_000),
            identity=result.identity.replace(here, ""),
        )
        for result in results
    ]


def _severity(settings: CommandSettings, level: str) -> Severity:
    grave = {"error": Severity.HIGH, "": Severity.HIGH, "warning": Severity.MEDIUM}
    usual = {"error": Severity.MEDIUM}
    found = (grave if settings.kind in GRAVE else usual).get(level, Severity.LOW)
    return min(found, settings.severity or found, key=list(Severity).index)


def search_path(environment: Mapping[str, str]) -> str:
    """The PATH for programs."""
    # Our own environment comes last: its tools (ruff, typos) are available even if it is not activated.
    path = environment.get("PATH") or os.environ.get("PATH", os.defpath)
    return os.pathsep.join((path, os.path.dirname(sys.executable)))
