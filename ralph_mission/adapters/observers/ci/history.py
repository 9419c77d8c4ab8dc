"""What happened on the default branch: whether a workflow fails and since which run, the commits in between, and flaky
failures, which memory keeps between checks.

Pushes, schedules and dispatches have separate histories: a failing nightly run is not fixed by a push that runs other
jobs. A run started by hand counts if it passed, as does a later pass of the same commit. Cancelled, skipped, waiting
and running ones do not count.

Only a failure that later passed *on the same code* is flaky: the same commit, or one that differs only in
documentation, and in other files of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple, replace
from datetime import datetime
from itertools import pairwise

from ralph_mission.adapters.git.git import Git, GitError
from ralph_mission.adapters.observers.looking import one_line
from ralph_mission.mission.model.forge import FailedJob, WorkflowRun
from ralph_mission.values import compile_regex, dataclass

COUNTED = ("push", "schedule", "repository_dispatch")
"""What starts the runs that are the default branch's own, the most telling first. Others are about an issue, a release
or a pull request, or somebody's try."""
BY_HAND = "workflow_dispatch"
DOCUMENT = compile_regex(
    r"\.(?:md|markdown|rst|txt|adoc|png|jpe?g|gif|svg)$|(?:^|/)(?:docs?|documentation)/|(?:^|/)(?:LICEN[CS]E|AUTHORS|CODEOWNERS)",
    re.IGNORECASE,
)
READS_DOCUMENTS = compile_regex(r"doc|link|spell|typo|lint|markdown|format|prettier|site|page|readme", re.IGNORECASE)
"""Names of workflows and steps that may fail because of documentation."""
MATRIX = compile_regex(r"(?:\s*\([^()]*\))+$")
ChangedFiles = Callable[[str, str], Collection[str] | None]
"""The files that differ between two commits; None if unknown."""
SHOWN = 10  # commits that are named
MOST_COMMITS = 500  # that are counted
MOST_FLAKY = 60  # stored flaky failures, the newest


@dataclass(frozen=True, slots=True)
class RedStreak:
    """Runs of one workflow by one event that failed, oldest first, with no pass since; `passed` is the last one before.

    `passed` None: none in the runs read.
    """

    event: str
    runs: tuple[WorkflowRun, ...]
    passed: WorkflowRun | None

    @property
    def first(self) -> WorkflowRun:
        """The first failed run."""
        return self.runs[0]

    @property
    def newest(self) -> WorkflowRun:
        """The newest run."""
        return self.runs[-1]


def red_streak(runs: Iterable[WorkflowRun], events: Collection[str] = COUNTED) -> RedStreak | None:
    """A workflow's present failure, by the most relevant of `events`, or None."""
    ordered = _in_order(run for run in runs if run.passed or run.failed)
    streaks = (_streak(ordered, event) for event in COUNTED if event in events)
    return next((streak for streak in streaks if streak), None)


def _streak(ordered: Sequence[WorkflowRun], event: str) -> RedStreak | None:
    own = [run for run in ordered if run.event == event or (run.event == BY_HAND and run.passed)]
    failed: list[WorkflowRun] = []
    for run in reversed(own):
        if run.passed:
            break
        failed.insert(0, run)
    if not failed or _passed_later(failed[-1], ordered):
        return None
    before = len(own) - len(failed)
    return RedStreak(event, tuple(failed), own[before - 1] if before else None)


def _in_order(runs: Iterable[WorkflowRun]) -> list[WorkflowRun]:
    return sorted(runs, key=lambda run: (run.created_at, run.id))


def _passed_later(failed: WorkflowRun, runs: Iterable[WorkflowRun]) -> bool:
    return any(
        run.passed and run.workflow == failed.workflow and run.sha == failed.sha and run.started_at > failed.started_at
        for run in runs
    )


# --- by chance ------------------------------------------------------------------------


def chance_failures(runs: Iterable[WorkflowRun], changed: ChangedFiles) -> tuple[WorkflowRun, ...]:
    """Attempts of runs that failed although the same workflow passed afterwards on the same code, newest first.

    Includes an earlier attempt of a run that finally passed: only its jobs show whether it failed.
    """
    ordered = _in_order(run for run in runs if run.passed or run.failed)
    found = {(run.id, run.attempt): run for run in ordered if run.failed and _passed_later(run, ordered)}
    for run in ordered:
        if run.passed and run.attempt > 1:
            earlier = replace(run, attempt=run.attempt - 1, conclusion="failure")
            found[run.id, earlier.attempt] = earlier
    for workflow, event in sorted({(run.workflow, run.event) for run in ordered if run.event in COUNTED}):
        own = [run for run in ordered if (run.workflow, run.event) == (workflow, event)]
        found = {(run.id, run.attempt): run for run in _lone_failures(own, changed)} | found
    return tuple(reversed(_in_order(found.values())))


def _lone_failures(own: Sequence[WorkflowRun], changed: ChangedFiles) -> Iterable[WorkflowRun]:
    """What failed between two that passed, where both steps changed nothing but documentation, and not the same."""
    for (before, failed), (_, after) in pairwise(pairwise(own)):
        if not (before.passed and failed.failed and after.passed) or READS_DOCUMENTS.search(failed.name):
            continue
        earlier, went = changed(before.sha, failed.sha), changed(failed.sha, after.sha)
        if earlier is None or went is None or set(earlier) & set(went):
            continue
        if all(DOCUMENT.search(path) for path in (*earlier, *went)):
            yield failed


