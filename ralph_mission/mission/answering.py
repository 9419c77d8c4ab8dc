"""Which of an agent's questions a person's answer is to. What is in doubt answers none of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ralph_mission.mission.posts import ChatCommand


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that nobody answered, the `number`th of its checkout; `over`: its session waits for it no more."""

    id: str
    number: int
    words: str
    at: datetime
    over: bool = False


def match_question(order: ChatCommand, questions: Sequence[OpenQuestion]) -> OpenQuestion | str:
    """The question that an order answers, or why it answers none.

    A number may be left out where one question alone was ever left open, and was there when the order was written.
    """
    waiting = [question for question in questions if not question.over]
    if order.number:
        waiting = [question for question in waiting if question.number == order.number]
    if not waiting:
        return f"the question {order.number} is not open" if order.number else "no question is open here"
    there = waiting[0].at.replace(microsecond=0) <= order.at  # a chat tells whole seconds
    if not order.number and (len(questions) > 1 or not there):
        return f"say which question you mean: {' or '.join(how_to_answer(question) for question in waiting)}"
    return waiting[0] if order.words else f"an answer needs words: {how_to_answer(waiting[0])}"


def how_to_answer(question: OpenQuestion) -> str:
    """What a person says to answer it."""
    return f"/answer {question.number} WORDS"
