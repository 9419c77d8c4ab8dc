"""The composition roots of the review and of waking it: memory and forge as in a cycle, a reviewer in a temporary
clone, and a token that may dispatch.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from ralph_mission.adapters.agents.clients import PRICED
from ralph_mission.adapters.fixers.coder import read_conventions
from ralph_mission.adapters.forges import commits
from ralph_mission.adapters.git.git import EMPTY_TREE, Git, GitError
from ralph_mission.adapters.git.remote import acts_on_github, place, read_shared, without_steering
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.report.progress import rest
from ralph_mission.adapters.sandbox.isolation import describe_level
from ralph_mission.adapters.storage.loop import run_files as run_place
from ralph_mission.adapters.wakers import REVIEW, DispatchWaker, by_dispatch, listening
from ralph_mission.adapters.workspace.parallel import make_parts
from ralph_mission.app import workplaces
from ralph_mission.app.cycle import App, AppFactory, build_app
from ralph_mission.app.hosting import AgentServiceOptions, poster
from ralph_mission.app.run import PausingClock, agent_of
from ralph_mission.app.run_options import RunOptions
from ralph_mission.config.reading import read
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop import planning
from ralph_mission.loop.cost import CostMeter, MeteredAgent
from ralph_mission.loop.model.spec import RunEvent, RunLimits
from ralph_mission.loop.model.state import Session, SessionUsage
from ralph_mission.loop.planning import ReviewerAnswer
from ralph_mission.loop.ports import Agent
from ralph_mission.mission.model.agent_job import AgentJob
from ralph_mission.mission.reviews.reviewer import CallReport, PullView, ReviewSetup, call_due_reviews
from ralph_mission.mission.transaction import TransactionContext
from ralph_mission.values import compile_regex, dataclass

NOBODY_REVIEWS = "no agent is named that could review: hands.agent in ralph.yml"
AGENT_INPUT = compile_regex(r"^ +agent: *[^\s'\"]", re.MULTILINE)
"""An input of the action, in the text of a workflow."""


def nobody_reviews(options: AgentServiceOptions) -> str:
    """Why a workflow has nothing to do here; "" if an agent is named, and for a person, who gets an error instead.

    Raises UserError for invalid settings.
    """
    if not acts_on_github(os.environ) or options.agent or options.command:
        return ""
    return "" if _names_agent(read(Git.open(options.repo), read_shared, options.config)) else NOBODY_REVIEWS


def _names_agent(settings: Config) -> bool:
    return settings.hands.agent is not None or bool(settings.cli.backend)


def call_reviews(repo: Path, config: Path | None, now: datetime | None = None) -> CallReport:
    """Wake the review of our pull requests, if that takes a dispatch. Raises UserError."""
    first = build_app(repo, config, "github", now=now)
    if not _names_agent(first.config) and not AGENT_INPUT.search(listening(first.git.work_tree, REVIEW)):
        return CallReport(reason=NOBODY_REVIEWS)
    account = first.forge.identity().login
    wake = by_dispatch(account, first.git.work_tree, never=first.config.schedule.review == "never")
    if not wake.ok:
        return CallReport(reason=wake.reason)

    def opened() -> TransactionContext:
        app = build_app(repo, config, "github", now=now)
        return TransactionContext(app.ports, app.settings, app.secrets)

    where = place(os.environ)
    return call_due_reviews(opened, time.sleep, DispatchWaker(where.repository, poster(where)).review)


def call_reviews_in_workflow(repo: Path, config: Path | None, note: Callable[[str], None]) -> None:
    """The same after a cycle or work in a workflow; problems are reported, and the next job retries."""
    if not acts_on_github(os.environ):
        return
    try:
        called = call_reviews(repo, config)
    except UserError as problem:
        called = CallReport(refusal=problem.what)
    if called.refusal:
        note(f"the review was not woken: {called.refusal}")
    if called.pulls:
        note(f"woke the review of {', '.join(f'#{pull}' for pull in called.pulls)}")


USD, RUNTIME = 2.0, 2700.0
"""The default limits of a review, in USD and seconds."""
SESSION, TURNS = 1800.0, 60


def reviewer(
    options: AgentServiceOptions, progress: PlainRunProgress, spell: Callable[[str], str] = str
) -> ReviewSetup:
    """Everything the review needs. Raises UserError for invalid settings, or without a named agent."""
    factory = AppFactory(options, progress, spell)
    first = factory.first()
    reader = AgentReader(options, first, progress)
    progress.note(f"isolation: {describe_level(workplaces.agent_level(first.config))}")
    return ReviewSetup(
        factory.context,
        reader,
        partial(rest, progress.watch),
        progress.note,
        options.usd if options.usd is not None else USD,
    )


@dataclass(frozen=True, slots=True)
class AgentReader:
    """`reviews.reviewer.PullReader`: git for the view, and a coding agent for reading."""

    options: AgentServiceOptions
    first: App
    progress: PlainRunProgress

    def check(self, stranger: bool) -> None:
        """Raises UserError if no session can run, before money is reserved for it."""
        if self.first.git.work_tree is not None:
            self._agent(self.first.git, self.first.git.work_tree)
        level = workplaces.agent_level(self.first.config)
        if stranger and level.level != "bwrap" and not level.wrap:
            what = "its author may not write here, and an agent reads code of strangers at the isolation bwrap alone"
            raise UserError(what, level.lacking or "take sandbox: env out of hands.agent")

    def look(self, base: str, head: str) -> PullView:
        """The view of commit `head` from the tip `base` of its base branch."""
        git = self.first.git
        if (fork := commits.fork(git, base, head)) == EMPTY_TREE:
            what = f"{head[:12]} shares no history with its base here"
            raise UserError(what, "see whether both branches are there; check out the whole history (fetch-depth: 0)")
        try:
            lines = commits.shown(git, base, head)
            return PullView(fork, commits.diff(git, base, head), lines, read_conventions(git, base))
        except GitError as error:
            what = f"{head[:12]} cannot be compared with its base: {error.detail.strip()}"
            raise UserError(what, "fetch both; see whether the branch is still there") from None

    def read(self, job: AgentJob) -> ReviewerAnswer:
        """The reviewer's answer, with its possible cost. The agent's changes are deleted with its clone."""
        meter = CostMeter(job.usd, PRICED)
        try:
            answer = self._read(job, meter)
        except UserError as problem:
            if not meter.begun:
                raise
            answer = ReviewerAnswer(None, f"{problem.what}; {problem.next_step}", SessionUsage(meter.begun))
        return replace(answer, usage=replace(answer.usage, cost_usd=meter.usd or answer.usage.cost_usd))

    def _read(self, job: AgentJob, meter: CostMeter) -> ReviewerAnswer:
        git, runtime = self.first.git, self.options.runtime or RUNTIME
        rest(self.progress.watch)
        self.progress.watch.tell(RunEvent("session", f"reads pull request #{job.number}", 1, planning.HAT.name))
        limits = RunLimits(runtime=runtime, usd=job.usd, unpriced=self.options.usd is None)
        with make_parts(
            git,
            without_steering(git, job.default_sha, job.base_sha),
            [f"review-{job.number}"],
            git.state_dir / "review",
        ) as (part,):
            run_place.prepare(part.folder / ".ralph")
            run_dir = part.folder / ".ralph" / "loop"
            run_dir.mkdir(exist_ok=True)
            session = Session(
                planning.HAT, 1, "", str(run_dir), self._model(), min(SESSION, runtime), TURNS,
                schema=planning.SCHEMA,
            )  # fmt: skip  # one value
            agent = MeteredAgent(self._agent(part.git, part.folder), meter)
            return planning.ask_reviewer(agent, job.task, session, limits, PausingClock())

    def _agent(self, git: Git, root: Path) -> Agent:
        options, settings = self.options, self.first.config
        run_options = RunOptions(root, agent=options.agent, command=options.command, model=options.model)
        return agent_of(
            run_options, settings, git, root, self._model(), workplaces.agent_level(settings), tell=self.progress.agent
        )

    def _model(self) -> str:
        choice = self.first.config.hands.agent
        return self.options.model or (choice.model if choice else "")
