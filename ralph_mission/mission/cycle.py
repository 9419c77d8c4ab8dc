"""One cycle, as a story: recall, check, observe, think, judge, act, reflect.

Everything between the I/O is a pure function over frozen values (`deciding`, `policy`,
`steps`, `concluding`). What touches the world goes through `Ports`. Nothing is done before
its intent stands on the memory branch, and memory only ever moves forward from what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.mission import acting, chronicle, gathering, schedule, telling
from ralph_mission.mission.account import CycleReport, Outcome, Telling, Trigger
from ralph_mission.mission.acting import Act, Deed
from ralph_mission.mission.concluding import Conclusion, conclude
from ralph_mission.mission.deciding import Charter, Decided, Situation, decide
from ralph_mission.mission.effects import Receipt
from ralph_mission.mission.ledger import NOT_ATTEMPTED, Recollection, Record
from ralph_mission.mission.model import Verdict
from ralph_mission.mission.ports import Ports
from ralph_mission.mission.proposal import Decision
from ralph_mission.mission.trouble import Lost

Account = tuple[CycleReport, Telling]


@dataclass(frozen=True, slots=True)
class Request:
    """How this cycle came about. `cycle_id` names one that may have run before; "" starts a new one."""

    trigger: Trigger = "cli"
    staged: bool = False
    force: bool = False
    cycle_id: str = ""


def run_cycle(ports: Ports, charter: Charter, request: Request, secrets: tuple[str, ...] = ()) -> Account:
    """Run one cycle, or leave quietly: not due, paused, or somebody else's.

    Raises Trouble, before any effect, when memory or the forge cannot be trusted or reached.
    """
    started = ports.clock.now()
    with nullcontext(True) if request.staged else ports.store.exclusive() as ours:
        past = ports.store.recall() if ours else None
        reason = _reason_to_leave(ports, past, request, ours, started)
        if reason is None:
            try:
                return _cycle(ports, charter, request, secrets, past, started)
            except Lost:
                reason = "lost"
        return telling.left(reason, past, request.trigger, request.staged, started, ports.clock.now())


def _reason_to_leave(
    ports: Ports, past: Recollection | None, request: Request, ours: bool, now: datetime
) -> Outcome | None:
    """Why this cycle does not start."""
    claim = past.state.claim if past and not request.staged else None  # a staged cycle is in nobody's way
    if not ours or (claim and not ports.store.proven_dead(claim.holder)):
        return "lost"
    if ports.switch() or (past and past.memory.header.paused):
        return "paused"
    if past is None:
        return None
    if request.cycle_id and request.cycle_id in past.state.done:
        return "not_due"
    return None if request.force or schedule.is_due(past.memory.header.next_due_at, now) else "not_due"


def _cycle(
    ports: Ports, charter: Charter, request: Request, secrets: tuple[str, ...],
    past: Recollection | None, started: datetime,
) -> Account:  # fmt: skip
    gathering.check_anchor(ports, past)
    ports.voice.phase("check", gathering.slots(past, charter))
    past, settled = _settle(ports, past, request)
    situation = _gather(ports, charter, request, secrets, past, started)
    decided = decide(situation, secrets)
    ports.recorder.record("situation", situation)
    ports.recorder.record("decisions", decided.decisions)

    ports.voice.phase("act", f"{len(_allowed(decided))} of {len(decided.decisions)} proposals allowed")
    if request.staged:
        return _tell(ports, situation, decided, _pretend(decided), settled, request)[0]
    claimed, known = _intend(ports, situation, decided, past)
    acts = acting.act(ports, _allowed(decided), known)

    ports.voice.phase("reflect")
    account, conclusion = _tell(ports, situation, decided, acts, settled, request)
    base = claimed.state if claimed else situation.state
    batch = chronicle.write(situation, decided, acts, conclusion, known, *account, base, ports.dashboard)
    landed = ports.store.commit(batch, claimed)
    ports.forge.set_anchor(gathering.anchor_of(landed))
    return account


def _settle(ports: Ports, past: Recollection | None, request: Request) -> tuple[Recollection | None, tuple[Deed, ...]]:
    """What an earlier run left open: looked for and adopted, unknown, or left to what is decided now."""
    if past is None or not past.state.effects or request.staged:
        return past, ()
    records = gathering.read_open(ports, past)
    deeds = acting.reconcile(ports, past.state, records)
    told = tuple(deed for deed in deeds if not deed.receipt.detail.startswith(NOT_ATTEMPTED))
    return ports.store.commit(chronicle.settle_open(past, deeds, records), past), told


def _gather(
    ports: Ports, charter: Charter, request: Request, secrets: tuple[str, ...],
    past: Recollection | None, started: datetime,
) -> Situation:  # fmt: skip
    with ports.scratch() as scratch:
        situation = gathering.situate(ports, charter, past, request.cycle_id, started)
        situation = gathering.observe(ports, situation, past, scratch, secrets)
        situation = gathering.think(ports, situation, secrets)
        return gathering.verify(ports, situation, scratch, secrets)


def _intend(
    ports: Ports, situation: Situation, decided: Decided, past: Recollection | None
) -> tuple[Recollection | None, Mapping[str, Record]]:
    """Claim and intents in one batch, durable before anything happens; nothing to do claims nothing."""
    known = {**situation.records, **gathering.read_effects(ports, decided, past)}
    batch = chronicle.intend(situation, decided, known, ports.store.holder(), ports.clock.now())
    if batch is None:
        return past, known
    return ports.store.commit(batch, past), {**known, **{record.key: record for record in batch.records}}


def _tell(
    ports: Ports, situation: Situation, decided: Decided, acts: tuple[Act, ...], settled: tuple[Deed, ...],
    request: Request,
) -> tuple[Account, Conclusion]:  # fmt: skip
    conclusion = conclude(situation, decided, acts)
    account = telling.tell(situation, decided, acts, conclusion, settled, request.trigger, request.staged,
                           ports.clock.now(), ports.forge.how)  # fmt: skip
    return account, conclusion


def _pretend(decided: Decided) -> tuple[Act, ...]:
    """What would be done, with receipts that say that nothing was."""
    return tuple(
        Act(decision, tuple(Deed(effect, Receipt(effect.key, "staged")) for effect in decision.proposal.effects))
        for decision in _allowed(decided)
    )


def _allowed(decided: Decided) -> list[Decision]:
    return [decision for decision in decided.decisions if decision.verdict is Verdict.ALLOW]
