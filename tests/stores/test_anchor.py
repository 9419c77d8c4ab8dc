from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph_mission.mission.ledger import MemorySnapshot
from ralph_mission.stores.branch import BranchStore
from ralph_mission.trouble import UserError


@pytest.mark.attack(22)
def test_an_anchor_of_other_values_is_refused(repo: Path, store: BranchStore, past: MemorySnapshot) -> None:
    told = {"lineage": "x", "serial": "7", "oid": "", "pending": ""}
    (repo / ".git" / "ralph" / "anchor.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"anchor\.json"):
        store.recall()
