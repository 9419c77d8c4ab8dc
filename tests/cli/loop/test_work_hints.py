"""What `ralph work` and its neighbours tell a person to type, typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.loop.test_work import ready
from tests.cli.loop_world import World, world
from tests.helpers import Result, cli_here

pytestmark = pytest.mark.long  # whole ways to a merge

BUILDS = "change()\ncommit()\nprint('LOOP_COMPLETE')\n"
QUIET = "hands: {fixers: []}\nobservers: {code: {markers: {}}}\n"


@pytest.fixture
def shop(tmp_path: Path) -> World:
    here = world(tmp_path, {"ralph.yml": QUIET})
    ready(here)
    return here


def here(shop: World, line: str, *more: str) -> Result:
    return cli_here(*shlex.split(line), *more, repo=shop.repo)


def typed(shop: World, told: Result) -> Result:
    """What it says comes next, as it stands there."""
    (line,) = re.findall(r"^next: (.*)$", told.out, re.MULTILINE)
    return cli_here(*shlex.split(line)[1:], cwd=shop.repo)


def work(shop: World, *options: str) -> Result:
    return here(shop, "work --json", *(options or ("--once",)), *shop.agent(BUILDS))


def state(shop: World, number: int) -> str:
    return str(here(shop, f"pr show {number} --json").json["state"])


def test_an_approval_is_merged_by_the_command_that_it_names(shop):
    assert work(shop).json["pull_request"] == 2
    approved = here(shop, "pr approve 2 --as mara")
    assert "the next cycle merges it" in approved.out
    assert typed(shop, approved).code == 0 and state(shop, 2) == "merged"


def test_a_review_is_answered_by_ralph_work_as_it_says_and_so_is_what_an_issue_says_of_its_pull(shop):
    work(shop)
    asked = here(shop, "pr request-changes 2 'call it TIDES' --as mara")
    assert "or run `ralph work --agent NAME`" in asked.out
    assert "#2 Add a cart: in review" in work(shop).err and "call it TIDES" in shop.prompt(2)
    told = work(shop, "--issue", "1").json["skipped"][0]["why"]
    assert "it is a mission's" in told or "say there what is missing" in told
    here(shop, "pr request-changes 2 'and MOONS' --as mara")
    work(shop, "--issue", "1")
    assert "and MOONS" in shop.prompt(3)
    here(shop, "pr approve 2 --as mara")
    work(shop, "--issue", "1")
    assert state(shop, 2) == "merged"
    assert work(shop, "--issue", "1").json["skipped"][0]["why"] == "it is closed"


def test_spent_money_is_lifted_by_what_the_reason_and_the_error_say(shop):
    (shop.repo / "ralph.yml").write_text(QUIET + "limits: {usd_per_day: 0}\n")
    held = work(shop)
    assert (held.code, held.json["outcome"]) == (1, "held")
    assert held.json["reason"].startswith("$0.00 of today's $0.00 are spent or set aside (limits.usd_per_day)")
    (shop.repo / "ralph.yml").write_text(QUIET + "limits: {usd_per_day: 50}\n")
    refused = work(shop)
    assert "limits.above_ceilings: true" in refused.json["error"]["next"]
    (shop.repo / "ralph.yml").write_text(QUIET + "limits: {usd_per_day: 50, above_ceilings: true}\n")
    assert work(shop, "--once", "--max-cost", "20").json["outcome"] == "done"


def test_a_rejection_by_closing_is_taken_by_the_command_that_it_names(shop):
    work(shop)
    closed = here(shop, "pr close 2 --as mara")
    assert typed(shop, closed).code == 0
    assert here(shop, "issue show 1 --json").json["state"] == "closed"
