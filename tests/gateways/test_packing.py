"""Packing loose objects: whatever died in the middle, the next time goes on, and nothing of a user's is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph_mission.gateways import packing
from ralph_mission.gateways.git import Git
from ralph_mission.gateways.packing import FORGOTTEN, loose, pack_loose
from tests.helpers import commit, git, make_repo

DIES = """
import os, signal, sys
from pathlib import Path
from ralph_mission.gateways import packing
from ralph_mission.gateways.git import Git
def dying(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
repo, moment = Path(sys.argv[1]), sys.argv[2]
if moment == "the pack is not yet moved":
    packing.os.replace = dying
elif moment == "the pack has no index yet":
    real, left = packing.os.replace, [2]
    def replace(*places):
        left[0] -= 1
        real(*places) if left[0] else dying()
    packing.os.replace = replace
else:
    packing.durable.sync = dying
packing.pack_loose(Git.open(repo))
"""
MOMENTS = ("the pack is not yet moved", "the pack has no index yet", "the pack stands")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with some commits, whose objects are loose."""
    made = make_repo(tmp_path / "a: repository")
    for number in range(5):
        commit(made, {f"{number}.txt": f"{number}\n"})
    return made


def counted(repo: Path) -> dict[str, int]:
    """What git counts: loose objects, packs, garbage."""
    lines = [line.partition(": ") for line in git(repo, "count-objects", "-v").splitlines()]
    return {name: int(value) for name, _, value in lines if value.isdigit()}


def test_every_loose_object_is_packed_whether_anything_refers_to_it_or_not(repo: Path) -> None:
    dangling = git(repo, "hash-object", "-w", "--stdin", stdin="nobody refers to this\n")
    before, settings = counted(repo), (repo / ".git/config").read_bytes()
    pack_loose(Git.open(repo))
    after = counted(repo)
    assert (after["count"], after["in-pack"], after["packs"], after["garbage"]) == (0, before["count"], 1, 0)
    assert git(repo, "cat-file", "blob", dangling) == "nobody refers to this"
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert (repo / ".git/config").read_bytes() == settings
    assert not (repo / ".git/ralph/packing").exists()


def test_where_all_is_packed_nothing_is_written(repo: Path) -> None:
    pack_loose(Git.open(repo))
    before = sorted((repo / ".git/objects").rglob("*"))
    pack_loose(Git.open(repo))
    assert sorted((repo / ".git/objects").rglob("*")) == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_in_the_middle_leaves_nothing_that_the_next_time_does_not_clear(repo: Path, moment: str) -> None:
    for number in range(3):
        commit(repo, {"again.txt": f"{number}\n"})  # so that it is another pack
        killed = subprocess.run([sys.executable, "-c", DIES, str(repo), moment], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert git(repo, "fsck", "--strict") == ""
    objects = set(git(repo, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").splitlines())
    pack_loose(Git.open(repo))
    after = counted(repo)
    assert (after["count"], after["garbage"], after["prune-packable"]) == (0, 0, 0)
    assert after["in-pack"] == len(objects)
    assert not (repo / ".git/ralph/packing").exists()
    assert git(repo, "fsck", "--strict") == ""


def test_what_a_killed_git_had_begun_to_pack_is_cleared(repo: Path) -> None:
    left = repo / ".git/ralph/packing/pack/tmp_pack_x"
    left.parent.mkdir(parents=True)
    (repo / ".git/ralph/packing/info").mkdir()
    left.write_bytes(b"half a pack")
    pack_loose(Git.open(repo))
    assert not left.exists() and counted(repo)["count"] == 0


def test_the_lock_of_a_maintenance_that_was_killed_stands_in_nobodys_way(repo: Path) -> None:
    lock = repo / ".git/objects/maintenance.lock"
    lock.touch()
    pack_loose(Git.open(repo))
    assert counted(repo)["count"] == 0
    assert lock.exists()  # it is not ours to take away


def test_temporary_files_of_the_long_dead_go_and_those_of_the_living_stay(repo: Path) -> None:
    objects = repo / ".git/objects"
    some = next(loose(objects))[:2]
    (objects / "pack").mkdir(exist_ok=True)
    old = [objects / "pack/tmp_pack_old", objects / some / "tmp_obj_old"]
    new = [objects / "pack/tmp_pack_new", objects / "pack/mine.keep"]
    for one in (*old, *new):
        one.write_bytes(b"x")
    for one in (*old, new[1]):
        os.utime(one, (0, time.time() - FORGOTTEN - 60))
    pack_loose(Git.open(repo))
    assert [one.exists() for one in (*old, *new)] == [False, False, True, True]


def test_an_object_that_cannot_be_read_leaves_all_as_it_is(repo: Path) -> None:
    broken = git(repo, "hash-object", "-w", "--stdin", stdin="broken\n")
    place = repo / ".git/objects" / broken[:2] / broken[2:]
    place.chmod(0o644)
    place.write_bytes(b"no object")
    before = counted(repo)["count"]
    pack_loose(Git.open(repo))
    assert counted(repo)["count"] == before
    assert not (repo / ".git/ralph/packing").exists()
    git(repo, "log", "main")


def test_a_repository_that_limits_the_size_of_a_pack_gets_several(repo: Path) -> None:
    git(repo, "config", "pack.packSizeLimit", "1m")
    for number in range(3):
        (repo / f"{number}.bin").write_bytes(os.urandom(700_000))
    git(repo, "add", ".")
    pack_loose(Git.open(repo))
    after = counted(repo)
    assert (after["count"], after["garbage"]) == (0, 0)
    assert after["packs"] > 1
    assert git(repo, "fsck", "--strict") == ""


def test_what_is_too_much_at_once_waits_for_the_next_time(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = counted(repo)["count"]
    monkeypatch.setattr(packing, "MOST", before - 1)
    pack_loose(Git.open(repo))
    assert (counted(repo)["count"], counted(repo)["in-pack"]) == (1, before - 1)
    pack_loose(Git.open(repo))
    assert counted(repo)["count"] == 0


def test_a_shared_clone_keeps_what_it_borrows_where_it_is(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(repo), "shared")
    commit(tmp_path / "shared", {"own.txt": "own\n"})
    own, lent = counted(tmp_path / "shared")["count"], counted(repo)["count"]
    pack_loose(Git.open(tmp_path / "shared"))
    assert (counted(tmp_path / "shared")["count"], counted(tmp_path / "shared")["in-pack"]) == (0, own)
    assert counted(repo)["count"] == lent
    assert git(tmp_path / "shared", "fsck", "--strict") == ""
