from __future__ import annotations

import pytest

from ralph_mission.mission.ledger import Recollection
from ralph_mission.mission.memory_parse import parse
from ralph_mission.trouble import Trouble
from tests.stores.making import Intruder


@pytest.mark.attack(23, 24)
def test_what_a_file_lacks_is_named(past: Recollection, intruder: Intruder) -> None:
    with pytest.raises(Trouble, match="must begin with a line ---"):
        parse("# no front matter\n")
    with pytest.raises(Trouble, match="## Learnings"):
        parse(intruder.text().partition("## Learnings")[0])
