"""A mission's work by an agent, in its own clone that stays until the work is done.

The clone's name is derived from mission, round, the issue's text and the starting commit, so that the next process or
cycle finds and resumes it after a crash. Only its files are trusted, read by content. What is sent is decided
elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import without_steering
from ralph_mission.adapters.workspace.clone import changed_since, check_out
from ralph_mission.adapters.workspace.parallel import ENGINE_FOLDER
from ralph_mission.adapters.workspace.snapshot import remove_folder
from ralph_mission.errors import UserError
from ralph_mission.loop.prompt import GUIDES, conventions
from ralph_mission.mission.coder import conditions
from ralph_mission.mission.lifecycle.waiting import CORRECT_BASE, PICK_AGENT
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult, BaseChecks, RedCheck, failed_job
from ralph_mission.mission.model.proposal import PatchVerification
from ralph_mission.mission.proof.claim import CodeClaim, claim_of_patch, is_code
from ralph_mission.mission.proof.judge import ProofVerdict
from ralph_mission.safety.objections import TEST_PATH
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, Patch, patch_ids
from ralph_mission.safety.paths import configures_agents
from ralph_mission.values import dataclass

NOTE = "done.json"
LONGEST = 1_000_000  # bytes of a note


Play = Callable[[Path, AgentJob], AgentResult]
"""Runs the loop in a folder, or resumes it.

Raises KeyboardInterrupt; UserError and OSError only before any session, as later failures have a cost.
"""
Check = Callable[[Patch, Sequence[RedCheck]], PatchVerification]
"""The repository's own checks on a change, in a clean clone; some may keep failing. Raises UserError, OSError."""
Prove = Callable[[CodeClaim, str], ProofVerdict]
"""Whether a claim's test shows the bug on a commit. Raises UserError, OSError."""
LookAtBase = Callable[[str], BaseChecks]
"""The repository's own checks on an unchanged commit."""


