"""Standing beside a loop: orders are heard every few seconds, its questions are put to a person, and every few minutes
somebody is told how it fares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.chat import inbox as hearing
from ralph_mission.mission.chat import orders
from ralph_mission.mission.chat.orders import ChatReply, OpenQuestion
from ralph_mission.mission.model.ledger import MemorySnapshot
from ralph_mission.mission.model.mission import Limits
from ralph_mission.mission.model.posts import ChatCommand
from ralph_mission.mission.operations import control
from ralph_mission.mission.ports import CyclePorts, Inbox
from ralph_mission.safety.text import truncate

PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds between two looks, and after failures in a row
NO_MEMORY = "Not obeyed: there is no memory here yet. Run a cycle first."
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
        """Look again and again, until interrupted. Raises UserError for what no waiting mends."""
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
        landed = hearing.apply_chat_commands(
            ports,
            past,
            self.limits,
            self.secrets,
            lambda order: self._obeyed_before(order, resumed) or self._aside(order),
        )
        if landed is not past:
            self.cursor = hearing.cursor_of(landed)
            self.say("orders were obeyed")
        elif hearing.cursor_of(past) != self.cursor:
            self.cursor = hearing.cursor_of(past)  # a cycle heard them

    def _without_memory(self) -> None:
        waiting, cursor = self.inbox.read(self.note.read())
        now = self.ports.clock.now()
        answers = [ChatReply(o.chat, orders.late(o) if orders.too_old(o, now) else self._aside(o) or NO_MEMORY)
                   for o in waiting]  # fmt: skip  # one list
        self.note.keep(cursor)
        self.cursor = cursor
        self.inbox.read(cursor)  # Telegram forgets them: memory that comes to be knows nothing of this note
        hearing.send_replies(self.inbox, answers, self.say, self.secrets)

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
            return "The loop starts anew when its session is over."
        if not order.words:
            return None
        self.loop.guide(order)
        return "The loop's next session hears it, once."

    def _answered(self, order: ChatCommand) -> str | None:
        """An order answers one question, however often it is heard."""
        if before := self.loop.answered(order):
            return f"Answered: {truncate(before, 100)}"
        questions = self.loop.questions()
        if not questions:
            return None
        found = orders.match_question(order, questions)
        if isinstance(found, str):
            return f"Not obeyed: {found}."
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
        now, fares = self.ports.clock.now(), self.loop.progress()
        if fares and self.checked_at and now - self.checked_at >= self.checkin:
            self._tell(fares)
            self.checked_at = now
        elif fares and self.checked_at is None:
            self.checked_at = now
        elif not fares and self.checked_at:
            self._tell("The loop has ended.")
            self.checked_at = None

    def _tell(self, text: str) -> None:
        hearing.send_replies(self.inbox, [ChatReply(self.chat, text)], self.say, self.secrets)

    def _complain(self, what: str) -> None:
        if what != self.complaint:
            self.say(what)
        self.complaint = what
