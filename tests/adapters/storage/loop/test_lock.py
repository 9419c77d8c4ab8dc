from __future__ import annotations

from ralph_mission.adapters.storage.loop import lock


def test_a_machine_that_is_not_this_one_is_never_proven_dead() -> None:
    """Whatever its boot was: only a machine knows its own."""
    assert not lock.dead("elsewhere:another boot:1")
