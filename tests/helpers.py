"""What many tests need: real git repositories in little time, and `ralph` as a person would run it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.sandbox import process
from tests import fresh_repo

MARA = "Mara Quint <mara@example.org>"
RALPH = str(Path(sys.executable).with_name("ralph"))
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of `ralph` ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


def time_out_at(file: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """A time-out for `run_foreign`, in seconds: it is over once the program has made `file`, on however busy a
    machine."""

    def monotonic() -> float:
        return time.monotonic() + (1000 if file.exists() else 0)

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=monotonic, sleep=time.sleep))
    return 900.0


def with_parts(app: Any, **parts: Any) -> Any:
    """The app with other ports or settings than those it would build itself."""
    made = replace(app)
    vars(made).update(parts)
    return made


def git(repo: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Standard output of a git command in `repo`, without the last newline. Raises when git says no."""
    done = subprocess.run(
        ["git", "-C", str(repo), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | dict(env or {}),
    )
    if done.returncode != 0:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout.rstrip("\n")


def descends(repo: Path, new: str, old: str) -> bool:
    """Whether one commit is the other or descends from it."""
    command = ["git", "-C", str(repo), "merge-base", "--is-ancestor", old, new]
    return subprocess.run(command, check=False).returncode == 0


def name_drivers(repo: Path, witness: Path) -> None:
    """Filters, text conversions and drivers of git that leave `witness` when they run, for every file."""
    names = ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver")
    for name in names:
        git(repo, "config", name, f"touch {witness}; cat")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


def make_repo(
    path: Path,
    files: Mapping[str, str | bytes] | None = None,
    author: str = MARA,
    date: datetime = NOON,
    branch: str = "main",
) -> Path:
    """A new repository at `path` with one commit of `files` checked out on `branch`."""
    path.mkdir(parents=True, exist_ok=True)
    files = {"README.md": "# Sample\n"} if files is None else files
    for name, content in files.items():
        _write(path / name, content)
    if fresh_repo.can_write(path, files):
        fresh_repo.write_repository(path, files, author, date, branch, "Start")
    else:
        git(path, "init", "--quiet", "--initial-branch", branch, "--template=")
        commit(path, files, author, date, "Start")
    return path


def copy_bare(repo: Path, place: Path) -> Path:
    """A bare repository at `place` as `git clone --bare` of `repo` would make it, without starting git."""
    shutil.copytree(repo / ".git", place, ignore=shutil.ignore_patterns("index", "logs"))
    config = (place / "config").read_text()
    (place / "config").write_text(config.replace("bare = false", "bare = true"))
    return place


def commit(
    repo: Path,
    files: Mapping[str, str | bytes | None],
    author: str = MARA,
    date: datetime = NOON,
    message: str = "Change",
) -> str:
    """Write `files` (None removes one), commit them on the branch that is checked out; the new commit's id."""
    for name, content in files.items():
        _write(repo / name, content)
    name, email = author.rstrip(">").split(" <")
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", email), ("DATE", date.isoformat()))
    }
    if files:
        git(repo, "add", "--all", "--force", "--", *files)
    git(repo, "commit", "--quiet", "--allow-empty", "--message", message, env=who)
    return read_head(repo)


def read_head(repo: Path) -> str:
    """The id of the commit that is checked out."""
    place = repo / ".git"
    head = (place / "HEAD").read_text().strip() if place.is_dir() else ""
    ref = place / head.removeprefix("ref: ")
    return ref.read_text().strip() if head.startswith("ref: ") and ref.is_file() else git(repo, "rev-parse", "HEAD")


def cli(
    *arguments: str,
    repo: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
) -> Result:
    """`ralph ARGUMENTS [--repo REPO]` as a process of its own."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from ralph_mission.cli.main import main; sys.exit(main())",
            *_line(arguments, repo),
        ],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd or repo,
        env=os.environ | dict(env or {}),
    )
    return Result(done.returncode, done.stdout, done.stderr)


def cli_here(
    *arguments: str,
    repo: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
) -> Result:
    """The same in this process: a tenth of the time, for all but what is about processes."""
    from ralph_mission.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.object(os, "execve", side_effect=AssertionError("this would replace the tests' own process")),
        mock.patch.object(sys, "argv", [RALPH, *_line(arguments, repo)]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        mock.patch.dict(os.environ, dict(env or {})),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _exit_code(main)
    return Result(code, out.getvalue(), err.getvalue())


def _exit_code(main: Any) -> int:
    try:
        return main() or 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _line(arguments: tuple[str, ...], repo: Path | None) -> list[str]:
    return [*arguments, *(["--repo", str(repo)] if repo else [])]


def _write(path: Path, content: str | bytes | None) -> None:
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
