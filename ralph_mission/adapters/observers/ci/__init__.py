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
    ChanceFailure,
    CiCursor,
    RedStreak,
    begin_of,
    chance_failures,
    red_streak,
    step_key,
)
from ralph_mission.adapters.observers.ci.signals import Breakage, broken, flaky
from ralph_mission.adapters.observers.looking import one_line, unavailable
from ralph_mission.adapters.observers.markers import excluder
from ralph_mission.adapters.sandbox.excerpt import failing_lines
from ralph_mission.config.observers import CiSettings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import FailedJob, WorkflowRun, is_own
from ralph_mission.mission.model.mission import Observation
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.ports import Forge
from ralph_mission.values import compile_regex, dataclass

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
            news = [run for run in failed if run_key(run) not in before.seen and context.now - run.created_at < RECENT]
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
        text = history.workflow_text(self.git, head, path) if path and not self._is_excluded(path) else ""
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
