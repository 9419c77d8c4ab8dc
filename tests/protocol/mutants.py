"""The protocol with one thing wrong: each is a real function replaced, and the world in which that must come out."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from ralph_mission.mission import commit, decide, execute, gather, policy, transaction
from ralph_mission.mission.model import ledger
from ralph_mission.mission.model.ledger import SETTLED, EffectRecord
from tests.protocol.configs import BOTH, FIVE, FIX, QUESTION
from tests.protocol.ports import Hub, Memories
from tests.protocol.register import History
from tests.protocol.world import Config

TWO = Config("two runners", BOTH)
DEATH = Config("one runner, one death", BOTH, runners=1, crashes=1)
TWO_DEATHS = Config("one runner, two deaths", FIX, runners=1, cycles=3, crashes=2)
LATE = Config("one runner, one death, lists are late", QUESTION, runners=1, crashes=1, late=1)
DOUBT = Config("one runner, an answer is lost", QUESTION, runners=1, doubts=1, late=1)
STOP = Config("one runner, a stop", FIX, runners=1, cycles=1, moves=("throws the kill switch",))
CALM = Config("one runner", BOTH, runners=1)
WEEK = Config("one runner, five questions", FIVE, runners=1, cycles=5)


@dataclass(frozen=True)
class Mutant:
    """What is replaced by what; `says` is in the law that it breaks."""

    name: str
    config: Config
    says: str
    places: tuple[tuple[Any, str, Any], ...]
    decides: bool = False  # other things than the real one

    def injected(self) -> ExitStack:
        """The protocol is wrong while this is open."""
        stack = ExitStack()
        for owner, name, wrong in self.places:
            stack.enter_context(mock.patch.object(owner, name, wrong))
        return stack


def never(*_: Any, **__: Any) -> bool:
    return False


def always(*_: Any, **__: Any) -> bool:
    return True


def nothing(*_: Any, **__: Any) -> None:
    return None


# --- what is wrong ------------------------------------------------------------------------


def intends_in_its_head(tx, batch, known):
    """Effects are intended, and nobody else can know."""
    return tx, {**known, **{record.key: record for record in batch.records}} if batch else known


def on_top_of_anything(self: History, head: str, after):
    """Whoever comes second writes on top of the first."""
    now = self.recall(head)
    return replace(now, memory=after.memory) if after else now


_advance = History.advance


def forced(self: History, head: str, batch, after):
    """A push that asks nobody where the branch is."""
    return _advance(self, after.oid if after else "", batch, after)


_intend = ledger.build_intents


def as_done(*arguments: Any, **options: Any) -> tuple[EffectRecord, ...]:
    """The receipt stands there before anything is sent."""
    return tuple(replace(record, state="done") for record in _intend(*arguments, **options))


def in_its_head(tx):
    """What became of a dead runner's effects is looked up, and not written down."""
    if tx.past is None or not tx.state.effects:
        return tx, ()
    records = gather.read_open(tx.ports, tx.past)
    actions = execute.reconcile(tx.ports, tx.state, records)
    batch = commit.settle_open(tx.past, actions, records)
    return replace(tx, past=replace(tx.past, state=batch.state)), actions


_state = commit.next_state


def still_claimed(situation, acts, conclusion, base):
    """The cycle is over, and the claim stands."""
    return replace(_state(situation, acts, conclusion, base), claim=base.claim)


_begin_missions = commit.begin_missions


def without_what_was_done(missions, allowed, known):
    """What an ended run did already is not in the mission."""
    return _begin_missions(missions, allowed, {})


def missions_as_before(missions, allowed, known):
    """Intents without the mission that they belong to."""
    return tuple(missions)


_closed = commit.close_effects


def doubt_forgotten(state, receipts):
    """What is in doubt is on nobody's list."""
    return replace(_closed(state, receipts), unknown=())


def open_for_ever(state, receipts):
    """What is settled stays on the list of what is open."""
    return replace(_closed(state, receipts), effects=state.effects)


def receipts_lost(*_: Any) -> Iterable[Any]:
    """The cycle's end is written without what came of its effects."""
    return ()


_send = execute.send


def sent_twice(ports, effect, known: dict[str, Any]):
    """What failed or is in doubt is sent once more, at once."""
    receipt = _send(ports, effect, known)
    return receipt if receipt.status in SETTLED else execute.perform_effect(ports, effect)


def without_cap(proposals, bench):
    """All rules are asked but the one about threads."""
    return policy.judge_all(proposals, bench, tuple(rule for rule in policy.RULES if rule.id != "thread-cap"))


def settled_blindly(ports, record, effect, known):
    """What a dead runner intended is made up for without a look."""
    return execute.perform_effect(ports, execute.resolve(effect, execute.numbers(known.values())))


MUTANTS = (
    Mutant(
        "an effect comes before its intent",
        CALM,
        "without an intent",
        ((transaction, "commit_intents", intends_in_its_head),),
    ),
    Mutant("a lost race is not noticed", TWO, "no claim", ((History, "absorb_edit", on_top_of_anything),)),
    Mutant("memory is force-pushed", TWO, "another commit", ((History, "advance", forced),)),
    Mutant("a receipt comes before its effect", CALM, "without an intent", ((commit, "build_intents", as_done),)),
    Mutant("not listed is believed though lists are late", LATE, "times", ((execute, "may_redo", always),)),
    Mutant("what is in doubt is sent again", DOUBT, "times", ((execute, "send", sent_twice),)),
    Mutant("the claim of a live runner is taken over", TWO, "nothing went wrong", ((Memories, "proven_dead", always),)),
    Mutant("a settlement is not durable", DEATH, "nobody's list", ((transaction, "settle_leftovers", in_its_head),)),
    Mutant("the marker is not searched", DEATH, "there to see", ((Hub, "find", nothing),)),
    Mutant("a claim is never released", CALM, "Claim(", ((commit, "next_state", still_claimed),)),
    Mutant("the kill switch is asked once", STOP, "after a stop", ((execute, "is_stopped", never),)),
    Mutant("an intent has no mission", DEATH, "otherwise", ((commit, "begin_missions", missions_as_before),)),
    Mutant(
        "what an ended run did is not in its mission",
        TWO_DEATHS,
        "otherwise",
        ((commit, "begin_missions", without_what_was_done),),
    ),
    Mutant("a doubt is forgotten", LATE, "otherwise", ((commit, "close_effects", doubt_forgotten),)),
    Mutant("what is settled stays open", CALM, "otherwise", ((commit, "close_effects", open_for_ever),)),
    Mutant("receipts are not written", CALM, "nobody's list", ((commit, "settled_records", receipts_lost),)),
    Mutant(
        "leftovers are made up for without a look", DEATH, "no claim", ((execute, "look_up_effect", settled_blindly),)
    ),
    Mutant(
        "the cap on threads is gone",
        WEEK,
        "otherwise",
        ((decide, "judge_all", without_cap),),
        decides=True,
    ),
)
