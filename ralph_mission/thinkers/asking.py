"""What asking a model means to the thinker, whoever is asked: a question, an answer or a reason, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ralph_mission.mission.model import Usage
from ralph_mission.thinkers.answer import ModelAnswer


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """`order` is ours, `text` the brief; `kinds` are those of the findings in it, by fingerprint."""

    order: str
    text: str
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """`answer` or, in `trouble`, why there is none and who must act. `final`: asking the same again is of no use.

    `doubtful` requests were sent, and nobody knows what they cost.
    """

    answer: ModelAnswer | None
    trouble: str = ""
    final: bool = False
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    doubtful: int = 0


class Ask(Protocol):
    """One model. Bounded in time, in bytes and in requests; raises nothing for what a network or a model does."""

    def __call__(self, question: ModelQuestion) -> Reply:
        """Ask it."""
        ...


@dataclass(frozen=True, slots=True)
class Bill:
    """What a model costs. `price` gives USD for tokens read and written; None: nobody knows."""

    price: Callable[[int, int], float | None]
    max_output: int = 4_000  # tokens of one answer

    @property
    def known(self) -> bool:
        """Whether there is a price."""
        return self.price(1, 1) is not None

    def usd(self, read: int, written: int) -> float:
        """Dollars; at the most careful assumption where nobody knows."""
        known = self.price(read, written)
        return CAREFUL[0] * read / 1e6 + CAREFUL[1] * written / 1e6 if known is None else known

    def most(self, question: ModelQuestion) -> float:
        """What one request may cost at most, one that repeats an answer included.

        A token has two letters at least in what people write, and one byte in what is none of theirs.
        """
        return self.usd(size(question) + self.max_output, self.max_output)

    def usage(self, reply: Reply, question: ModelQuestion) -> Usage:
        """What the reply took. What is in doubt counts as the most that it may have cost."""
        spent = self.usd(reply.input_tokens, reply.output_tokens) + reply.doubtful * self.most(question)
        return Usage(reply.requests, reply.input_tokens, reply.output_tokens, round(spent, 6))


def size(question: ModelQuestion) -> int:
    """The most tokens that a question may have: half as many as ASCII has letters, and one for each other byte."""
    text = question.order + question.text
    plain = len(text.encode("ascii", "ignore"))
    return (plain + SCHEMA) // 2 + len(text.encode(errors="surrogatepass")) - plain


CAREFUL = (15.0, 75.0)
"""USD per million tokens read and written, for a model whose price nobody knows."""
SCHEMA = 6_000  # bytes of the tool that is offered
