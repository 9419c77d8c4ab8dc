"""What owners order in a chat: their messages become commands with a reply each. Pure.

A command can ask how things stand, pause, resume, restart, answer, give guidance to a session, and approve one text by
its hash. None can loosen a limit.
An ambiguous answer to an agent's questions answers none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import content_hash, stands
from ralph_mission.mission.model.cycle import MissionFacts
from ralph_mission.mission.model.forge import ChatCommand, Issue
from ralph_mission.mission.model.ledger import ChatGuidance, ChatYes, OpenState
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Mission, Status
from ralph_mission.mission.ports import Seal
from ralph_mission.values import compile_regex, dataclass
from ralph_mission.words import stamp


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An unanswered question, the `number`th of its checkout; `over`: its session no longer waits for it."""

    id: str
    number: int
    words: str
    at: datetime
    over: bool = False


def match_question(order: ChatCommand, questions: Sequence[OpenQuestion]) -> OpenQuestion | str:
    """The question that a command answers, or why it answers none.

    The number may be omitted if only one question was open, and already open when the command was written.
    """
    waiting = [question for question in questions if not question.over]
    if order.number:
        waiting = [question for question in waiting if question.number == order.number]
    if not waiting:
        return f"the question {order.number} is not open" if order.number else "no question is open here"
    there = waiting[0].at.replace(microsecond=0) <= order.at  # a chat's times are whole seconds
    if not order.number and (len(questions) > 1 or not there):
        return f"say which question you mean: {' or '.join(how_to_answer(question) for question in waiting)}"
    return waiting[0] if order.words else f"an answer needs words: {how_to_answer(waiting[0])}"


def how_to_answer(question: OpenQuestion) -> str:
    """How a person answers it."""
    return f"/answer {question.number} WORDS"


CURSOR = "telegram"
"""The key of the cursor in memory's header that says which commands were carried out."""
OLD = timedelta(hours=24)
"""As long as Telegram keeps unread messages; anything older was about another situation."""
STORED_MESSAGES = 20  # messages and approvals that are stored
REMEMBERED = timedelta(days=14)
WORDS = 2_000  # characters of one guidance
TITLE = 120
HASH = compile_regex(r"[0-9a-f]{8}")
WAITING = (Status.DISCOVERED, Status.PARKED, Status.ESCALATED)
"""The states in which a mission's proposal can be approved."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply, as plain text."""

    chat: int
    text: str


@dataclass(frozen=True, slots=True)
class ChatProposal:
    """A proposal on the forge. `why`: why it cannot be approved in a chat, or ""."""

    title: str = ""
    hash: str = ""
    url: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class CommandResults:
    """The results of commands so far: the state, `paused` (None: unchanged), the replies in order."""

    state: OpenState
    paused: bool | None = None
    answers: tuple[ChatReply, ...] = ()