# --- what failed ----------------------------------------------------------------------


def step_key(job: FailedJob) -> tuple[str, str]:
    """The job without its matrix values, and the step: a key that is stable between runs."""
    return MATRIX.sub("", job.name), job.step


def begin_of(
    streak: RedStreak, failed_in: Callable[[WorkflowRun], Sequence[FailedJob]], most: int = 6
) -> tuple[WorkflowRun, WorkflowRun | None]:
    """The run with which what fails now began to, and the last one before it in which it passed (None: nobody knows).

    A streak may hold more than one fault: one is fixed, another came meanwhile. In a job that had failed earlier the
    steps after it did not run, so only a run in which another job failed shows that this one passed. At most `most`
    runs are looked into.
    """
    steps = {step_key(job) for job in failed_in(streak.newest)}
    first = failed_in(streak.first)
    if len(streak.runs) == 1 or not steps or not first or steps & {step_key(job) for job in first}:
        return streak.first, streak.passed
    begin, jobs = streak.newest, {name for name, _ in steps}
    for run in list(reversed(streak.runs[:-1]))[:most]:
        failed = failed_in(run)
        if not steps & {step_key(job) for job in failed}:
            masked = not failed or jobs & {step_key(job)[0] for job in failed}
            return begin, streak.passed if masked else run
        begin = run
    return begin, streak.passed


@dataclass(frozen=True, slots=True)
class SuspectCommit:
    """A commit of the default branch; for a merge, `authors` are those of its commits `holds`."""

    sha: str
    authors: str
    subject: str
    holds: int = 1


def suspects(git: Git, passed: str, failed: str) -> tuple[SuspectCommit, ...] | None:
    """The commits that came onto the branch between a run that passed and one that failed, newest first.

    None if unknown: one of them is not here, or history was rewritten in between.
    """
    if not git.resolve(passed) or not git.resolve(failed):
        return None
    try:
        git.run("merge-base", "--is-ancestor", passed, failed)
        lines = git.text(
            "log", "--first-parent", f"-{MOST_COMMITS}", "--format=%H%x1f%an%x1f%P%x1f%s", f"{passed}..{failed}"
        )
    except GitError:
        return None
    rows = [line.split("\x1f", 3) for line in lines.splitlines() if line.count("\x1f") == 3]
    return tuple(_suspect(git, passed, row, place < SHOWN) for place, row in enumerate(rows))


def _suspect(git: Git, passed: str, row: list[str], named: bool) -> SuspectCommit:
    sha, author, parents, subject = row
    if " " not in parents or not named:
        return SuspectCommit(sha, one_line(author, 60), one_line(subject))
    merged = git.try_text(
        "log", "--no-merges", "--format=%an", f"-{MOST_COMMITS}", sha, f"^{sha}^1", f"^{passed}"
    ).splitlines()
    authors = ", ".join(list(dict.fromkeys(merged))[:3]) or author
    return SuspectCommit(sha, one_line(authors, 60), one_line(subject), max(1, len(merged)))


def changed_files(git: Git, one: str, other: str) -> frozenset[str] | None:
    """The files that differ between two commits; None if one of them is not here."""
    try:
        raw = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other)
    except GitError:
        return None
    return frozenset(path for path in raw.decode("utf-8", "replace").split("\0") if path)


@dataclass(frozen=True, slots=True)
class ChanceFailure:
    """A step that failed on code on which it also passed; `tests`: those named in a report."""

    path: str
    workflow: str
    job: str
    step: str
    sha: str
    run: int
    at: datetime
    tests: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """One per commit, regardless of attempts."""
        return (self.path, self.job, self.step, self.sha)


@dataclass(frozen=True, slots=True)
class CiCursor:
    """The failed runs that were judged ("id.attempt"), the workflows that were red and since when, what failed by
    chance, and when second tries were looked for last."""

    judged_runs: frozenset[str] = frozenset()
    red: tuple[tuple[int, str], ...] = ()
    chances: tuple[ChanceFailure, ...] = ()
    day: str = ""

    @classmethod
    def parse(cls, text: str) -> CiCursor:
        """The stored state; empty if unreadable."""
        try:
            document = json.loads(text)
            chances = tuple(_read_chance(*one) for one in document["chances"])
            return cls(
                frozenset(map(str, document["seen"])),
                tuple((int(flow), str(since)) for flow, since in document["red"]),
                chances,
                str(document["day"]),
            )
        except (ValueError, KeyError, TypeError):
            return cls()

    def dump(self) -> str:
        """As `parse` reads it."""
        newest = sorted(sorted(self.chances, key=lambda one: one.at)[-MOST_FLAKY:], key=lambda one: one.key)
        chances = [[*astuple(one)[:6], one.at.isoformat(), list(one.tests)] for one in newest]
        known = {"seen": sorted(self.judged_runs), "red": list(self.red), "chances": chances, "day": self.day}
        return json.dumps(known, separators=(",", ":"))


def _read_chance(
    path: str, workflow: str, job: str, step: str, sha: str, run: int, at: str, tests: list[str]
) -> ChanceFailure:
    return ChanceFailure(path, workflow, job, step, sha, int(run), datetime.fromisoformat(at), tuple(map(str, tests)))
