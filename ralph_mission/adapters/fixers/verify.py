"""Runs the repository's own checks on a patch in isolation (`PatchVerifier`), and fixers as observers: one signal, with
its patch, for every file that a fixer would change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.fixers.fixer import (
    CommitTree,
    Fix,
    Fixer,
    Unfinished,
    list_corrections,
    parts_of,
    quote_corrections,
)
from ralph_mission.adapters.fixers.places import DOCUMENTS
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign, tell_running
from ralph_mission.errors import UserError
from ralph_mission.mission.model.agent_job import BaseChecks, RedCheck
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext, PatchVerification, count_findings
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.projects.setup import ProjectSetup

MOST_FILES = 400
SURVEY_SECONDS = 60.0
CAP = 256_000_000  # bytes of what is cached
SHOWN = 50  # corrections listed for people
EFFORT = 0.2  # a glance
CERTAIN, LIKELY = 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Survey:
    """A fixer's results for a commit; `rest`: what is left for the next look, "" if nothing is."""

    fixes: tuple[Fix, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True)
class FixerObserver:
    """A fixer that looks at the head. `cache`: a folder for its last results and what it remembers, or None."""

    git: Git
    fixer: Fixer
    cache: Path | None

    @property
    def name(self) -> str:
        """The fixer's name."""
        return self.fixer.name

    def observe(self, context: ObservationContext) -> Observation:
        """One signal per file. Raises UserError if the fixer cannot run."""
        started = time.monotonic()
        survey = self._load_survey(context.head.sha) or self._fresh(context.head.sha, Path(context.scratch))
        signals = tuple(_signal(self.fixer, context.head.sha, fix) for fix in survey.fixes)
        seconds = time.monotonic() - started
        return Observation(self.name, "ok", signals, seconds, survey.rest, complete=not survey.rest)

    def _fresh(self, commit: str, scratch: Path) -> Survey:
        tree, cache = CommitTree.at(self.git, commit, scratch, SURVEY_SECONDS, self._load_memo()), FileCache(self.cache)
        try:
            survey = _survey(self.fixer.fixes(tree))
        finally:
            if tree.memo:
                cache.put(f"{self.fixer.name}-memo", {"of": self.fixer.version(), "memo": tree.memo})
        if not survey.rest:
            content = {"of": [self.fixer.version(), commit], "fixes": [fix.dump() for fix in survey.fixes]}
            cache.put(self.fixer.name, content)
        return survey

    def _load_survey(self, commit: str) -> Survey | None:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found = FileCache(self.cache, cap=CAP).get(self.fixer.name)
            if found["of"] == [self.fixer.version(), commit]:
                return Survey(tuple(map(Fix.load, found["fixes"])))
        return None

    def _load_memo(self) -> dict[str, Any]:
        with suppress(ValueError, KeyError, TypeError):
            found = FileCache(self.cache, cap=CAP).get(f"{self.fixer.name}-memo")
            if found["of"] == self.fixer.version():
                return dict(found["memo"])
        return {}


def _survey(found: Iterable[Fix]) -> Survey:
    fixes: list[Fix] = []
    try:
        for fix in found:
            if len(fixes) == MOST_FILES:
                return Survey(tuple(fixes), f"the first {MOST_FILES} files; the rest waits until these are corrected")
            fixes.append(fix)
    except Unfinished:
        return Survey(tuple(fixes), f"files with corrections so far: {len(fixes)}; the next look goes on")
    return Survey(tuple(fixes))


def _signal(fixer: Fixer, commit: str, fix: Fix) -> Signal:
    return Signal(
        observer=fixer.name,
        kind=fixer.kind,
        title=f"{count_findings(len(fix.corrections), fixer.kind)} in {fix.path}",
        essence=tuple(sorted({correction.essence for correction in fix.corrections})),
        severity=Severity.LOW,
        confidence=CERTAIN if PurePosixPath(fix.path).suffix.lower() in DOCUMENTS else LIKELY,
        effort=EFFORT,
        detail="\n".join(list_corrections(fix, SHOWN)),
        path=fix.path,
        line=fix.corrections[0].line,
        facts=(("count", len(fix.corrections)),),
        quotes=quote_corrections(fix, commit),
        parts=parts_of(fix),
        patch=Patch(commit, (fix.change(),)),
    )


