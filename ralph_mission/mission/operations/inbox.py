"""Commands from a chat: read, applied in one commit of memory, and only then confirmed and answered.

The cursor that confirms them lands with what they change, so a crash at any moment leaves each applied exactly once. An
answer may get lost; it is never sent twice. A cycle applies what waits; `InboxPoller` does so between cycles and during
a loop.

An owner's chat gets one notice about a mission that got stuck. It is derived from the step between two committed
states, so it is never repeated: a crash before the commit leaves it to the next cycle, one after it to the forge, where
the owners are assigned. It is not public, so quiet hours do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from ralph_mission.errors import Lost, Missing, UserError
from ralph_mission.mission import execute, gather
from ralph_mission.mission.lifecycle import chat_commands
from ralph_mission.mission.lifecycle.chat_commands import (
    CURSOR,
    ChatProposal,
    ChatReply,
    CommandContext,
    OpenQuestion,
    apply_commands,
    by_chat,
    describe_proposal,
    how_to_answer,
    late,
    list_named_proposals,
    match_question,
    no_seal,
    too_old,
)
from ralph_mission.mission.lifecycle.waiting import show
from ralph_mission.mission.model.forge import ChatCommand
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot
from ralph_mission.mission.model.memory import Memory
from ralph_mission.mission.model.mission import Limits, Mission, Status
from ralph_mission.mission.operations import control
from ralph_mission.mission.ports import CyclePorts, Inbox
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import inline_words, truncate

LONGEST = 3_900  # characters of an answer; a network takes 4,096
NAMED = 5  # commands in the subject of a commit

Unaddressed = Callable[[ChatCommand], str | None]
"""Carries out a command at once, idempotently, and returns the answer; None: it is for memory."""


def nobody(order: ChatCommand) -> str | None:
    """None: only memory handles commands here."""
    return None


def apply_chat_commands(
    ports: CyclePorts, past: MemorySnapshot, limits: Limits, secrets: Sequence[str] = (), aside: Unaddressed = nobody
) -> MemorySnapshot:
    """Apply waiting commands to memory. An unreadable chat is only a line in the report.

    Raises Lost if another commit came first, UserError if memory is damaged: nothing is confirmed then, and everything
    is read again.
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
    applied = apply_commands(_redact_commands(rest, secrets), past.state, _store(ports, past, limits, rest))
    memory = with_cursor(past.memory, cursor)
    verbs = ", ".join(f"/{order.verb}" for order in waiting[:NAMED])
    subject = f"ralph: received {verbs}{' …' if len(waiting) > NAMED else ''} in a chat"
    landed = ports.store.commit(MemoryBatch(memory, applied.state, (), subject, paused=applied.paused), past)
    ports.progress.note(f"telegram: received {verbs}")
    send_replies(ports.inbox, (*answers, *applied.answers), ports.progress.note, secrets)
    ports.forge.show_dashboard("", gather.anchor_of(landed))
    return landed


def _aside(
    waiting: Iterable[ChatCommand], aside: Unaddressed, ports: CyclePorts
) -> tuple[tuple[ChatReply, ...], tuple[ChatCommand, ...]]:
    now, answers, rest = ports.clock.now(), list[ChatReply](), list[ChatCommand]()
    for order in waiting:
        reply = None if too_old(order, now) else aside(order)
        if reply is None:
            rest.append(order)
        else:
            answers.append(ChatReply(order.chat, reply))
    return tuple(answers), tuple(rest)


def cursor_of(past: MemorySnapshot) -> str:
    """How far commands were carried out."""
    return dict(past.memory.header.cursors).get(CURSOR, "")


def with_cursor(memory: Memory, cursor: str) -> Memory:
    """Memory with everything before `cursor` carried out."""
    pairs = {**dict(memory.header.cursors), CURSOR: cursor}
    return replace(memory, header=replace(memory.header, cursors=tuple(sorted(pairs.items()))))


def send_replies(
    inbox: Inbox, answers: Sequence[ChatReply], note: Callable[[str], None], secrets: Sequence[str] = ()
) -> None:
    """Send the answers, one message per chat; failures are noted and not sent again."""
    for reply in by_chat(answers):
        try:
            inbox.say(reply.chat, truncate(redact(reply.text, secrets), LONGEST))
        except UserError as problem:
            note(f"telegram: no answer to chat {reply.chat}: {problem.what}")


def _redact_commands(waiting: Iterable[ChatCommand], secrets: Sequence[str]) -> tuple[ChatCommand, ...]:
    """Memory is as public as the repository, so secrets in a chat are redacted."""
    return tuple(replace(order, words=redact(order.words, secrets)) for order in waiting)


def _store(ports: CyclePorts, past: MemorySnapshot, limits: Limits, waiting: Sequence[ChatCommand]) -> CommandContext:
    now = ports.clock.now()
    proposals = {number: _read_proposal(ports, past, number) for number in list_named_proposals(waiting, now)}
    stands = chat_commands.status(past.memory, past.state, limits.active_missions)
    return CommandContext(now, stands, proposals, ports.seal or no_seal)


def _read_proposal(ports: CyclePorts, past: MemorySnapshot, number: int) -> ChatProposal:
    try:
        issue = ports.forge.issue(number)
    except Missing:
        issue = None
    except UserError as problem:
        return ChatProposal(why=f"it could not be read ({problem.what}); send it again later")
    return describe_proposal(issue, past.state.missions, ports.forge.identity().id)


SHOWN = 300  # characters of what a stranger may have written: a title, and a mission's problem


