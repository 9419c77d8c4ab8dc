"""What a model may answer: an order of findings that were named to it, words about them, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ralph_mission.mission.analysis import WRITABLE
from ralph_mission.mission.opinion import ModelRanking

WHY, TEXT = 400, 800  # characters
Heading = Literal["Options", "Risks", "What is not known", "How it would be checked"]
WRITTEN = 3  # findings with sections


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Written(_Strict):
    """One section of a finding's analysis."""

    heading: Heading
    text: Annotated[str, Field(max_length=TEXT)]


class RankedEntry(_Strict):
    """One finding."""

    fingerprint: Annotated[str, Field(max_length=64)]
    kind: Annotated[str, Field(max_length=64)]
    why: Annotated[str, Field(max_length=WHY)]
    ask: bool = False
    sections: Annotated[tuple[Written, ...], Field(max_length=len(WRITABLE))] = ()


class ModelAnswer(_Strict):
    """The findings, the most important first."""

    ranking: Annotated[tuple[RankedEntry, ...], Field(max_length=50)]


def wrong(answer: ModelAnswer, kinds: Mapping[str, str]) -> str:
    """What is wrong with it, "" when nothing is. `kinds`: of each finding that was named to it, by fingerprint."""
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
    """The answer as values of ours."""
    return tuple(
        ModelRanking(one.fingerprint, one.why, one.ask, tuple((part.heading, part.text) for part in one.sections))
        for one in answer.ranking
    )
