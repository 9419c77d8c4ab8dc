"""Commands out of a chat: read, applied in one commit of memory, and only then confirmed and answered.

The cursor that confirms them lands with what they change, so a crash at any moment leaves each applied exactly once.
An answer may get lost; it is never sent twice. A cycle applies what waits; `Attendant` does between cycles and beside
a running loop.

An owner's chat is told of a mission that got stuck: when memory says so, and once. That rests on the step from one
committed state to the next, so it is never said again: a crash before the commit leaves it to the next cycle, one
after it to the forge, where the owners are assigned. Nothing of it is public, so no quiet hours hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from ralph_mission.errors import Lost, Missing, UserError
from ralph_mission.mission import execute, gather
from ralph_mission.mission.chat import orders
from ralph_mission.mission.chat.orders import ChatProposal, ChatReply, CommandContext, OpenQuestion
from ralph_mission.mission.lifecycle.waiting import show
from ralph_mission.mission.model.forge import ChatCommand
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot
from ralph_mission.mission.model.memory import Header, Memory
from ralph_mission.mission.model.mission import Limits, Mission, Status
from ralph_mission.mission.operations import control
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
    except UserError as problem:
        ports.progress.note(f"telegram: {problem.what}; {problem.next_step}")
        return past
    if not waiting:
        return past
    gather.check_anchor(ports.forge, past)
    answers, rest = _aside(waiting, aside, ports)
    obeyed = orders.apply_commands(_redact_commands(rest, secrets), past.state, _store(ports, past, limits, rest))
    memory = with_cursor(past.memory, cursor)
    verbs = ", ".join(f"/{order.verb}" for order in waiting[:NAMED])
    subject = f"ralph: heard {verbs}{' …' if len(waiting) > NAMED else ''} in a chat"
    landed = ports.store.commit(MemoryBatch(memory, obeyed.state, (), subject, paused=obeyed.paused), past)
    ports.progress.note(f"telegram: heard {verbs}")
    send_replies(ports.inbox, (*answers, *obeyed.answers), ports.progress.note, secrets)
    ports.forge.show_dashboard("", gather.anchor_of(landed))
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
    """How far orders were carried out."""
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
        except UserError as problem:
            note(f"telegram: no answer to chat {one.chat}: {problem.what}")


def _redact_commands(waiting: Iterable[ChatCommand], secrets: Sequence[str]) -> tuple[ChatCommand, ...]:
    """Memory is as public as the repository: no secret gets there from a chat."""
    return tuple(replace(order, words=redact(order.words, secrets)) for order in waiting)


def _store(ports: CyclePorts, past: MemorySnapshot, limits: Limits, waiting: Sequence[ChatCommand]) -> CommandContext:
    now = ports.clock.now()
    asked = {number: _read_proposal(ports, past, number) for number in orders.list_named_proposals(waiting, now)}
    stands = orders.status(past.memory, past.state, limits.active_missions)
    return CommandContext(now, stands, asked, ports.seal or orders.no_seal)


def _read_proposal(ports: CyclePorts, past: MemorySnapshot, number: int) -> ChatProposal:
    try:
        issue = ports.forge.issue(number)
    except Missing:
        issue = None
    except UserError as problem:
        return ChatProposal(why=f"it could not be read ({problem.what}); send it again later")
    return orders.describe_proposal(issue, past.state.missions, ports.forge.identity().id)


SHOWN = 300  # characters of what a stranger may have written: a title, and what a mission got stuck on


def notify_stuck(
    ports: CyclePorts, before: Iterable[Mission], after: Iterable[Mission], secrets: Sequence[str] = ()
) -> None:
    """Tell the owner's chat of missions that are escalated now and were not before. What fails is a line of the cycle;
    a stop leaves it unsaid."""
    stuck = newly_stuck(before, after)
    if not stuck or ports.inbox is None or execute.is_stopped(ports):
        return
    answers = [ChatReply(ports.inbox.chat, notice(mission, ports.forge.how)) for mission in stuck]
    send_replies(ports.inbox, answers, ports.progress.note, secrets)


def newly_stuck(before: Iterable[Mission], after: Iterable[Mission]) -> tuple[Mission, ...]:
    """The missions that went on before and are escalated now. One that memory did not know is no news: it was lost
    there, and is found again."""
    went_on = {mission.id for mission in before if mission.status is not Status.ESCALATED}
    return tuple(mission for mission in after if mission.status is Status.ESCALATED and mission.id in went_on)


def notice(mission: Mission, how: Callable[[str, int], str]) -> str:
    """Which one, why, and where to look; all that others may have worded is one harmless line."""
    words = inline_words(f"{mission.title}: {mission.last_action}", SHOWN)
    return f"Mission {mission.id} is stuck and needs a person.\n{words}\n{show(mission, how)}"


PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds between two looks, and after failures in a row
NO_MEMORY = "Not done: there is no memory here yet. Run a cycle first."
ASKED = 1_500  # characters of a question with what belongs to it


class RunningLoop(Protocol):
    """The loop that runs in this checkout, if one does. Every call may raise UserError and OSError."""

    def progress(self) -> str:
        """How it fares, in some lines; "" when none runs."""
        ...

    def guide(self, order: ChatCommand) -> None:
        """Have its next session hear this; what was said once is not said again."""
        ...

    def restart(self) -> None:
        """Have it start anew when its session is over."""
        ...

    def questions(self) -> Sequence[OpenQuestion]:
        """What its sessions asked and nobody answered, oldest first."""
        ...

    def answered(self, order: ChatCommand) -> str:
        """The words of the question that this very order answered before; "" when it answered none."""
        ...

    def answer(self, question: OpenQuestion, order: ChatCommand) -> None:
        """Answer it; only its first answer counts."""
        ...


class Note(Protocol):
    """Where the cursor is kept when there is no memory. Durable; may raise OSError."""

    def read(self) -> str:
        """What was kept, "" for nothing."""
        ...

    def keep(self, cursor: str) -> None:
        """Keep it."""
        ...


@dataclass(slots=True)
class Attendant:
    """Who stands beside a loop, between two looks. `chat` is where a person is told things unasked."""

    inbox: Inbox
    ports: CyclePorts
    store: control.Editable
    limits: Limits
    secrets: Sequence[str]
    loop: RunningLoop
    note: Note
    chat: int
    checkin: timedelta
    say: Callable[[str], None]
    cursor: str = ""
    told: set[str] = field(default_factory=set)  # ids of questions that were put to the person
    braked: set[int] = field(default_factory=set)  # pauses that were obeyed before a running cycle is over
    checked_at: datetime | None = None  # when a word on the loop was last said; None while none runs
    complaint: str = ""

    def attend(self, sleep: Callable[[float], None]) -> None:
        """Look again and again, until interrupted. Raises UserError for what no waiting fixes."""
        failures = 0
        while True:
            failures = 0 if self.look() else failures + 1
            sleep(min(PAUSE * 2**failures, LONGEST_PAUSE))

    def look(self) -> bool:
        """Hear, ask and tell, once; False when the chat or memory could not be had. Raises UserError (usage)."""
        try:
            self._hear()
            self._ask()
            self._check_in()
        except Lost:
            return True  # somebody else's commit came first; what waits is read again
        except (UserError, OSError) as error:
            if isinstance(error, UserError) and error.exit_code == 2:
                raise
            self._complain(f"{error.what}; {error.next_step}" if isinstance(error, UserError) else str(error.strerror))
            return False
        self.complaint = ""
        return True

    # --- orders -----------------------------------------------------------------------

    def _hear(self) -> None:
        """Memory is asked when somebody says something, and not before."""
        self.cursor = self.cursor or self.note.read()
        waiting, _ = self.inbox.read(self.cursor)
        if not waiting:
            return
        with self.store.exclusive() as ours:
            past = self.store.recall()
            if past is None:
                self._without_memory()
            elif not ours or (past.state.claim and not self.store.proven_dead(past.state.claim.holder)):
                self._brake(waiting)
            else:
                self._with_memory(past)

    def _with_memory(self, past: MemorySnapshot) -> None:
        ports = replace(self.ports, inbox=self.inbox)
        resumed = not past.memory.header.paused
        landed = apply_chat_commands(
            ports,
            past,
            self.limits,
            self.secrets,
            lambda order: self._obeyed_before(order, resumed) or self._aside(order),
        )
        if landed is not past:
            self.cursor = cursor_of(landed)
            self.say("orders were carried out")
        elif cursor_of(past) != self.cursor:
            self.cursor = cursor_of(past)  # a cycle heard them

    def _without_memory(self) -> None:
        waiting, cursor = self.inbox.read(self.note.read())
        now = self.ports.clock.now()
        answers = [ChatReply(o.chat, orders.late(o) if orders.too_old(o, now) else self._aside(o) or NO_MEMORY)
                   for o in waiting]  # fmt: skip  # one list
        self.note.keep(cursor)
        self.cursor = cursor
        self.inbox.read(cursor)  # Telegram forgets them: memory that comes to be knows nothing of this note
        send_replies(self.inbox, answers, self.say, self.secrets)

    def _brake(self, waiting: Sequence[ChatCommand]) -> None:
        """A cycle is running: everything waits for its end, so that its memory stays its own; but a pause does not."""
        now = self.ports.clock.now()
        for order in waiting:
            if order.verb == "pause" and order.id not in self.braked and not orders.too_old(order, now):
                control.pause(self.store)
                self.braked.add(order.id)
                self.say("paused, a cycle is running")

    def _obeyed_before(self, order: ChatCommand, resumed: bool) -> str | None:
        """A pause that a cycle obeyed, and that a person lifted by hand since, is over: that was the later word."""
        over = resumed and order.id in self.braked
        return "Paused a running cycle; resumed by hand since." if over else None

    def _aside(self, order: ChatCommand) -> str | None:
        """What the loop here obeys; doing it twice is doing it once."""
        if order.verb == "answer":
            return self._answered(order)
        running = self.loop.progress() if order.verb in ("status", "guidance", "restart") else ""
        if not running or order.number:
            return None
        if order.verb == "status":
            return running
        if order.verb == "restart":
            self.loop.restart()
            return "The loop restarts when its session is over."
        if not order.words:
            return None
        self.loop.guide(order)
        return "The loop's next session gets it, once."

    def _answered(self, order: ChatCommand) -> str | None:
        """An order answers one question, however often it is heard."""
        if before := self.loop.answered(order):
            return f"Answered: {truncate(before, 100)}"
        questions = self.loop.questions()
        if not questions:
            return None
        found = orders.match_question(order, questions)
        if isinstance(found, str):
            return f"Not done: {found}."
        self.loop.answer(found, order)
        return f"Answered: {truncate(found.words, 100)}"

    # --- what is told unasked -----------------------------------------------------------

    def _ask(self) -> None:
        for question in self.loop.questions():
            if question.id not in self.told and not question.over:
                self.told.add(question.id)
                self._tell(
                    f"An agent asks:\n{truncate(question.words, ASKED)}\n\nSay: {orders.how_to_answer(question)}"
                )

    def _check_in(self) -> None:
        """The first look at a loop begins its interval; its end is told at once."""
        now, changes = self.ports.clock.now(), self.loop.progress()
        if changes and self.checked_at and now - self.checked_at >= self.checkin:
            self._tell(changes)
            self.checked_at = now
        elif changes and self.checked_at is None:
            self.checked_at = now
        elif not changes and self.checked_at:
            self._tell("The loop has ended.")
            self.checked_at = None

    def _tell(self, text: str) -> None:
        send_replies(self.inbox, [ChatReply(self.chat, text)], self.say, self.secrets)

    def _complain(self, what: str) -> None:
        if what != self.complaint:
            self.say(what)
        self.complaint = what
