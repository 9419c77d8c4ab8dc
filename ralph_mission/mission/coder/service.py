"""Agents at work within a cycle: who is next, the money set aside for it, what it came to. Asks through the ports."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ralph_mission.mission import commit, execute
from ralph_mission.mission.coder import tasks
from ralph_mission.mission.lifecycle.facts import refresh_facts
from ralph_mission.mission.lifecycle.table import advance, interpret_facts
from ralph_mission.mission.memory import schedule
from ralph_mission.mission.model.cycle import AgentJob, AgentResult, MissionEvent, MissionFacts, Situation
from ralph_mission.mission.model.ledger import MemorySnapshot
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Limits, Mission, Status, Usage
from ralph_mission.mission.ports import Coder, CyclePorts

SECONDS = 2400.0
"""All that agents may take of one cycle: a job of the workflow has an hour, and the rest of the cycle its minutes."""
SHORTEST = 60.0  # seconds that are worth a beginning


def run_coding_tasks(
    ports: CyclePorts, coder: Coder, situation: Situation, past: MemorySnapshot
) -> tuple[MemorySnapshot, Situation]:
    """Every mission that waits for an agent has its turn, oldest first, while money and time last. Raises Lost."""
    facts = dict(situation.world.facts)
    ready = [m for m in situation.state.missions if m.id in facts and _ready(m, facts[m.id], situation.now)]
    coder.tidy([m.id for m in situation.state.missions if m.status in tasks.WAITS])
    if ready:
        ports.voice.phase("work", f"{len(ready)} for an agent")
    until = ports.clock.now().timestamp() + SECONDS
    for mission in ready:
        if _ready(mission, dict(situation.world.facts)[mission.id], situation.now):
            past, situation = _turn(ports, coder, situation, past, mission, until)
    return past, situation


def _ready(mission: Mission, facts: MissionFacts, now: datetime) -> bool:
    return tasks.is_waiting(mission, facts) and interpret_facts(mission, facts, now).event is None


def _turn(
    ports: CyclePorts, coder: Coder, situation: Situation, past: MemorySnapshot, mission: Mission, until: float
) -> tuple[MemorySnapshot, Situation]:
    left = _budget_left(situation, until - ports.clock.now().timestamp())
    if held := _reason_to_stop(ports, left, situation.charter.limits):
        made = AgentResult(mission.id, "held", held)
        return past, replace(situation, made=(*situation.made, made))
    mission = advance(mission, MissionEvent.STARTED, situation.now) if mission.status is Status.PLANNED else mission
    batch = commit.commission(situation, mission, left.usd, ports.store.holder(), ports.clock.now())
    past = ports.store.commit(batch, past)
    situation = replace(situation, memory=_without_reserve(past.memory, situation), state=past.state)
    made = _run_coder(ports, coder, situation, mission, left)
    situation = replace(situation, made=(*situation.made, made))
    return past, refresh_facts(ports, situation)


def _without_reserve(memory: Memory, situation: Situation) -> Memory:
    """Memory without the money that is set aside: the end of the cycle writes down what was really spent."""
    before = situation.memory.header
    header = replace(
        memory.header, today=before.today, spend_usd=before.spend_usd, dispatches=before.dispatches, wake=before.wake
    )
    return replace(memory, header=header)


def _budget_left(situation: Situation, seconds: float) -> tasks.AgentBudget:
    header = situation.memory.header
    spent = schedule.spent_today(header, situation.now)
    cost = situation.usage.cost_usd
    return tasks.compute_budget(situation.charter.limits, cost, spent + cost, seconds)


def _reason_to_stop(ports: CyclePorts, left: tasks.AgentBudget, limits: Limits) -> str:
    if execute.is_stopped(ports):
        return "paused"
    if not schedule.enough(left.usd, limits.usd_per_cycle):
        return "the money of this cycle or day is spent"
    return "the time of this cycle is over" if left.seconds < SHORTEST else ""


def _run_coder(
    ports: CyclePorts, coder: Coder, situation: Situation, mission: Mission, left: tasks.AgentBudget
) -> AgentResult:
    facts = dict(situation.world.facts)[mission.id]
    asked = tasks.build_job(mission, facts, situation.world.default.sha, situation.memory.learnings, left)
    ports.voice.note(f"#{mission.issue} {mission.title}: an agent works on it, for at most ${left.usd:.2f}")
    made = _work_safely(coder, asked)
    told = max((when for when, _ in tasks.new_guidance(mission, facts)), default=mission.guided_at)
    ports.voice.note(f"#{mission.issue}: {made.outcome}{f', {made.reason}' if made.reason else ''}")
    return replace(made, guided_at=told if made.sessions else mission.guided_at)


def _work_safely(coder: Coder, asked: AgentJob) -> AgentResult:
    try:
        return coder.work(asked)
    except Exception as error:  # whatever it is, the cycle goes on, and other missions have their turn
        why, spent = f"it failed unexpectedly ({type(error).__name__})", Usage(cost_usd=asked.usd)
        return AgentResult(
            asked.mission, "failed", why, usage=spent
        )  # nobody knows what it cost: all that was set aside
