from __future__ import annotations

import pytest

from ralph_mission.safety import text


@pytest.mark.parametrize("sink", ["issue", "commit", "post", "summary", "log", "prompt"])
@pytest.mark.attack(38)
def test_control_characters_go(sink: str) -> None:
    assert text.sanitise("a\x00b\x07c\x08d\x7fe", sink) == "abcde"
