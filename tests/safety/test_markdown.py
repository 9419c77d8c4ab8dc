from __future__ import annotations

import pytest

from ralph_mission.safety.markdown import code_spans


@pytest.mark.attack(28)
def test_code_whose_place_is_in_doubt_hides_nothing() -> None:
    """The first cell's name is live, and the second cell's code looks as if it stood there."""
    assert code_spans("| a | b |\n|---|---|\n| \\`@b` | `@b` |\n") == ()
