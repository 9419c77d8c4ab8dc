from __future__ import annotations

import pytest

from ralph_mission.safety.bumps import only_patches
from ralph_mission.safety.patch import REGULAR, FileChange


def change(path: str, old: str, new: str) -> FileChange:
    return FileChange(path, REGULAR, REGULAR, old.encode(), new.encode())


@pytest.mark.attack(49)
def test_a_version_is_written_as_it_was() -> None:
    old = '{"dependencies": {"buoy": "1.4.2"}}\n'
    assert only_patches(change("package.json", old, old.replace("1.4.2", "1.4.3")))
    assert not only_patches(change("package.json", old, old.replace("1.4.2", "v1.4.3")))


@pytest.mark.attack(57)
def test_a_manifest_with_a_line_that_is_too_long_is_not_read() -> None:
    old = f'[project]\ndependencies = ["buoy==1.4.2"]  # {"x" * 4_000}\n'
    assert not only_patches(change("pyproject.toml", old, old.replace("1.4.2", "1.4.3")))
