"""The repository's own checks on a change, where they can do no harm (the port `Hands`), and fixers as observers: one
signal, with its ready patch, for every file that a fixer would put right.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ralph_mission.adapters.cache import FileCache
from ralph_mission.adapters.fixers.fixer import CommitTree, Correction, Fix, Fixer
from ralph_mission.adapters.fixers.places import DOCUMENTS
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.sandbox.isolation import OPEN, Sandbox
from ralph_mission.adapters.sandbox.process import FinishedProcess, run_foreign
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.mission.model.mission import Observation, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext, PatchVerification, count_noun
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.values import dataclass

if TYPE_CHECKING:
    from ralph_mission.adapters.projects.setup import ProjectSetup

MOST_FILES = 400
SURVEY_SECONDS = 60.0
CAP = 256_000_000  # bytes of what was found the last time
SHOWN = 50  # corrections listed for people
EFFORT = 0.2  # a glance
CERTAIN, LIKELY = 0.9, 0.8


@dataclass(frozen=True, slots=True)
class Survey:
    """What a fixer found in one commit; `complete` when it got to look at everything."""

    fixes: tuple[Fix, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class FixerObserver:
    """One fixer looking at the head. `cache` is a folder for what it found there the last time; None keeps nothing."""

    git: Git
    fixer: Fixer
    cache: Path | None

    @property
    def name(self) -> str:
        """That of the fixer."""
        return self.fixer.name

    def observe(self, context: ObservationContext) -> Observation:
        """One signal per file. Raises UserError when the fixer cannot run."""
        started = time.monotonic()
        survey = self._load_survey(context.head.sha) or self._fresh(context.head.sha, Path(context.scratch))
        signals = tuple(_signal(self.fixer, context.head.sha, fix) for fix in survey.fixes)
        detail = "" if survey.complete else f"stopped after {len(signals)} files; the rest waits"
        seconds = time.monotonic() - started
        return Observation(self.name, "ok", signals, seconds, detail, complete=survey.complete)

    def _fresh(self, commit: str, scratch: Path) -> Survey:
        tree = CommitTree.at(self.git, commit, scratch, SURVEY_SECONDS)
        fixes = tuple(itertools.islice(self.fixer.fixes(tree), MOST_FILES + 1))
        survey = Survey(fixes[:MOST_FILES], len(fixes) <= MOST_FILES and not tree.out_of_time)
        if survey.complete:
            self._remember(commit, survey)
        return survey

    def _load_survey(self, commit: str) -> Survey | None:
        with suppress(ValueError, KeyError, TypeError):
            found = FileCache(self.cache, cap=CAP).get(self.fixer.name)
            if found["of"] == [self.fixer.version(), commit]:
                return Survey(tuple(_decode(fix) for fix in found["fixes"]), True)
        return None

    def _remember(self, commit: str, survey: Survey) -> None:
        content = {"of": [self.fixer.version(), commit], "fixes": [_encode(fix) for fix in survey.fixes]}
        FileCache(self.cache).put(self.fixer.name, content)


def _signal(fixer: Fixer, commit: str, fix: Fix) -> Signal:
    change = FileChange(fix.path, fix.mode, fix.mode, fix.old, fix.new)
    return Signal(
        observer=fixer.name,
        kind=fixer.kind,
        title=f"{count_noun(len(fix.corrections), fixer.kind)} in {fix.path}",
        essence=tuple(sorted({f"{correction.what} @ {correction.context}" for correction in fix.corrections})),
        severity=Severity.LOW,
        confidence=CERTAIN if PurePosixPath(fix.path).suffix.lower() in DOCUMENTS else LIKELY,
        effort=EFFORT,
        detail=_list_corrections(fix.corrections),
        path=fix.path,
        line=fix.corrections[0].line,
        facts=(("count", len(fix.corrections)),),
        patch=Patch(commit, (change,)),
    )


def _list_corrections(corrections: tuple[Correction, ...]) -> str:
    lines = [f"line {correction.line}: {correction.what}" for correction in corrections[:SHOWN]]
    more = len(corrections) - SHOWN
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)


def _encode(fix: Fix) -> dict[str, object]:
    return {**asdict(fix), "old": fix.old.decode(), "new": fix.new.decode()}


def _decode(found: Mapping[str, Any]) -> Fix:
    corrections = tuple(Correction(**entry) for entry in found["corrections"])
    old, new = str(found["old"]).encode(), str(found["new"]).encode()
    return Fix(str(found["path"]), str(found["mode"]), old, new, corrections)


SECONDS = 600.0


def _open(_: Git) -> Sandbox:
    return OPEN


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """The first command that did not pass."""

    command: str
    finished: FinishedProcess


@dataclass(frozen=True, slots=True)
class Workbench:
    """Runs `commands` in order, each for at most `seconds`, in a clone without remotes or credentials.

    `sandbox_for` says how far what runs in that clone is kept apart; `setup` installs what the commands need.
    """

    git: Git
    commands: tuple[str, ...] = ()
    seconds: float = SECONDS
    sandbox_for: Callable[[Git], Sandbox] = _open
    setup: ProjectSetup | None = None

    def verify(self, patch: Patch, scratch: str) -> PatchVerification:
        """Whether all commands pass with the patch; without commands nothing is run.

        Raises UserError when the base cannot be checked out or set up, the patch names a path that git refuses, or the
        commands cannot be kept as far apart as is wanted.
        """
        if not self.commands:
            return PatchVerification(True)
        failure = self._first_failure(patch, patch.changes, self.commands, Path(scratch))
        if failure is None:
            return PatchVerification(True)
        needed = self.commands[: self.commands.index(failure.command) + 1]
        before = self._first_failure(patch, (), needed, Path(scratch))
        return PatchVerification(False, _failure_text(failure, fails_anyway=before is not None))

    def _first_failure(
        self, patch: Patch, changes: Sequence[FileChange], commands: Sequence[str], scratch: Path
    ) -> CheckFailure | None:
        with clone(self.git, patch.base, scratch, changes=changes) as folder:
            sandbox, tools = self.sandbox_for(Git(folder / ".git", folder / ".git", folder)), scratch / "tools"
            environment: Mapping[str, str] = {}
            if self.setup:
                environment = self.setup.lend(patch.base, folder, tools, [c.path for c in changes]).environment
                sandbox = replace(sandbox, writable=(*sandbox.writable, tools))
            for command in commands:
                finished = run_foreign(
                    command,
                    cwd=folder,
                    home=scratch / "home",
                    timeout=self.seconds,
                    extra_env=environment,
                    sandbox=sandbox,
                )
                if finished.code != 0:
                    return CheckFailure(command, finished)
        return None


def _failure_text(failure: CheckFailure, fails_anyway: bool) -> str:
    from ralph_mission.adapters.projects.excerpt import excerpt

    finished = failure.finished
    how = f"exit code {finished.code}"
    if finished.timed_out:
        how = f"not done after {finished.seconds:.0f} s"
    elif finished.truncated:
        how = "ended: too much output"
    also = "; it fails without the change too" if fails_anyway else ""
    return f"`{failure.command}`: {how}{also}\n{excerpt(finished.stdout, finished.stderr)}".rstrip()
