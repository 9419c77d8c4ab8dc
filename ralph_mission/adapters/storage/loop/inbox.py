"""Messages between people and sessions through files, and the running loop as seen by a chat.

`.ralph/loop/guidance.jsonl` holds people's guidance, and what was given to sessions. `questions.jsonl` beside it holds
sessions' questions and the answers; whoever answers holds a lock, so that no session waits in vain. Files are
append-only. `.ralph/loop/signal` is a one-word request to the running loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from ralph_mission.adapters import files
from ralph_mission.adapters.storage.loop import lock, run_files, state
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.memory.codec import UnreadableDocument
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import Guidance, StopSignal
from ralph_mission.mission.lifecycle.chat_commands import OpenQuestion
from ralph_mission.mission.model.forge import ChatCommand
from ralph_mission.values import dataclass

CAP = 16 * 1024 * 1024
LENGTH = 4000
"""Characters of a guidance, which goes into a prompt whole."""
LONGEST_QUESTION = 1_000
"""Characters of a question, which is read on a phone."""


@dataclass(frozen=True, slots=True)
class Guide:
    """The guidance of one checkout; `folder` is its `.ralph`. Every call may raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def path(self) -> Path:
        """The guidance file."""
        return self.folder / "loop" / "guidance.jsonl"

    def say(self, text: str) -> Guidance:
        """Store guidance for the next session. Raises UserError if it is empty or very long."""
        words = text.strip()
        if not words or len(words) > LENGTH:
            wrong = "is too long" if words else "needs words"
            raise UserError(
                f"guidance {wrong}", f"say in at most {LENGTH:,} characters what the next session has to know"
            )
        message = Guidance(f"guidance-{os.urandom(4).hex()}", words, self.now())
        self.keep(message)
        return message

    def keep(self, message: Guidance) -> None:
        """Store guidance from elsewhere under its id there, once."""
        if message.id not in {known.id for known, _ in self.all()}:
            run_files.append(
                self.path, run_files.dump_object({"id": message.id, "ts": message.at.isoformat(), "text": message.text})
            )

    def all(self) -> tuple[tuple[Guidance, bool], ...]:
        """All guidance, oldest first, and whether it was given."""
        lines = run_files.read_objects(self.path, CAP)
        delivered = {values["acknowledged"] for values in lines if isinstance(values.get("acknowledged"), str)}
        messages = {found.id: found for values in lines if (found := _guidance(values))}
        return tuple((found, found.id in delivered) for found in messages.values())

    def pending(self) -> tuple[Guidance, ...]:
        """Guidance not given to a session yet, oldest first."""
        return tuple(message for message, delivered in self.all() if not delivered)

    def acknowledge(self, ids: Iterable[str]) -> None:
        """Mark guidance as given; unknown ids are ignored."""
        waiting = {message.id for message in self.pending()}
        for id in dict.fromkeys(ids):
            if id in waiting:
                run_files.append(self.path, run_files.dump_object({"acknowledged": id, "ts": self.now().isoformat()}))


