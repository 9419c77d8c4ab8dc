from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import MemorySnapshot


@pytest.mark.attack(22)
def test_an_anchor_of_other_values_is_refused(repo: Path, store: BranchStore, past: MemorySnapshot) -> None:
    told = {"lineage": "x", "serial": "7", "oid": "", "pending": ""}
    (repo / ".git" / "ralph" / "anchor.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"anchor\.json"):
        store.recall()
