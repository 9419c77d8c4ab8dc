"""The counter of failures: kept from run to run, worth nothing when broken, one for each repository."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from ralph_mission.flows.alarm import Episode
from ralph_mission.stores.failures import FailureFile, place
from tests.helpers import NOON

EPISODE = Episode(2, "ab12", 3, NOON, 7, "ab12", 3)


@pytest.mark.parametrize("episode", [EPISODE, Episode()])
def test_what_was_kept_is_read_again(tmp_path: Path, episode: Episode) -> None:
    file = FailureFile(tmp_path / "ralph" / "failures.json")
    file.write(episode)
    assert file.read() == episode
    assert [path.name for path in file.path.parent.iterdir()] == ["failures.json"]


def test_nothing_kept_is_a_new_episode(tmp_path: Path) -> None:
    assert FailureFile(tmp_path / "failures.json").read() == Episode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        b'{"number": -1, "identity": "", "count": 0, "issue": 0, "told": "", "doubt": 0, "since": null}',
        b'{"number": true, "identity": "", "count": 0, "issue": 0, "told": "", "doubt": 0, "since": null}',
        b'{"number": 0, "identity": "", "count": 0, "issue": 0, "told": "", "doubt": 0, "since": "2026-01-01"}',
        b'{"number": 0, "identity": "", "count": 0, "issue": 0, "told": "", "doubt": 0, "since": 4}',
    ],
)
def test_a_broken_file_is_a_new_episode(tmp_path: Path, content: bytes) -> None:
    file = FailureFile(tmp_path / "failures.json")
    file.path.write_bytes(content)
    assert file.read() == Episode()
    file.write(EPISODE)
    assert file.read() == EPISODE


@pytest.mark.attack(46)
def test_nothing_is_counted_behind_a_link(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (tmp_path / "ralph").symlink_to(theirs)
    FailureFile(place(tmp_path, {})).write(EPISODE)
    assert list(theirs.iterdir()) == [] and FailureFile(place(tmp_path, {})).read() == EPISODE


def test_every_field_is_kept() -> None:
    assert all(asdict(EPISODE).values()), "a field without a value would not show that it is kept"


def test_a_runner_keeps_it_in_its_tool_cache_by_repository(tmp_path: Path) -> None:
    environment = {"RUNNER_TOOL_CACHE": "/opt/tools", "GITHUB_REPOSITORY": "Harbour/slackwater"}
    assert place(tmp_path, environment) == Path("/opt/tools/ralph/harbour+slackwater/failures.json")


@pytest.mark.parametrize("repository", ["", "../..", "a/../b", "slackwater"])
def test_without_a_repository_or_a_cache_it_stands_in_the_clone(tmp_path: Path, repository: str) -> None:
    here = tmp_path / "ralph-failures.json"
    assert place(tmp_path, {"RUNNER_TOOL_CACHE": "/opt/tools", "GITHUB_REPOSITORY": repository}) == here
    assert place(tmp_path, {"GITHUB_REPOSITORY": "harbour/slackwater"}) == here
