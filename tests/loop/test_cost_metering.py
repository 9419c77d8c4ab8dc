"""What sessions may have cost stays counted until a price that was told says less."""

from __future__ import annotations

import pytest

from ralph_mission.loop.cost import CostMeter, MeteredAgent
from ralph_mission.loop.model.state import AgentTurn, Hat, Session, SessionUsage

SESSION = Session(Hat("builder"), 1, "", ".")
PRICED = frozenset({"claude"})


def make_turn(usd: float | None, failure: str = "", agent: str = "") -> AgentTurn:
    return AgentTurn(failure=failure, usage=SessionUsage(1, cost_usd=usd), agent=agent)  # type: ignore[arg-type]  # a Failure


class Scripted:
    name = "claude"

    def __init__(self, *ends: AgentTurn | BaseException) -> None:
        self.ends = list(ends)

    def play(self, session: Session, stopped: object) -> AgentTurn:
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end


def cost(*ends: AgentTurn | BaseException, name: str = "claude") -> float:
    meter, agent = CostMeter(2.0, PRICED), Scripted(*ends)
    agent.name = name
    for end in ends:
        if isinstance(end, BaseException):
            with pytest.raises(type(end)):
                MeteredAgent(agent, meter).play(SESSION, lambda: False)
        else:
            MeteredAgent(agent, meter).play(SESSION, lambda: False)
    return meter.usd


def test_what_was_told_is_what_it_cost():
    assert cost() == 0.0 and cost(make_turn(0.25), make_turn(0.5)) == 0.75 and cost(make_turn(3.0)) == 3.0


@pytest.mark.parametrize("failure", ["timeout", "exit", "server"])
def test_a_session_that_broke_off_without_its_price_may_have_cost_all_that_was_set_aside(failure):
    assert cost(make_turn(None, failure)) == 2.0
    assert cost(make_turn(0.25), make_turn(None, failure), make_turn(0.25)) == 2.0
    assert cost(make_turn(2.5), make_turn(None, failure)) == 2.5


@pytest.mark.parametrize("end", [KeyboardInterrupt(), OSError(28, "No space left on device"), RuntimeError()])
def test_a_session_that_never_came_back_may_have_cost_all_of_it(end):
    assert cost(make_turn(0.25), end) == 2.0 and cost(end, name="command") == 2.0


def test_a_failure_that_tells_its_price_costs_that():
    assert cost(make_turn(0.1, "exit")) == 0.1 and cost(make_turn(0.0, "rate_limit")) == 0.0


def test_an_agent_that_never_tells_a_price_is_not_charged_for_its_failures():
    assert cost(make_turn(None), make_turn(None, "exit"), name="command") == 0.0


def test_an_agent_that_told_a_price_before_is_one_that_tells_it():
    assert cost(make_turn(0.25), make_turn(None, "timeout"), name="command") == 2.0


def test_who_played_in_its_place_counts_by_its_own_name():
    assert cost(make_turn(None, "exit", agent="codex")) == 0.0
    assert cost(make_turn(None, "exit", agent="claude"), name="codex") == 2.0
