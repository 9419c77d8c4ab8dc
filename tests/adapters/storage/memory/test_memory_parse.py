from __future__ import annotations

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.memory.text import parse_memory
from ralph_mission.mission.model.ledger import MemorySnapshot
from tests.adapters.storage.memory.making import Intruder


@pytest.mark.attack(23, 24)
def test_what_a_file_lacks_is_named(past: MemorySnapshot, intruder: Intruder) -> None:
    with pytest.raises(UserError, match="must begin with a line ---"):
        parse_memory("# no front matter\n")
    with pytest.raises(UserError, match="## Learnings"):
        parse_memory(intruder.text().partition("## Learnings")[0])
