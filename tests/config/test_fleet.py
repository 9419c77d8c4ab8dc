"""`fleet.yml`: what it may say, and what is said of a mistake."""

from __future__ import annotations

import pytest

from ralph_mission.config.fleet import load_fleet
from ralph_mission.errors import UserError
from ralph_mission.mission.fleet.model import DailyBudget

WHOLE = """\
repositories:
  - acme/api
  - org:acme
  - topic:ralph
  - installation
  - ./clones/click
exclude: [acme/old-*]
runner: [self-hosted, ralph]
parallel: 8
job_minutes: 30
budget: {usd: 50, pull_requests: 20, minutes: 3000}
each: {usd: 2.5}
extends: acme/.github//ralph.yml@0123456789012345678901234567890123456789
"""


def test_every_key_is_read():
    told = load_fleet(WHOLE)
    assert (told.names, told.owners, told.topics, told.installation) == (("acme/api",), ("acme",), ("ralph",), True)
    assert (told.folders, told.runner, told.limits.parallel) == (("./clones/click",), ("self-hosted", "ralph"), 8)
    assert told.limits.fleet == DailyBudget(50, 20, 3000) and told.limits.each == DailyBudget(2.5)
    assert told.limits.job_minutes == 30 and told.extends.startswith("acme/.github//")


def test_exclude_takes_patterns_of_names():
    told = load_fleet(WHOLE)
    assert told.excludes("Acme/old-shop") and not told.excludes("acme/shop")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repositories: []", "names no repositories"),
        ("repositories: [acme]", "line 1: 'acme' names no repository"),
        ("repositories: [acme/..]", "names no repository"),
        ("repositories: [{a: b}]", "not a list of texts"),
        ("repositories: [a/b]\nbudgets: {}", "line 2: unknown key budgets"),
        ("repositories: [a/b]\nbudget: {usd: many}", "budget.usd is not an amount"),
        ("repositories: [a/b]\nbudget: {minutes: -1}", "budget.minutes is -1"),
        ("repositories: [a/b]\nbudget: 3", "budget is not a mapping"),
        ("repositories: [a/b]\nrunner: ['a b']", "'a b' is not a label"),
        ("repositories: [a/b]\nparallel: yes", "parallel is True"),
        ("repositories: [a/b]\nextends: a/b//ralph.yml@main", "line 2: extends is 'a/b//ralph.yml@main'"),
        ("repositories: [./b, a/b]\nextends: ./base.yml", "which jobs on GitHub do not have"),
        ("- a/b", "it is not a mapping"),
        ("a: &x b", "anchors"),
        ("", "names no repositories"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, said):
    with pytest.raises(UserError, match="fleet") as caught:
        load_fleet(text)
    assert said in caught.value.what and caught.value.exit_code == 2
