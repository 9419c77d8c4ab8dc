"""Packing loose objects: nothing of a user's is lost, and a killed maintenance stops no later one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import STALE, Git, pack_loose
from tests.helpers import commit, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with some commits, whose objects are loose."""
    made = make_repo(tmp_path / "a: repository")
    commit(made, {"1.txt": "1\n"})
    return made


def counted(repo: Path) -> dict[str, int]:
    """What git counts: loose objects, packs, garbage."""
    lines = [line.partition(": ") for line in git(repo, "count-objects", "-v").splitlines()]
    return {name: int(value) for name, _, value in lines if value.isdigit()}


def test_every_loose_object_is_packed_whether_anything_refers_to_it_or_not(repo: Path) -> None:
    dangling = git(repo, "hash-object", "-w", "--stdin", stdin="nobody refers to this\n")
    before, settings = counted(repo), (repo / ".git/config").read_bytes()
    for _ in range(2):  # git drops what is packed with the next time
        pack_loose(Git.open(repo))
    after = counted(repo)
    assert (after["count"], after["in-pack"], after["packs"], after["garbage"]) == (0, before["count"], 1, 0)
    assert git(repo, "cat-file", "blob", dangling) == "nobody refers to this"
    assert (repo / ".git/config").read_bytes() == settings


@pytest.mark.parametrize("age", [0, STALE + 60])
def test_the_lock_of_a_maintenance_that_was_killed_goes_after_a_day(repo: Path, age: float) -> None:
    lock = repo / ".git/objects/maintenance.lock"
    lock.touch()
    os.utime(lock, (0, time.time() - age))
    pack_loose(Git.open(repo))
    assert (counted(repo)["packs"], lock.exists()) == ((1, False) if age else (0, True))


def test_an_object_that_cannot_be_read_leaves_all_as_it_is(repo: Path) -> None:
    broken = git(repo, "hash-object", "-w", "--stdin", stdin="broken\n")
    place = repo / ".git/objects" / broken[:2] / broken[2:]
    place.chmod(0o644)
    place.write_bytes(b"no object")
    before = counted(repo)["count"]
    pack_loose(Git.open(repo))
    assert counted(repo)["count"] == before
    git(repo, "log", "main")
