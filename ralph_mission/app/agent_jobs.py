"""What a cycle has agents do: jobs by the loop of `ralph run` in a clone, exploring code and proving claims about it.

Sessions cannot influence how later ones run: settings and isolation are those of the first session, no signal restarts
the loop, and agents' configuration stays unchanged (`RunOptions.for_job`). Its memories are only proposed, and the home
of its agents, where a client may keep its key, is deleted after the run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path

from ralph_mission.adapters import files
from ralph_mission.adapters.agents.clients import PRICED, describe_missing, is_client
from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.fixers.coder import AgentCoder, read_conventions
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import without_steering
from ralph_mission.adapters.projects.prover import Prover
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.storage.loop.inbox import LENGTH, Guide
from ralph_mission.adapters.storage.loop.notes import Memories
from ralph_mission.adapters.workspace.parallel import ENGINE_FOLDER, make_parts
from ralph_mission.adapters.workspace.snapshot import remove_folder
from ralph_mission.app import hosting, teams, workplaces
from ralph_mission.app.hosting import AgentServiceOptions, QuietProgress, SystemClock, choose_hosting
from ralph_mission.app.run import PausingClock, RunSetup, agent_of
from ralph_mission.app.run import build_run as build_setup
from ralph_mission.app.run_options import ISSUE_PRESET, RunOptions, left_state
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.config.reading import NAME
from ralph_mission.config.settings import Config
from ralph_mission.errors import INTERRUPTED, Stopped, UserError
from ralph_mission.loop.cost import CostMeter, MeteredAgent, meter_ports
from ralph_mission.loop.hats import EXPLORER
from ralph_mission.loop.model.spec import UNWATCHED, RunLimits, RunResult, RunWatch
from ralph_mission.loop.model.state import Failure, RunState, Session
from ralph_mission.loop.planning import ask_session
from ralph_mission.loop.ports import RunProgress
from ralph_mission.loop.run import run_loop
from ralph_mission.mission.coder.conditions import warn_of_red
from ralph_mission.mission.model.agent_job import (
    AgentJob,
    AgentResult,
    BaseChecks,
    RedCheck,
    failed_job,
    job_outcome,
)
from ralph_mission.mission.model.mission import Usage
from ralph_mission.mission.model.proposal import PatchVerification
from ralph_mission.mission.ports import AgentQuestion, Parsed
from ralph_mission.mission.proof.claim import SCHEMA, CodeClaim, MalformedClaim, read_claim, read_claims
from ralph_mission.mission.proof.exploring import (
    Exploration,
    ExplorationJob,
    describe_proof,
    explorer_prompt,
    parse_answer,
)
from ralph_mission.mission.proof.judge import ProofVerdict
from ralph_mission.safety.patch import Patch
from ralph_mission.values import dataclass

HOMES = (f"{ENGINE_FOLDER}/loop/home", f"{ENGINE_FOLDER}/loop/apart")
AWAY: tuple[Failure, ...] = ("missing", "auth", "server")
"""Session failures outside the agent's work: a missing program, an unknown key, a provider's fault."""
TURNS = 80


@dataclass(frozen=True, slots=True)
class CloneRun:
    """Runs a job in the clone `options.repo`, with a limit on sessions.

    `unpriced`: sessions that report no cost may exceed the job's `usd`. `own_model`: use the agent's, not the
    settings'. `protected`: globs that no session may write. `withdrawn`: asked between sessions, whether it ends here.
    """

    job: AgentJob
    options: RunOptions
    sessions: int
    unpriced: bool = True
    own_model: bool = False
    protected: tuple[str, ...] = ()
    withdrawn: Callable[[], bool] = bool


def play_in_clone(git: Git, run: CloneRun, meter: CostMeter, progress: RunProgress) -> AgentResult:
    """Run the loop to its end, or resume the one in the clone. Raises UserError, OSError."""
    folder = run.options.repo
    before = _left_run(folder, run.options.task)
    try:
        with _share_memories(git, folder, run.job.guidance, progress.note) as learned:
            setup = build_run(run, before, progress)
            setup = replace(setup, ports=meter_ports(setup.ports, meter))
            name = run.options.pattern
            account = teams.play(setup, name, build=True) if name else run_loop(setup.spec, setup.ports)
            if account.ending.reason == "stop" and progress.watch.current_order() == "stop":
                raise Stopped  # everything this loop is part of
    finally:
        forget_clone(folder)
    result = _result(run.job, account, before, meter.usd, tuple(learned))
    return replace(result, outcome="goes on") if result.away else result  # the work itself did not fail


def _result(
    job: AgentJob, account: RunResult, before: RunState | None, usd: float, learned: tuple[str, ...]
) -> AgentResult:
    """This run's result; `before`: the loop's state after an earlier run in the same clone."""
    ending, late, early = account.ending, account.state, before
    sessions = late.iteration - (early.iteration if early else 0)
    usage = Usage(
        late.usage.sessions - (early.usage.sessions if early else 0),
        late.usage.input_tokens - (early.usage.input_tokens if early else 0),
        late.usage.output_tokens - (early.usage.output_tokens if early else 0),
        usd,
    )
    return AgentResult(
        job.number, job_outcome(ending.code), f"{ending.reason}: {ending.detail}" if ending.detail else ending.reason,
        None, account.outputs[-1].summary if account.outputs else "", learned, sessions,
        late.elapsed - (early.elapsed if early else 0.0), usage, code=ending.code, run_id=late.run_id,
        away=ending.reason == "failures" and late.last is not None and late.last.failure in AWAY,
        standing=account.standing,
    )  # fmt: skip  # one value


def forget_clone(folder: Path) -> None:
    """Remove the homes of the agents that ran in the clone."""
    with suppress(OSError):
        files.unlink(folder, HOMES)
        for home in (folder / name for name in HOMES):
            if home.is_dir():
                remove_folder(os.fsencode(home))


def build_run(run: CloneRun, before: RunState | None, progress: RunProgress) -> RunSetup:
    """Earlier cost counts, as a loop's limits cover all of its runs."""
    played, took = (before.iteration, before.elapsed) if before else (0, 0.0)
    spent = (before.usage.cost_usd or 0.0) if before else 0.0
    options = replace(
        run.options, pattern="", iterations=played + run.sessions, runtime=took + run.job.seconds,
        go_on=before is not None, for_job=True, red=run.job.red,
    )  # fmt: skip  # one command line
    setup = build_setup(options, progress, order=lambda: "stop" if run.withdrawn() else progress.watch.current_order())
    limits = replace(setup.spec.limits, usd=spent + run.job.usd, unpriced=run.unpriced)
    spec = replace(
        setup.spec, preset=replace(setup.spec.preset, limits=limits), persistent=False,
        model="" if run.own_model else setup.spec.model, protected=(*setup.spec.protected, *run.protected),
    )  # fmt: skip  # one value
    return replace(setup, spec=spec)


