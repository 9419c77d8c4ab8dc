"""What several sources have in common: a question is asked once for all of them, and one says what they all lack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime

from ralph_mission.trouble import UserError


class Errands:
    """Answers of one look, which is known by its time; those of an earlier one are forgotten."""

    def __init__(self) -> None:
        self._lock, self._now = threading.Lock(), datetime.min
        self._known: dict[str, Future[str]] = {}
        self._speakers: dict[str, str] = {}

    def speaks(self, kind: str, name: str) -> bool:
        """Whether a source is the one that says what every source of its kind lacks: the first that asked this."""
        return self._speakers.setdefault(kind, name) == name

    def once(self, now: datetime, question: str, ask: Callable[[], str]) -> str:
        """What `ask` gave to whoever came first with this question. Raises what it raised: Trouble for the web."""
        with self._lock:
            if now != self._now:
                self._now, self._known = now, {}
            first = question not in self._known
            answer = self._known.setdefault(question, Future())
        if first:
            _run(ask, answer)
        return answer.result()


def _run(ask: Callable[[], str], answer: Future[str]) -> None:
    try:
        answer.set_result(ask())
    except UserError as trouble:
        answer.set_exception(trouble)
    except BaseException as error:
        answer.set_exception(UserError("the question was cut off", "nothing was lost; the next cycle tries again"))
        raise error
