from __future__ import annotations

import pytest

from ralph_mission.mission.model.effects import Comment, Label, MergePull, Publish, Receipt
from ralph_mission.mission.model.forge import Post
from ralph_mission.mission.model.ledger import absorb, may_redo
from ralph_mission.mission.model.mission import FailureReason
from tests.mission.build import mission

POST = Post("telegram", ("Hello",), (5,), 4_096)
MERGE = MergePull("m", 1, "a" * 40, "squash", "Merge")


def test_no_list_proves_that_a_post_was_not_said():
    assert not may_redo(Publish("k", POST), list_is_complete=True)


@pytest.mark.parametrize("announcement", [Label("l", 1, ("ralph:escalated",)), Comment("c", 1, "Needs a person.")])
def test_a_refused_announcement_does_not_replace_the_reason_for_which_a_person_is_asked(announcement):
    def refused(effect, why):
        return effect, Receipt(effect.key, "failed", detail=why, reason=FailureReason.NEEDS_PERSON)

    stuck = absorb(mission(), *refused(MERGE, "a ruleset forbids it"))
    assert absorb(stuck, *refused(announcement, "the token has expired")) == stuck
    assert (
        absorb(mission(), *refused(announcement, "the token has expired")).progress.failure == "the token has expired"
    )
    assert absorb(stuck, *refused(MERGE, "the token has expired")).progress.failure == "the token has expired"
