"""Memory rebuilt from what the forge shows and from what can still be read of the old one.

What stands on the branch is evidence, not authority: intents and plans are carried over only
from a commit this clone knows as its own, and nothing is sent or redone here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from ralph_mission.flows.recover_ledger import rebuilt_ledger
from ralph_mission.flows.recover_missions import ASK_AGAIN, next_mission, rebuilt_missions
from ralph_mission.flows.recover_parts import Recoverable, Recovered, Salvage, Told
from ralph_mission.flows.recover_work import at_work
from ralph_mission.flows.traces import traces_on
from ralph_mission.mission import orders, recount, reflect
from ralph_mission.mission.ledger import Anchor, Batch, OpenState, key_of
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import Action, Mission, Status
from ralph_mission.mission.ports import Forge, Store
from ralph_mission.trouble import Trouble

HUSHED = timedelta(hours=24)  # what is seen by then may have been said in public before memory was lost


def recover(store: Recoverable, forge: Forge, now: datetime, take_over: bool = False) -> Recovered:
    """Rebuild memory and tell what became of it. Raises Trouble when a cycle is running here."""
    with store.exclusive() as ours:
        if not ours:
            raise Trouble("a cycle is running", "wait until it has ended")
        salvaged = store.salvage()
        told = Told(list(salvaged.kept), list(salvaged.lost))
        anchors = [anchor for anchor in (salvaged.anchor, forge.anchor()) if anchor]
        traces = traces_on(forge)
        records, open_state = rebuilt_ledger(salvaged, traces, forge, told)
        state = replace(open_state, missions=rebuilt_missions(open_state, traces, forge, now, told))
        state = _claim(state, store, take_over, told)
        found = at_work(records, state, forge, now, take_over)
        records |= {record.key: record for record in found}
        state = replace(state, working=tuple(record.issue for record in found))
        state = replace(state, next_mission=next_mission(state, traces))
        if not _whole(salvaged, anchors):
            state = _hushed(state, now, told)
        if salvaged.state is None:
            state = _recounted(state, store, told)
        memory = _memory(salvaged, state, anchors, now)
        anchor = store.restart(Batch(memory, state, tuple(records.values()), "ralph: memory recovered"), salvaged)
        forge.set_anchor(anchor)
    return Recovered(anchor, tuple(told.kept), tuple(told.lost))


def _whole(salvaged: Salvage, anchors: Iterable[Anchor]) -> bool:
    """Whether nothing of what was said in public can be missing: our last commit is there, and none is known after."""
    seen = {anchor.oid for anchor in anchors}
    return salvaged.state is not None and not salvaged.broken and seen == {salvaged.head}


def _hushed(state: OpenState, now: datetime, told: Told) -> OpenState:
    """Posts leave no mark that could be found again: what is seen within a day counts as said."""
    told.lost.append("what was posted: what is seen within a day from now is not posted, since it may have been before")
    missions = tuple(_silent(mission) for mission in state.missions)
    return replace(state, finished=(), missions=missions, hushed_until=now + HUSHED)


def _silent(mission: Mission) -> Mission:
    """The mission; of one that publishes, only the question is left: nobody knows any more which network has it."""
    if mission.action is not Action.PUBLISH:
        return mission
    asked = Status.DISCOVERED if mission.status in (Status.PLANNED, Status.EXECUTING) else mission.status
    return replace(mission, action=Action.OPEN_PROPOSAL, status=asked, proposal_hash=ASK_AGAIN, pending=())


def _recounted(state: OpenState, store: Recoverable, told: Told) -> OpenState:
    """What people and networks said, counted again from the journal that is still there."""
    try:
        documents = tuple(store.journal())
        tallies, posts = recount.acceptance(documents), recount.posts(documents)
    except (Trouble, LookupError, TypeError, ValueError, AttributeError):
        told.lost.append("what was learned: the journal cannot be read, so its verdicts and posts are not counted")
        return state
    if documents:
        told.kept.append(f"what was learned, counted again from the journals of {len(documents)} cycles")
    return replace(state, acceptance=tuple(sorted(tallies.items())), posted=posts)


def _claim(state: OpenState, store: Store, take_over: bool, told: Told) -> OpenState:
    claim = state.claim
    if claim is None:
        return state
    if take_over or store.proven_dead(claim.holder):
        told.kept.append(f"the claim of {claim.holder} on cycle {claim.cycle} is lifted")
        return replace(state, claim=None)
    told.lost.append(
        f"nothing yet: {claim.holder} may still be in cycle {claim.cycle} and keeps its claim; "
        "once you know that it is dead, run `ralph memory recover --take-over`"
    )
    return state


def _memory(salvaged: Salvage, state: OpenState, anchors: Iterable[Anchor], now: datetime) -> Memory:
    old = salvaged.memory or Memory()
    serial = max([old.header.serial, *(anchor.serial for anchor in anchors)])
    header = replace(
        old.header,
        lineage=key_of("lineage", "recovered", salvaged.head, old.header.lineage, str(serial), now.isoformat()),
        serial=serial,
        generation=old.header.generation + 1,
        next_due_at=None,
        high_streak=0,
        high_cause="",
        cursors=tuple(pair for pair in old.header.cursors if pair[0] == orders.CURSOR),  # what was obeyed stays obeyed
    )
    measured = reflect.learnings(dict(state.acceptance), state.posted)
    return replace(old, header=header, active=reflect.under_way(state.missions), measured=measured)
