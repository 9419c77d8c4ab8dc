"""The cost of sessions: sums of recorded costs, and a calculator with the user's own prices.

No prices are built in, and no savings are claimed: both are computed from the user's figures.

`CostMeter` bounds the cost of sessions with a reserve: only a reported price refunds part of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from ralph_mission.errors import UserError
from ralph_mission.loop.model.state import AgentTurn, HatOutput, RunState, Session, SessionUsage
from ralph_mission.loop.ports import Agent, RunPorts
from ralph_mission.values import dataclass

Prices = Mapping[str, Mapping[str, object]]
"""Model -> {"input": …, "output": …} in dollars per million tokens; `default` is for every other model."""
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run of which only the sessions are known: there is none per story or task."""

    usage: SessionUsage
    by_hat: tuple[tuple[str, SessionUsage], ...]
    by_item: tuple[tuple[str, SessionUsage], ...] = ()


@dataclass(frozen=True, slots=True)
class CostTable:
    """The cost of one or more runs, by hat and by story or task (in order of appearance)."""

    runs: int
    hats: tuple[tuple[str, SessionUsage], ...]
    items: tuple[tuple[str, SessionUsage], ...]
    total: SessionUsage


@dataclass(frozen=True, slots=True)
class CostShare:
    """A hat's share of an estimate; `usd` for all its sessions."""

    hat: str
    sessions: int
    model: str
    usd: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of a mix of models, and of the same sessions with only one of its models."""

    shares: tuple[CostShare, ...]
    alone: tuple[tuple[str, float], ...]

    @property
    def usd(self) -> float:
        """The sum of the table."""
        return math.fsum(share.usd for share in self.shares)

    def saving(self, model: str) -> float:
        """The share the mix saves compared with `model` everywhere: 0.3 is 30 %, negative is more expensive."""
        alone = dict(self.alone)[model]
        return (alone - self.usd) / alone if alone else 0.0


def price(usage: SessionUsage, model: str, prices: Prices) -> float | None:
    """Dollars for these tokens; None if the user gave no price for the model or `default`.

    A provider's prefix (`anthropic:`) and a date at the end of a model's name are optional in the prices. Raises
    UserError for an invalid price.
    """
    known = next((prices[name] for name in _names(model) if name in prices), None)
    if known is None:
        return None
    dollars = [_amount(model, known, side) for side in ("input", "output")]
    return (usage.input_tokens * dollars[0] + usage.output_tokens * dollars[1]) / MILLION


def of_sessions(outputs: Iterable[HatOutput]) -> RunCost:
    """The cost of a run by its sessions' records."""
    rows = tuple((output.hat, output.usage) for output in outputs)
    return RunCost(sum((usage for _, usage in rows), SessionUsage()), rows)


def table(runs: Iterable[RunState | RunCost], model: str = "", prices: Prices | None = None) -> CostTable:
    """All runs added up. Sessions without a reported cost are priced by tokens as `model`."""
    every = tuple(runs)
    return CostTable(
        len(every),
        _sum_by_name((row for run in every for row in run.by_hat), model, prices or {}),
        _sum_by_name((row for run in every for row in run.by_item), model, prices or {}),
        sum((_with_price(run.usage, model, prices or {}) for run in every), SessionUsage()),
    )


def estimate(
    sessions: Mapping[str, int], models: Mapping[str, str], model: str, tokens: tuple[int, int], prices: Prices
) -> CostEstimate:
    """Estimate the cost of a number of sessions per hat, at `tokens` (input, output) a session.

    `models`: models by hat; `model`: for all others. Raises UserError if a model or a price is missing.
    """
    worn = {hat: models.get(hat) or model for hat in sessions}
    shares = tuple(
        CostShare(hat, count, worn[hat], _require_price(_usage(count, tokens), hat, worn[hat], prices))
        for hat, count in sessions.items()
    )
    every = _usage(sum(sessions.values()), tokens)
    used = dict.fromkeys([*worn.values(), *([model] if model else [])])
    return CostEstimate(shares, tuple((name, _require_price(every, "all", name, prices)) for name in used))


