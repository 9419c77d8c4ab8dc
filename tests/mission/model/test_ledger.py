from __future__ import annotations

from ralph_mission.mission.model.effects import Publish
from ralph_mission.mission.model.forge import Post
from ralph_mission.mission.model.ledger import may_redo

POST = Post("telegram", ("Hello",), (5,), 4_096)


def test_no_list_proves_that_a_post_was_not_said():
    assert not may_redo(Publish("k", POST), list_is_complete=True)
