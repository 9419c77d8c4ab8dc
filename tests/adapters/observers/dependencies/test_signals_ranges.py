"""Whether a range admits a version: as npm, Cargo and pip read it, and silence where it is unusual."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.observers.dependencies.signals import admits
from ralph_mission.adapters.packages.model import CRATES


@pytest.mark.parametrize(
    ("wanted", "current", "version", "said"),
    [
        (["^3.1.0"], "3.1.0", "3.9.9", True),
        (["^3.1.0"], "3.1.0", "4.0.0", False),
        (["^0.3.1"], "0.3.1", "0.3.9", True),
        (["^0.3.1"], "0.3.1", "0.4.0", False),
        (["~1.2.3"], "1.2.3", "1.3.0", False),
        (["1.x"], "1.2.3", "1.9.0", True),
        (["1.2"], "1.2.3", "1.3.0", False),
        (["1.2.3"], "1.2.3", "1.2.4", False),
        ([">=1.2 <2"], "1.2.3", "1.9.9", True),
        ([">=1.2 <2"], "1.2.3", "2.0.0", False),
        ([">1.2"], "1.3.0", "1.2.9", False),
        (["^1.0.0 || ^2.0.0"], "1.2.3", "2.3.0", True),
        (["*"], "1.2.3", "9.0.0", True),
        (["^1.0.0", "^1.2.0"], "1.2.3", "1.9.0", True),
        (["^1.0.0", "1.2.3"], "1.2.3", "1.9.0", False),
        (["^5.0.0", "^1.0.0"], "1.2.3", "1.9.0", True),  # the first one is answered by another version
        (["1.2.3 - 2.0.0"], "1.2.3", "1.9.0", None),
        (["github:a/b"], "1.2.3", "1.9.0", None),
        ([], "1.2.3", "1.9.0", None),
    ],
)
def test_ranges_of_npm(wanted: list[str], current: str, version: str, said: bool | None) -> None:
    assert admits("npm", current, wanted, version) is said


@pytest.mark.parametrize(
    ("ecosystem", "wanted", "current", "version", "said"),
    [
        (CRATES, "1.2", "1.2.3", "1.9.0", True),
        (CRATES, "=1.2.3", "1.2.3", "1.2.4", False),
        (CRATES, ">=1.2, <1.5", "1.2.3", "1.5.0", False),
        ("PyPI", ">=2.0,<3", "2.1", "2.9", True),
        ("PyPI", "==2.1", "2.1", "2.9", False),
        ("PyPI", "not one", "2.1", "2.9", None),
        ("Go", ">=", "1.0.0", "1.9.0", True),
        ("Maven", "4.0.3", "4.0.3", "4.0.4", False),
    ],
)
def test_ranges_of_others(ecosystem, wanted: str, current: str, version: str, said: bool | None) -> None:
    assert admits(ecosystem, current, [wanted], version) is said
