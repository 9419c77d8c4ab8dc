"""Fixers by command: a formatter or linter of the repository fixes what it reports, and we measure the change.

A tool runs in a clone with the project's packages, without network and credentials. It only fixes what it reports on
this commit; its changes are read by content. A tool counts as used if the repository configures it, or names it in a
script, a workflow or its hooks. If one of these runs it as a check, the repository enforces it; a configuration alone
may be for people's editors.

Changes within the limits are a finding per file, as for any fixer. Larger
ones are one finding with the command to run, or none if the repository configures a tool without checking by it.
"""

from __future__ import annotations

import difflib
import json
import os
import posixpath
import re
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.fixers.fixer import LARGEST, Correction, Fix, list_corrections, parts_of, quote_corrections
from ralph_mission.adapters.fixers.places import is_generated, off_limits
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.detection import Read
from ralph_mission.adapters.projects.setup import SECONDS as SETUP_SECONDS
from ralph_mission.adapters.projects.setup import ProjectSetup
from ralph_mission.adapters.sandbox.excerpt import excerpt
from ralph_mission.adapters.sandbox.isolation import Sandbox
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.adapters.workspace.clone import changed_since, clone
from ralph_mission.mission.findings.identity import normalise_line
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext, count_findings
from ralph_mission.safety.objections import MAX_BYTES, MAX_FILES
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, FileChange, Patch, measure
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex, dataclass