def notify_stuck(
    ports: CyclePorts, before: Iterable[Mission], after: Iterable[Mission], secrets: Sequence[str] = ()
) -> None:
    """Notify the owner's chat about newly escalated missions. A failure is only a line in the report; a stop skips
    it."""
    stuck = newly_stuck(before, after)
    if not stuck or ports.inbox is None or execute.is_stopped(ports):
        return
    answers = [ChatReply(ports.inbox.chat, notice(mission, ports.forge.how)) for mission in stuck]
    send_replies(ports.inbox, answers, ports.progress.note, secrets)


def newly_stuck(before: Iterable[Mission], after: Iterable[Mission]) -> tuple[Mission, ...]:
    """Missions that were active before and are escalated now. One that memory did not know is not new: it was lost
    there and found again."""
    went_on = {mission.id for mission in before if mission.status is not Status.ESCALATED}
    return tuple(mission for mission in after if mission.status is Status.ESCALATED and mission.id in went_on)


def notice(mission: Mission, how: Callable[[str, int], str]) -> str:
    """Which one, why, and where to look; text from others is reduced to one harmless line."""
    words = inline_words(f"{mission.title}: {mission.last_action}", SHOWN)
    return f"Mission {mission.id} is stuck and needs a person.\n{words}\n{show(mission, how)}"


PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds between polls, and after repeated failures
NO_MEMORY = "Not done: there is no memory here yet. Run a cycle first."
QUESTION_LENGTH = 1_500  # characters of a question with its context


class RunningLoop(Protocol):
    """The loop that runs in this checkout, if any. Every call may raise UserError and OSError."""

    def progress(self) -> str:
        """Its progress in a few lines; "" if none runs."""

    def guide(self, order: ChatCommand) -> None:
        """Pass guidance to its next session, once."""

    def restart(self) -> None:
        """Restart it after its session."""

    def questions(self) -> Sequence[OpenQuestion]:
        """Unanswered questions of its sessions, oldest first."""

    def answered(self, order: ChatCommand) -> str:
        """The question that this command answered before, or ""."""

    def answer(self, question: OpenQuestion, order: ChatCommand) -> None:
        """Answer a question; only the first answer counts."""


class Note(Protocol):
    """Stores the cursor if there is no memory. Durable; may raise OSError."""

    def read(self) -> str:
        """The stored text, or ""."""

    def keep(self, cursor: str) -> None:
        """Store text."""


@dataclass(slots=True)
class InboxPoller:
    """Polls the chat of a checkout: its state between two polls. `chat`: where notices go."""

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
    sent_questions: set[str] = field(default_factory=set)  # ids of questions that were sent to the person
    early_pauses: set[int] = field(default_factory=set)  # pauses carried out before a running cycle ended
    checked_at: datetime | None = None  # when progress was last reported; None while no loop runs
    complaint: str = ""

    def poll_forever(self, sleep: Callable[[float], None]) -> None:
        """Poll until interrupted. Raises UserError for what waiting cannot fix."""
        failures = 0
        while True:
            failures = 0 if self.look() else failures + 1
            sleep(min(PAUSE * 2**failures, LONGEST_PAUSE))

    def look(self) -> bool:
        """Poll once; False if chat or memory could not be reached. Raises UserError (usage)."""
        try:
            self._hear()
            self._ask()
            self._check_in()
        except Lost:
            return True  # another commit came first; commands are read again
        except (UserError, OSError) as error:
            if isinstance(error, UserError) and error.exit_code == 2:
                raise
            self._complain(f"{error.what}; {error.next_step}" if isinstance(error, UserError) else str(error.strerror))
            return False
        self.complaint = ""
        return True

    # --- orders -----------------------------------------------------------------------

    def _hear(self) -> None:
        """Memory is only read once somebody says something."""
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
            self.cursor = cursor_of(past)  # a cycle handled them

    def _without_memory(self) -> None:
        waiting, cursor = self.inbox.read(self.note.read())
        now = self.ports.clock.now()
        answers = [ChatReply(o.chat, late(o) if too_old(o, now) else self._aside(o) or NO_MEMORY)
                   for o in waiting]  # fmt: skip  # one list
        self.note.keep(cursor)
        self.cursor = cursor
        self.inbox.read(cursor)  # Telegram drops them: memory created later knows nothing of this note
        send_replies(self.inbox, answers, self.say, self.secrets)

    def _brake(self, waiting: Sequence[ChatCommand]) -> None:
        """While a cycle runs, everything but a pause waits for its end, as memory is the cycle's."""
        now = self.ports.clock.now()
        for order in waiting:
            if order.verb == "pause" and order.id not in self.early_pauses and not too_old(order, now):
                control.pause(self.store)
                self.early_pauses.add(order.id)
                self.say("paused, a cycle is running")

    def _obeyed_before(self, order: ChatCommand, resumed: bool) -> str | None:
        """A pause that a cycle carried out and a person lifted by hand is over: that came later."""
        over = resumed and order.id in self.early_pauses
        return "Paused a running cycle; resumed by hand since." if over else None

    def _aside(self, order: ChatCommand) -> str | None:
        """What the loop here carries out, idempotently."""
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
        """A command answers one question, however often it is read."""
        if before := self.loop.answered(order):
            return f"Answered: {truncate(before, 100)}"
        questions = self.loop.questions()
        if not questions:
            return None
        found = match_question(order, questions)
        if isinstance(found, str):
            return f"Not done: {found}."
        self.loop.answer(found, order)
        return f"Answered: {truncate(found.words, 100)}"

    # --- messages nobody asked for -----------------------------------------------------------

    def _ask(self) -> None:
        for question in self.loop.questions():
            if question.id not in self.sent_questions and not question.over:
                self.sent_questions.add(question.id)
                self._tell(
                    f"An agent asks:\n{truncate(question.words, QUESTION_LENGTH)}\n\nSay: {how_to_answer(question)}"
                )

    def _check_in(self) -> None:
        """The first poll of a loop starts its interval; its end is reported at once."""
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
