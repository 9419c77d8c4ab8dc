"""Answers of a model: an order of known findings, words about them, and nothing else.

A reply is stored beside the repository until memory has it, so a cycle that dies pays once. Memory stores the last
question and answer, so nothing new costs no request. What is read back is validated like a fresh answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ralph_mission.adapters import files
from ralph_mission.mission.findings.ranking import ModelRanking
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.model.mission import Finding
from ralph_mission.mission.model.proposal import Brief
from ralph_mission.mission.ports import THINKER
from ralph_mission.mission.proposals.analysis import WRITABLE

WHY, TEXT = 400, 800  # characters
Heading = Literal["Options", "Risks", "What is not known", "How it would be checked"]
WRITTEN = 3  # findings with sections


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Written(_Strict):
    """A section of a finding's analysis."""

    heading: Heading
    text: Annotated[str, Field(max_length=TEXT)]


class RankedEntry(_Strict):
    """A ranked finding."""

    fingerprint: Annotated[str, Field(max_length=64)]
    kind: Annotated[str, Field(max_length=64)]
    why: Annotated[str, Field(max_length=WHY)]
    ask: bool = False
    sections: Annotated[tuple[Written, ...], Field(max_length=len(WRITABLE))] = ()


class ModelAnswer(_Strict):
    """The findings, most important first."""

    ranking: Annotated[tuple[RankedEntry, ...], Field(max_length=50)]


def wrong(answer: ModelAnswer, kinds: Mapping[str, str]) -> str:
    """What is wrong with the answer, or "". `kinds`: of each named finding, by fingerprint."""
    named = [ranked.fingerprint for ranked in answer.ranking]
    if strange := [name for name in named if name not in kinds]:
        return f"it names {len(strange)} findings that there are not"
    if len(set(named)) < len(named):
        return "it names a finding twice"
    if any(ranked.kind != kinds[ranked.fingerprint] for ranked in answer.ranking):
        return "it gives a finding another kind"
    if sum(bool(ranked.sections) for ranked in answer.ranking) > WRITTEN:
        return f"it writes sections for more than {WRITTEN} findings"
    return ""


def opinions(answer: ModelAnswer) -> tuple[ModelRanking, ...]:
    """The answer as our values."""
    return tuple(
        ModelRanking(one.fingerprint, one.why, one.ask, tuple((part.heading, part.text) for part in one.sections))
        for one in answer.ranking
    )


FILE = "thinker.json"
CAP = 1_000_000  # bytes of it
NAMED = 4  # cycles for which memory certainly has the names of costs; it keeps twice as many


class KeptReply(BaseModel):
    """`cursor`: of the last reply, after `cycle` of `lineage`. `usd` is booked once memory names `paid`."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    lineage: str = ""
    cycle: int = 0
    paid: str = ""
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    cursor: str = ""

    def spent_more(self, usd: float, cursor: str, paid: str) -> KeptReply:
        """Add the cost of another reply; `paid`: its name, if none is pending."""
        name = self.paid or paid
        return self.model_copy(update={"usd": self.usd + usd, "cursor": cursor or self.cursor, "paid": name})


def load(folder: Path | None, header: Header, booked: Collection[str]) -> KeptReply:
    """What memory lacks: a cost that is not among the `booked`, and what was learned in this cycle.

    Before the first cycle there is no lasting lineage.
    """
    here = KeptReply(lineage=header.lineage if header.cycle else "", cycle=header.cycle)
    if folder is None:
        return here
    with suppress(OSError, ValueError, ValidationError):
        reply = KeptReply.model_validate_json(files.content(folder / FILE, CAP) or b"")
        same = (reply.lineage, reply.cycle) == (here.lineage, here.cycle)
        fresh = reply.lineage in ("", here.lineage) and here.cycle - reply.cycle <= NAMED
        owed = fresh and reply.paid not in booked
        money = {"usd": reply.usd, "paid": reply.paid} if owed else {}
        return here.model_copy(update={**money, "cursor": reply.cursor if same else ""})
    return here


def save(folder: Path | None, reply: KeptReply) -> None:
    """Store it if possible; without storage, a dying cycle may pay again."""
    if folder is None:
        return
    with suppress(OSError):
        files.write(files.own(folder) / FILE, reply.model_dump_json().encode())


PAID = 8  # names of costs that are kept; no more runners die or lose at once
ROOM = 20_000  # characters in memory's header; words are dropped first, then the answer


class Remembered(BaseModel):
    """`basis`: what else the answer depends on. `asked`: the findings. `answer`: empty after a bad one.

    `paid`: names of booked costs, newest last.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    basis: Annotated[str, Field(max_length=16)] = ""
    asked: Annotated[tuple[Annotated[str, Field(max_length=12)], ...], Field(max_length=200)] = ()
    answer: ModelAnswer = ModelAnswer(ranking=())
    paid: Annotated[tuple[Annotated[str, Field(max_length=16)], ...], Field(max_length=PAID)] = ()

    def covers(self, basis: str, findings: Sequence[Finding]) -> bool:
        """Whether everything was asked about before, on the same basis."""
        return self.basis == basis and {identity(finding) for finding in findings} <= set(self.asked)

    def written(self) -> str:
        """The form for memory."""
        for reply in (self, self.without_words(), self.bare()):
            if len(text := reply.model_dump_json(exclude_defaults=True)) <= ROOM:
                return text
        return ""

    def bare(self) -> Remembered:
        """Without the answer."""
        return self.model_copy(update={"answer": ModelAnswer(ranking=())})

    def with_paid(self, before: tuple[str, ...], name: str) -> Remembered:
        """Add a booked cost."""
        return self.model_copy(update={"paid": tuple(dict.fromkeys((*before, name)))[-PAID:]})

    def without_words(self) -> Remembered:
        """Only the order."""
        bare = (one.model_copy(update={"why": "", "sections": ()}) for one in self.answer.ranking)
        return self.model_copy(update={"answer": ModelAnswer(ranking=tuple(bare))})


def read(brief: Brief, later: str = "") -> Remembered:
    """What memory has, or what came `later`; empty if unreadable."""
    try:
        return Remembered.model_validate_json(later or dict(brief.memory.header.cursors).get(THINKER) or "{}")
    except ValidationError:
        return Remembered()


def basis_of(brief: Brief, model: str) -> str:
    """What an answer depends on besides findings: the model, people's verdicts and their notes in memory."""
    verdicts = sorted((kind, one.accepted, one.rejected) for kind, one in brief.acceptance.items())
    return _digest(repr((model, verdicts, brief.memory.learnings, brief.memory.do_not_repeat)), 16)


def identity(finding: Finding) -> str:
    """The identity of a finding: instance and severity, without ages in titles."""
    signal = finding.signal
    return _digest(repr((finding.fingerprint, signal.occurrence, signal.kind, str(signal.severity))), 12)


def payment(brief: Brief, nonce: str) -> str:
    """A name for a new cost."""
    return _digest(f"{nonce} {brief.memory.header.lineage} {brief.memory.header.cycle} {brief.now}", 16)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:length]
