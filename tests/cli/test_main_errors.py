"""Whatever goes wrong: one line that says who must act, the right exit code, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.cli import main
from ralph_mission.cli.main import run_guarded
from ralph_mission.cli.spelling import format_problem
from ralph_mission.errors import Lost, Stopped, UserError
from tests.helpers import make_repo

FULL = "no space left on device. Free some disk space, then run again"
RALPH = [sys.executable, "-m", "ralph_mission"]


def raising(error: BaseException) -> Callable[[list[str]], int]:
    """A command that fails with `error`."""

    def run(_arguments: list[str]) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("the disk is on fire", "put it out"), 1, "error: the disk is on fire. Put it out"),
        (UserError("no such option", "see --help", usage=True), 2, "error: no such option. See --help"),
        (UserError("it is down", "wait", who="network"), 1, "error (network): it is down. Wait"),
        (UserError("two\nlines", "one\nline"), 1, "error: two lines. One line"),
        (KeyboardInterrupt(), 130, "error: interrupted. To continue, run it again"),
        (Stopped(), 130, "error: stopped, as somebody asked. To continue, run it again"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, f"error: {FULL}"),
        (
            OSError(errno.EFBIG, "File too large"),
            1,
            "error: file too large. Raise the limit on the size of a file (ulimit -f), then run again",
        ),
        (
            FileExistsError(errno.EEXIST, "File exists", "/x/.ralph"),
            1,
            "error: /x/.ralph: file exists. A file or a broken link stands where a folder belongs: move it away, "
            "then run again",
        ),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", "/x/y"),
            1,
            "error: /x/y: is a directory. A folder stands where a file belongs: move it away, then run again",
        ),
        (
            OSError(errno.ELOOP, "Too many levels of symbolic links", "/x/y"),
            1,
            "error: /x/y: too many levels of symbolic links. A link stands where a file or folder belongs: "
            "move it away, then run again",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/y"),
            1,
            "error: /x/y: permission denied. Give this user access to it, then run again",
        ),
    ],
)
def test_an_error_is_one_line_on_stderr(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(raising(error), []) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", line + "\n")


def test_an_error_is_one_json_document_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(UserError("it is down", "wait", who="forge")), ["cycle", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"error": {"who": "forge", "what": "it is down", "next": "wait"}}


def test_who_loses_the_claim_leaves_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(Lost()), []) == 0
    assert capsys.readouterr() == ("", "")


def test_our_own_mistake_leaves_a_report_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = make_repo(tmp_path)
    (repo / ".ralph").mkdir()
    assert run_guarded(raising(ZeroDivisionError("by zero")), ["cycle", "--repo", str(repo), "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["who"] == "bug"
    assert "Traceback" not in said.err
    (report,) = (repo / ".ralph").glob("ralph-crash-*.txt")
    assert str(report) in said.err
    assert "ZeroDivisionError: by zero" in report.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_a_package_that_is_missing_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_: list[str]) -> int:
        raise ModuleNotFoundError("No module named 'click.core'", name="click.core")

    assert run_guarded(fails, ["status"]) == 1
    assert capsys.readouterr().err.startswith(
        "error: the package click is not installed. Install Ralph with its packages"
    )


def test_a_report_leaves_no_folder_in_a_repository_that_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, elsewhere = make_repo(tmp_path / "repo"), tmp_path / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    run_guarded(raising(ZeroDivisionError()), ["cycle", "--repo", str(repo)])
    assert not (repo / ".ralph").exists()
    assert len(list(elsewhere.glob("ralph-crash-*"))) == 1


@pytest.mark.attack(33)
def test_a_report_holds_no_secret(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / ".ralph").mkdir()
    token = "ghp_" + "a1B2" * 9
    run_guarded(raising(ValueError(f"bad token {token}")), ["cycle", "--repo", str(repo)])
    (report,) = (repo / ".ralph").glob("ralph-crash-*.txt")
    assert token not in report.read_text()


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run_guarded(raising(ZeroDivisionError()), [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_130_and_one_line(number: signal.Signals) -> None:
    code = (
        "import sys, time\nfrom ralph_mission.cli.main import run_guarded\n"
        "def run(_):\n print('ready', flush=True); time.sleep(60)\n"
        "sys.exit(run_guarded(run, []))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None and run.stdout.readline() == "ready\n"
        run.send_signal(number)
        _, said = run.communicate(timeout=300)
    assert run.returncode == 130
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_a_reader_that_leaves_is_no_drama() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*RALPH, "schema", "config"], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_clear_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*RALPH, "schema", "config"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: {FULL}\n"


@pytest.mark.long  # a process and a terminal of its own
def test_a_terminal_without_the_letters_is_no_reason_to_fail(tmp_path: Path) -> None:
    place = tmp_path / "gr\u00fc\u00dfe-\u2026"
    done = subprocess.run(
        [*RALPH, "init", "--repo", str(place)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.isascii()


@pytest.mark.attack(38)
def test_what_is_wrong_cannot_paint_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    run_guarded(raising(UserError("no \x1b[2J\x1b]8;;x\x07", "fix it")), [])
    assert "\x1b" not in capsys.readouterr().err


def test_streams_that_are_closed_are_no_mistake_of_ours(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    command = f"{shlex.join([sys.executable, '-m', 'ralph_mission', 'cycle', '--repo', str(repo)])} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False, capture_output=True).returncode == 0
    assert list(repo.glob(".ralph/*crash*")) == []


def test_what_to_do_next_can_be_typed_from_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = UserError("memory is gone", "look with `ralph memory verify`")
    assert run_guarded(raising(error), ["cycle", "--json", "--repo", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["next"] == f"look with `ralph memory verify --repo {tmp_path}`"


def test_the_page_of_a_job_shows_commands_without_the_paths_of_its_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    error = UserError("memory is gone", "look with `ralph memory verify`", usage=True)
    assert run_guarded(raising(error), ["cycle", "--repo", "/srv/runner/_work/harbour"]) == 2
    assert "ralph memory verify" in page.read_text() and "/srv/runner" not in page.read_text()
    assert "ralph memory verify --repo /srv/runner/_work/harbour" in capsys.readouterr().err


SECRET = "hush-hush-hush-hush-5f3c"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A value of the environment that must not leave; reports are written below the test's own folder."""
    monkeypatch.setenv("SLACKWATER_TOKEN", SECRET)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return SECRET


@pytest.mark.attack(33)
def test_a_trouble_quotes_no_secret(known: str) -> None:
    told = main.redact_problem(UserError(f"nobody knows {known}", f"look at {known}"))
    assert known not in f"{told.what} {told.next_step}" and "nobody knows" in told.what


@pytest.mark.attack(37)
def test_a_trouble_is_one_line_that_steers_nothing() -> None:
    line = format_problem(UserError("a file\n::add-mask::x\x1b[2J", "look\n##[error]at it"))
    assert "\n" not in line and "\x1b" not in line and not line.startswith("::") and "##[error]" not in line


@pytest.mark.parametrize(
    "step", ["npm install --global x", "make install EXTRAS=ui", "uv tool install x", "ralph doctor"]
)
def test_a_next_step_that_is_a_command_is_as_it_is_typed(step):
    assert format_problem(UserError("x is not installed", step)) == f"error: x is not installed. {step}"


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
