"""What fixers share."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from ralph_mission.adapters.fixers.fixer import installed_version


def test_a_version_is_the_one_that_importlib_reads() -> None:
    names = {one.name for one in metadata.distributions()}
    assert {name: installed_version(name) for name in names} == {name: metadata.version(name) for name in names}


def test_a_version_of_before_wheels_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.egg-info").write_text("Metadata-Version: 1.0\nName: old\nVersion: 2.14.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_version("old") == metadata.version("old") == "2.14.0"


def test_a_package_that_is_not_installed_has_no_version() -> None:
    with pytest.raises(metadata.PackageNotFoundError):
        installed_version("no-such-package")