SECONDS = 600.0
RED_FOR = 6 * 3600.0
"""Seconds that a failed check of a base commit is cached: a registry or service may have been down."""
KEPT_CHECKS = 100  # cached base commits
FAILS_ANYWAY = "; it fails without the change too: correct that, or name another check in hands.verify"
MORE_FAILURES = "; it fails without the change too, with other output"
BELOW = 125  # exit codes above it are the shell's: no such program, not executable, ended by a signal


def _open(_: Git) -> Sandbox:
    return OPEN


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """The first failed command."""

    command: str
    finished: FinishedProcess


@dataclass(frozen=True, slots=True)
class CheckRunner:
    """Runs `commands` in order, each for at most `seconds`, in a clone without remotes or credentials.

    `sandbox_for`: the sandbox for that clone. `setup`: installs what the commands need. `cache`: a folder for results
    by commit, or None.
    """

    git: Git
    commands: tuple[str, ...] = ()
    seconds: float = SECONDS
    sandbox_for: Callable[[Git], Sandbox] = _open
    setup: ProjectSetup | None = None
    cache: Path | None = None
    note: Callable[[str], None] = lambda _: None

    def forget_failures(self) -> None:
        """As in the port."""
        if self.setup:
            self.setup.forget_failures()

    def verify(self, patch: Patch, scratch: str, red: Sequence[RedCheck] | None = None) -> PatchVerification:
        """Whether all commands pass with the patch; without commands nothing is run.

        The checks `red` may stay as red as they are; None: those that fail on the base in the very same way.

        Raises UserError when the base cannot be checked out or set up, the patch names a path that git refuses, or the
        commands cannot be kept as far apart as is wanted.
        """
        if not self.commands:
            return PatchVerification(True)
        from ralph_mission.adapters.projects.setup import ChangeNotInstalled

        try:
            exactly = red is None
            allowed = self._known_base(patch.base) if red is None else red
            failure, standing = self._try(patch, scratch, allowed, exactly)
            if failure is None:
                return self._passed(standing, self._known_red(patch.base))
            before = self.base(patch.base, scratch)
            if exactly and failure.command in {check.command for check in before.tolerable}:
                failure, standing = self._try(patch, scratch, before.tolerable, exactly)
        except ChangeNotInstalled as problem:
            return PatchVerification(False, problem.what)
        red_now = None if before.problem else tuple(check.command for check in before.red)
        if failure is None:
            return self._passed(standing, red_now)
        same = next((check for check in before.red if check.command == failure.command), None)
        broken = bool(before.problem) or (same is not None and bool(same.broken))
        return PatchVerification(False, _failure_text(failure, same), red_base=broken, red=red_now)

    def _passed(self, standing: tuple[str, ...], red: tuple[str, ...] | None) -> PatchVerification:
        green = tuple(command for command in self.commands if command not in standing)
        return PatchVerification(True, standing=standing, red=red, green=green)

    def _try(
        self, patch: Patch, scratch: str, red: Sequence[RedCheck], exactly: bool
    ) -> tuple[CheckFailure | None, tuple[str, ...]]:
        """The first command that fails, if any, but for those that are as red as in `red`, and these."""
        known, standing = known_red(red, exactly), list[str]()
        for command, done in self._run(patch, patch.changes, self.commands, Path(scratch)):
            if done.code and not known(command, done):
                return CheckFailure(command, done), tuple(standing)
            standing += [command] if done.code else []
        return None, tuple(standing)

    def _known_red(self, commit: str) -> tuple[str, ...] | None:
        """The commands that fail on a commit; None if not all of them were run there."""
        found = {command: self._remembered(commit, command) for command in self.commands}
        return None if None in found.values() else tuple(command for command, known in found.items() if known)

    def _known_base(self, commit: str) -> tuple[RedCheck, ...]:
        """The tolerable red checks of a commit that was looked at already."""
        found = [known for command in self.commands if (known := self._remembered(commit, command)) is not None]
        return BaseChecks(tuple(check for checks in found for check in checks), found.count(())).tolerable

    def base(self, commit: str, scratch: str) -> BaseChecks:
        """Run all commands on an unchanged commit. A failed one is run twice."""
        found = {command: self._remembered(commit, command) for command in self.commands}
        unknown = tuple(command for command, known in found.items() if known is None)
        patch = Patch(commit, ())
        try:
            for command, done in self._run(patch, (), unknown, Path(scratch)) if unknown else ():
                self.note(f"on the base: `{command}`: {'red' if done.code else 'green'}")
                if done.code and not done.timed_out:
                    _, done = next(iter(self._run(patch, (), (command,), Path(scratch))))
                found[command] = (red_check(command, done),) if done.code else ()
                self._remember(commit, command, found[command] or ())
        except UserError as problem:
            return BaseChecks(problem=problem.what)
        red = tuple(check for known in found.values() for check in known or ())
        return BaseChecks(red, len(found) - len(red))

    def _run(
        self, patch: Patch, changes: Sequence[FileChange], commands: Sequence[str], scratch: Path
    ) -> Iterator[tuple[str, FinishedProcess]]:
        from ralph_mission.adapters.workspace.clone import clone

        with clone(self.git, patch.base, scratch, changes=changes) as folder:
            sandbox, tools = self.sandbox_for(Git.at(folder)), scratch / "tools"
            environment: Mapping[str, str] = {}
            if self.setup:
                environment = self.setup.lend(patch.base, folder, tools, [c.path for c in changes]).environment
                sandbox = replace(sandbox, writable=(*sandbox.writable, tools))
            for command in commands:
                yield (
                    command,
                    run_foreign(
                        command,
                        cwd=folder,
                        home=scratch / "home",
                        timeout=self.seconds,
                        extra_env=environment,
                        running=tell_running("checking", command, self.note),
                        sandbox=sandbox,
                    ),
                )

    # --- what is remembered -----------------------------------------------------------

    def _key(self, commit: str, command: str) -> str:
        setup = self.setup.digest(commit) if self.setup else ""
        return cache_key(commit, setup, command, f"{self.seconds:g}")

    def _remembered(self, commit: str, command: str) -> tuple[RedCheck, ...] | None:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found = FileCache(self.cache).get(self._key(commit, command))
            red = tuple(
                RedCheck(**{**one, "complaints": tuple((line, times) for line, times in one["complaints"])})
                for one in found["red"]
            )
            if not red or 0 <= time.time() - found["at"] < RED_FOR:
                return red
        return None

    def _remember(self, commit: str, command: str, red: Sequence[RedCheck]) -> None:
        cache = FileCache(self.cache, most=KEPT_CHECKS)
        cache.put(self._key(commit, command), {"at": time.time(), "red": [asdict(one) for one in red]})
        cache.tidy()


