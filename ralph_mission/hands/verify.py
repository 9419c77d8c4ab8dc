"""The repository's own checks on a change, where they can do no harm: the port `Hands`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ralph_mission.gateways.git import Git
from ralph_mission.gateways.isolation import OPEN, Sandbox
from ralph_mission.gateways.process import FinishedProcess, run_foreign
from ralph_mission.gateways.workshop import clone
from ralph_mission.mission.ports import PatchVerification
from ralph_mission.safety.hidden import without_controls, without_invisible
from ralph_mission.safety.patch import FileChange, Patch
from ralph_mission.safety.text import truncate

LAST_LINES = 5
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

    `caged` says how far what runs in that clone is kept apart.
    """

    git: Git
    commands: tuple[str, ...] = ()
    seconds: float = SECONDS
    caged: Callable[[Git], Sandbox] = _open

    def verify(self, patch: Patch, scratch: str) -> PatchVerification:
        """Whether all commands pass with the patch; without commands nothing is run.

        Raises Trouble when the base cannot be checked out, the patch names a path that git refuses, or the commands
        cannot be kept as far apart as is wanted.
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
            cage = self.caged(Git(folder / ".git", folder / ".git", folder))
            for command in commands:
                finished = run_foreign(command, cwd=folder, home=scratch / "home", timeout=self.seconds, cage=cage)
                if finished.code != 0:
                    return CheckFailure(command, finished)
        return None


def _failure_text(failure: CheckFailure, fails_anyway: bool) -> str:
    finished = failure.finished
    how = f"exit code {finished.code}"
    if finished.timed_out:
        how = f"not done after {finished.seconds:.0f} s"
    elif finished.truncated:
        how = "ended: too much output"
    also = "; it fails without the change too" if fails_anyway else ""
    said = "\n".join(_last_lines(finished.stderr) or _last_lines(finished.stdout))
    return f"`{failure.command}`: {how}{also}\n{said}".rstrip()


def _last_lines(output: bytes) -> list[str]:
    plain = without_invisible(without_controls(output[-20_000:].decode(errors="replace")))
    return [truncate(line, 300) for line in plain.splitlines() if line.strip()][-LAST_LINES:]
