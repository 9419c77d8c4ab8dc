"""What was asked and answered last, as memory keeps it between cycles: nothing new costs no request.

Memory grants nothing, so what is read back is validated like an answer that came just now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ralph_mission.mission.model import Finding
from ralph_mission.mission.ports import THINKER, Brief
from ralph_mission.thinkers.answer import ModelAnswer

PAID = 8  # payments whose names are kept: more runners do not die or lose at the same time
ROOM = 20_000  # characters of the head of memory; the words go first, then the answer


class Remembered(BaseModel):
    """`basis` is what else the answer rests on, `asked` names each finding, `answer` is empty after a bad one.

    `paid` names money that memory has booked, the newest last.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    basis: Annotated[str, Field(max_length=16)] = ""
    asked: Annotated[tuple[Annotated[str, Field(max_length=12)], ...], Field(max_length=200)] = ()
    answer: ModelAnswer = ModelAnswer(ranking=())
    paid: Annotated[tuple[Annotated[str, Field(max_length=16)], ...], Field(max_length=PAID)] = ()

    def covers(self, basis: str, findings: Sequence[Finding]) -> bool:
        """Whether nothing came that was not asked about on the same basis."""
        return self.basis == basis and {identity(finding) for finding in findings} <= set(self.asked)

    def written(self) -> str:
        """As memory keeps it."""
        for kept in (self, self.without_words(), self.bare()):
            if len(text := kept.model_dump_json(exclude_defaults=True)) <= ROOM:
                return text
        return ""

    def bare(self) -> Remembered:
        """Without the answer."""
        return self.model_copy(update={"answer": ModelAnswer(ranking=())})

    def with_paid(self, before: tuple[str, ...], name: str) -> Remembered:
        """With one more that is booked."""
        return self.model_copy(update={"paid": tuple(dict.fromkeys((*before, name)))[-PAID:]})

    def without_words(self) -> Remembered:
        """The order alone."""
        bare = (one.model_copy(update={"why": "", "sections": ()}) for one in self.answer.ranking)
        return self.model_copy(update={"answer": ModelAnswer(ranking=tuple(bare))})


def read(brief: Brief, later: str = "") -> Remembered:
    """What memory has of the last time, or what came `later`; nothing when there is none or it cannot be read."""
    try:
        return Remembered.model_validate_json(later or dict(brief.memory.header.cursors).get(THINKER) or "{}")
    except ValidationError:
        return Remembered()


def basis_of(brief: Brief, model: str) -> str:
    """All but the findings that an answer rests on: the model, people's verdicts and what they wrote in memory."""
    verdicts = sorted((kind, one.accepted, one.rejected) for kind, one in brief.acceptance.items())
    return _digest(repr((model, verdicts, brief.memory.learnings, brief.memory.do_not_repeat)), 16)


def identity(finding: Finding) -> str:
    """Which instance of which thing, and how bad: what a title says of its age changes nothing."""
    signal = finding.signal
    return _digest(repr((finding.fingerprint, signal.occurrence, signal.kind, str(signal.severity))), 12)


def payment(brief: Brief, nonce: str) -> str:
    """A name for what is paid now."""
    return _digest(f"{nonce} {brief.memory.header.lineage} {brief.memory.header.cycle} {brief.now}", 16)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:length]
