"""`ralph agent cost` on real files of a checkout, and as a calculator."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import state
from ralph_mission.loop.model.state import HatOutput, RunState, SessionUsage
from tests.helpers import cli_here, make_repo

PRICES = "cost:\n  prices:\n    large: {input: 15.0, output: 75.0}\n    small: {input: 1.0, output: 5.0}\n"
ESTIMATE = ("cost", "--estimate", "planner=5,builder=30,reviewer=28,fixer=4", "--tokens-in", "10000",
            "--tokens-out", "1000", "--models", "planner=large,fixer=large", "--model", "small")  # fmt: skip  # a line


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"ralph.yml": PRICES})


def keep(repo: Path, run: str = "now") -> None:
    usage = SessionUsage(3, 120_000, 9_000, 1.25, 60.0)
    state.save(
        repo,
        RunState(
            run,
            "Build",
            datetime(2026, 1, 1, tzinfo=UTC),
            usage=usage,
            by_item=(("US-001", usage),),
            by_hat=(
                ("builder", SessionUsage(2, 100_000, 8_000, 1.0)),
                ("reviewer", SessionUsage(1, 20_000, 1_000, 0.25)),
            ),
        ),
    )


def test_a_checkout_where_nothing_ran_says_so(repo: Path) -> None:
    result = cli_here("agent", "cost", repo=repo)
    assert (result.code, result.out) == (0, "No loop has run here yet.\n")


def test_a_run_without_a_session_cost_nothing(repo: Path) -> None:
    state.save(repo, RunState("now", "Build", datetime(2026, 1, 1, tzinfo=UTC)))
    state.keep_output(repo, "now", HatOutput("builder", 1, usage=SessionUsage()))
    result = cli_here("agent", "cost", repo=repo)
    assert result.code == 0 and result.out.split()[-1] == "0.00", result.err


def test_sessions_tokens_and_dollars_are_shown_by_hat_and_story(repo: Path) -> None:
    keep(repo)
    result = cli_here("agent", "cost", repo=repo)
    rows = {line.split()[0]: line.split()[1:] for line in result.out.splitlines() if line}
    assert rows["builder"] == ["2", "100,000", "8,000", "1.00"]
    assert rows["US-001"] == ["3", "120,000", "9,000", "1.25"]
    assert rows["total"][-4:] == ["3", "120,000", "9,000", "1.25"]


def test_earlier_runs_are_added_and_the_present_one_is_not_counted_twice(repo: Path) -> None:
    keep(repo)
    for run, number in (("before", 1), ("before", 2), ("now", 1)):
        state.keep_output(repo, run, HatOutput("builder", number, usage=SessionUsage(1, 1_000, 100, 0.5)))
    document = cli_here("agent", "cost", "--json", repo=repo).json
    assert document["runs"] == 2 and document["total"]["sessions"] == 5
    assert document["total"]["cost_usd"] == pytest.approx(2.25)
    assert {row["hat"]: row["sessions"] for row in document["hats"]} == {"builder": 4, "reviewer": 1}


def test_a_record_that_cannot_be_read_is_told_and_the_rest_is_counted(repo: Path) -> None:
    keep(repo)
    state.keep_output(repo, "before", HatOutput("builder", 1, usage=SessionUsage(1, 1, 1, 0.5)))
    (repo / ".ralph/loop/runs/before/session-0002.json").write_text("{")
    result = cli_here("agent", "cost", "--json", repo=repo)
    assert (
        result.code == 0 and result.json["total"]["sessions"] == 4 and "session-0002.json is not counted" in result.err
    )


def test_unknown_costs_are_unknown_until_a_model_is_named(repo: Path) -> None:
    usage = SessionUsage(1, 1_000_000, 0)
    state.save(repo, RunState("r", "o", datetime(2026, 1, 1, tzinfo=UTC), usage=usage, by_hat=(("ralph", usage),)))
    assert "unknown" in cli_here("agent", "cost", repo=repo).out
    assert cli_here("agent", "cost", "--model", "small", "--json", repo=repo).json["total"]["cost_usd"] == 1.0


def test_an_estimate_mixes_models_and_shows_the_saving_it_computes(repo: Path) -> None:
    document = cli_here(*ESTIMATE, "--json", repo=repo).json
    large, small = 10_000 * 15e-6 + 1_000 * 75e-6, 10_000 * 1e-6 + 1_000 * 5e-6
    assert document["cost_usd"] == pytest.approx(9 * large + 58 * small)
    everywhere = {row["model"]: row for row in document["one_model"]}
    assert everywhere["large"]["cost_usd"] == pytest.approx(67 * large)
    assert everywhere["large"]["saving"] == pytest.approx(1 - document["cost_usd"] / (67 * large))
    text = cli_here(*ESTIMATE, repo=repo).out
    assert "large everywhere: 15.07 (81% saved by the mix)" in text and "more spent by the mix" in text


def test_prices_can_be_given_on_the_line(repo: Path) -> None:
    result = cli_here(
        "agent", "cost", "--estimate", "builder=2", "--model", "own", "--price", "own=100/0", "--json", repo=repo
    )
    assert result.json["cost_usd"] == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--estimate", "builder=2"), "no model is named for builder"),
        (("--estimate", "builder=2", "--model", "x"), "no price is known for x"),
        (("--estimate", "builder", "--model", "small"), "--estimate cannot be read"),
        (("--estimate", "builder=many", "--model", "small"), "not a number of sessions"),
        (("--estimate", "builder=1", "--price", "small"), "--price cannot be read"),
        (("--estimate", "builder=1", "--model", "m", "--price", "m=-1/2"), "not an amount"),
    ],
)
def test_wrong_usage_says_how_to_write_it(repo: Path, arguments: tuple[str, ...], word: str) -> None:
    result = cli_here("agent", "cost", *arguments, repo=repo)
    assert result.code == 64 and word in result.err and "Traceback" not in result.err


def test_outside_of_a_repository_there_is_one_line_of_trouble(tmp_path: Path) -> None:
    result = cli_here("agent", "cost", repo=tmp_path)
    assert result.code == 64 and "Traceback" not in result.err
