"""Runs agents within a cycle: whose turn it is, the reserved money, the result."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.errors import UserError
from ralph_mission.mission import commit, decide, execute
from ralph_mission.mission.coder import tasks
from ralph_mission.mission.coder.results import RedactingCoder
from ralph_mission.mission.lifecycle.facts import refresh_facts
from ralph_mission.mission.lifecycle.table import advance, interpret_facts
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.agent_job import AgentResult, broken_job
from ralph_mission.mission.model.cycle import MissionEvent, MissionFacts, Situation
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Action, Limits, Mission, Status, Usage
from ralph_mission.mission.ports import AskAgent, Coder, CyclePorts
from ralph_mission.mission.publishing import content
from ralph_mission.mission.transaction import Transaction
from ralph_mission.safety.secrets import find_secrets

SECONDS = 2400.0
"""The most that agents may take of a cycle: a workflow job has an hour, and the rest of the cycle needs minutes."""
SHORTEST = 60.0  # seconds below which no job is started


def run_agent_jobs(tx: Transaction, situation: Situation) -> tuple[Transaction, Situation]:
    """Run an agent for every mission that waits for one, oldest first, while money and time last. Raises Lost."""
    if tx.past is None or tx.ports.coder is None:
        return tx, situation  # without an agent nobody writes texts either
    coder = RedactingCoder(tx.ports.coder, tx.secrets)
    ready = [mission for mission in situation.state.missions if is_ready(situation, mission)]
    coder.tidy([m.id for m in situation.state.missions if m.status in tasks.WAITS])
    if ready:
        tx.ports.progress.phase("work", f"{len(ready)} for an agent")
    until = tx.ports.clock.now().timestamp() + SECONDS
    for mission in ready:
        if is_ready(situation, mission):
            tx, situation = _run_job(tx, coder, situation, mission, until)
    return tx, situation


def is_ready(situation: Situation, mission: Mission) -> bool:
    """Whether an agent is to work on a mission now."""
    facts = decide.facts_of_missions(situation).get(mission.id)
    if facts is None or not (tasks.is_waiting(mission, facts) or _is_to_revise(mission, facts)):
        return False
    return interpret_facts(mission, facts, situation.now).event is None


def _is_to_revise(mission: Mission, facts: MissionFacts) -> bool:
    """Whether somebody asked for another draft of its text, and one can be made."""
    request = content.find_request(mission, facts)
    return request is not None and not content.why_not_revised(mission, facts, request)


def _run_job(
    tx: Transaction, coder: Coder, situation: Situation, mission: Mission, until: float
) -> tuple[Transaction, Situation]:
    """Run one job. Its money is reserved in memory first."""
    budget = _budget_left(situation, until - tx.ports.clock.now().timestamp())
    if reason := _reason_to_stop(tx.ports, budget, situation.settings.limits):
        result = AgentResult(mission.id, "held", reason)
        return tx, replace(situation, made=(*situation.made, result))
    mission = advance(mission, MissionEvent.STARTED, situation.now) if mission.status is Status.PLANNED else mission
    tx, situation = reserve_money(tx, situation, budget.usd, mission)
    result = _work(tx, coder, situation, mission, budget)
    situation = replace(situation, made=(*situation.made, result))
    return tx, refresh_facts(tx.ports, situation)


def reserve_money(
    tx: Transaction, situation: Situation, usd: float, mission: Mission | None = None
) -> tuple[Transaction, Situation]:
    """Reserve money in memory before it is spent; the end of the cycle stores the real cost. Raises Lost."""
    tx = tx.commit(commit.reserve_cost(situation, mission, usd, tx.store.holder(), tx.ports.clock.now()))
    return tx, replace(situation, memory=_without_reserve(tx.memory, situation), state=tx.state)


def _without_reserve(memory: Memory, situation: Situation) -> Memory:
    """Memory without the reserve; the end of the cycle stores the real cost."""
    before = situation.memory.header
    header = replace(
        memory.header, today=before.today, spend_usd=before.spend_usd, dispatches=before.dispatches, wake=before.wake
    )
    return replace(memory, header=header)


def _budget_left(situation: Situation, seconds: float) -> tasks.AgentBudget:
    header = situation.memory.header
    spent = schedule.spent_today(header, situation.now)
    cost = situation.usage.cost_usd
    return tasks.compute_budget(situation.settings.limits, cost, spent + cost, seconds)


def _reason_to_stop(ports: CyclePorts, budget: tasks.AgentBudget, limits: Limits) -> str:
    if execute.is_stopped(ports):
        return "paused"
    if not schedule.enough(budget.usd, limits.usd_per_cycle):
        return "the money of this cycle or day is spent"
    return "the time of this cycle is over" if budget.seconds < SHORTEST else ""


def _work(
    tx: Transaction, coder: Coder, situation: Situation, mission: Mission, budget: tasks.AgentBudget
) -> AgentResult:
    facts, ask = dict(situation.world.facts)[mission.id], tx.ports.ask
    if mission.action is Action.PUBLISH:
        return (
            _revise(tx, situation, mission, facts, ask, budget) if ask else AgentResult(mission.id, "held", "no agent")
        )
    job = tasks.build_job(mission, facts, situation.world.default.sha, situation.memory.learnings, budget)
    tx.ports.progress.note(f"#{mission.thread} {mission.title}: an agent works on it, for at most ${budget.usd:.2f}")
    try:
        result = coder.work(job)
    except Exception as error:  # whatever it is, the cycle continues with other missions
        result = broken_job(job, error)
    newest = max((when for when, _ in tasks.new_guidance(mission, facts)), default=mission.review.guided_at)
    tx.ports.progress.note(f"#{mission.thread}: {result.outcome}{f', {result.reason}' if result.reason else ''}")
    return replace(result, guided_at=newest if result.sessions else mission.review.guided_at)


def _revise(
    tx: Transaction,
    situation: Situation,
    mission: Mission,
    facts: MissionFacts,
    ask: AskAgent,
    budget: tasks.AgentBudget,
) -> AgentResult:
    from ralph_mission.mission.publishing import drafting  # hats and prompts are slow to load

    tx.ports.progress.note(f"#{mission.issue} {mission.title}: an agent rewrites it, for at most ${budget.usd:.2f}")
    try:
        result = drafting.revise(ask, tx.ports.publisher, mission, facts, situation.world.default.sha, budget.usd)
        held_back = find_secrets(result.words, tx.secrets)
        return replace(result, outcome="failed", words="", reason="it held a secret") if held_back else result
    except UserError as problem:
        return AgentResult(mission.id, "failed", f"{problem.what}; {problem.next_step}")
    except Exception as error:  # as above
        return replace(AgentResult(mission.id, "failed", type(error).__name__), usage=Usage(cost_usd=budget.usd))