@dataclass(frozen=True, slots=True)
class AgentCoder:
    """`mission.ports.Coder`. `place`: the folder of clones. `check`: verifies work of an earlier cycle. `base`: checks
    the base first (else the job says what fails). `prove`: judges the test for a bug. `missing`: what an agent that a
    label names lacks here, or ""."""

    git: Git
    place: Path
    play: Play
    check: Check
    base: LookAtBase | None = None
    prove: Prove | None = None
    missing: Callable[[str], str] = lambda _: ""

    def work(self, job: AgentJob) -> AgentResult:
        """As in the port; an interrupt passes through, to end the cycle."""
        try:
            if why := job.agent and self.missing(job.agent):
                why = f"its label asks for {job.agent}, which {why}"
                return AgentResult(job.number, "held", why, blocked=PICK_AGENT)
            if self.base:
                baseline_checks = self.base(job.default_sha or job.base_sha)
                if why := conditions.why_not_asked(baseline_checks, job.task):
                    return AgentResult(job.number, "held", why, blocked=CORRECT_BASE)
                job = replace(job, red=conditions.tolerated(baseline_checks, job.task))
            folder = self._clone(job)
            base, tree = _base(folder), folder / "tree"
            before = self._change(tree, base)
            if noted := self._done_before(folder, before, job):
                return self._judged(folder, job, noted)
            played = self.play(tree, job)
        except UserError as problem:
            return failed_job(job, f"{problem.what}; {problem.next_step}")
        except OSError as error:
            return failed_job(job, f"its clone cannot be kept: {_describe_error(error)}")
        return self._build_result(job, folder, before, played)

    def tidy(self, missions: Collection[int]) -> None:
        """As in the port."""
        names = {str(mission) for mission in missions}
        with suppress(OSError):  # what cannot be removed now does no harm
            for folder in [one for one in self._folders() if one.name.partition("-")[0] not in names]:
                remove_folder(os.fsencode(folder))

    def left(self, number: int) -> Path | None:
        """The folder of a mission's work, with the clone as `tree`, or None."""
        return next((folder for folder in self._folders() if folder.name.startswith(f"{number}-")), None)

    def _done_before(self, folder: Path, patch: Patch, job: AgentJob) -> AgentResult | None:
        """Work that an earlier cycle noted as done but did not send.

        A session could have written the note, so the change is checked again.
        """
        noted = read_note(folder, job)
        checked = self.check(patch, job.red) if noted and patch.changes else PatchVerification(False)
        if noted is None or not checked.ok:
            (folder / NOTE).unlink(missing_ok=True)
            return None
        return replace(noted, patch=patch, standing=checked.standing)

    def _reproduced(self, job: AgentJob, result: AgentResult) -> AgentResult:
        """The result; for a bug, after judging its test."""
        if not job.bug or result.outcome != "made" or result.patch is None:
            return result
        if not result.patch.changes:
            return replace(result, outcome="failed", reason="no file was changed", unseen=True)
        paths = result.patch.paths
        if any(map(is_code, paths)) and not any(map(TEST_PATH.search, paths)):
            return replace(result, outcome="failed", reason="it brings no test", unseen=True)
        claim = claim_of_patch(job.title, result.patch)
        if claim is None or self.prove is None:
            return conditions.settle(result, claim, "" if self.prove else "no tests can be run apart")
        try:
            return conditions.settle(result, claim, self.prove(claim, result.patch.base))
        except UserError as problem:
            return conditions.settle(result, claim, problem.what)
        except OSError as error:
            return conditions.settle(result, claim, _describe_error(error))

    def _build_result(self, job: AgentJob, folder: Path, before: Patch, played: AgentResult) -> AgentResult:
        """The loop's result with its cost, which later failures do not change."""
        patch, reason = self._read_left_over(folder / "tree", _base(folder))
        moved = patch_ids(patch) != patch_ids(before)
        result = replace(played, patch=patch, progressed=moved, answered_at=job.answers)
        if reason:
            result = replace(result, outcome="failed", reason=reason)
        with suppress(OSError):  # without the note, an agent only runs again after a crash
            if result.outcome == "made" and patch.changes:
                _tell(folder, result)
        return self._judged(folder, job, result)

    def _judged(self, folder: Path, job: AgentJob, result: AgentResult) -> AgentResult:
        result = self._reproduced(job, result)
        nothing = result.outcome == "made" and not (result.patch and result.patch.changes)
        if result.outcome == "failed" or nothing:  # the next attempt starts over
            with suppress(OSError):
                remove_folder(os.fsencode(folder))
        return result

    def _read_left_over(self, tree: Path, base: str) -> tuple[Patch, str]:
        """The agent's changes, or the reason why they are unreadable."""
        try:
            return self._change(tree, base), ""
        except UserError as problem:
            why = problem.what
        except OSError as error:
            why = _describe_error(error)
        except Exception as error:  # an agent's files can be broken in any way
            why = f"it failed unexpectedly ({type(error).__name__})"
        return Patch(base, ()), f"what it left cannot be read: {why}"

    def _change(self, tree: Path, base: str) -> Patch:
        """All differences from the base by content, without a loop's files and agent configuration."""
        found = changed_since(tree, base, self.git)
        return replace(found, changes=tuple(c for c in found.changes if is_work(c.path)))

    # --- clones -----------------------------------------------------------------------

    def _clone(self, job: AgentJob) -> Path:
        """The folder of earlier work, if its base is an ancestor of the branch; else a new one."""
        name = f"{job.number}-{job.round}-{job.attempt}-{job.subject}-"
        for folder in self._folders():
            if folder.name.startswith(name) and is_own_folder(folder / "tree") and self._fits(_base(folder), job):
                return folder
            if folder.name.startswith(f"{job.number}-"):
                remove_folder(os.fsencode(folder))
        return self._begun(self.place / f"{name}{job.base_sha}", job)

    def _fits(self, base: str, job: AgentJob) -> bool:
        if job.round:
            return base == job.base_sha
        return self.git.resolve(base) == base == self.git.try_text("merge-base", base, job.base_sha)

    def _begun(self, folder: Path, job: AgentJob) -> Path:
        folder.mkdir(parents=True)
        self.place.chmod(0o711)  # an agent that runs as another user must reach its clone
        folder.chmod(0o711)
        fresh = check_out(self.git, job.base_sha, folder / "tree")
        begin = job.base_sha
        if job.round and job.default_sha:
            begin = without_steering(fresh, job.default_sha, begin, configures_agents)
            fresh.run("read-tree", "-u", "--reset", begin)
        branch = f"refs/heads/{job.branch}"
        fresh.run("update-ref", branch, begin)
        fresh.run("symbolic-ref", "HEAD", branch)
        return folder

    def _folders(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (one for one in sorted(files.own(self.place).iterdir()) if is_own_folder(one))


def is_own_folder(path: Path) -> bool:
    """Whether a path is a folder, not a link to one."""
    return path.is_dir() and not path.is_symlink()


def is_work(path: str) -> bool:
    """Whether a path belongs to the change, not to a loop or an agent's configuration."""
    return path.partition("/")[0] != ENGINE_FOLDER and not configures_agents(path)


def _base(folder: Path) -> str:
    return folder.name.rpartition("-")[2]


def _tell(folder: Path, result: AgentResult) -> None:
    """Note beside the clone that it is done, so that a cycle that dies now does not run the agent again."""
    answered = result.answered_at.isoformat() if result.answered_at else ""
    content = json.dumps({"words": result.words, "learned": result.learned, "answered": answered})
    files.write(folder / NOTE, content.encode())


def read_note(folder: Path, job: AgentJob) -> AgentResult | None:
    """The note; it cannot claim an answer to a review that was written later."""
    note = files.content(folder / NOTE, LONGEST + 1)
    if note is None or len(note) > LONGEST:
        return None
    try:
        fields = json.loads(note)
        learned = tuple(str(line) for line in fields["learned"])
        answered = datetime.fromisoformat(fields["answered"]) if fields["answered"] else None
        if answered and job.answers:
            answered = min(answered, job.answers)
        return AgentResult(
            job.number, "made", "", None, str(fields["words"]), learned, progressed=True,
            answered_at=answered if job.answers else None,
        )  # fmt: skip  # one value
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _describe_error(error: OSError) -> str:
    return f"{error.filename or 'a file'}: {(error.strerror or type(error).__name__).lower()}"


def read_conventions(git: Git, base: str) -> str:
    """A repository's guides at the commit `base`, never from a work tree or a head.

    Links and folders do not count. Raises GitError.
    """
    found = {entry.path: entry.oid for entry in git.listing(base, *GUIDES) if entry.mode in (REGULAR, EXECUTABLE)}
    contents = git.blobs(found.values())
    return conventions({path: contents[oid] for path, oid in found.items() if oid in contents})
