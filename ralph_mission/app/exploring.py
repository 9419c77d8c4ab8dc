"""Composes exploring code and proving claims: a session of the settings' agent in a temporary clone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ralph_mission.adapters.agents.clients import PRICED
from ralph_mission.adapters.files import FileCache
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import without_steering
from ralph_mission.adapters.projects.prover import Prover
from ralph_mission.adapters.storage.loop import run_files
from ralph_mission.adapters.workspace.parallel import make_parts
from ralph_mission.app import workplaces
from ralph_mission.app.hosting import choose_hosting
from ralph_mission.app.run import PausingClock, agent_of
from ralph_mission.app.run_options import RunOptions
from ralph_mission.app.stand_ins import QuietProgress, SystemClock
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.loop.cost import CostMeter, MeteredAgent
from ralph_mission.loop.hats import EXPLORER
from ralph_mission.loop.model.spec import RunLimits
from ralph_mission.loop.model.state import Session
from ralph_mission.loop.planning import ask_session
from ralph_mission.mission.model.mission import Usage
from ralph_mission.mission.ports import AgentQuestion, Parsed
from ralph_mission.mission.proof.claim import SCHEMA, MalformedClaim, read_claim, read_claims
from ralph_mission.mission.proof.exploring import (
    Exploration,
    ExplorationJob,
    describe_proof,
    explorer_prompt,
    parse_answer,
)
from ralph_mission.values import dataclass

TURNS = 80


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
