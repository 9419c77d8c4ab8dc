"""What sessions may have cost where money was set aside for them: a price that was told gives back, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ralph_mission.loop.model import AgentTurn, Session, SessionUsage
from ralph_mission.loop.ports import Agent, RunPorts


@dataclass(frozen=True, slots=True)
class CostMeter:
    """Counts sessions as they begin and what they tell as they end. `reserved` was set aside for all of them, in USD.

    `pricing` are the agents that are known to tell a price; one that told one before is another. Sessions side by side
    only append, which loses none of them.
    """

    reserved: float
    pricing: frozenset[str] = frozenset()
    starts: list[str] = field(default_factory=list)
    ends: list[tuple[str, AgentTurn]] = field(default_factory=list)

    @property
    def begun(self) -> int:
        """Sessions that began."""
        return len(self.starts)

    @property
    def usd(self) -> float:
        """What they cost; at least all that was set aside while one that would have told its price has not."""
        ends = tuple(self.ends)
        known = sum((turn.usage for _, turn in ends), SessionUsage()).cost_usd or 0.0
        broken = {turn.agent or player for player, turn in ends if turn.failure and turn.usage.untold}
        doubt = self.begun > len(ends) or broken & self.pricing or (broken and known > 0)
        return max(known, self.reserved) if doubt else known

    def begin(self, player: str) -> None:
        """A session of this agent begins."""
        self.starts.append(player)

    def hear(self, turn: AgentTurn, player: str) -> None:
        """One ended, by this agent if its turn names no other."""
        self.ends.append((player, turn))


@dataclass(frozen=True, slots=True)
class MeteredAgent:
    """An agent whose sessions are counted. One that an exception or an interrupt cut off never counts as ended."""

    agent: Agent
    meter: CostMeter

    @property
    def name(self) -> str:
        """The agent's own."""
        return self.agent.name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session."""
        self.meter.begin(self.agent.name)
        turn = self.agent.play(session, stopped)
        self.meter.hear(turn, self.agent.name)
        return turn


def meter_ports(ports: RunPorts, meter: CostMeter) -> RunPorts:
    """The ports of a loop whose sessions are counted."""
    return replace(ports, agent=MeteredAgent(ports.agent, meter))
