"""The composition root of the issue agent: memory and forge as in a cycle, an agent's loop in its own clone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.agents.clients import CLIENTS, PRICED, describe_missing
from ralph_mission.adapters.fixers.coder import AgentCoder, read_conventions
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.report.loop_progress import clock as spell_clock
from ralph_mission.adapters.report.progress import rest
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.app import agent_jobs, hosting
from ralph_mission.app.agent_jobs import CloneRun
from ralph_mission.app.cycle import App, AppFactory
from ralph_mission.app.hosting import AgentServiceOptions, ServiceOptions, SystemClock, committed_name
from ralph_mission.app.run import build_run
from ralph_mission.app.run_options import ISSUE_PRESET, RunOptions
from ralph_mission.config.reading import NAME
from ralph_mission.errors import INTERRUPTED, Missing, UserError
from ralph_mission.loop.cost import CostMeter
from ralph_mission.loop.model.spec import RunEvent
from ralph_mission.loop.stories.prd import parse_prd, render_prd
from ralph_mission.mission.cycle import follow_up_pulls
from ralph_mission.mission.issues.agent import IssueWorker, answer_issue, take_issues
from ralph_mission.mission.issues.tasks import READY, WORKING
from ralph_mission.mission.lifecycle.approval import agent_of_label
from ralph_mission.mission.model.agent_job import AgentJob, AgentResult, BaseChecks, RedCheck, failed_job
from ralph_mission.mission.model.ledger import WorkRecord
from ralph_mission.mission.model.mission import Usage
from ralph_mission.mission.transaction import LONG, TransactionContext, run_transaction
from ralph_mission.values import dataclass

BEFORE = "before.usd"
LISTED = "issues/prd.json"  # below .ralph: the list of a run on issues, with its own progress.txt
LOCK = "ralph-issues"  # the lock file in the git directory, where sessions delete nothing
NEVER_SENT = ("/.github/",)
"""Files that no change for an issue may contain: restored after each session, before more is spent."""
LONGEST = 200_000  # bytes of a role
LOOK_AGAIN = 60.0  # seconds between looks whether an issue was withdrawn


@dataclass(frozen=True, slots=True)
class WorkOptions(AgentServiceOptions):
    """One command line of `ralph work`."""

    iterations: int | None = None
    prompt_file: Path | None = None
    issue: int | None = None


def worker(options: WorkOptions, progress: PlainRunProgress, spell: Callable[[str], str] = str) -> IssueWorker:
    """The issue agent's dependencies. Raises UserError for invalid settings, or without an agent."""
    factory = AppFactory(options, progress, spell)
    first = factory.first()
    hands, clock = LoopHands(options, first, progress), SystemClock()
    hands.check()
    per_issue = options.usd if options.usd is not None else first.config.work.usd_per_issue
    role = _role(options, first) if options.prompt_file else ""
    return IssueWorker(
        factory.context, hands, partial(rest, progress.watch), progress.note, clock.now, per_issue, role,
        tuple(CLIENTS), Guide(first.git.state_dir), options.issue or 0, checked=bool(first.config.hands.verify),
        tend=partial(look_after_pulls, options, factory, first, progress),
        announce_pause=lambda seconds: progress.watch.tell(RunEvent("waiting", f"next look in {spell_clock(seconds)}")),
    )  # fmt: skip  # one call


@contextmanager
def listed_issues(options: RunOptions, progress: PlainRunProgress) -> Iterator[RunOptions]:
    """The run's options with the ready issues as its stories; at its end a comment on each says how it ended. Raises
    UserError.

    The list is a file, so that after a crash `--continue` has the same issues. Only one run at a time has it.
    """
    factory = AppFactory(ServiceOptions(options.repo, options.config), progress)
    git, pause = factory.first().git, partial(rest, progress.watch)
    place = git.state_dir / LISTED
    with files.hold_file(git.common_dir / LOCK) as alone, ExitStack() as stack:
        if not alone:
            raise UserError("a run on issues works in this repository", "see it: ralph status; end it: ralph stop")
        if place.exists() and not options.go_on:
            problem = "the last run on issues ended early, or could not comment on all of them"
            raise UserError(problem, f"resume with --continue, or remove {WORKING} from them and delete {place}")
        if not place.exists():
            prd, skipped = run_transaction(factory.context, pause, partial(take_issues, stack), LONG)
            for number, why in skipped:
                progress.note(f"#{number} is not taken: {why}")
            if not prd.stories:
                raise UserError("no issue is ready for a run", f"label one {READY}")
            run_files.write(place, render_prd(prd).encode())
        try:
            yield replace(options, prd_file=place)
        finally:
            branch = git.try_text("symbolic-ref", "--short", "HEAD").strip() or "a detached HEAD"
            answered = [
                _answer(
                    partial(run_transaction, factory.context, pause, partial(answer_issue, story, branch), LONG),
                    story.id,
                    progress,
                )
                for story in parse_prd(place.read_text("utf-8")).stories
            ]
            if all(answered):
                place.unlink()


