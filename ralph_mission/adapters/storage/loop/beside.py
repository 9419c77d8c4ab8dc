"""The loop that runs in a checkout, as whoever stands beside it sees and steers it: by the files it hears from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ralph_mission.adapters.storage.loop import inbox, lock, place, state
from ralph_mission.adapters.storage.loop.inbox import Guide, Questions
from ralph_mission.adapters.storage.loop.stories import Stories
from ralph_mission.adapters.storage.memory.codec import UnreadableDocument
from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import Guidance
from ralph_mission.mission.chat.orders import OpenQuestion
from ralph_mission.mission.model.forge import ChatCommand
from ralph_mission.values import dataclass

SHORT = 200  # characters of an objective, on a phone


@dataclass(frozen=True, slots=True)
class Beside:
    """`RunningLoop` of the work tree `root`. A question that waited for `patience` is nobody's any more."""

    root: Path
    git_dir: Path
    patience: timedelta
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def progress(self) -> str:
        """As in `chat.attendant.RunningLoop`."""
        running = lock.holder(self.git_dir)
        return "\n".join((f"{str(running).capitalize()} is at work.", *self._lines())) if running else ""

    def guide(self, order: ChatCommand) -> None:
        """As in `chat.attendant.RunningLoop`: by the order's own id, so that it is said once."""
        place.prepare(self._folder)
        Guide(self._folder, self.now).keep(Guidance(_name(order), order.words, order.at))

    def restart(self) -> None:
        """As in `chat.attendant.RunningLoop`."""
        inbox.write(self._folder, "restart")

    def questions(self) -> tuple[OpenQuestion, ...]:
        """As in `chat.attendant.RunningLoop`."""
        return tuple(
            OpenQuestion(one.id, one.number, one.text, one.at, self.now() - one.at >= self.patience)
            for one in self._questions.open()
        )

    def answered(self, order: ChatCommand) -> str:
        """As in `chat.attendant.RunningLoop`: by the order's own id."""
        return next((one.text for one in self._questions.all() if one.by == _name(order)), "")

    def answer(self, question: OpenQuestion, order: ChatCommand) -> None:
        """As in `chat.attendant.RunningLoop`: by the order's own id."""
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
