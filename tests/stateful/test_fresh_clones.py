"""A clone that remembers nothing, as every workflow run has one, believes no stranger's change of memory either."""

from __future__ import annotations

import pytest

from ralph_mission.trouble import Trouble
from tests.helpers import git
from tests.integration.hub import hub


def test_a_fresh_clone_refuses_what_a_stranger_changed_and_welcomes_what_a_person_wrote(tmp_path):
    with hub(tmp_path) as harbour:
        harbour.cycle()
        memory = harbour.memory().replace("## Do Not Repeat", "## Do Not Repeat\n\n- leave the tables alone", 1)
        harbour.fake.push("ralph-memory", {"memory/ralph-log.md": f"{memory}\n".encode()})
        harbour.runner = "two"
        assert harbour.cycle()[0].outcome == "done"
        state = git(harbour.fake.bare, "show", "ralph-memory:memory/open.json")
        forged = state.replace('"next_mission": 2', '"next_mission": 92')
        harbour.fake.push("ralph-memory", {"memory/open.json": forged.encode()})
        harbour.fake.journal.clear()
        harbour.runner = "three"
        with pytest.raises(Trouble, match="someone else changed"):
            harbour.cycle()
        assert harbour.fake.count(method="PUT") + harbour.fake.count(method="PATCH") == 0