def _usage(sessions: int, tokens: tuple[int, int]) -> SessionUsage:
    return SessionUsage(sessions, sessions * tokens[0], sessions * tokens[1])


def _require_price(usage: SessionUsage, hat: str, model: str, prices: Prices) -> float:
    if not model:
        raise UserError(f"no model is named for {hat}", "name one with --model, or --models HAT=MODEL", usage=True)
    dollars = price(usage, model, prices)
    if dollars is None:
        hint = "set it in ralph.yml under cost: prices:, or with --price MODEL=INPUT/OUTPUT"
        raise UserError(f"no price is known for {model}", hint, usage=True)
    return dollars


def _amount(model: str, known: Mapping[str, object], side: str) -> float:
    value = known.get(side) if isinstance(known, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        hint = "write it as {input: 3, output: 15}: dollars per million tokens"
        raise UserError(f"the {side} price of {model} is not an amount", hint, usage=True)
    return float(value)


def _names(model: str) -> tuple[str, ...]:
    bare = re.split(r"[:/]", model)[-1]
    return (model, bare, re.sub(r"-\d{8}$|-\d{4}-\d\d-\d\d$", "", bare), "default")


def _sum_by_name(
    rows: Iterable[tuple[str, SessionUsage]], model: str, prices: Prices
) -> tuple[tuple[str, SessionUsage], ...]:
    sums: dict[str, SessionUsage] = {}
    for name, usage in rows:
        sums[name] = sums.get(name, SessionUsage()) + _with_price(usage, model, prices)
    return tuple(sums.items())


def _with_price(usage: SessionUsage, model: str, prices: Prices) -> SessionUsage:
    if usage.cost_usd is not None or not model or not (usage.input_tokens or usage.output_tokens):
        return usage
    dollars = price(usage, model, prices)
    return replace(usage, cost_usd=dollars, unpriced=0)


@dataclass(frozen=True, slots=True)
class CostMeter:
    """Counts sessions as they start, and their cost as they end. `reserved`: for all of them, in USD.

    `pricing`: agents known to report a price, as is one that did before. `starts` and `ends` hold the agent of each
    session, the second with its turn, which may name another. Concurrent sessions only append, so none is lost.
    """

    reserved: float
    pricing: frozenset[str] = frozenset()
    starts: list[str] = field(default_factory=list)
    ends: list[tuple[str, AgentTurn]] = field(default_factory=list)

    @property
    def begun(self) -> int:
        """The number of sessions started."""
        return len(self.starts)

    @property
    def usd(self) -> float:
        """Their cost; at least the reserve while any session that should report a price has not."""
        ends = tuple(self.ends)
        known = sum((turn.usage for _, turn in ends), SessionUsage()).cost_usd or 0.0
        broken = {turn.agent or player for player, turn in ends if turn.failure and turn.usage.untold}
        doubt = self.begun > len(ends) or broken & self.pricing or (broken and known > 0)
        return max(known, self.reserved) if doubt else known


@dataclass(frozen=True, slots=True)
class MeteredAgent:
    """An agent whose sessions are metered. One cut off by an exception or interrupt never counts as ended."""

    agent: Agent
    meter: CostMeter

    @property
    def name(self) -> str:
        """The agent's own."""
        return self.agent.name

    def play(self, session: Session, stopped: Callable[[], bool]) -> AgentTurn:
        """One session."""
        self.meter.starts.append(self.agent.name)
        turn = self.agent.play(session, stopped)
        self.meter.ends.append((self.agent.name, turn))
        return turn


def meter_ports(ports: RunPorts, meter: CostMeter) -> RunPorts:
    """The ports of a loop with metered sessions."""
    return replace(ports, agent=MeteredAgent(ports.agent, meter))
