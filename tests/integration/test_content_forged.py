"""Who can push memory and edit Ralph's issues, and yet is no owner, puts no text of theirs under an owner's yes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.lifecycle.approval import about
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.model.mission import Status
from tests.integration.at_content import TEXT, Networks, asked, cycle, later, publish, with_networks
from tests.integration.at_work import FORGES
from tests.integration.test_content import CONFIG, YES
from tests.integration.world import BUGS_CONFIG

ASKING = "owners: [mara]\n" + BUGS_CONFIG
BUG = {"bugs.txt": "src/a.py:1: boats sink at low tide\n", "src/a.py": "x = 1\n"}


@pytest.mark.parametrize("way", [publish, lambda place, number: cycle(place)])
def test_a_text_that_was_put_under_an_owners_yes_is_not_published(tmp_path, way):
    networks = Networks()
    with FORGES["github"](tmp_path, CONFIG) as found:
        place = with_networks(found, networks)
        number = asked(place)
        place.person().label(number, YES)
        later(place, 0.1)
        body = place.issue(number).body.replace(TEXT, "Buy anchors.")
        place.person("wes", "write").edit_issue(number, body=body)
        _pretend_it_was_so_always(place, place.issue(number).title, body)
        way(place, number)
        assert networks.said == []
        place.person().unlabel(number, YES)
        place.person().label(number, YES)
        assert publish(place, number).outcome == "published"


@pytest.mark.parametrize("forged", [False, True])
def test_a_proposal_that_was_put_under_an_owners_yes_is_not_taken_up(tmp_path, forged):
    with FORGES["github"](tmp_path, ASKING, BUG) as place:
        cycle(place)
        (mission,) = place.state().missions
        place.person().label(mission.issue, ("ralph:approved",))
        later(place, 0.1)
        body = place.issue(mission.issue).body.replace("boats sink", "the lock is open")
        place.person("wes", "write").edit_issue(mission.issue, body=body)
        if forged:
            _pretend_it_was_so_always(place, place.issue(mission.issue).title, body)
        cycle(place)
        assert place.state().missions[0].status is Status.DISCOVERED
        place.person().unlabel(mission.issue, ("ralph:approved",))
        place.person().label(mission.issue, ("ralph:approved",))
        cycle(place)
        assert place.state().missions[0].status is Status.PLANNED


def _pretend_it_was_so_always(place, title: str, body: str) -> None:
    store = place.house().store
    past = store.recall()
    (mission,) = past.state.missions
    forged = replace(about(mission, title, body), proposal_at=None)
    store.commit(MemoryBatch(past.memory, replace(past.state, missions=(forged,)), (), "ralph: cycle"), past)
