"""A mission's agent that plans before it builds, and one that only says that it is done. Both forges, real loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.coding import Yard, yard
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

PLAN = "# Tides\n\n## Table\n{0}\n"


def planned(aside: Path) -> str:
    """Settings with the scripted agent and `plan: ralplan`: the critic rejects the first plan and takes the second."""
    noted = {hat: [f"echo {hat} >> {aside / 'hats'}"] for hat in ("planner", "architect", "critic", "builder")}
    rows = [[{"section": "Table", "verdict": "reject", "objections": ["which columns?"]}],
            [{"section": "Table", "verdict": "approve"}]]  # fmt: skip  # a table
    hats = {
        "planner": [
            _step(noted["planner"], "plan.complete", "the plan", {".ralph/plan.md": PLAN.format(text)})
            for text in ("Rows.", "Time and height.")
        ],
        "architect": [_step(noted["architect"], "plan.advice", "one module")],
        "critic": [_step(noted["critic"], "plan.verdict", json.dumps({"sections": row})) for row in rows],
        "builder": [
            _step(noted["builder"], "build.complete", "built", {"src/table.py": "TABLE = ('time', 'height')\n"})
        ],
    }
    (aside / "script.json").write_text(json.dumps({"hats": hats}))
    agent = f"{{kind: scripted, run: {str(aside / 'script.json')!r}, plan: ralplan}}"
    return f"hands:\n  fixers: []\n  agent: {agent}\nobservers:\n  code: {{markers: {{}}}}\n"


def _step(run: list[str], topic: str, payload: str, write: dict[str, str] | None = None) -> dict[str, object]:
    return {"run": run, "event": {"topic": topic, "payload": payload}, "write": write or {}}


def played(shop: Yard) -> list[str]:
    """Whose sessions there were; the architect and the critic are at it at the same time."""
    first, *rest = (shop.aside / "hats").read_text().split()
    return [first, *sorted(rest[:2]), *rest[2:3], *sorted(rest[3:5]), *rest[5:]]


@pytest.mark.parametrize("kind", ["local", "github"])
def test_what_is_built_was_planned_and_criticised_first_and_the_plan_is_no_part_of_the_change(tmp_path, kind):
    with yard(tmp_path, kind, config=planned) as shop:
        shop.wanted()
        shop.cycle()
        assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
        assert played(shop) == ["planner", "architect", "critic", "planner", "architect", "critic", "builder"]
        pull = shop.pull()
        assert shop.at(pull.head_sha, "src/table.py") == b"TABLE = ('time', 'height')\n"
        git = shop.house().git
        assert git.text("diff", "--name-only", f"{pull.head_sha}^", pull.head_sha).split() == ["src/table.py"]


def test_a_plan_that_was_begun_is_gone_on_with_in_the_next_cycle(tmp_path):
    with yard(tmp_path, "local", config=lambda aside: planned(aside) + "work: {max_iterations: 4}\n") as shop:
        shop.wanted()
        shop.cycle()
        assert statuses(shop.cycle()[0]) == ["EXECUTING"]
        assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
        assert played(shop)[-1] == "builder"  # four sessions are too few for all of it


@pytest.mark.parametrize("kind", ["local", "github"])
def test_an_agent_that_is_done_three_times_without_a_change_had_three_tries_and_escalates(tmp_path, kind):
    with yard(tmp_path, kind) as shop:
        shop.says("pass")
        issue = shop.wanted()
        shop.cycle()
        found = [statuses(shop.cycle()[0]) for _ in range(5)]
        assert found == [["EXECUTING"]] * 3 + [["ESCALATED"]] * 2
        assert len(shop.prompts) == 3 and shop.pulls() == []
        assert "no file was changed" in shop.prompts[1]
        assert any("failed 3 times: it was declared done, and no file was changed" in said for said in shop.said(issue))
