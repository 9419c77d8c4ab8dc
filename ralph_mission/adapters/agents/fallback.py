"""An ordered list of agents: the next one takes over when one is missing or down.

Down is a key that nobody knows, a provider's fault, and a limit that lasts longer than `patience`. Whatever an agent
did before it failed stays where it is, as after any failed session; what it took is in the turn. Models are named for
the favourite: the others use their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralph_mission.loop.model.state import AgentTurn, Session, SessionUsage
from ralph_mission.loop.ports import Agent
from ralph_mission.values import dataclass

PATIENCE = 300.0  # seconds of a limit that are waited for rather than changing the agent
GONE = ("missing", "auth", "server")


@dataclass(frozen=True, slots=True)
class FallbackAgent:
    """`agents`, at least one, the favourite first; each session begins with that one again."""

    agents: tuple[Agent, ...]
    patience: float = PATIENCE

    @property
    def name(self) -> str:
        """The favourite's."""
        return self.agents[0].name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session of the first agent that is there. The last one's failure is the turn's."""
        usage, passed, turn = SessionUsage(), list[str](), AgentTurn()
        for agent in self.agents:
            turn = agent.play(session if agent is self.agents[0] else replace(session, model=""), stopped).after(turn)
            usage += turn.usage
            if stopped() or agent is self.agents[-1] or not down(turn, self.patience):
                break
            passed.append(f"{agent.name}: {turn.failure}: {turn.detail}")
        told = "\n".join((*passed, turn.detail)) if turn.failure else turn.detail
        return replace(turn, detail=told, usage=replace(usage, sessions=1), agent=turn.agent or agent.name)


def down(turn: AgentTurn, patience: float) -> bool:
    """Whether somebody else has to play. A limit without a time is over soon, as far as anybody knows."""
    if turn.failure == "rate_limit":
        return turn.retry_after > patience
    return turn.failure in GONE
