"""Observes the automation of the default branch: failing workflows, the commits they broke at, and flaky steps.

Each check requests one short list: the newest failed runs. Only a workflow with a new failure, or one that failed
before, is read in detail. A finding represents a workflow, so one cause is one alarm, and it ends once the workflow
passes again. Once a day, runs that passed at a second attempt are searched for, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, fromstring

from ralph_mission.adapters.files import FileCache, cache_key
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.ci import history
from ralph_mission.adapters.observers.ci.history import (
    COUNTED,
    SHOWN,
    ChanceFailure,
    CiCursor,
    RedStreak,
    SuspectCommit,
    begin_of,
    chance_failures,
    red_streak,
    step_key,
)
from ralph_mission.adapters.observers.looking import age_days, block, one_line, unavailable
from ralph_mission.adapters.observers.markers import excluder
from ralph_mission.adapters.sandbox.excerpt import failing_lines
from ralph_mission.config.observers import CiSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import FailedJob, WorkflowRun, is_own
from ralph_mission.mission.model.mission import Observation, Quote, Severity, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import count_noun, stamp

NAME = "ci"
RECENT = timedelta(days=30)  # older failures and flaky ones are not news
DAY = timedelta(hours=24)
WORKFLOWS = 10  # checked at once, the failing ones first
PAGE, FAR = 50, 300  # runs of a workflow that are read, and where it was red in all of those
CHANCES = 5  # flaky failures read in detail, per workflow and check
RERUN = ("push", "schedule")  # what starts the runs that people start again
TWICE = 2  # commits on which a step has to be flaky before it is reported
FAULT = compile_regex(r"\w*([Ff]ailure|[Ee]rror)")  # `flakyFailure` and `rerunError` belong to a second attempt
TESTS = 50_000  # cases read per report


def build(settings: CiSettings, forge: Forge, git: Git, cache: Path | None = None) -> CiObserver:
    """The observer of a forge's workflows; `cache`: a folder for the failed jobs of finished runs."""
    return CiObserver(settings, forge, git, FileCache(cache / NAME if cache else None, most=200))