@dataclass(frozen=True, slots=True)
class Question:
    """A session's question, the `number`th of this checkout; `answer` is None until a person answers."""

    id: str
    number: int
    text: str
    at: datetime
    answer: str | None = None
    by: str = ""  # the command that answered it


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a checkout; `folder` is its `.ralph`. Every call may raise UserError and OSError."""

    folder: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def ask(self, text: str) -> Question:
        """Ask a question. Raises UserError if it is empty or very long."""
        words = text.strip()
        if not words or len(words) > LONGEST_QUESTION:
            what = "the question is too long" if words else "there is no question"
            raise UserError(what, f"ask in at most {LONGEST_QUESTION:,} characters", usage=True)
        id, at = f"question-{os.urandom(4).hex()}", self.now()
        self._add({"id": id, "ts": at.isoformat(), "text": words})
        return next(one for one in self.all() if one.id == id)

    def answer(self, id: str, words: str, by: str = "") -> None:
        """Answer a question; only the first answer counts. `by` names the command, so that it answers no other."""
        self._add({"answers": id, "ts": self.now().isoformat(), "text": words, "by": by})

    def all(self) -> tuple[Question, ...]:
        """All questions, oldest first."""
        lines = run_files.read_objects(self._path, CAP)
        answers: dict[str, tuple[str, str]] = {}
        for values in lines:
            if isinstance(values.get("answers"), str):
                answers.setdefault(values["answers"], (str(values.get("text", "")), str(values.get("by", ""))))
        entries = (values for values in lines if _is_question(values))
        return tuple(found for at, values in enumerate(entries, 1) if (found := _question(values, at, answers)))

    def open(self) -> tuple[Question, ...]:
        """The unanswered questions."""
        return tuple(question for question in self.all() if question.answer is None)

    def attended(self) -> AbstractContextManager[bool]:
        """A lock held by whoever answers; False if somebody does already."""
        return files.hold_file(self.folder / "loop" / "questions.lock")

    @property
    def heard(self) -> bool:
        """Whether anybody answers right now."""
        with self.attended() as lock:
            return not lock

    @property
    def _path(self) -> Path:
        return self.folder / "loop" / "questions.jsonl"

    def _add(self, values: dict[str, str]) -> None:
        run_files.append(self._path, run_files.dump_object(values))


def _guidance(values: dict[str, Any]) -> Guidance | None:
    id, text = values.get("id"), values.get("text")
    if not (isinstance(id, str) and id and isinstance(text, str) and text.strip()):
        return None
    return Guidance(id, text.strip(), run_files.parse_moment(values.get("ts")) or datetime.fromtimestamp(0, UTC))


def _is_question(values: dict[str, Any]) -> bool:
    id, text = values.get("id"), values.get("text")
    return isinstance(id, str) and isinstance(text, str) and bool(text.strip())


def _question(values: dict[str, Any], number: int, answers: dict[str, tuple[str, str]]) -> Question | None:
    id, text, at = values["id"], values["text"], run_files.parse_moment(values.get("ts"))
    return Question(id, number, text.strip()[:LONGEST_QUESTION], at, *answers.get(id, (None, ""))) if at else None


WORDS: dict[str, StopSignal] = {word: word for word in get_args(StopSignal) if word}


def read(folder: Path) -> StopSignal:
    """The current request, or "". `folder` is `.ralph`."""
    try:
        word = run_files.read(_path(folder), 64) or b""
    except UserError:
        return ""
    return WORDS.get(word.decode(errors="replace").strip(), "")


def write(folder: Path, signal: StopSignal) -> None:
    """Request something of the running loop. Raises OSError."""
    run_files.write(_path(folder), f"{signal}\n".encode())


def clear(folder: Path) -> None:
    """Remove the request: it was handled, or a new run begins. Raises OSError."""
    run_files.remove(_path(folder))


def _path(folder: Path) -> Path:
    return folder / "loop" / "signal"


SHORT = 200  # characters of an objective, on a phone


@dataclass(frozen=True, slots=True)
class Beside:
    """The `RunningLoop` of the work tree `root`. A question expires after `patience`."""

    root: Path
    git_dir: Path
    patience: timedelta
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def progress(self) -> str:
        """Its progress in a few lines, or ""."""
        running = lock.holder(self.git_dir)
        return "\n".join((f"{str(running).capitalize()} is at work.", *self._lines())) if running else ""

    def guide(self, order: ChatCommand) -> None:
        """Pass guidance to its next session, once, by the command's id."""
        run_files.prepare(self._folder)
        Guide(self._folder, self.now).keep(Guidance(_name(order), order.words, order.at))

    def restart(self) -> None:
        """Restart it after its session."""
        write(self._folder, "restart")

    def questions(self) -> tuple[OpenQuestion, ...]:
        """Unanswered questions of its sessions, oldest first."""
        return tuple(
            OpenQuestion(one.id, one.number, one.text, one.at, self.now() - one.at >= self.patience)
            for one in self._questions.open()
        )

    def answered(self, order: ChatCommand) -> str:
        """The question that this command answered before, or ""."""
        return next((one.text for one in self._questions.all() if one.by == _name(order)), "")

    def answer(self, question: OpenQuestion, order: ChatCommand) -> None:
        """Answer a question; only the first answer counts."""
        self._questions.answer(question.id, order.words, _name(order))

    @property
    def _folder(self) -> Path:
        return self.root / ".ralph"

    @property
    def _questions(self) -> Questions:
        return Questions(self._folder, self.now)

    def _lines(self) -> tuple[str, ...]:
        try:
            stands, prd = state.load(self.root), Stories(self.root).read()
        except (UnreadableDocument, UserError, OSError):
            return ("Its state cannot be read just now.",)
        if stands is None:
            return ("It has not begun a session yet.",)
        stories = prd.stories if prd else ()
        passing = f", {sum(story.passes for story in stories)} of {len(stories)} stories pass" if stories else ""
        on = f" It is on {stands.item}." if stands.item else ""
        return f"{stands.objective[:SHORT]}", f"Session {stands.iteration}{passing}.{on}"


def _name(order: ChatCommand) -> str:
    return f"telegram-{order.id}"
