from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from ralph_mission.cli import main
from tests.helpers import make_repo

SECRET = "hush-hush-hush-hush-5f3c"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A value of the environment that must not leave; reports are written below the test's own folder."""
    monkeypatch.setenv("SLACKWATER_TOKEN", SECRET)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return SECRET


@pytest.mark.attack(33)
def test_a_report_of_our_own_mistake_holds_no_secret_and_is_its_users_alone(known: str) -> None:
    report = main.write_report(ValueError(f"cannot parse {known}"), ["cycle", known])
    assert report is not None and "cannot parse" in report.read_text() and known not in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


@pytest.mark.attack(46)
def test_a_report_replaces_no_file_and_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Moment:
        """A clock that stands still."""

        @staticmethod
        def now(_: object) -> Moment:
            return Moment()

        def strftime(self, _: str) -> str:
            return "now"

    monkeypatch.setattr(main, "datetime", Moment)
    monkeypatch.setattr(main.os, "getpid", lambda: 1)
    (tmp_path / "theirs.txt").write_text("theirs")
    (tmp_path / "ralph-crash-now-1.txt").symlink_to(tmp_path / "theirs.txt")
    with pytest.raises(FileExistsError):
        main.create_report(tmp_path, "ours")
    assert (tmp_path / "theirs.txt").read_text() == "theirs"


@pytest.mark.attack(46)
def test_a_report_of_a_crash_is_written_behind_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, theirs = make_repo(tmp_path / "repo"), tmp_path / "theirs"
    theirs.mkdir()
    (repo / ".ralph").symlink_to(theirs)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = main.write_report(ValueError("x"), ["cycle", "--repo", str(repo)])
    assert report is not None and report.parent == tmp_path and list(theirs.iterdir()) == []
