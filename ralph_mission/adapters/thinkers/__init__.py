"""Thinkers rank findings. A thinker chooses and describes; it never permits.

The default one ranks by rules, explains in plain words, costs nothing and imports next to nothing.
"""

from __future__ import annotations

from dataclasses import field

from ralph_mission.mission.findings import ranking
from ralph_mission.mission.model.proposal import Brief, Plan
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class RulesThinker:
    """Impact x severity x confidence x acceptance."""

    weights: dict[str, float] = field(default_factory=dict)

    def think(self, brief: Brief) -> Plan:
        """A ranking of the brief's findings, best first."""
        return Plan(ranking.rank(brief.findings, brief.acceptance, self.weights, brief.engagement))
