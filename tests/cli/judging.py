"""Changes to a repository, and `ralph policy check` asked about them in both ways."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import Result, cli_here, git

LINES = "".join(f"value_{n} = {n}\n" for n in range(200))
FILES = {
    "src/app.py": LINES,
    "run.sh": "echo\n",
    "tests/test_app.py": "def test_a():\n    assert f() == 1\n",
    "Makefile": "all:\n",
}
CANARY = "canary" + "Qx7Rt2Lm9ZpW4vKd8N"


def diff(repo: Path) -> str:
    """The work tree's changes as a git diff, untracked files too; the index is left as it was."""
    git(repo, "add", "--all", "--intent-to-add")
    command = [
        "git",
        "-C",
        str(repo),
        "-c",
        "core.attributesFile=/dev/null",
        "diff",
        "--binary",
        "--no-renames",
        "HEAD",
    ]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    git(repo, "reset", "--quiet")
    return text.decode("utf-8", "surrogateescape")


def by_patch(repo: Path) -> Result:
    """The verdict on a file that holds the diff."""
    file = repo.parent / "change.patch"
    file.write_bytes(diff(repo).encode("utf-8", "surrogateescape"))
    return cli_here("policy", "check", "--json", "--patch", str(file), repo=repo)


def by_tree(repo: Path) -> Result:
    """The verdict on the work tree itself."""
    return cli_here("policy", "check", "--json", repo=repo)


both = pytest.mark.parametrize("judge", [by_patch, by_tree])
Judge = Callable[[Path], Result]


def append(repo: Path, text: str, name: str = "src/app.py") -> None:
    with open(repo / name, "ab") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


NEW = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+hi\n"


def judged(repo: Path, text: str) -> Result:
    return cli_here("policy", "check", "--json", "--patch", "-", repo=repo, stdin=text)