def _left_run(folder: Path, task: str) -> RunState | None:
    """The state of this task's loop in this clone, or None."""
    found = left_state(folder)
    if found is None or found.objective != task:
        return None
    counts = (found.elapsed, found.usage.cost_usd or 0.0)
    return found if all(isfinite(count) and count >= 0 for count in counts) else None


def told_in(folder: Path) -> float:
    """The cost in USD that sessions in this clone reported; 0 if unknown."""
    found = None
    with suppress(OSError):
        found = left_state(folder)
    usd = (found.usage.cost_usd or 0.0) if found else 0.0
    return usd if isfinite(usd) and usd >= 0 else 0.0


@contextmanager
def _share_memories(git: Git, folder: Path, words: Iterable[str], note: Callable[[str], None]) -> Iterator[list[str]]:
    """Copy the memories of loops here, with people's later comments; returns this loop's new memories."""
    ours, theirs, learned = Memories(git.state_dir), Memories(folder / ENGINE_FOLDER), list[str]()
    if text := ours.known(note):
        run_files.write(theirs.path, text.encode("utf-8", "replace"))
    with _share_guidance(Guide(git.state_dir), Guide(folder / ENGINE_FOLDER), words):
        yield learned
    learned += [" ".join(memory.content.split()) for memory in ours.news(theirs, note)]


@contextmanager
def _share_guidance(ours: Guide, theirs: Guide, words: Iterable[str]) -> Iterator[None]:
    """Guidance from the forge and from `ralph agent guidance` here, marked as delivered once a session there got it."""
    _acknowledge_guidance(ours, theirs)
    waiting = {message.text for message in theirs.pending()}
    for text in (word.strip()[:LENGTH] for word in words):
        if text and text not in waiting:
            theirs.say(text)
    for message in ours.pending():
        theirs.keep(message)
    try:
        yield
    finally:
        with suppress(UserError, OSError):  # a session may have written there: its work is not lost by that
            _acknowledge_guidance(ours, theirs)


