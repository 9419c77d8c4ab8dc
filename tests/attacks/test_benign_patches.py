"""Honest changes are not held back: made by hand, and of the sizes, paths and modes of real ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralph_mission.safety.objections import inspect
from ralph_mission.safety.patch import EXECUTABLE, REGULAR, FileChange, Patch
from tests.attacks.benign_patches import BASE, PATCHES, Benign

HISTORY = Path(__file__).with_name("history.txt")
CELL = re.compile(r"(?P<status>[AMD])(?P<lines>\d+)(?P<executable>x?):(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Past:
    """One real commit: its name, whether its content was held for a person, and what it changed."""

    name: str
    held: bool
    cells: str

    @property
    def patch(self) -> Patch:
        """A change of the same sizes at the same paths."""
        return Patch(BASE, tuple(_of_size(cell) for cell in self.cells.split(" ")))

    def __str__(self) -> str:
        return self.name


def _of_size(cell: str) -> FileChange:
    found = CELL.fullmatch(cell)
    assert found, cell
    count, mode = int(found["lines"]), EXECUTABLE if found["executable"] else REGULAR
    gone = {"A": 0, "D": count, "M": count // 2}[found["status"]]
    kept = "" if found["status"] != "M" else "".join(f"kept {n}\n" for n in range(60))
    old = kept + "".join(f"old row {n}\n" for n in range(gone))
    new = kept + "".join(f"new row {n}\n" for n in range(count - gone))
    before = None if found["status"] == "A" else old.encode()
    after = None if found["status"] == "D" else new.encode()
    return FileChange(
        found["path"], mode if before is not None else "", mode if after is not None else "", before, after
    )


def past() -> list[Past]:
    """Every row of the file."""
    rows = (line.split(" ", 3) for line in HISTORY.read_text().splitlines() if not line.startswith("#"))
    return [Past(f"{project}-{commit}", said == "held", cells) for project, commit, said, cells in rows]


FREE = [one for one in past() if not one.held]


@pytest.mark.benign("patch")
@pytest.mark.parametrize("benign", PATCHES, ids=str)
def test_an_honest_change_is_not_held(benign: Benign) -> None:
    assert inspect(benign.patch) == ()


@pytest.mark.benign("patch")
@pytest.mark.parametrize("commit", FREE, ids=str)
def test_a_change_of_the_shape_of_a_real_one_is_not_held(commit: Past) -> None:
    assert inspect(commit.patch) == ()


def test_that_many_real_commits_touch_what_a_person_decides() -> None:
    """What the page on trust says of those that are not counted as benign."""
    assert (len(past()), len(past()) - len(FREE)) == (276, 9)
