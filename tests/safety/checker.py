"""A second opinion on sizes and modes, sharing no code and no algorithm with the package.

It asks git for the raw tree difference, normalises every separator by hand and finds the
longest common subsequence by dynamic programming.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SEPARATORS = re.compile(b"\r\n|\n|\r|\x0b|\x0c|\x1c|\x1d|\x1e|\xc2\x85|\xe2\x80\xa8|\xe2\x80\xa9")


def lines_of(content: bytes) -> list[bytes]:
    """The lines, ends dropped, a last empty one too."""
    parts = SEPARATORS.split(content)
    return parts[:-1] if parts[-1] == b"" else parts


def fewest_changed_lines(old: bytes, new: bytes) -> int:
    """Added + deleted lines of the smallest possible difference."""
    before, after = lines_of(old), lines_of(new)
    row = [0] * (len(after) + 1)
    for line in before:
        diagonal = 0
        for index, other in enumerate(after, 1):
            above = row[index]
            row[index] = diagonal + 1 if line == other else max(above, row[index - 1])
            diagonal = above
    return len(before) + len(after) - 2 * row[-1]


def numstat(folder: Path, old: bytes, new: bytes) -> int:
    """What git counts once both sides have ordinary line ends and no attributes."""
    sides = []
    for name, content in (("old", old), ("new", new)):
        path = folder / name
        path.write_bytes(b"".join(line + b"\n" for line in lines_of(content)))
        sides.append(str(path))
    command = ["git", "diff", "--no-index", "--numstat", "--minimal", "--text", *sides]
    out = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout
    return sum(int(number) for number in out.split()[:2])


def strange_modes(repo: Path, base: str, head: str) -> list[str]:
    """Paths between two commits that are not an ordinary file on both sides."""
    command = ["git", "-C", str(repo), "diff", "--raw", "-z", "--no-renames", "--no-abbrev", base, head]
    raw = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    rows = [(meta.split(), path) for meta, path in zip(raw[::2], raw[1::2], strict=False)]
    return [path for meta, path in rows if not {meta[0].lstrip(":"), meta[1]} <= {"000000", "100644"}]
