"""Honest days on which a check against forged memory could stand in a person's way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.approval import about
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.operations.recover import recover_memory
from tests.integration.forging import ASKING, forge_memory, issue, place, pull, state_of
from tests.integration.hub import Hub
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

__all__ = ["place"]


def edit(harbour, number, text) -> None:
    body = issue(harbour, number).body
    if isinstance(harbour, Hub):
        harbour.person().edit_issue(number, body=text(body))
        return
    file = harbour.repo / ".ralph" / "forge" / "issues" / f"{number:04d}.md"
    file.write_text(file.read_text().replace(body, text(body)))


def claim(harbour, number) -> None:
    harbour.person().unlabel(number, ("ralph:mission",))
    harbour.person().label(number, ("ralph:mission",))


def approve(harbour, number) -> None:
    harbour.person().review(number, "approved")


def test_a_mission_whose_marker_was_edited_away_is_claimed_with_its_pull(place):
    harbour = place()
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    edit(harbour, mission.issue, lambda body: "Shortened.")
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    claim(harbour, mission.issue)
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
    approve(harbour, mission.pull)
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]
    assert (pull(harbour, mission.pull).state, issue(harbour, mission.issue).state) == ("merged", "closed")


def test_a_claimed_issue_of_another_mission_of_ours_carries_no_foreign_pull(place):
    harbour = place(config=ASKING)
    harbour.cycle()
    harbour.cycle()
    first, second = state_of(harbour).missions
    harbour.person().label(first.issue, ("ralph:approved",))
    harbour.cycle()
    carried = next(mission for mission in state_of(harbour).missions if mission.id == first.id)
    claim(harbour, second.issue)
    led = replace(carried, issue=second.issue)
    forge_memory(harbour, lambda state: (replace(state, missions=(led,)), ()))
    harbour.person().merge(carried.pull)
    harbour.cycle()
    assert issue(harbour, second.issue).state == "open"


def test_a_yes_to_an_issue_that_names_no_change_sends_none_and_tells_so(place):
    harbour = place(config=ASKING)
    harbour.cycle()
    mission = state_of(harbour).missions[0]
    lines = issue(harbour, mission.issue).body.splitlines()
    unnamed = "\n".join(line for line in lines if "the change would be" not in line)
    edit(harbour, mission.issue, lambda body: unnamed)
    told = issue(harbour, mission.issue)
    older = about(mission, told.title, told.body)
    forge_memory(harbour, lambda state: (replace(state, missions=(older,)), ()))
    harbour.person().label(mission.issue, ("ralph:approved",))
    report, _ = harbour.cycle()
    assert statuses(report)[0] == "PLANNED"
    assert {"push_branch", "open_pull"}.isdisjoint(effect.kind for effect in report.effects)
    assert "not named in this issue" in issue(harbour, mission.issue).remarks[-1].body


def test_memory_with_two_missions_of_one_number_is_recovered_with_the_one_that_the_forge_names(place):
    harbour = place()
    harbour.cycle()
    theirs = harbour.person().create_issue("The tables are late")
    store = harbour.house().store
    past = store.recall()
    twin = replace(past.state.missions[0], issue=theirs)
    store.commit(MemoryBatch(past.memory, replace(past.state, missions=(twin, *past.state.missions)), (), "x"), past)
    with pytest.raises(UserError, match="two missions of one number"):
        harbour.cycle()
    house = harbour.house()
    recovered = recover_memory(house.store, house.ports.forge, harbour.now)
    assert [line for line in recovered.lost if f"issue #{theirs}" in line]
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
