"""What one guard of a cycle alone holds back."""

from __future__ import annotations

from tests.integration.world import world


def test_a_paused_cycle_writes_no_memory(tmp_path, monkeypatch):
    harbour = world(tmp_path)
    harbour.cycle()
    head = harbour.git("rev-parse", "ralph-memory")
    monkeypatch.setenv("RALPH_PAUSED", "1")
    assert harbour.cycle()[0].outcome == "paused"
    assert harbour.git("rev-parse", "ralph-memory") == head
