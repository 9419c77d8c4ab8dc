"""What one guard of what is told in a terminal, a report or a file of an installation alone holds back."""

from __future__ import annotations

import stat
import tempfile
import threading
from pathlib import Path

import pytest

from ralph_mission.cli import crash, errors, overwriting
from ralph_mission.trouble import Trouble
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
    report = crash.write_report(ValueError(f"cannot parse {known}"), ["cycle", known])
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

    monkeypatch.setattr(crash, "datetime", Moment)
    monkeypatch.setattr(crash.os, "getpid", lambda: 1)
    (tmp_path / "theirs.txt").write_text("theirs")
    (tmp_path / "ralph-crash-now-1.txt").symlink_to(tmp_path / "theirs.txt")
    with pytest.raises(FileExistsError):
        crash._write(tmp_path, "ours")
    assert (tmp_path / "theirs.txt").read_text() == "theirs"


@pytest.mark.attack(33)
def test_a_trouble_quotes_no_secret(known: str) -> None:
    told = errors._discreet(Trouble(f"nobody knows {known}", f"look at {known}"))
    assert known not in f"{told.what} {told.next_step}" and "nobody knows" in told.what


@pytest.mark.attack(37)
def test_a_trouble_is_one_line_that_steers_nothing() -> None:
    line = errors._line(Trouble("a file\n::add-mask::x\x1b[2J", "look\n##[error]at it"))
    assert "\n" not in line and "\x1b" not in line and not line.startswith("::") and "##[error]" not in line


@pytest.mark.attack(46)
def test_a_report_of_a_crash_is_written_behind_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, theirs = make_repo(tmp_path / "repo"), tmp_path / "theirs"
    theirs.mkdir()
    (repo / ".ralph").symlink_to(theirs)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = crash.write_report(ValueError("x"), ["cycle", "--repo", str(repo)])
    assert report is not None and report.parent == tmp_path and list(theirs.iterdir()) == []


@pytest.mark.attack(46)
def test_a_file_of_an_installation_is_written_through_no_link_that_came_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "theirs.yml").write_text("theirs")
    for name in ("ours.yml", f".ours.yml.{threading.get_native_id()}"):
        (tmp_path / name).symlink_to(tmp_path / "theirs.yml")
    overwriting.write(
        [overwriting.Planned(tmp_path / "ours.yml", "text\n")], [overwriting.Fate(tmp_path / "ours.yml", "new")]
    )
    assert (tmp_path / "theirs.yml").read_text() == "theirs"
    assert {file.name for file in tmp_path.iterdir() if not file.is_symlink()} == {"theirs.yml", "ours.yml"}
