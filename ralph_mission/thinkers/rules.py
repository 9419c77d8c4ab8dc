"""The embedded default: ranks by rule, explains in plain words, costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ralph_mission.mission import ranking
from ralph_mission.mission.ports import Brief, Plan

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class Settings(BaseModel):
    """`thinker:` in ralph.yml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["rules"] = Field("rules", description="Who ranks findings; `rules` needs no model.")
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="Multiplies the impact of a finding kind: {spelling: 0.5, bug: 2}."
    )


@dataclass(frozen=True, slots=True)
class RulesThinker:
    """Impact x confidence x acceptance / effort."""

    weights: dict[str, float] = field(default_factory=dict)

    def think(self, brief: Brief) -> Plan:
        """A ranking of the brief's findings, best first."""
        return Plan(ranking.rank(brief.findings, brief.acceptance, self.weights))
