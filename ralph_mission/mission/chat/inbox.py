"""Orders out of a chat: read, obeyed in one commit of memory, and only then confirmed and answered.

The cursor that confirms them lands with what they change, so a crash at any moment leaves each obeyed exactly once.
An answer may get lost; it is never sent twice.

An owner's chat is told of a mission that got stuck: when memory says so, and once.

What is said rests on the step from one committed state to the next, so it is never said again: a crash before the
commit leaves it to the next cycle, one after it leaves it to the forge, where the owners are assigned. It is a word to
whoever gives the orders and nothing in public, so no quiet hours hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ralph_mission.errors import Missing, UserError
from ralph_mission.mission import execute, gather
from ralph_mission.mission.chat import orders
from ralph_mission.mission.chat.orders import ChatProposal, ChatReply, CommandContext
from ralph_mission.mission.memory.model import Header, Memory
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot
from ralph_mission.mission.model.mission import Limits, Mission, Status
from ralph_mission.mission.model.posts import ChatCommand
from ralph_mission.mission.ports import CyclePorts, Inbox
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words, truncate

LONGEST = 3_900  # characters of an answer; a network takes 4,096
NAMED = 5  # orders in the subject of a commit

Unaddressed = Callable[[ChatCommand], str | None]
"""Obeys an order on the spot, so that doing it twice is doing it once, and gives the answer; None: it is memory's."""


def nobody(order: ChatCommand) -> str | None:
    """None: nothing but memory obeys here."""
    return None


def apply_chat_commands(
    ports: CyclePorts, past: MemorySnapshot, limits: Limits, secrets: Sequence[str] = (), aside: Unaddressed = nobody
) -> MemorySnapshot:
    """Memory once the orders that wait are obeyed. A chat that cannot be read is a line of the cycle, no more.

    Raises Lost when somebody else's commit came first, UserError when memory is not what it should be: nothing is
    confirmed then, and all of it is read again.
    """
    if ports.inbox is None:
        return past
    try:
        waiting, cursor = ports.inbox.read(cursor_of(past))
    except UserError as trouble:
        ports.voice.note(f"telegram: {trouble.what}; {trouble.next_step}")
        return past
    if not waiting:
        return past
    gather.check_anchor(ports, past)
    answers, rest = _aside(waiting, aside, ports)
    obeyed = orders.apply_commands(_redact_commands(rest, secrets), past.state, _desk(ports, past, limits, rest))
    memory = with_cursor(past.memory, cursor)
    verbs = ", ".join(f"/{order.verb}" for order in waiting[:NAMED])
    subject = f"ralph: heard {verbs}{' …' if len(waiting) > NAMED else ''} in a chat"
    landed = ports.store.commit(MemoryBatch(memory, obeyed.state, (), subject, paused=obeyed.paused), past)
    ports.voice.note(f"telegram: heard {verbs}")
    send_replies(ports.inbox, (*answers, *obeyed.answers), ports.voice.note, secrets)
    ports.forge.set_anchor(gather.anchor_of(landed))
    return landed


def _aside(
    waiting: Iterable[ChatCommand], aside: Unaddressed, ports: CyclePorts
) -> tuple[tuple[ChatReply, ...], tuple[ChatCommand, ...]]:
    now, answers, rest = ports.clock.now(), list[ChatReply](), list[ChatCommand]()
    for order in waiting:
        said = None if orders.too_old(order, now) else aside(order)
        if said is None:
            rest.append(order)
        else:
            answers.append(ChatReply(order.chat, said))
    return tuple(answers), tuple(rest)


def cursor_of(past: MemorySnapshot) -> str:
    """How far orders were obeyed."""
    return dict(past.memory.header.cursors).get(orders.CURSOR, "")


def with_cursor(memory: Memory, cursor: str) -> Memory:
    """Memory that has obeyed everything before `cursor`."""
    header: Header = memory.header
    pairs = {**dict(header.cursors), orders.CURSOR: cursor}
    return replace(memory, header=replace(header, cursors=tuple(sorted(pairs.items()))))


def send_replies(
    inbox: Inbox, answers: Sequence[ChatReply], note: Callable[[str], None], secrets: Sequence[str] = ()
) -> None:
    """Say it, once for each chat; what does not get through is noted and not said again."""
    for one in orders.by_chat(answers):
        try:
            inbox.say(one.chat, truncate(redact(one.text, secrets), LONGEST))
        except UserError as trouble:
            note(f"telegram: no answer to chat {one.chat}: {trouble.what}")


def _redact_commands(waiting: Iterable[ChatCommand], secrets: Sequence[str]) -> tuple[ChatCommand, ...]:
    """Memory is as public as the repository: no secret gets there from a chat."""
    return tuple(replace(order, words=redact(order.words, secrets)) for order in waiting)


def _desk(ports: CyclePorts, past: MemorySnapshot, limits: Limits, waiting: Sequence[ChatCommand]) -> CommandContext:
    now = ports.clock.now()
    asked = {number: _read_proposal(ports, past, number) for number in orders.list_named_proposals(waiting, now)}
    stands = orders.status(past.memory, past.state, limits.active_missions)
    return CommandContext(now, stands, asked, ports.seal or orders.no_seal)


def _read_proposal(ports: CyclePorts, past: MemorySnapshot, number: int) -> ChatProposal:
    try:
        issue = ports.forge.issue(number)
    except Missing:
        issue = None
    except UserError as trouble:
        return ChatProposal(why=f"it could not be read ({trouble.what}); say it again later")
    return orders.describe_proposal(issue, past.state.missions, ports.forge.identity().id)


SHOWN = 300  # characters of what a stranger may have written: a title, and what a mission got stuck on


def notify_stuck(
    ports: CyclePorts, past: MemorySnapshot | None, landed: MemorySnapshot, secrets: Sequence[str] = ()
) -> None:
    """Tell the owner's chat of what is escalated in `landed` and was not in `past`. What fails is a line of the cycle;
    a stop leaves it unsaid."""
    stuck = newly_stuck(past.state.missions if past else (), landed.state.missions)
    if not stuck or ports.inbox is None or execute.is_stopped(ports):
        return
    answers = [ChatReply(ports.inbox.chat, notice(mission, ports.forge.how)) for mission in stuck]
    send_replies(ports.inbox, answers, ports.voice.note, secrets)


def newly_stuck(before: Iterable[Mission], after: Iterable[Mission]) -> tuple[Mission, ...]:
    """The missions that went on before and are escalated now. One that memory did not know is no news: it was lost
    there, and is found again."""
    went_on = {mission.id for mission in before if mission.status is not Status.ESCALATED}
    return tuple(mission for mission in after if mission.status is Status.ESCALATED and mission.id in went_on)


def notice(mission: Mission, how: Callable[[str, int], str]) -> str:
    """Which one, why, and where to look; all that others may have worded is one harmless line."""
    words = inline_words(f"{mission.title}: {mission.last_action}", SHOWN)
    return f"Mission {mission.id} is stuck and needs a person.\n{words}\n{how('show_issue', mission.issue)}"
