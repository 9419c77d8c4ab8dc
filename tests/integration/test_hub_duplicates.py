"""A person was faster: her pull makes the change that a mission of ours is about to push."""

from __future__ import annotations

import pytest

from tests.integration.hub import Hub, hub
from tests.integration.world import CALM, statuses, verdicts

pytestmark = pytest.mark.long  # takes ten seconds or more

MENDED = {
    "README.md": b"# Harbour\n\nTides are separate from waves. We receive the tables by mail.\n",
    "docs/guide.md": b"# Guide\n\nThis is definitely the way to read a table.\n",
}
ASKING = f"{CALM}limits: {{auto_prs_per_cycle: 0}}\n"


def somebody_mends_it(harbour: Hub, state: str) -> None:
    harbour.fake.push("mend", MENDED)
    jonas = harbour.person("jonas", "write")
    number = jonas.open_pull("mend", "main", "Mend words")
    if state == "merged":
        jonas.merge(number)


def held(harbour: Hub) -> bool:
    """Whether the push waits, and people are told for what."""
    report, telling = harbour.cycle()
    rules = [(verdict, rules) for action, verdict, rules in verdicts(report) if action == "open-fix"]
    assert any("human-duplicate" in line for line in telling.held) is (("hold", ("human-duplicate",)) in rules)
    return rules == [("hold", ("human-duplicate",))]


def ours(harbour: Hub) -> list[str]:
    return [thread.title for thread in harbour.pulls if thread.title != "Mend words"]


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_it_is_approved(tmp_path, state):
    with hub(tmp_path, config=ASKING) as harbour:
        assert statuses(harbour.cycle()[0]) == ["DISCOVERED"]
        issue = harbour.issues[0].number
        somebody_mends_it(harbour, state)
        harbour.person().label(issue, ("ralph:approved",))
        assert held(harbour)
        assert ours(harbour) == []


def test_it_is_pushed_once_the_other_pull_is_closed(tmp_path):
    with hub(tmp_path, config=ASKING) as harbour:
        harbour.cycle()
        somebody_mends_it(harbour, "open")
        harbour.person().label(harbour.issues[0].number, ("ralph:approved",))
        assert held(harbour)
        harbour.person("jonas").close_pull(harbour.pulls[0].number)
        assert "IN_REVIEW" in statuses(harbour.cycle()[0])
        assert len(ours(harbour)) == 1


@pytest.mark.parametrize("state", ["open", "merged"])
def test_a_change_that_a_person_made_meanwhile_is_not_pushed_when_the_mission_is_revived(tmp_path, state):
    with hub(tmp_path) as harbour:
        harbour.fake.settings.actions_can_create_pulls = False
        harbour.cycle()
        assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
        harbour.fake.settings.actions_can_create_pulls = True
        somebody_mends_it(harbour, state)
        harbour.person().unlabel(harbour.issues[0].number, ("ralph:escalated",))
        harbour.cycle()
        assert held(harbour)
        assert ours(harbour) == []
