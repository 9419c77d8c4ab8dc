"""What owners say in a chat, judged: what of it is obeyed, what is remembered, what they are answered. Pure.

An order may stop, go on, say words to a session and approve one text by its hash. None can loosen a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from ralph_mission.mission import announced, belonging
from ralph_mission.mission.approval import content_hash, stands
from ralph_mission.mission.ledger import ChatGuidance, ChatYes, OpenState
from ralph_mission.mission.lifecycle import Facts
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import Issue, Mission, Status
from ralph_mission.mission.ports import Seal
from ralph_mission.mission.posts import Order

CURSOR = "telegram"
"""Whose cursor in the head of memory says which orders were obeyed."""
OLD = timedelta(hours=24)
"""As long as Telegram keeps what nobody read: what is older was said about another situation."""
KEPT = 20  # words and approvals that are remembered
REMEMBERED = timedelta(days=14)
WORDS = 2_000  # characters of one guidance
TITLE = 120
HASH = re.compile(r"[0-9a-f]{8}")
WAITING = (Status.DISCOVERED, Status.PARKED, Status.ESCALATED)
"""Where a mission takes a yes to its proposal."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said back, as plain text."""

    chat: int
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A proposal as it stands on the forge. `why` it cannot be approved in a chat; "" when it can."""

    title: str = ""
    hash: str = ""
    url: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Obeyed:
    """What became of orders so far: the state, `paused` (None: nobody spoke of it), the answers in order."""

    state: OpenState
    paused: bool | None = None
    answers: tuple[Answer, ...] = ()


def unsealed(_: str) -> str:
    """No seal: what is kept under it counts for nothing."""
    return ""


@dataclass(frozen=True, slots=True)
class Desk:
    """What orders are judged by: the present, how things stand in words, the proposals that were named by number.

    `seal` closes what is kept, so that it can be told from what somebody wrote into memory.
    """

    now: datetime
    status: str
    asked: Mapping[int, Asked]
    seal: Seal = unsealed


def obey(orders: Iterable[Order], state: OpenState, desk: Desk) -> Obeyed:
    """All of them in turn; the last word on a pause is the one that counts."""
    done = Obeyed(_without_old(state, desk.now))
    for order in orders:
        done = _obey(order, done, desk)
    return done


def _obey(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    if too_old(order, desk.now):
        return _said(done, order, late(order))
    return _VERBS[order.verb](order, done, desk)


def too_old(order: Order, now: datetime) -> bool:
    """Whether it was said about another situation."""
    return now - order.at > OLD


def late(order: Order) -> str:
    """What is answered to such an order."""
    return f"Not obeyed: /{order.verb} of {order.at:%Y-%m-%d %H:%M} UTC is more than 24 hours old. Say it again."


# --- verb by verb ---------------------------------------------------------------------


def _pause(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    return _said(replace(done, paused=True), order, "Paused: nothing is done until /resume.")


def _resume(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    return _said(replace(done, paused=False), order, "Resumed: the next cycle runs when it is due.")


def _status(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    return _said(done, order, desk.status)


def _guidance(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    mission = next((m for m in done.state.missions if order.number and m.issue == order.number), None)
    if order.number and mission is None:
        return _said(done, order, f"Not obeyed: no mission has the issue #{order.number}.")
    if not order.words:
        return _said(done, order, "Not obeyed: /guidance needs words for the next session.")
    kept = ChatGuidance(order.id, desk.now, order.words[:WORDS], mission.id if mission else 0)
    kept = replace(kept, seal=_sealed(kept, desk.seal))
    state = replace(done.state, guidance=(*done.state.guidance, kept)[-KEPT:])
    whose = f"of #{order.number}" if mission else "of every mission that an agent works on"
    return _said(replace(done, state=state), order, f"The next session {whose} hears it, once.")


def _approve(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    asked = desk.asked.get(order.number, Asked(why="there is no such number"))
    if asked.why:
        return _said(done, order, f"Not approved: #{order.number}: {asked.why}.")
    if order.words != asked.hash:
        return _said(done, order, _question(order, asked))
    yes = ChatYes(order.number, asked.hash, order.chat, order.at)
    yes = replace(yes, seal=_sealed(yes, desk.seal))
    state = replace(done.state, yes=(*done.state.yes, yes)[-KEPT:])
    said = f"Approved: #{order.number} {asked.title}, at the text {asked.hash}. An edit makes it void."
    return _said(replace(done, state=state), order, said)


def _question(order: Order, asked: Asked) -> str:
    """A bare number approves nothing: it does not show that this very text was read."""
    changed = "That is not the text that stands there now. " if HASH.fullmatch(order.words) else ""
    how = f"To say yes to that text: /approve {order.number} {asked.hash}"
    return f"{changed}#{order.number} {asked.title}\n{asked.url}\n{how}".replace("\n\n", "\n")


def _restart(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    return _said(done, order, "Not obeyed: no loop runs here. Beside one, `ralph telegram` hears /restart.")


def _answer(order: Order, done: Obeyed, desk: Desk) -> Obeyed:
    return _said(done, order, "Not obeyed: no question is open here.")


_VERBS: Mapping[str, Callable[[Order, Obeyed, Desk], Obeyed]] = {
    "pause": _pause, "resume": _resume, "status": _status, "guidance": _guidance,
    "approve": _approve, "restart": _restart, "answer": _answer,
}  # fmt: skip  # one table


def _said(done: Obeyed, order: Order, text: str) -> Obeyed:
    return replace(done, answers=(*done.answers, Answer(order.chat, text)))


# --- what is asked of the forge, and what stands there --------------------------------


def named(orders: Iterable[Order], now: datetime) -> tuple[int, ...]:
    """The numbers that somebody wants to approve."""
    wanted = (order.number for order in orders if order.verb == "approve" and not too_old(order, now))
    return tuple(dict.fromkeys(wanted))


def asked(issue: Issue | None, missions: Iterable[Mission], us: int) -> Asked:
    """The proposal that an issue is."""
    if issue is None:
        return Asked(why="there is no such issue")
    mission = next((m for m in missions if m.issue == issue.number), None)
    title, now = issue.title[:TITLE], content_hash(issue.title, issue.body)
    return Asked(title, now, issue.url, _why_not(issue, mission, us))


def _why_not(issue: Issue, mission: Mission | None, us: int) -> str:
    if mission is None or not mission.proposal_hash:
        return "it asks for no approval"
    if issue.author.id != us or issue.state != "open":
        return "it is no open proposal of Ralph's"
    if mission.pull or mission.status not in WAITING:
        return "it waits for no yes to its text; a pull request is approved on the forge"
    shown = belonging.own_change(mission, issue, us)
    if shown and announced.announced(shown.body, True):
        return "a change is shown there in a comment; say yes to it there"
    return "" if stands(issue, mission) else "its text was edited; the next cycle asks anew"


# --- what missions know of it ---------------------------------------------------------


def known_to(facts: Iterable[tuple[int, Facts]], state: OpenState, seal: Seal | None) -> tuple[tuple[int, Facts], ...]:
    """The facts of missions, with what owners said in a chat that concerns each: what memory alone says is left out.

    But for how far anything was heard: what was obeyed, and cannot be proven for a while, is no news after it.
    """
    proven = keep_proven(state, seal)
    return tuple((id, _with(_heard(found, id, state), id, proven)) for id, found in facts)


def _heard(facts: Facts, mission: int, state: OpenState) -> Facts:
    """How far, also where its issue is not believed to be its own: what was obeyed is no news once it is again."""
    known = {facts.issue.number} if facts.issue else {one.issue for one in state.missions if one.id == mission}
    return replace(facts, heard_at=max((one.at for one in state.yes if one.issue in known), default=None))


def _with(facts: Facts, mission: int, state: OpenState) -> Facts:
    if facts.issue is None or not (state.yes or state.guidance):
        return facts
    yes = tuple(one for one in state.yes if one.issue == facts.issue.number)
    return replace(facts, yes=yes, guidance=tuple(g for g in state.guidance if g.mission in (0, mission)))


def keep_proven(state: OpenState, seal: Seal | None) -> OpenState:
    """The state with those words of a chat alone that bear our seal."""

    def true(one: ChatYes | ChatGuidance) -> bool:
        return seal is not None and one.seal != "" and one.seal == _sealed(one, seal)

    return replace(state, yes=tuple(filter(true, state.yes)), guidance=tuple(filter(true, state.guidance)))


def _sealed(one: ChatYes | ChatGuidance, seal: Seal) -> str:
    told = asdict(replace(one, seal="", at=one.at.astimezone(UTC).replace(microsecond=0)))
    return seal(json.dumps([type(one).__name__, told], default=datetime.isoformat, sort_keys=True))


def _without_old(state: OpenState, now: datetime) -> OpenState:
    return replace(
        state,
        yes=tuple(one for one in state.yes if now - one.at < REMEMBERED),
        guidance=tuple(one for one in state.guidance if now - one.at < REMEMBERED),
    )


# --- how things stand -----------------------------------------------------------------


def status(memory: Memory, state: OpenState, slots: int) -> str:
    """Memory in some lines for a phone."""
    header = memory.header
    active = [mission for mission in state.missions if mission.status.active]
    due = f"next cycle due {header.next_due_at:%Y-%m-%d %H:%M} UTC" if header.next_due_at else "due now"
    return "\n".join(
        (
            f"Cycle {header.cycle}, {len(active)} of {slots} missions active, {'PAUSED' if header.paused else due}.",
            *(_line(mission) for mission in active),
            *([f"Unknown whether sent: {len(state.unknown)}; see ralph journal."] if state.unknown else ()),
        )
    )


def _line(mission: Mission) -> str:
    return f"#{mission.issue} {mission.status}: {mission.title[:TITLE]}"


def by_chat(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """One message for each chat."""
    chats = dict.fromkeys(answer.chat for answer in answers)
    return tuple(Answer(chat, "\n\n".join(a.text for a in answers if a.chat == chat)) for chat in chats)
