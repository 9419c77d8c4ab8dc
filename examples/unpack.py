"""Unpack the sample project into a new folder: `python examples/unpack.py DIR`.

The project is kept as `slackwater/history.fi`, a fast-import stream (text, with fixed dates, so
with fixed object ids), and `slackwater/forge/`, its issues as the local forge keeps them.
Standard library and git only. The folder appears whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "slackwater"


def unpack(target: Path, source: Path = SOURCE) -> str:
    """Create the repository at `target`, `main` checked out and the forge filled; the head's object id.

    Raises FileExistsError when there is something at `target` already.
    """
    target = target.absolute()
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=target.parent) as folder:
        repository = Path(folder) / target.name
        head = _history(repository, source)
        _forge(repository, source)
        repository.rename(target)
    return head


def _history(repository: Path, source: Path) -> str:
    repository.mkdir()
    _git(repository, "init", "--quiet", "--initial-branch", "main", "--template=")
    with (source / "history.fi").open("rb") as stream:
        _git(repository, "fast-import", "--quiet", stdin=stream)
    head = _git(repository, "rev-parse", "main")
    if head != (source / "head").read_text().strip():
        raise ValueError(f"{source / 'history.fi'} was altered on its way here (line endings?): clone again")
    _git(repository, "reset", "--quiet", "--hard", "main")
    return head


def _forge(repository: Path, source: Path) -> None:
    exclude = repository / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("/.ralph/\n")
    shutil.copytree(source / "forge", repository / ".ralph" / "forge")


def _git(repository: Path, *arguments: str, stdin: object = subprocess.DEVNULL) -> str:
    # Nothing of the user's: neither settings that rewrite files nor variables that point elsewhere.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, stdin=stdin, env=environment, capture_output=True, check=False)  # type: ignore[call-overload]  # a file or DEVNULL
    if done.returncode != 0:
        raise OSError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return str(done.stdout.decode().strip())


def main(arguments: list[str]) -> int:
    """Unpack, and say where; 1 with one line when that is not possible."""
    if len(arguments) != 1:
        print("usage: python examples/unpack.py DIR", file=sys.stderr)
        return 2
    try:
        head = unpack(Path(arguments[0]))
    except (OSError, ValueError) as problem:
        print(f"The sample was not unpacked: {problem}", file=sys.stderr)
        return 1
    print(f"The sample is in {arguments[0]}, at {head[:8]}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
