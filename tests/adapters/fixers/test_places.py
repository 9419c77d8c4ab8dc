from __future__ import annotations

import pytest

from ralph_mission.adapters.fixers.places import off_limits


@pytest.mark.attack(49)
@pytest.mark.parametrize(
    "path", ["../x.md", "a/.git/x.md", ".github/note.md", "setup.py", "conftest.py", "app.min.js", "a_pb2.py", "x.lock"]
)
def test_what_is_protected_unsafe_or_generated_is_off_limits(path: str) -> None:
    assert off_limits(path) and not off_limits("docs/note.md")
