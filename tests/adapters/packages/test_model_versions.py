"""Which version is newer, and by how much."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.packages.model import Release, ahead, step
from ralph_mission.safety.bumps import Step

PATCH, MINOR, MAJOR = Step.PATCH, Step.MINOR, Step.MAJOR


@pytest.mark.parametrize(
    ("ecosystem", "old", "new", "size"),
    [
        ("npm", "1.2.3", "1.2.4", PATCH),
        ("npm", "1.2.9", "1.2.10", PATCH),
        ("npm", "1.2.3", "1.3.0", MINOR),
        ("npm", "1.2.3", "2.0.0", MAJOR),
        ("npm", "0.2.3", "0.2.4", PATCH),
        ("npm", "0.2.3", "0.3.0", MAJOR),
        ("npm", "0.0.3", "0.0.4", MAJOR),
        ("npm", "1.0.0-rc.1", "1.0.0", MINOR),
        ("npm", "1.2.4", "1.2.3", None),
        ("npm", "1.2.3", "1.2.3", None),
        ("npm", "1.2", "1.2.1", None),  # no semantic version
        ("npm", "file:../x", "1.0.0", None),
        ("PyPI", "1.2.3", "1.2.4", PATCH),
        ("PyPI", "1.2", "1.2.1", PATCH),
        ("PyPI", "1.2.3", "1.2.3.post1", PATCH),
        ("PyPI", "1.2.3.4", "1.2.3.5", PATCH),
        ("PyPI", "2024.1", "2024.7.4", MINOR),
        ("PyPI", "2024.2", "2025.1", MAJOR),
        ("PyPI", "0.9.1", "0.10.0", MAJOR),
        ("PyPI", "2024.1", "1!1.0", MAJOR),
        ("PyPI", "1.0rc1", "1.0", MINOR),
        ("PyPI", "1.2.3", "1.2.3+local", None),
        ("PyPI", "1.2.3+cu118", "1.2.4", None),
        ("PyPI", "1.10", "1.9", None),
    ],
)
def test_the_size_of_a_step(ecosystem, old, new, size) -> None:
    assert step(ecosystem, old, new) is size


def test_the_newest_of_each_size_that_is_finished_and_not_withdrawn() -> None:
    versions = "1.2.3 1.2.4 1.2.10 1.2.11-rc.1 1.3.0 1.4.0 2.0.0 3.0.0-beta.1".split()
    releases = [*map(Release, versions), Release("1.5.0", withdrawn=True), Release("1.2.12", runtime=">=99")]
    assert ahead("npm", "1.2.3", releases) == {PATCH: "1.2.10", MINOR: "1.4.0", MAJOR: "2.0.0"}


def test_a_version_that_its_registry_does_not_know_may_still_be_behind() -> None:
    assert ahead("PyPI", "1.2.3", [Release("1.2.4", runtime=">=3.9")]) == {PATCH: "1.2.4"}
