"""Reports failing workflows and flaky steps. Names, commits and logs are quoted, bounded, and decide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralph_mission.adapters.observers.ci.history import SHOWN, ChanceFailure, RedStreak, SuspectCommit
from ralph_mission.adapters.observers.looking import age_days, block, one_line
from ralph_mission.mission.model.forge import FailedJob, WorkflowRun
from ralph_mission.mission.model.mission import Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.values import dataclass
from ralph_mission.words import count_noun, stamp

NAME = "ci"
JOBS = 5  # failed jobs named


@dataclass(frozen=True, slots=True)
class Breakage:
    """A failing workflow: its runs, the first failed one, and the commits between that and the last pass.

    `since` is the same as long as it is red. `between` None: git cannot tell. `read`: runs that were looked through.
    `own`: the workflow is ours.
    """

    streak: RedStreak
    since: str
    begin: WorkflowRun
    passed: WorkflowRun | None
    jobs: tuple[FailedJob, ...]
    between: tuple[SuspectCommit, ...] | None
    read: int
    own: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the first failing commit had passed before: something else changed, or it is flaky."""
        return self.passed is not None and self.passed.sha == self.begin.sha

    @property
    def to_blame(self) -> SuspectCommit | None:
        """The first bad commit, if there is exactly one candidate."""
        return self.between[0] if self.between and len(self.between) == 1 else None


def broken(one: Breakage, context: ObservationContext) -> Signal:
    """The finding for a failing workflow. It is a new one after a pass in between; our own workflow is reported
    once."""
    newest, commit = one.streak.newest, one.to_blame
    branch = context.head.name
    where = f": {_place(one.jobs[0])}" if one.jobs else ""
    sure = len(one.streak.runs) > 1 or (one.streak.event == "push" and not one.unchanged)
    return Signal(
        observer=NAME,
        kind="broken-build",
        title=one_line(f"{branch} is red: {newest.name} fails {_since_short(one)}{where}"),
        essence=("broken-build", newest.path, "" if one.own else one.since),
        severity=Severity.HIGH if sure else Severity.MEDIUM,
        confidence=0.95 if sure else 0.7,
        detail=block("\n".join(_lines(one))),
        path=newest.path,
        author=commit.authors if commit else "",
        age_days=age_days(one.begin.created_at, context.now),
        facts=tuple(_facts(one)),
        quotes=tuple(_quotes(one)),
    )


def _place(job: FailedJob) -> str:
    return f"{job.name}, {job.step}" if job.step else job.name


def _since_short(one: Breakage) -> str:
    if one.unchanged:
        return "on a commit that had passed"
    if commit := one.to_blame:
        return f"since {commit.sha[:8]} by {commit.authors}"
    if one.between:
        return f"since one of {len(one.between)} commits"
    return f"since {one.begin.created_at:%Y-%m-%d}" if one.passed else f"since before {one.begin.created_at:%Y-%m-%d}"


def _lines(one: Breakage) -> Iterator[str]:
    newest = one.streak.newest
    yield f"{newest.path}, {newest.event} at {newest.sha[:12]}"
    for job in one.jobs[:JOBS]:
        yield f"failed: {one_line(job.name, 80)}" + (f", step {one_line(job.step, 80)}" if job.step else "")
    if len(one.jobs) > JOBS:
        yield f"failed: {len(one.jobs) - JOBS} more jobs"
    if not one.jobs:
        yield "no single job failed: the workflow file may be invalid, or GitHub no longer keeps the jobs"
    yield f"red for {count_noun(len(one.streak.runs), 'run')}, since {stamp(one.streak.first.created_at)}"
    if one.passed:
        yield f"passed last at {one.passed.sha[:12]}, {stamp(one.passed.created_at)}"
    yield from _blame(one)
    log = next((job.log for job in one.jobs if job.log), "")
    if log:
        yield "the log says:"
        yield log


def _blame(one: Breakage) -> Iterator[str]:
    if one.passed is None:
        yield f"no run that passed is among the last {one.read}, so the first bad commit is not known"
    elif one.unchanged:
        yield "the same commit had passed: no commit is to blame. Something outside changed, or it fails by chance"
    elif one.between is None:
        yield "the first bad commit is not known: history was rewritten in between, or is not all here"
    elif commit := one.to_blame:
        yield f"first bad commit: {_commit(commit)}"
    else:
        yield f"one of {len(one.between)} commits that came in between:"
        yield from (f"- {_commit(commit)}" for commit in one.between[:SHOWN])
        if len(one.between) > SHOWN:
            yield f"- and {len(one.between) - SHOWN} more"


def _commit(commit: SuspectCommit) -> str:
    merged = f", merges {commit.holds} commits" if commit.holds > 1 else ""
    return f"{commit.sha[:12]} by {commit.authors}: {one_line(commit.subject, 80)}{merged}"


def _facts(one: Breakage) -> Iterator[tuple[str, str | int | float]]:
    yield "workflow", one_line(one.streak.newest.name, 60)
    if one.jobs:
        yield "job", one_line(one.jobs[0].name, 60)
        yield "step", one_line(one.jobs[0].step, 60)
    if commit := one.to_blame:
        yield "first bad commit", commit.sha[:12]
        yield "by", commit.authors
    yield "red runs", len(one.streak.runs)


def _quotes(one: Breakage) -> Iterator[Quote]:
    yield Quote("; ".join(_place(job) for job in one.jobs[:JOBS]) or "no job failed", run=one.streak.newest.id)
    if commit := one.to_blame:
        yield Quote(f"{commit.subject}, by {commit.authors}", commit=commit.sha)


# --- by chance ------------------------------------------------------------------------


def flaky(chances: Iterable[ChanceFailure], least: int) -> Iterator[Signal]:
    """A finding for each step that was flaky on at least so many commits; it is news once."""
    groups: dict[tuple[str, str, str], list[ChanceFailure]] = {}
    for one in chances:
        groups.setdefault((one.path, one.job, one.step), []).append(one)
    for (path, job, step), found in groups.items():
        if len({one.sha for one in found}) >= least:
            yield _flaky(path, job, step, sorted(found, key=lambda one: one.at))


def _flaky(path: str, job: str, step: str, found: Sequence[ChanceFailure]) -> Signal:
    tests = _names(found)
    where = ", ".join(filter(None, (found[-1].workflow, job, step)))
    what = f"{where}: failed and passed on the same code at {len(found)} commits"
    return Signal(
        observer=NAME,
        kind="flaky-check",
        title=one_line(f"{what}{f', in {tests[0]}' if tests else ''}", 160),
        essence=("flaky-check", path, job, step),
        severity=Severity.MEDIUM,
        confidence=0.9,
        detail=block(
            "\n".join(
                [
                    *(f"{one.at:%Y-%m-%d} at {one.sha[:12]}" for one in found[-5:]),
                    *(f"test: {name}" for name in tests),
                ]
            )
        ),
        path=path,
        quotes=tuple(Quote(f"{one.at:%Y-%m-%d}", run=one.run) for one in found[-3:]),
    )


def _names(found: Sequence[ChanceFailure]) -> list[str]:
    """The failed tests, those on several commits first."""
    counts: dict[str, int] = {}
    for one in found:
        for name in one.tests:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))[:5]