def _acknowledge_guidance(ours: Guide, theirs: Guide) -> None:
    ours.acknowledge(message.id for message, delivered in theirs.all() if delivered)


UNNAMED = AgentServiceOptions()
ALL_TESTS = 600.0  # seconds for all tests of the repository, if a bug's change is judged within a cycle
PATTERN = "ralplan"


def build_coder(
    git: Git, settings: Config, config: Path | None, head: str, watch: RunWatch = UNWATCHED,
    named: AgentServiceOptions = UNNAMED,
) -> AgentCoder:  # fmt: skip  # as one reads it
    """The coder of a cycle with the settings' agent, or one that is `named`; the settings come from the file `config`
    or the commit `head`."""
    coder = LoopCoder(git, settings, config, head, hosting.clones(git, os.environ), watch, named)
    return AgentCoder(
        git,
        coder.place,
        coder.play,
        partial(check_patch, git, settings),
        partial(look_at_base, git, settings, settings.hands.verify),
        partial(_prove, git, settings),
        partial(_missing, coder.usual),
    )


def _missing(usual: str, agent: str) -> str:
    if agent == usual:
        return ""
    return describe_missing(agent) if is_client(agent) else "is no agent that Ralph can start by its name"


def _prove(git: Git, settings: Config, claim: CodeClaim, base: str) -> ProofVerdict:
    progress = PlainRunProgress(sys.stderr, environment_secrets())
    prover = build_prover(settings, git, git.state_dir / "cache", progress.note)
    return replace(prover, long=ALL_TESTS).prove(claim, base).verdict


def check_patch(git: Git, settings: Config, patch: Patch, red: Sequence[RedCheck]) -> PatchVerification:
    """The repository's own checks on a change, in a clean clone. Raises UserError, OSError."""
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        return workplaces.check_runner(settings, git, settings.hands.verify).verify(patch, scratch, red)


def look_at_base(git: Git, settings: Config, checks: tuple[str, ...], commit: str) -> BaseChecks:
    """The results of `checks` on a commit, cached or by running them. Raises OSError."""
    if not checks:
        return BaseChecks()
    with tempfile.TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        return workplaces.check_runner(settings, git, checks).base(commit, scratch)


