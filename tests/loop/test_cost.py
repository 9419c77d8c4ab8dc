"""Sums of what was recorded, and a calculator that claims nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from ralph_mission.errors import UserError
from ralph_mission.loop import cost
from ralph_mission.loop.model.state import HatOutput, RunState, SessionUsage

PRICES = {"large": {"input": 15, "output": 75}, "small": {"input": 1, "output": 5.0}}
SEED = {"planner": 5, "builder": 30, "reviewer": 28, "fixer": 4}
"""Sessions of each hat in the run that seed 001 tells of."""


# --- a price ------------------------------------------------------------------------


def test_a_price_is_dollars_per_million_tokens_read_and_written() -> None:
    assert cost.price(SessionUsage(1, 2_000_000, 100_000), "large", PRICES) == pytest.approx(30 + 7.5)


def test_an_unknown_model_has_no_price_rather_than_a_guess() -> None:
    assert cost.price(SessionUsage(1, 10, 10), "other", PRICES) is None
    assert cost.price(SessionUsage(1, 1_000_000, 0), "other", {**PRICES, "default": {"input": 2, "output": 2}}) == 2


@pytest.mark.parametrize(
    "model", ["anthropic:large", "openrouter/anthropic/large", "large-20250929", "x/large-2025-09-29"]
)
def test_a_provider_and_a_date_may_be_left_out_of_the_prices(model: str) -> None:
    assert cost.price(SessionUsage(1, 1_000_000, 0), model, PRICES) == 15


@pytest.mark.parametrize("amount", [-1, True, "3", None, math.nan, math.inf])
def test_a_price_that_is_no_amount_is_named(amount: object) -> None:
    with pytest.raises(UserError, match="input price of m"):
        cost.price(SessionUsage(1, 1, 1), "m", {"m": {"input": amount, "output": 1}})


# --- the table ----------------------------------------------------------------------


def run(*hats: tuple[str, SessionUsage], items: tuple[tuple[str, SessionUsage], ...] = ()) -> RunState:
    return RunState(
        "r",
        "o",
        datetime(2026, 1, 1, tzinfo=UTC),
        usage=sum((u for _, u in hats), SessionUsage()),
        by_hat=hats,
        by_item=items,
    )


def test_runs_are_added_up_by_hat_and_by_item() -> None:
    one = run(
        ("builder", SessionUsage(2, 100, 10, 0.5)),
        ("reviewer", SessionUsage(1, 50, 5, 0.1)),
        items=(("US-1", SessionUsage(3, 150, 15, 0.6)),),
    )
    two = run(("builder", SessionUsage(1, 10, 1, 0.25)))
    made = cost.table([one, two])
    assert dict(made.hats)["builder"] == SessionUsage(3, 110, 11, 0.75)
    assert made.items == (("US-1", SessionUsage(3, 150, 15, 0.6)),)
    assert made.total.cost_usd == pytest.approx(0.85) and made.total.sessions == 4 and made.runs == 2


def test_a_run_known_by_its_sessions_alone_counts_by_hat() -> None:
    outputs = [
        HatOutput("builder", 1, usage=SessionUsage(1, 10, 1, 0.1)),
        HatOutput("builder", 2, usage=SessionUsage(2, 10, 1, 0.1)),
    ]
    made = cost.table([cost.of_sessions(outputs)])
    assert made.hats == (("builder", SessionUsage(3, 20, 2, 0.2)),) and made.total == SessionUsage(3, 20, 2, 0.2)


def test_tokens_without_a_cost_are_priced_only_when_a_model_is_named() -> None:
    told = run(("builder", SessionUsage(1, 1_000_000, 0)))
    assert cost.table([told]).total.cost_usd is None
    assert cost.table([told], "small", PRICES).total.cost_usd == 1
    assert cost.table([run(("b", SessionUsage(1, 1_000_000, 0, 9.0)))], "small", PRICES).total.cost_usd == 9.0


def test_no_run_is_an_empty_table() -> None:
    assert cost.table([]) == cost.CostTable(0, (), (), SessionUsage())


# --- the calculator -----------------------------------------------------------------


def test_the_total_is_the_sum_of_the_rows_so_that_233_is_never_called_420() -> None:
    """Dollars per session that make the seed's 5, 30, 28 and 4 sessions come to $2.33, which it calls $4.20."""
    prices = {name: {"input": usd * 100, "output": 0} for name, usd in
              {"p": 0.05, "b": 0.04, "r": 0.02, "f": 0.08}.items()}  # fmt: skip  # 10,000 tokens a session
    models = {"planner": "p", "builder": "b", "reviewer": "r", "fixer": "f"}
    made = cost.estimate(SEED, models, "", (10_000, 0), prices)
    assert [round(share.usd, 2) for share in made.shares] == [0.25, 1.2, 0.56, 0.32]
    assert made.usd == pytest.approx(2.33) and made.usd == pytest.approx(sum(share.usd for share in made.shares))


def test_a_saving_is_computed_from_the_same_rows_and_30_percent_stays_30_percent() -> None:
    """The same $2.33 beside 67 sessions that cost what planning does: 30 %, not the 40 % that the seed tells."""
    prices = {name: {"input": usd * 100, "output": 0} for name, usd in
              {"p": 0.05, "b": 0.04, "r": 0.02, "f": 0.08}.items()}  # fmt: skip  # as above
    made = cost.estimate(SEED, {"planner": "p", "builder": "b", "reviewer": "r", "fixer": "f"}, "", (10_000, 0), prices)
    assert dict(made.alone)["p"] == pytest.approx(67 * 0.05)
    assert round(made.saving("p"), 2) == 0.3
    assert made.saving("r") < 0  # and where the mix is dearer, that is said


def test_one_model_everywhere_saves_nothing() -> None:
    made = cost.estimate(SEED, {}, "large", (40_000, 4_000), PRICES)
    assert made.alone == (("large", pytest.approx(made.usd)),) and made.saving("large") == pytest.approx(0)


def test_no_sessions_cost_nothing_and_save_nothing() -> None:
    made = cost.estimate({"builder": 0}, {}, "large", (1, 1), PRICES)
    assert made.usd == 0 and made.saving("large") == 0


def test_no_price_is_built_in() -> None:
    with pytest.raises(UserError, match="no price is known for claude-opus-4-5"):
        cost.estimate({"builder": 1}, {}, "claude-opus-4-5", (1, 1), {})


def test_a_hat_without_a_model_is_named() -> None:
    with pytest.raises(UserError, match="no model is named for builder"):
        cost.estimate({"builder": 1}, {"planner": "large"}, "", (1, 1), PRICES)