def red_check(command: str, done: FinishedProcess) -> RedCheck:
    """A failed command on an unchanged commit."""
    from ralph_mission.adapters.sandbox.excerpt import complaints, count_failures, excerpt, not_set_up, output_lines

    lines = output_lines(done.stdout, done.stderr)
    broken = not_set_up(lines)
    if done.timed_out:
        broken = f"it is not done after {done.seconds:.0f} s"
    elif done.truncated:
        broken = "it prints too much"
    elif done.code > BELOW and not broken:
        broken = excerpt(done.stdout, done.stderr).partition("\n")[0] or f"exit code {done.code}"
    output = f"exit code {done.code}\n{excerpt(done.stdout, done.stderr)}"
    found = tuple(sorted(complaints(lines).items()))
    return RedCheck(command, output, broken, found, done.code, count_failures(lines))


def known_red(red: Sequence[RedCheck], exactly: bool = False) -> Callable[[str, FinishedProcess], bool]:
    """Whether a failed command is among `red`, with no new complaints; `exactly`: also with the same exit code, and
    counting no more failures."""
    from ralph_mission.adapters.sandbox.excerpt import complaints, count_failures, is_worse, output_lines

    before = {check.command: check for check in red}

    def is_known(command: str, done: FinishedProcess) -> bool:
        if command not in before or done.timed_out or done.truncated or done.code > BELOW:
            return False
        check, lines = before[command], output_lines(done.stdout, done.stderr)
        if exactly and (done.code != check.code or count_failures(lines) > check.failures):
            return False
        return not is_worse(dict(check.complaints), complaints(lines))

    return is_known


def _failure_text(failure: CheckFailure, before: RedCheck | None) -> str:
    """`before`: the same check on the base, if it fails there too."""
    from ralph_mission.adapters.sandbox.excerpt import excerpt, find_cause

    finished = failure.finished
    how = f"exit code {finished.code}"
    if finished.timed_out:
        how = f"not done after {finished.seconds:.0f} s"
    elif finished.truncated:
        how = "ended: too much output"
    also = "" if before is None else FAILS_ANYWAY if before.broken or not before.complaints else MORE_FAILURES
    cause = find_cause(finished.stdout, finished.stderr)
    headline = f"`{failure.command}`: {how}{also}{f': {cause}' if cause else ''}"
    return f"{headline}\n{excerpt(finished.stdout, finished.stderr)}".rstrip()