ESLINT = (
    *(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
    *(f".eslintrc{suffix}" for suffix in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
)
PRETTIER = (
    *(f".prettierrc{suffix}" for suffix in ("", ".json", ".yml", ".yaml", ".json5", ".js", ".mjs", ".cjs", ".toml")),
    *(f"prettier.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts")),
)
NAMING = (".pre-commit-config.yaml", "Makefile", "makefile", "justfile", "tox.ini", "noxfile.py", "lefthook.yml")
FOLDERS = ("scripts", "script", ".github/workflows", ".husky")
"""Files and folders that say what is run here."""
RUNNERS = frozenset({"npx", "pnpm", "yarn", "bun", "bunx", "exec", "dlx", "run", "-s", "--silent"})
WRITES = frozenset({"--fix", "--write", "-w", "--check", "-c", "--list-different", "-l"})
CACHES = ("--cache", "--format", "-f", "--output-file", "-o", "--watch")
_PARTS = compile_regex(r"&&|\|\||[;|]")


@dataclass(frozen=True, slots=True)
class ProjectFixer:
    """A tool. `check` reports, and exits with `found` (0: any code but 0) if there is something to fix; "" if the owner
    named no such command. `run` fixes it. `kind`: of its findings.

    `lent`: its program must come with the project's packages, in their version. `enforced`: whether the repository
    itself checks with it.
    """

    name: str
    kind: str
    run: str
    check: str = ""
    program: str = ""
    found: int = 1
    lent: bool = False
    enforced: bool = True


def project_fixers(paths: Collection[str], read: Read) -> tuple[ProjectFixer, ...]:
    """The fixers of a repository with the files `paths`, only at its top."""
    scripts = (path for path in paths if posixpath.dirname(path) in FOLDERS)
    text = "\n".join(map(read, sorted({*scripts, *(name for name in NAMING if name in paths)})))
    return (*_node(paths, read, text), *_python(read, text), *_rust(paths, text), *_go(paths, text))


def _node(paths: Collection[str], read: Read, text: str) -> Iterator[ProjectFixer]:
    try:
        manifest = json.loads(read("package.json"))
        packages = {**manifest.get("dependencies", {}), **manifest.get("devDependencies", {})}
        scripts = sorted(manifest.get("scripts", {}).items(), key=lambda row: not row[0].startswith(("lint", "format")))
        lines = [str(line) for _, line in scripts]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    if "eslint" in packages and (_any(ESLINT, paths) or "eslintConfig" in manifest):
        words, named = _arguments("eslint", lines)
        call = shlex.join(["eslint", *(words or ["."])])
        yield ProjectFixer("eslint", "lint-fix", f"{call} --fix", call, "eslint", lent=True, enforced=named)
    if "prettier" in packages and (_any(PRETTIER, paths) or "prettier" in manifest):
        words, named = _arguments("prettier", lines)
        call, checks = shlex.join(["prettier", *(words or ["."])]), re.compile(r"prettier\b.*\s(--check|-c|-l|--list)")
        has_check = named and any(checks.search(line) for line in (*lines, *text.splitlines()))
        yield ProjectFixer(
            "prettier", "formatting", f"{call} --write", f"{call} --check", "prettier", lent=True, enforced=has_check
        )


def _arguments(program: str, lines: Iterable[str]) -> tuple[list[str], bool]:
    """The arguments a script passes to `program`, without those that say whether it writes; and whether there is such a
    script."""
    for part in (part for line in lines for part in _PARTS.split(line)):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        while words and words[0] in RUNNERS:
            words = words[1:]
        if words and words[0] == program and "$" not in part and "`" not in part:
            return [word for word in words[1:] if word not in WRITES and not word.startswith(CACHES)], True
    return [], any(re.search(rf"\b{program}\b", line) for line in lines)


def _python(read: Read, text: str) -> Iterator[ProjectFixer]:
    named = f"{text}\n{read('pyproject.toml')}"
    if re.search(r"\bruff format\b|\bid: ruff-format\b", named):
        yield ProjectFixer("ruff format", "formatting", "ruff format .", "ruff format --check .", "ruff", lent=True)
    if re.search(r"\bblack (?:--|\.|\w+/)|\bid: black\b", named):
        yield ProjectFixer("black", "formatting", "black -q .", "black --check .", "black", lent=True)


def _rust(paths: Collection[str], text: str) -> Iterator[ProjectFixer]:
    if "Cargo.toml" not in paths:
        return
    checked = bool(re.search(r"\bcargo fmt\b|\brustfmt\b", text))
    if checked or _any(("rustfmt.toml", ".rustfmt.toml"), paths):
        yield ProjectFixer(
            "rustfmt", "formatting", "cargo fmt --all", "cargo fmt --all -- --check", "cargo-fmt", enforced=checked
        )
    checked = "clippy" in text
    if checked or _any(("clippy.toml", ".clippy.toml"), paths):
        which = "--workspace --all-targets --offline --quiet"
        yield ProjectFixer(
            "clippy", "lint-fix", f"cargo clippy --fix --allow-dirty --allow-no-vcs {which}",
            f"cargo clippy {which} -- -D warnings", "cargo-clippy", found=101, enforced=checked,
        )  # fmt: skip  # one value


def _go(paths: Collection[str], text: str) -> Iterator[ProjectFixer]:
    if "go.mod" in paths:
        check = 'found="$(gofmt -l .)"; echo "$found"; test -z "$found"'
        yield ProjectFixer("gofmt", "formatting", "gofmt -w .", check, "gofmt", enforced="gofmt" in text)


def _any(names: Iterable[str], paths: Collection[str]) -> bool:
    return any(name in paths for name in names)


def owners_fixer(name: str, run: str, checks: Mapping[str, str]) -> ProjectFixer:
    """The fixer of an owner's command; `checks`: commands that report, by the name of their observer."""
    return ProjectFixer(name, "lint-fix", run, checks.get(name, ""), found=0)


SECONDS = 600.0  # for one run of a tool
MOST_BYTES = 4_000_000  # of what one tool changed; more is only counted
SHOWN, LONGEST = 20, 80  # corrections of a file, characters of a line in them
ENCODING = 1  # of what is cached
"""The version of the rules below, so that no cache outlives them."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's changes in a commit, or why there are none; `more`: the number of further files."""

    fixer: ProjectFixer
    fixes: tuple[Fix, ...] = ()
    note: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class CommandFixes:
    """An observer. `own`: the owner's commands, () for detected tools. `most_lines`: may be changed unasked. `cache`: a
    folder for results of the last commit."""

    name: str
    git: Git
    setup: ProjectSetup
    sandbox_for: Callable[[Git], Sandbox]
    most_lines: int
    cache: Path | None = None
    own: tuple[ProjectFixer, ...] = ()

    @property
    def seconds(self) -> float:
        """The time limit: a set-up, and a check and a fix by each of a few tools."""
        return SETUP_SECONDS + 4 * SECONDS

    def observe(self, context: ObservationContext) -> Observation:
        """What the tools put right at the head; one that is not there is left out. Raises UserError when the
        repository cannot be set up."""
        started = time.monotonic()
        commit = context.head.sha
        tools = (self.own or project_fixers(*self.setup.files(commit))) if commit else ()
        if not tools:
            return Observation(self.name, "ok", cursor=context.cursor)
        results = self._results(commit, tools, Path(context.scratch))
        signals = tuple(signal for result in results for signal in self._signals(commit, result))
        notes = tuple(f"{result.fixer.name}: {result.note}" for result in results if result.note)
        return Observation(
            self.name, "ok", signals, time.monotonic() - started, truncate("; ".join(notes), 300), commit,
            complete=not notes, unchecked=notes,
        )  # fmt: skip  # one value

    def _results(self, commit: str, tools: Sequence[ProjectFixer], scratch: Path) -> list[ToolResult]:
        cache = FileCache(self.cache)
        question = cache_key(str(ENCODING), commit, self.setup.digest(commit), *map(repr, tools))
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            entry = cache.get(f"fixer-{self.name}")
            if entry["of"] == question:
                return [_decode(one) for one in entry["results"]]
        results = list(self._run_tools(commit, tools, scratch))
        cache.put(f"fixer-{self.name}", {"of": question, "results": [_encode(one) for one in results]})
        return results

    def _run_tools(self, commit: str, tools: Sequence[ProjectFixer], scratch: Path) -> Iterator[ToolResult]:
        with clone(self.git, commit, scratch) as folder:
            place = scratch / f"tools-{self.name}"
            environment = {**self.setup.lend(commit, folder, place).environment, "CARGO_NET_OFFLINE": "true"}
            sandbox = self.sandbox_for(Git.at(folder))
            sandbox = replace(sandbox, writable=(*sandbox.writable, place))

            def run(command: str) -> FinishedProcess:
                home = scratch / f"home-{self.name}"
                return run_foreign(
                    command, cwd=folder, home=home, timeout=SECONDS, extra_env=environment, sandbox=sandbox
                )

            for tool in tools:
                if not _is_there(tool, environment, folder):
                    continue  # the repository names a tool that its packages do not include: not ours to install
                yield self._put_right(tool, commit, folder, run)

    def _put_right(
        self, tool: ProjectFixer, commit: str, folder: Path, run: Callable[[str], FinishedProcess]
    ) -> ToolResult:
        """A tool's changes; the clone is restored afterwards."""
        before = changed_since(folder, commit, self.git)
        if tool.check:
            finished = run(tool.check)
            if finished.code == 0:
                return ToolResult(tool)
            if tool.found not in (0, finished.code):
                return ToolResult(tool, note=_failure(finished, folder))
        done = run(tool.run)
        patch = changed_since(folder, commit, self.git)
        known = {change.path for change in before.changes}
        changes = [change for change in patch.changes if change.path not in known]
        _put_back(folder, changes)
        if done.timed_out or done.truncated or any(change.new is None or _new_mode(change) for change in changes):
            why = "it does not end in time" if done.timed_out else "it does more than edit files"
            return ToolResult(tool, note=f"left alone: {why}")
        fixes = [fix for change in changes if (fix := _fix(change))]
        size = sum(len(fix.old) + len(fix.new) for fix in fixes)
        if size > MOST_BYTES:
            return ToolResult(tool, note=f"would change {len(fixes)} files, which is too much to show")
        return ToolResult(tool, tuple(fixes), more=len(changes) - len(fixes))

    def _signals(self, commit: str, result: ToolResult) -> Iterator[Signal]:
        tool, fixes = result.fixer, result.fixes
        patch = Patch(commit, tuple(fix.change() for fix in fixes))
        size = measure(patch)
        if not fixes:
            return
        if size.lines <= self.most_lines and size.bytes <= MAX_BYTES and len(fixes) <= MAX_FILES:
            yield from (_file_signal(self.name, tool, fix, commit) for fix in fixes)
        elif tool.enforced:
            yield _whole_signal(self.name, tool, patch, size.lines)


def _whole_signal(observer: str, tool: ProjectFixer, patch: Patch, lines: int) -> Signal:
    """A tool's whole change, if it is too large to make unasked."""
    paths = [change.path for change in patch.changes]
    advice = [f"Run it at the top of the repository: {tool.run}"]
    advice += [f"It reports them with: {tool.check}"] if tool.check else []
    return Signal(
        observer=observer,
        kind=tool.kind,
        title=f"{tool.name} puts {len(paths)} file{'s' * (len(paths) != 1)} right ({lines:,} lines)",
        essence=(tool.name, tool.run),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.5,
        detail="\n".join([*advice, *paths[:SHOWN]]),
        path=paths[0],
        facts=(("count", len(paths)),),
        patch=patch,
    )


def _file_signal(observer: str, tool: ProjectFixer, fix: Fix, commit: str) -> Signal:
    count = 1 if tool.kind == "formatting" else len(fix.corrections)
    return Signal(
        observer=observer,
        kind=tool.kind,
        title=f"{count_findings(count, tool.kind)} in {fix.path}, by {tool.name}",
        essence=tuple(sorted({f"{tool.name}: {one.essence}" for one in fix.corrections})),
        severity=Severity.LOW,
        confidence=0.9,
        effort=0.2,
        detail="\n".join([*list_corrections(fix, SHOWN), f"Put right with: {tool.run}"]),
        path=fix.path,
        line=fix.corrections[0].line,
        facts=(("count", count),),
        quotes=quote_corrections(fix, commit),
        parts=tuple(replace(part, line=0) for part in parts_of(fix)),  # a tool's edits may depend on each other
        patch=Patch(commit, (fix.change(),)),
    )


def _is_there(tool: ProjectFixer, environment: Mapping[str, str], folder: Path) -> bool:
    if not tool.program:
        return True
    found = shutil.which(tool.program, path=environment.get("PATH") or os.defpath)
    return found is not None and (not tool.lent or Path(found).is_relative_to(folder))


def _failure(done: FinishedProcess, folder: Path) -> str:
    if done.timed_out:
        return f"not done after {done.seconds:.0f} s"
    line = excerpt(done.stdout, done.stderr, folder).partition("\n")[0]
    return f"cannot run here (exit code {done.code}): {line}"


def _new_mode(change: FileChange) -> bool:
    return change.old is not None and change.old_mode != change.new_mode


def _put_back(folder: Path, changes: Sequence[FileChange]) -> None:
    for change in changes:
        file = folder / change.path
        if change.old is None:
            with suppress(OSError):
                file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.is_symlink():
                file.unlink()
            file.write_bytes(change.old)


def _fix(change: FileChange) -> Fix | None:
    """The fix of a file that a fixer may change; new files are tools' caches or reports."""
    if change.old is None or change.new is None or change.new_mode not in (REGULAR, EXECUTABLE):
        return None
    if off_limits(change.path) or max(len(change.old), len(change.new)) > LARGEST:
        return None
    try:
        old, new = change.old.decode(), change.new.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in old + new or is_generated(old):
        return None
    return Fix(change.path, change.new_mode, change.old, change.new, tuple(_corrections(old, new)))


def _corrections(old: str, new: str) -> Iterator[Correction]:
    before, after = old.splitlines(), new.splitlines()
    for tag, start, end, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            was, now = " ".join(before[start:end]).strip(), " ".join(after[first:last]).strip()
            what = f"{truncate(was, LONGEST) or '(nothing)'} → {truncate(now, LONGEST) or '(nothing)'}"
            if was.split() == now.split():
                what = f"spaces and line breaks of {truncate(now, LONGEST)}"
            yield Correction(start + 1, what, normalise_line("".join(before[start : start + 1])))
    if before == after:
        yield Correction(1, "line ends", "")


def _encode(result: ToolResult) -> dict[str, Any]:
    return {**asdict(result), "fixes": [fix.dump() for fix in result.fixes]}


def _decode(found: Mapping[str, Any]) -> ToolResult:
    fixes = tuple(map(Fix.load, found["fixes"]))
    return ToolResult(ProjectFixer(**found["fixer"]), fixes, str(found["note"]), int(found["more"]))
