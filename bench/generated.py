"""A repository of 5,200 files (or as many as asked for), the same every time but for its dates, made at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

COMMITS, PER_COMMIT = 26, 200
TOUCHED = 40  # files changed by the last commit
LINES = 60
PLAIN = "".join(f"export const value{n} = (input: number): number => input * @ + {n};\n" for n in range(LINES))


def generate(repo: Path, now: datetime, files: int = 0) -> Path:
    """The repository at `repo`: commits of 200 files a day apart, and one of 40 changes an hour before `now`."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(repo)], check=True)
    stream = b"".join(_stream(now, files // PER_COMMIT or COMMITS))
    subprocess.run(["git", "-C", str(repo), "fast-import", "--quiet"], input=stream, check=True)
    subprocess.run(["git", "-C", str(repo), "reset", "--quiet", "--hard", "main"], check=True)
    return repo


def _stream(now: datetime, commits: int) -> Iterator[bytes]:
    for commit in range(commits):
        yield _head(now - timedelta(days=commits - commit), f"Part {commit}", commit % 5)
        for file in range(commit * PER_COMMIT, (commit + 1) * PER_COMMIT):
            yield _file(file, "")
    yield _head(now - timedelta(hours=1), "Change a few", 0)
    for file in range(0, TOUCHED * 7, 7):
        yield _file(file, "// TODO: look at this again\n")


def _head(date: datetime, message: str, author: int) -> bytes:
    who = f"committer Author {author} <author{author}@example.org> {int(date.timestamp())} +0000"
    return f"commit refs/heads/main\n{who}\ndata {len(message)}\n{message}\n".encode()


def _file(number: int, extra: str) -> bytes:
    side = "src" if number % 3 else "server"
    text = "".join(_lines(number)) + extra
    path = f"{side}/part{number % 40}/module{number}.ts"
    return f"M 100644 inline {path}\ndata {len(text)}\n{text}\n".encode()


def _lines(file: int) -> list[str]:
    lines = PLAIN.replace("@", str(file)).splitlines(keepends=True)  # line by line it takes a minute for 50,000 files
    if file % 20 == 0:
        marker = ("TODO", "FIXME", "HACK")[file // 20 % 3]
        lines[17] = f"// {marker}: handle the case where value {file} is missing\n"
    if file % 50 == 0:
        lines[29] = f"export function untyped{file}(value: any): string {{ return String(value); }}\n"
    return lines