def _answer(send: Callable[[], bool], issue: str, progress: PlainRunProgress) -> bool:
    """Whether no comment is left to write on an issue; a note says why it is not written yet."""
    try:
        if send():
            return True
        why, then = "it may not be sent now", "ralph resume, if Ralph is paused, and"
    except Missing as gone:
        progress.note(f"{issue} got no comment: {gone.what}")
        return True
    except UserError as problem:
        why, then = problem.what, f"{problem.next_step}; and"
    progress.note(f"{issue} still lacks the comment on how it ended: {why}; next: {then} ralph run --issues --continue")
    return False


@dataclass(slots=True)
class OccasionalLook:
    """The answer of `look`, asked at most once a minute, until it is yes."""

    look: Callable[[], bool]
    at: float = field(default_factory=time.monotonic)
    answer: bool = False

    def __call__(self) -> bool:
        if not self.answer and time.monotonic() - self.at >= LOOK_AGAIN:
            self.answer, self.at = self.look(), time.monotonic()
        return self.answer


def look_after_pulls(
    options: WorkOptions, factory: AppFactory, first: App, progress: PlainRunProgress
) -> Iterator[str]:
    """Act on people's comments on open pull requests like a cycle, with the agent of this command line."""
    coder = agent_jobs.build_coder(first.git, first.config, options.config, first.head, progress.watch, options)

    def opened() -> TransactionContext:
        context = factory.context()
        return replace(context, ports=replace(context.ports, coder=coder))

    for report, _ in follow_up_pulls(opened):
        for line in report.missions:
            if line.pull_request:
                yield f"#{line.pull_request} {line.title}: {line.status.value.lower().replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class LoopHands:
    """`issues.agent.IssueCoder`: the loop of `ralph run`, in a clone that stays until its issue's work ends."""

    options: WorkOptions
    first: App
    progress: PlainRunProgress

    def check(self) -> None:
        """Raises UserError if no loop can start, before an issue is claimed."""
        if self.first.git.work_tree is not None:
            build_run(self._run_options(self.first.git.work_tree, "look"), self.progress)

    def why_not(self, agent: str) -> str:
        """Why this agent ("" for the default) cannot run here, or "". Without its program or its key it would waste an
        attempt."""
        if agent and agent != self.usual:
            problem = describe_missing(agent)
            return f"its label asks for {agent}, which {problem}" if problem else ""
        choice = self.first.config.hands.agent
        others = choice.fallback if choice else ()
        problem = describe_missing(self.usual, self._command())
        return f"{self.usual} {problem}" if problem and all(map(describe_missing, others)) else ""

    def _command(self) -> tuple[str, ...] | str:
        choice = self.first.config.hands.agent
        return self.options.command or (choice.run if choice and choice.kind == self.usual else "")

    def conventions(self, base_sha: str) -> str:
        """The repository's own guides at a commit, as a section of a prompt, or ""."""
        return read_conventions(self.first.git, base_sha)

    def look_at_base(self, base_sha: str) -> BaseChecks:
        """As in the port; checks that cannot even start are a problem of the base."""
        config = self.first.config
        self.progress.note("running the checks on the commit that work begins from, once for each commit")
        try:
            return agent_jobs.look_at_base(self.first.git, config, config.hands.verify, base_sha)
        except OSError as error:
            return BaseChecks(problem=f"the checks cannot be run: {error.strerror or type(error).__name__}")

    @property
    def usual(self) -> str:
        """The default agent without a label, or ""."""
        choice = self.first.config.hands.agent
        return self.options.agent or (choice.kind if choice and not self.options.command else "")

    def work(self, job: AgentJob, withdrawn: Callable[[], bool]) -> AgentResult:
        """As in the port. The possible cost of its sessions is always reported."""
        try:
            result = self._coder(OccasionalLook(withdrawn)).work(job)
        except KeyboardInterrupt:
            result = failed_job(job, "interrupted", code=INTERRUPTED)
        return replace(result, code=1) if result.outcome != "made" and not result.code else result

    def spent(self, record: WorkRecord) -> float:
        """As in the port: a missing clone ran on a machine that is gone."""
        folder = self._coder().left(record.issue)
        if folder is None:
            return record.reserved if (agent_of_label(record.call) or self.usual) in PRICED else 0.0
        try:
            before = float((folder / BEFORE).read_bytes())
        except (OSError, ValueError):
            before = 0.0
        return max(0.0, agent_jobs.told_in(folder / "tree") - before)

    def tidy(self, issues: Collection[int]) -> None:
        """As in the port."""
        self._coder().tidy(issues)

    def _coder(self, withdrawn: Callable[[], bool] = bool) -> AgentCoder:
        git, config = self.first.git, self.first.config
        place = hosting.clones(git, os.environ, "work")
        return AgentCoder(git, place, partial(self._play, withdrawn), partial(agent_jobs.check_patch, git, config))

    def _play(self, withdrawn: Callable[[], bool], folder: Path, job: AgentJob) -> AgentResult:
        """Run an attempt's sessions in its clone. A problem after they began is its result."""
        meter, run = CostMeter(job.usd, PRICED), replace(self._clone_run(folder, job), withdrawn=withdrawn)
        files.write(folder.parent / BEFORE, str(agent_jobs.told_in(folder)).encode())
        try:
            return agent_jobs.play_in_clone(self.first.git, run, meter, self.progress)
        except UserError as problem:
            why = f"{problem.what}; {problem.next_step}"
        except OSError as error:
            what = f"{error.filename or 'a file'}: {(error.strerror or type(error).__name__).lower()}"
            why = f"it cannot be worked on here: {what}"
        except KeyboardInterrupt:  # the work stays, and the next attempt resumes it
            usage = Usage(meter.begun, cost_usd=meter.usd)
            broken = failed_job(job, "interrupted", usage, INTERRUPTED)
            return replace(broken, outcome="goes on", away=True)
        return failed_job(job, why, Usage(meter.begun, cost_usd=meter.usd))

    def _clone_run(self, folder: Path, job: AgentJob) -> CloneRun:
        options, work = self.options, self.first.config.work
        asked_for = options.usd is not None or "usd_per_issue" in work.model_fields_set
        seconds = min(options.runtime or work.max_runtime.total_seconds(), job.seconds)
        return CloneRun(
            replace(job, seconds=seconds), self._run_options(folder, job.task, job.agent, job.red),
            options.iterations or work.max_iterations, not asked_for, bool(job.agent) and job.agent != self.usual,
            NEVER_SENT,
        )  # fmt: skip  # one value

    def _run_options(self, root: Path, prompt: str, agent: str = "", red: tuple[RedCheck, ...] = ()) -> RunOptions:
        options = self.options
        if agent and agent != self.usual:  # command and model belong to another agent
            options = replace(options, agent=agent, command="", model="")
        return RunOptions(
            root,
            self._config(root),
            prompt,
            preset=ISSUE_PRESET,
            agent=options.agent,
            command=options.command,
            model=options.model,
            setup=self.first.git.state_dir / "setup",
            red=red,
        )  # fmt: skip  # one command line

    def _config(self, root: Path) -> Path | None:
        """The loop uses the settings of the work: on GitHub those of the default branch, which the clone contains."""
        if self.options.config and self.first.github and (name := committed_name(self.first.git, self.options.config)):
            return root / name
        if self.options.config or self.first.github or self.first.git.work_tree is None:
            return self.options.config.absolute() if self.options.config else None
        here = self.first.git.work_tree / NAME
        return here if here.exists() else None


def _role(options: WorkOptions, first: App) -> str:
    assert options.prompt_file is not None
    content = run_files.read(options.prompt_file, LONGEST)
    if content is None or not content.strip():
        raise UserError(f"{options.prompt_file} is not there or empty", "write the role into it", usage=True)
    return content.decode("utf-8-sig", errors="replace")
