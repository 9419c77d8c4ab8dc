"""What sessions cost: sums of what was recorded, and a calculator over the user's own prices.

No price is built in, and no saving is claimed: both are computed from what the user gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ralph_mission.loop.model import HatOutput, State, Usage
from ralph_mission.trouble import Trouble

Prices = Mapping[str, Mapping[str, object]]
"""Model -> {"input": …, "output": …}, in dollars per million tokens; `default` is every other model."""
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took. One that is known by its sessions alone cannot tell what each story or task took."""

    usage: Usage
    by_hat: tuple[tuple[str, Usage], ...] = ()
    by_item: tuple[tuple[str, Usage], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """What one or more runs took, by hat and by story or task (in the order they first came up)."""

    runs: int
    hats: tuple[tuple[str, Usage], ...]
    items: tuple[tuple[str, Usage], ...]
    total: Usage


@dataclass(frozen=True, slots=True)
class Share:
    """One hat's part of an estimate; `usd` for all its sessions."""

    hat: str
    sessions: int
    model: str
    usd: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mix of models, and what the same sessions cost with one of the models in it everywhere."""

    shares: tuple[Share, ...]
    alone: tuple[tuple[str, float], ...]

    @property
    def usd(self) -> float:
        """The sum of the table, and nothing else."""
        return math.fsum(share.usd for share in self.shares)

    def saving(self, model: str) -> float:
        """The part of the cost of `model` everywhere that the mix saves: 0.3 is 30 %, negative is dearer."""
        alone = dict(self.alone)[model]
        return (alone - self.usd) / alone if alone else 0.0


def price(usage: Usage, model: str, prices: Prices) -> float | None:
    """Dollars for these tokens; None when the user has given no price for the model, nor for `default`.

    A provider's prefix (`anthropic:`) and a date at the end of a model's name may be left out in the prices.
    Raises Trouble for a price that is no amount.
    """
    known = next((prices[name] for name in _names(model) if name in prices), None)
    if known is None:
        return None
    dollars = [_amount(model, known, side) for side in ("input", "output")]
    return (usage.input_tokens * dollars[0] + usage.output_tokens * dollars[1]) / MILLION


def of_state(state: State) -> Run:
    """A run as its state has it."""
    return Run(state.usage, state.by_hat, state.by_item)


def of_sessions(outputs: Iterable[HatOutput]) -> Run:
    """A run as the records of its sessions have it."""
    rows = tuple((output.hat, output.usage) for output in outputs)
    return Run(sum((usage for _, usage in rows), Usage()), rows)


def table(runs: Iterable[Run], model: str = "", prices: Prices | None = None) -> Table:
    """All runs added up. What could not tell its cost is priced as tokens of `model`."""
    every = tuple(runs)
    return Table(
        len(every),
        _added((row for run in every for row in run.by_hat), model, prices or {}),
        _added((row for run in every for row in run.by_item), model, prices or {}),
        sum((_priced(run.usage, model, prices or {}) for run in every), Usage()),
    )


def estimate(
    sessions: Mapping[str, int], models: Mapping[str, str], model: str, tokens: tuple[int, int], prices: Prices
) -> Estimate:
    """What so many sessions of each hat cost, at `tokens` (input, output) a session.

    `models` names a hat's model, `model` that of the rest. Raises Trouble when a model or a price is missing.
    """
    worn = {hat: models.get(hat) or model for hat in sessions}
    shares = tuple(
        Share(hat, count, worn[hat], _needed(_usage(count, tokens), hat, worn[hat], prices))
        for hat, count in sessions.items()
    )
    every = _usage(sum(sessions.values()), tokens)
    used = dict.fromkeys([*worn.values(), *([model] if model else [])])
    return Estimate(shares, tuple((name, _needed(every, "all", name, prices)) for name in used))


def _usage(sessions: int, tokens: tuple[int, int]) -> Usage:
    return Usage(sessions, sessions * tokens[0], sessions * tokens[1])


def _needed(usage: Usage, hat: str, model: str, prices: Prices) -> float:
    if not model:
        raise Trouble(f"no model is named for {hat}", "name one with --model, or --models HAT=MODEL", usage=True)
    dollars = price(usage, model, prices)
    if dollars is None:
        mend = "set it in ralph.yml under cost: prices:, or with --price MODEL=INPUT/OUTPUT"
        raise Trouble(f"no price is known for {model}", mend, usage=True)
    return dollars


def _amount(model: str, known: Mapping[str, object], side: str) -> float:
    value = known.get(side) if isinstance(known, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        mend = "write it as {input: 3, output: 15}: dollars per million tokens"
        raise Trouble(f"the {side} price of {model} is not an amount", mend, usage=True)
    return float(value)


def _names(model: str) -> tuple[str, ...]:
    bare = re.split(r"[:/]", model)[-1]
    return (model, bare, re.sub(r"-\d{8}$|-\d{4}-\d\d-\d\d$", "", bare), "default")


def _added(rows: Iterable[tuple[str, Usage]], model: str, prices: Prices) -> tuple[tuple[str, Usage], ...]:
    sums: dict[str, Usage] = {}
    for name, usage in rows:
        sums[name] = sums.get(name, Usage()) + _priced(usage, model, prices)
    return tuple(sums.items())


def _priced(usage: Usage, model: str, prices: Prices) -> Usage:
    if usage.cost_usd is not None or not model or not (usage.input_tokens or usage.output_tokens):
        return usage
    dollars = price(usage, model, prices)
    return replace(usage, cost_usd=dollars, unpriced=0)
