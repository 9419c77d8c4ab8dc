"""The model of a run: from the command line or ralph.yml to each session, and to the prices of `ralph cost`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import world

PRICES = "cost: {prices: {small: {input: 1, output: 2}, large: {input: 10, output: 20}}}\n"
AGENT = """
with (here / "models").open("a") as file:
    file.write(os.environ["RALPH_HAT"] + "=" + os.environ["RALPH_MODEL"] + "\\n")
change()
said = {"planner": '<event topic="plan.complete">go</event>'}.get(os.environ["RALPH_HAT"], "LOOP_COMPLETE")
print(json.dumps({"type": "result", "result": said, "is_error": False,
                  "usage": {"input_tokens": 1_000_000, "output_tokens": 500_000}}))
"""
HATS = """
hats:
  planner: {triggers: [loop.start], publishes: [plan.complete]}
  builder: {triggers: [plan.complete], model: large}
"""


@pytest.mark.parametrize(
    ("settings", "options", "planner"),
    [
        ("", ["--model", "small"], "small"),
        ("hands: {agent: {model: small}}\n", [], "small"),
        ("hands: {agent: {model: small}}\n", ["--model", "large"], "large"),
    ],
)
def test_a_hat_without_a_model_has_the_runs(tmp_path: Path, settings: str, options: list[str], planner: str) -> None:
    here = world(tmp_path, {"ralph.yml": PRICES + settings + HATS})
    done = here.run("build it", *options, *here.agent(AGENT))
    assert done.code == 0, done.err
    assert (here.aside / "models").read_text().split() == [f"planner={planner}", "builder=large"]
    costs = json.loads(here.ralph("cost", "--json").out)
    each = {"small": 2.0, "large": 20.0}
    assert {row["hat"]: row["cost_usd"] for row in costs["hats"]} == {"planner": each[planner], "builder": 20.0}
    assert done.json["usage"]["cost_usd"] == each[planner] + 20.0


def test_a_model_alone_leaves_open_which_program_plays(tmp_path: Path) -> None:
    here = world(tmp_path, {"ralph.yml": "hands: {agent: {model: small}}\n"})
    assert here.run("build it").code == 64


def test_sessions_that_nobody_priced_have_the_model_of_ralph_yml(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = AGENT.replace("said =", "# ").replace('"result": said', '"result": "LOOP_COMPLETE"')
    assert here.run("build it", *here.agent(agent)).code == 0
    assert json.loads(here.ralph("cost", "--json").out)["total"]["cost_usd"] is None
    (here.repo / "ralph.yml").write_text(PRICES + "hands: {agent: {model: small}}\n")
    assert json.loads(here.ralph("cost", "--json").out)["total"]["cost_usd"] == 2.0