@dataclass(frozen=True, slots=True)
class CiObserver:
    """Reads runs of workflows by the forge and the commits between them by git."""

    settings: CiSettings
    forge: Forge
    git: Git
    cache: FileCache = FileCache(None)
    name: str = NAME

    def observe(self, context: ObservationContext) -> Observation:
        """Every workflow that fails now, and every step that was flaky more than once."""
        before = CiCursor.parse(context.cursor)
        known_red = dict(before.red)
        try:
            day, listed = self._look_widely(before, context)
            failed = [run for run in self.forge.workflow_runs(ended="failure") if self._counts(run)]
            failed += [run for run in listed if run.failed and run.conclusion != "failure" and self._counts(run)]
            news = [
                run
                for run in failed
                if run_key(run) not in before.judged_runs and context.now - run.created_at < RECENT
            ]
            workflows = list(dict.fromkeys([*known_red, *(run.workflow for run in news)]))
            red, chances = self._look(workflows[:WORKFLOWS], known_red, context)
            retried = list(self._chances([run for run in listed if run.attempt > 1 and self._counts(run)], context))
        except UserError as problem:
            return unavailable(NAME, problem, context.cursor)
        late = set(workflows[WORKFLOWS:])
        known = {one.key: one for one in (*before.chances, *chances, *retried) if context.now - one.at < RECENT}
        chances_known = tuple(known[key] for key in sorted(known))
        self.cache.tidy()
        cursor = CiCursor(
            frozenset(run_key(run) for run in failed if run.workflow not in late),
            (
                *((one.streak.newest.workflow, one.since) for one in red),
                *((flow, since) for flow, since in before.red if flow in late),
            ),
            chances_known,
            day,
        )
        breakages = [one for one in red if not is_chance(one, chances_known)]
        signals = (
            *(broken(one, context) for one in breakages),
            *flaky(chances_known, TWICE),
        )
        flows = len({run.workflow for run in failed})
        detail = f"{len(red)} red, {flows} with failed runs" if failed else "no failed runs"
        return Observation(NAME, "ok", signals, detail=detail, cursor=cursor.dump(), complete=not late)

    def _counts(self, run: WorkflowRun) -> bool:
        return run.event in COUNTED and not run.path.startswith("dynamic/") and not self._is_excluded(run.path)

    def _is_excluded(self, path: str) -> bool:
        return bool(self.settings.exclude) and excluder(self.settings.exclude)(path)

    # --- a closer look

    def _look(
        self, workflows: Sequence[int], before: Mapping[int, str], context: ObservationContext
    ) -> tuple[list[Breakage], list[ChanceFailure]]:
        """These workflows' failures and flaky steps."""
        red: list[Breakage] = []
        chances: list[ChanceFailure] = []
        for workflow in workflows:
            runs = self.forge.workflow_runs(workflow, most=PAGE)
            events = self._events(runs, context.head.sha)
            streak = red_streak(runs, events)
            if streak and streak.passed is None and len(runs) >= PAGE:
                runs = self.forge.workflow_runs(workflow, most=FAR)
                streak = red_streak(runs, events)
            if streak:
                red.append(self._breakage(streak, len(runs), before.get(workflow, "")))
            chances += self._chances(runs, context)
        return red, chances

    def _events(self, runs: Sequence[WorkflowRun], head: str) -> frozenset[str]:
        """The workflow's present triggers: one whose file or trigger was removed no longer counts as failing."""
        path = runs[0].path if runs else ""
        wanted = path and not self._is_excluded(path)
        text = self.git.try_text("cat-file", "blob", f"{head}:{path}") if wanted else ""
        return frozenset(event for event in COUNTED if event in text)

    def _breakage(self, streak: RedStreak, read: int, before: str) -> Breakage:
        """`before`: the start of the failure by the last check, used if the last pass is too far back."""
        since = f"run {streak.passed.id}" if streak.passed else before or f"before run {streak.first.id}"
        begin, passed = begin_of(streak, self._failed_jobs)
        jobs = self._failed_jobs(streak.newest, log=True)
        between = history.suspects(self.git, passed.sha, begin.sha) if passed else None
        return Breakage(streak, since, begin, passed, jobs, between, read, own=is_own(streak.newest.path))

    def _failed_jobs(self, run: WorkflowRun, log: bool = False) -> tuple[FailedJob, ...]:
        """An attempt's failed jobs, which are final once it is over, with the relevant log lines."""
        question = cache_key("jobs", run_key(run), str(log))
        known = self.cache.get(question)
        if isinstance(known, list):
            try:
                return tuple(FailedJob(**one) for one in known)
            except TypeError:
                pass
        found = self.forge.failed_jobs(run, log)
        jobs = tuple(replace(job, log=failing_lines(job.log)) for job in found)
        self.cache.put(question, [asdict(job) for job in jobs])
        return jobs

    # --- by chance

    def _chances(self, runs: Iterable[WorkflowRun], context: ObservationContext) -> Iterator[ChanceFailure]:
        recent = [run for run in runs if self._counts(run) or run.event == "workflow_dispatch"]
        found = chance_failures(recent, partial(history.changed_files, self.git))
        for run in [one for one in found if context.now - one.created_at < RECENT][:CHANCES]:
            jobs = self._failed_jobs(run)
            if jobs:
                job, step = step_key(jobs[0])
                yield ChanceFailure(run.path, run.name, job, step, run.sha, run.id, run.started_at, self._tests(run))

    def _look_widely(self, before: CiCursor, context: ObservationContext) -> tuple[str, tuple[WorkflowRun, ...]]:
        """Once a day all runs that people start again: what passed at a second try, timed out or could not start is
        not among the runs that failed. With the time when that was read last."""
        # a date alone, as earlier versions stored it, counts as its first moment
        if (context.now - DAY).isoformat() < before.day <= context.now.isoformat():
            return before.day, ()
        runs = (run for event in RERUN for run in self.forge.workflow_runs(event=event, most=PAGE))
        return context.now.isoformat(), tuple(runs)

    def _tests(self, run: WorkflowRun) -> tuple[str, ...]:
        """The failed tests, if the run kept a report."""
        question = cache_key("tests", run_key(run))
        known = self.cache.get(question)
        if not isinstance(known, list):
            try:
                reports = self.forge.test_reports(run)
            except UserError:
                return ()
            known = list(dict.fromkeys(name for report in reports for name in failed_tests(report)))[:5]
            self.cache.put(question, known)
        return tuple(str(name) for name in known)


def run_key(run: WorkflowRun) -> str:
    """The key of a run's attempt."""
    return f"{run.id}.{run.attempt}"


def is_chance(one: Breakage, chances: Iterable[ChanceFailure]) -> bool:
    """Whether it failed once so far, in a known flaky step: no alarm, but a line of that list."""
    if len(one.streak.runs) > 1 or not one.jobs:
        return False
    places = [(other.path, other.job, other.step) for other in chances]
    shas = {other.sha for other in chances if (other.path, other.job, other.step) in _places(one)}
    return len(shas) >= TWICE and all(place in places for place in _places(one))


def _places(one: Breakage) -> list[tuple[str, str, str]]:
    return [(one.streak.newest.path, *step_key(job)) for job in one.jobs]


def failed_tests(report: bytes) -> tuple[str, ...]:
    """The names of tests that failed at least once in a JUnit report; none for anything else.

    A report with a document type is not read, as that may define entities.
    """
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report:
        return ()
    try:
        cases = list(fromstring(report).iter("testcase"))[:TESTS]
    except (ParseError, ValueError, LookupError, RecursionError):
        return ()
    return tuple(dict.fromkeys(_case_name(case) for case in cases if any(FAULT.fullmatch(child.tag) for child in case)))


def _case_name(case: Element) -> str:
    return one_line("::".join(part for part in (case.get("classname"), case.get("name")) if part))


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
