"""What is asked of the forge about a mission: how far its issue was seen, by the forge's own clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.mission.facts import facts_about
from ralph_mission.mission.ledger import OpenState
from tests.mission.build import BOT, DAY, MARA, NOW, OUTSIDER, issue, labelled, mission, remark


def ports(**there: Any) -> Any:
    forge = SimpleNamespace(
        issue=lambda number: issue(author=OUTSIDER, **there), identity=lambda: BOT, may_approve=lambda one: one == MARA
    )
    return SimpleNamespace(forge=forge, voice=SimpleNamespace(note=lambda text: None), coder=None, seal=None)


@pytest.mark.parametrize(("by", "ours"), [(MARA, True), (OUTSIDER, False)], ids=["a mission's", "foreign"])
@pytest.mark.parametrize("said", [True, False], ids=["a remark", "a label"])
def test_an_issue_was_seen_until_the_newest_that_anybody_did_there(by: Any, ours: bool, said: bool) -> None:
    there = {"labels": frozenset({"ralph:mission"}), "events": (labelled("ralph:mission", by=by, at=NOW + DAY),)}
    there |= {"remarks": (remark("hm", at=NOW + 2 * DAY),)} if said else {}
    told = facts_about(
        ports(**there), SimpleNamespace(owners=()), mission(pull=0, kind="human", members=()), OpenState()
    )
    assert bool(told.foreign) is not ours
    assert told.seen_at == NOW + (2 if said else 1) * DAY