@dataclass(frozen=True, slots=True)
class LoopCoder:
    """`fixers.coder.Play` by the loop engine."""

    git: Git
    settings: Config
    config: Path | None
    head: str
    place: Path
    watch: RunWatch = UNWATCHED
    named: AgentServiceOptions = UNNAMED

    @property
    def usual(self) -> str:
        """The default agent, or ""."""
        return self.named.agent or (self.settings.hands.agent.kind if self.settings.hands.agent else "")

    def play(self, folder: Path, job: AgentJob) -> AgentResult:
        """Run a mission's job in its clone."""
        meter = CostMeter(job.usd, PRICED)
        try:
            progress = PlainRunProgress(sys.stderr, environment_secrets(), self.watch)
            result = play_in_clone(self.git, self._clone_run(folder, job), meter, progress)
        except Exception as error:
            if not meter.begun:
                raise
            why = f"{error.what}; {error.next_step}" if isinstance(error, UserError) else type(error).__name__
            return failed_job(job, f"it broke off: {why}", Usage(meter.begun, cost_usd=meter.usd))
        if result.code == INTERRUPTED:
            raise KeyboardInterrupt
        return result

    def _clone_run(self, folder: Path, job: AgentJob) -> CloneRun:
        planned = self.settings.hands.agent is not None and self.settings.hands.agent.plan == PATTERN
        guides = read_conventions(self.git, job.default_sha or job.base_sha)
        options = RunOptions(
            folder, self._config(), "\n\n".join(filter(None, (job.task, warn_of_red(job.red), guides))),
            preset="" if planned else ISSUE_PRESET, pattern=PATTERN if planned else "", build=planned,
            setup=self.git.state_dir / "setup", agent=self.named.agent, command=self.named.command,
            model=self.named.model,
        )  # fmt: skip  # one command line
        other = bool(job.agent) and job.agent != self.usual
        if other:  # the settings' command and model are for the default agent
            options = replace(options, agent=job.agent, command="", model="")
        return CloneRun(job, options, self.settings.work.max_iterations, own_model=other)

    def _config(self) -> Path:
        """The cycle's settings, never the clone's: work must not control how it is done."""
        name = hosting.committed_name(self.git, self.config) if self.head or self.config is None else ""
        if self.config is not None and not name:
            return self.config.absolute()
        here = self.git.work_tree / NAME if self.git.work_tree and not self.head else None
        if here and here.exists():
            return here
        named = f"{self.head or 'HEAD'}:{name}"
        fleets = f"extends: {json.dumps(self.settings.extends)}\n"  # of a repository without settings of its own
        run_files.write(self.place / NAME, self.git.blobs([named]).get(named, fleets.encode()))
        return self.place / NAME


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim for people: `rule`: what speaks against it, "" for a proven one."""

    title: str
    proven: bool
    rule: str
    why: str


def build_prover(settings: Config, git: Git, cache: Path | None, note: Callable[[str], None]) -> Prover:
    """The prover of claims about this repository; `cache`: a folder for the test results of commits."""
    place = git.state_dir / "setup" if cache else None
    setup = workplaces.project_setup(settings, git, place, note)
    return Prover(git, setup, FileCache(cache / "proof" if cache else None), note=note)


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """Asks the settings' agent (`mission.ports.AskAgent`). Its files are deleted with its clone."""

    git: Git
    settings: Config

    def __call__(
        self, question: AgentQuestion, parse: Callable[[str], Parsed], schema: str = ""
    ) -> tuple[Parsed | None, str, Usage]:
        """An answer. Raises UserError if no session can run here."""
        meter = CostMeter(question.usd, PRICED)
        place = question.hat.name
        steered = without_steering(self.git, question.base, question.base)
        with make_parts(self.git, steered, [place], self.git.state_dir / place) as (part,):
            run_files.prepare(part.folder / ".ralph")
            run_dir = part.folder / ".ralph" / "loop"
            run_dir.mkdir(exist_ok=True)
            choice = self.settings.hands.agent
            model = choice.model if choice else ""
            options = RunOptions(part.folder, model=model)
            level = workplaces.agent_level(self.settings)
            agent = agent_of(options, self.settings, part.git, part.folder, model, level)
            session = Session(question.hat, 1, "", str(run_dir), model, question.seconds, TURNS, schema=schema)
            limits = RunLimits(runtime=question.seconds, usd=question.usd, unpriced=False)
            answer = ask_session(
                MeteredAgent(agent, meter), question.prompt, parse, session, limits, PausingClock()
            )  # fmt: skip  # one call
        spent = Usage(meter.begun, answer.usage.input_tokens, answer.usage.output_tokens, meter.usd)
        return answer.found, answer.why, spent


def explore(sessions: AgentSessions, job: ExplorationJob) -> Exploration:
    """Has the settings' agent read code; only its answer is used. Raises UserError as the session does."""
    question = AgentQuestion(EXPLORER, job.base, lambda why: explorer_prompt(job.files, why), job.usd, job.seconds)
    return Exploration(*sessions(question, parse_answer, json.dumps(SCHEMA)))


def prove_claims(repo: Path, place: Path, note: Callable[[str], None]) -> Iterator[JudgedClaim]:
    """Judge the claims of a file about HEAD of a repository. Raises UserError for a file without claims."""
    git = Git.open(repo)
    settings = choose_hosting(git, None, "local", SystemClock(), QuietProgress(), staged=True).settings
    prover = build_prover(settings, git, git.state_dir / "cache", note)
    head = git.resolve("HEAD")
    try:
        claims = read_claims(place.read_text("utf-8", "replace"))
    except MalformedClaim as problem:
        raise UserError(f"{place} {problem}", 'write {"claims": […]} as docs/observers.md shows', usage=True) from None
    for raw in claims:
        title = str(raw.get("title") or "a claim")
        try:
            claim = read_claim(raw, partial(prover.read, head))
        except MalformedClaim as problem:
            yield JudgedClaim(title, False, "malformed", f"it {problem}")
            continue
        verdict = prover.prove(claim, head).verdict
        refusal = verdict.refusal
        why = refusal.why if refusal else describe_proof(claim, verdict)
        yield JudgedClaim(title, verdict.proven, refusal.rule if refusal else "", why)
