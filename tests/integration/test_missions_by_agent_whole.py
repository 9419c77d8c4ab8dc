"""From a finding to a merge by an agent, on GitHub, with a runner that dies on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.fixers.coder import AgentCoder
from tests.crash import dying as hub_dying
from tests.helpers import git
from tests.integration.coding import Yard, yard
from tests.integration.dying import dying
from tests.integration.test_after_a_death import NOW
from tests.integration.test_life import BUGS
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

OBSERVED = """\
  commands:
    - {name: check, run: cat bugs.txt, kind: bug, parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}}
"""
STEP = """\
[[hats."*"]]
write = {{"src/a.py" = "x = {0}\\n"}}
text = "It is {0} now.\\n\\nLOOP_COMPLETE"
usage = {{input_tokens = 10, output_tokens = 2, cost_usd = 0.25}}
"""


def scripted(aside: Path) -> str:
    """The settings with the scripted agent instead of a program."""
    (aside / "script.toml").write_text(STEP.format("1 / 2"))
    agent = f"hands:\n  fixers: []\n  agent: {{kind: scripted, run: {str(aside / 'script.toml')!r}}}\n"
    return f"{agent}observers:\n  code: {{markers: {{}}}}\n{OBSERVED}"


def died_and_went_on(shop: Yard, kind: str, at: int) -> list[str]:
    """A cycle that dies at a request, and the ones after it; where the mission stands then."""
    with hub_dying.dying(shop.place, at, kind) as life:
        shop.cycle()
    assert life.over, "it did not die"
    shop.cycle()
    return statuses(shop.cycle()[0])


@pytest.mark.parametrize(("kind", "at"), [("before", 14), ("after", 14), ("after", 20)])
def test_a_finding_becomes_a_mission_that_an_agent_carries_out_across_a_crash(tmp_path, kind, at):
    with yard(tmp_path, "github", files=BUGS, config=scripted) as shop:
        assert statuses(shop.cycle()[0]) == ["DISCOVERED"]
        (issue,) = [thread.number for thread in shop.place.issues]
        shop.person().label(issue, ("ralph:approved",))
        assert statuses(shop.cycle()[0]) == ["PLANNED"]
        assert died_and_went_on(shop, kind, at) == ["IN_REVIEW"]
        pull = shop.pull()
        assert shop.at(pull.head_sha, "src/a.py") == b"x = 1 / 2\n" and "It is 1 / 2 now" in pull.body
        shop.person().review(pull.number, "changes_requested", "say 0.5")
        (shop.aside / "script.toml").write_text(STEP.format("0.5"))
        assert statuses(shop.cycle()[0]) == ["FIXING"]
        assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
        shop.person().review(pull.number, "approved")
        report, _ = shop.cycle()
        assert statuses(report) == ["COMPLETED"]
        assert shop.pull().state == "merged" and shop.issue(issue).state == "closed"
        assert git(shop.place.fake.bare, "show", "main:src/a.py") == "x = 0.5"


def test_what_an_agent_costs_is_counted_and_without_money_none_is_asked(tmp_path):
    poor = "limits: {usd_per_cycle: 0.3, usd_per_day: 0.3}\n"
    with yard(tmp_path, "local", config=lambda aside: scripted(aside) + poor, files=BUGS) as shop:
        shop.wanted()
        shop.cycle(after=NOW)
        report, _ = shop.cycle(after=NOW)
        assert (report.usage.model_calls, report.usage.cost_usd) == (1, 0.25)
        assert spent(shop) == 0.25
        shop.person().review(shop.pull().number, "changes_requested", "say 0.5")
        (shop.aside / "script.toml").write_text(STEP.format("0.5"))
        shop.cycle(after=NOW)
        report, telling = shop.cycle(after=NOW)
        assert statuses(report)[0] == "FIXING" and report.usage.cost_usd == 0  # five cents are left: too few to begin
        assert any("money" in line for line in telling.remarks) and spent(shop) == 0.25


def test_a_runner_that_dies_while_an_agent_works_has_spent_what_was_set_aside(tmp_path):
    with yard(tmp_path, "local", config=scripted, files=BUGS) as shop:
        shop.wanted()
        shop.cycle(after=NOW)
        with dying(2, ((AgentCoder, "work"),)):
            shop.cycle(after=NOW)
        assert spent(shop) == 2.0  # limits.usd_per_cycle
        shop.cycle(after=NOW)
        assert spent(shop) == 2.0 and shop.pull().state == "open"  # what was made is still there


def spent(shop: Yard) -> float:
    return shop.house().store.recall().memory.header.spend_usd