def no_seal(_: str) -> str:
    """No seal, so nothing stored under it counts."""
    return ""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The context of commands: the time, the status in words, the proposals named by number.

    `seal` marks what is stored, so that it differs from what somebody else wrote into memory.
    """

    now: datetime
    status: str
    proposals: Mapping[int, ChatProposal]
    seal: Seal = no_seal


def apply_commands(orders: Iterable[ChatCommand], state: OpenState, store: CommandContext) -> CommandResults:
    """Apply all commands in order; the last one about pausing counts."""
    done = CommandResults(_without_old(state, store.now))
    for order in orders:
        done = _apply_command(order, done, store)
    return done


def _apply_command(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    if too_old(order, store.now):
        return _add_reply(done, order, late(order))
    return _VERBS[order.verb](order, done, store)


def too_old(order: ChatCommand, now: datetime) -> bool:
    """Whether it is too old to apply."""
    return now - order.at > OLD


def late(order: ChatCommand) -> str:
    """The reply to such a command."""
    return f"Not done: /{order.verb} of {stamp(order.at)} is more than 24 hours old. Send it again."


# --- verb by verb ---------------------------------------------------------------------


def _pause(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    return _add_reply(replace(done, paused=True), order, "Paused: nothing is done until /resume.")


def _resume(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    return _add_reply(replace(done, paused=False), order, "Resumed: the next cycle runs when it is due.")


def _status(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    return _add_reply(done, order, store.status)


def _guidance(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    mission = next((m for m in done.state.missions if order.number and order.number in (m.issue, m.pull)), None)
    if order.number and mission is None:
        return _add_reply(done, order, f"Not done: no mission has the number #{order.number}.")
    if not order.words:
        return _add_reply(done, order, "Not done: /guidance needs words for the next session.")
    guidance = ChatGuidance(order.id, store.now, order.words[:WORDS], mission.id if mission else 0)
    guidance = replace(guidance, seal=_seal_of(guidance, store.seal))
    state = replace(done.state, guidance=(*done.state.guidance, guidance)[-STORED_MESSAGES:])
    whose = f"of #{order.number}" if mission else "of every mission that an agent works on"
    return _add_reply(replace(done, state=state), order, f"The next session {whose} gets it, once.")


def _approve(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    proposal = store.proposals.get(order.number, ChatProposal(why="there is no such number"))
    if proposal.why:
        return _add_reply(done, order, f"Not approved: #{order.number}: {proposal.why}.")
    if order.words != proposal.hash:
        return _add_reply(done, order, _question(order, proposal))
    yes = ChatYes(order.number, proposal.hash, order.chat, order.at)
    yes = replace(yes, seal=_seal_of(yes, store.seal))
    state = replace(done.state, yes=(*done.state.yes, yes)[-STORED_MESSAGES:])
    text = f"Approved: #{order.number} {proposal.title}, at the text {proposal.hash}. An edit makes it void."
    return _add_reply(replace(done, state=state), order, text)


def _question(order: ChatCommand, proposal: ChatProposal) -> str:
    """A number alone approves nothing: it does not show that this text was read."""
    changed = "That is not the text that stands there now. " if HASH.fullmatch(order.words) else ""
    how = f"To approve that text: /approve {order.number} {proposal.hash}"
    return f"{changed}#{order.number} {proposal.title}\n{proposal.url}\n{how}".replace("\n\n", "\n")


def _restart(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    return _add_reply(done, order, "Not done: no loop runs here. Beside one, `ralph agent telegram` takes /restart.")


def _answer(order: ChatCommand, done: CommandResults, store: CommandContext) -> CommandResults:
    return _add_reply(done, order, "Not done: no question is open here.")


_VERBS: Mapping[str, Callable[[ChatCommand, CommandResults, CommandContext], CommandResults]] = {
    "pause": _pause, "resume": _resume, "status": _status, "guidance": _guidance,
    "approve": _approve, "restart": _restart, "answer": _answer,
}  # fmt: skip  # one table


def _add_reply(done: CommandResults, order: ChatCommand, text: str) -> CommandResults:
    return replace(done, answers=(*done.answers, ChatReply(order.chat, text)))


# --- what is asked of the forge, and what stands there --------------------------------


def list_named_proposals(orders: Iterable[ChatCommand], now: datetime) -> tuple[int, ...]:
    """The numbers of proposals somebody wants to approve."""
    numbers = (order.number for order in orders if order.verb == "approve" and not too_old(order, now))
    return tuple(dict.fromkeys(numbers))


def describe_proposal(issue: Issue | None, missions: Iterable[Mission], us: int) -> ChatProposal:
    """The proposal in an issue."""
    if issue is None:
        return ChatProposal(why="there is no such issue")
    mission = next((m for m in missions if m.issue == issue.number), None)
    title, now = issue.title[:TITLE], content_hash(issue.title, issue.body)
    return ChatProposal(title, now, issue.url, _why_not(issue, mission, us))


def _why_not(issue: Issue, mission: Mission | None, us: int) -> str:
    if mission is None or not mission.question.proposal_hash:
        return "it asks for no approval"
    if issue.author.id != us or issue.state != "open":
        return "it is not an open proposal of Ralph's"
    if mission.pull or mission.status not in WAITING:
        return "its text is not waiting for approval; a pull request is approved on the forge"
    announcement = ownership.own_change(mission, issue, us)
    if announcement and ownership.announced_digests(announcement.body, True):
        return "a change is shown there in a comment; approve it there"
    return "" if stands(issue, mission) else "its text was edited; the next cycle asks again"


# --- what missions know of it ---------------------------------------------------------


def known_to(
    facts: Iterable[tuple[int, MissionFacts]], state: OpenState, seal: Seal | None
) -> tuple[tuple[int, MissionFacts], ...]:
    """The facts of missions with owners' chat messages about each, without what only memory claims.

    How far messages were handled is kept in any case: what was carried out and cannot be proven for a while must not
    count as new later.
    """
    proven = keep_proven(state, seal)
    return tuple((id, _with(_mark_heard(found, id, state), id, proven)) for id, found in facts)


def _mark_heard(facts: MissionFacts, mission: int, state: OpenState) -> MissionFacts:
    """How far messages were handled, even while its issue is in doubt: they must not count as new once it is not."""
    known = {facts.issue.number} if facts.issue else {one.issue for one in state.missions if one.id == mission}
    return replace(facts, heard_at=max((one.at for one in state.yes if one.issue in known), default=None))


def _with(facts: MissionFacts, mission: int, state: OpenState) -> MissionFacts:
    if facts.issue is None or not (state.yes or state.guidance):
        return facts
    yes = tuple(one for one in state.yes if one.issue == facts.issue.number)
    return replace(facts, yes=yes, guidance=tuple(g for g in state.guidance if g.mission in (0, mission)))


def keep_proven(state: OpenState, seal: Seal | None) -> OpenState:
    """The state with only those chat messages that carry our seal."""

    def true(one: ChatYes | ChatGuidance) -> bool:
        return seal is not None and one.seal != "" and one.seal == _seal_of(one, seal)

    return replace(state, yes=tuple(filter(true, state.yes)), guidance=tuple(filter(true, state.guidance)))


def _seal_of(one: ChatYes | ChatGuidance, seal: Seal) -> str:
    fields = asdict(replace(one, seal="", at=one.at.astimezone(UTC).replace(microsecond=0)))
    return seal(json.dumps([type(one).__name__, fields], default=datetime.isoformat, sort_keys=True))


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
    begun = sum(mission.status.begun for mission in active)
    due = f"next cycle due {stamp(header.next_due_at)}" if header.next_due_at else "due now"
    return "\n".join(
        (
            f"Cycle {header.cycle}, {begun} of {slots} missions under way, {'PAUSED' if header.paused else due}.",
            *(_line(mission) for mission in active),
            *([f"Unknown whether sent: {len(state.unknown)}; see ralph journal."] if state.unknown else ()),
        )
    )


def _line(mission: Mission) -> str:
    return f"#{mission.thread} {mission.status}: {mission.title[:TITLE]}"


def by_chat(answers: Sequence[ChatReply]) -> tuple[ChatReply, ...]:
    """One message for each chat."""
    chats = dict.fromkeys(answer.chat for answer in answers)
    return tuple(ChatReply(chat, "\n\n".join(a.text for a in answers if a.chat == chat)) for chat in chats)
