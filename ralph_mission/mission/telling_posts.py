"""What a cycle says of its posts: each as it went out, and what a person has to know of those that did not. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ralph_mission.mission import posting
from ralph_mission.mission.account import PostLine
from ralph_mission.mission.acting import ExecutedDecision
from ralph_mission.mission.deciding import Situation
from ralph_mission.mission.effects import Publish, Receipt
from ralph_mission.mission.ledger import NEEDS_PERSON, NOT_ATTEMPTED, SETTLED
from ralph_mission.mission.ports import LATER


def lines(acts: Iterable[ExecutedDecision]) -> Iterable[PostLine]:
    """Every post with its exact parts and its fate."""
    for act in acts:
        for deed in act.deeds:
            if isinstance(deed.effect, Publish):
                post, receipt = deed.effect.post, deed.receipt
                yield PostLine(post.network, receipt.status, receipt.url, post.parts, post.lengths, post.limit)


def remarks(effect: Publish, receipt: Receipt, situation: Situation) -> Iterable[str]:
    """What a person has to know of a post that did not go out; told once, as it happens."""
    if receipt.status == "unknown":
        yield f"{effect.network}: nobody can tell whether the post arrived: {receipt.detail}"
    if receipt.status in SETTLED and (missing := _missing(effect, receipt)):
        yield f"{effect.network}: not all of it was posted, and the rest is not tried again: {missing}"
    if receipt.status != "failed" or receipt.detail.startswith(NOT_ATTEMPTED):
        return
    (record,) = posting.after((effect,), situation.records, {effect.key: receipt}, situation.now).values()
    if posting.is_left(record, situation.now):
        yield f"{effect.network}: not posted yet, tried again in the next cycle: {receipt.detail.removeprefix(LATER)}"
    else:
        why = receipt.detail.removeprefix(LATER).removeprefix(NEEDS_PERSON)
        yield f"{effect.network}: not posted, and not tried again: {why}"


def _missing(effect: Publish, receipt: Receipt) -> str:
    """What a network said of the parts of a thread that are not out; "" where all are."""
    told = " ".join(word for word in receipt.detail.split() if not word.startswith("id="))
    return told if len(effect.post.parts) > 1 else ""
