"""The branch store on a bad day: killed in the middle, raced, without room on the disk, held by somebody else."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.files import boot_id
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.adapters.storage.memory.provenance import AnchorMark
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.model.ledger import MemorySnapshot
from tests.adapters.storage.memory.making import Intruder, batch, branch_store, intended
from tests.helpers import git, make_repo


class Killed(BaseException):
    """As if the process had ended here."""


def test_killed_between_the_pending_anchor_and_the_move_changes_nothing(
    repo: Path, store: BranchStore, past: MemorySnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> bool:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Git, "move_ref", die)
        with pytest.raises(Killed):
            store.commit(batch(past), past)
    fresh = branch_store(repo)
    assert fresh.recall() == past
    assert fresh.commit(batch(past), past).memory.header.serial == 2


def test_killed_between_the_move_and_the_final_anchor_the_commit_is_ours(
    repo: Path, store: BranchStore, past: MemorySnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Git.move_ref

    def die_after(self: Git, *arguments: str) -> bool:
        real(self, *arguments)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Git, "move_ref", die_after)
        with pytest.raises(Killed):
            store.commit(batch(past, intended(1)), past)
    fresh = branch_store(repo)
    recalled = fresh.recall()
    assert recalled is not None
    assert (recalled.memory.header.serial, recalled.human_edits) == (2, ())
    assert fresh.commit(batch(recalled), recalled).memory.header.serial == 3


def test_an_edit_on_top_of_a_commit_that_was_never_anchored_is_welcome(
    repo: Path, store: BranchStore, past: MemorySnapshot, intruder: Intruder
) -> None:
    second = store.commit(batch(past), past)
    store.anchorage.write(AnchorMark("f00dfeed", 1, past.oid, pending=second.oid))
    intruder.rewrite(lambda memory: replace(memory, learnings="\n- hi\n"))
    recalled = branch_store(repo).recall()
    assert recalled is not None
    assert recalled.memory.learnings == "\n- hi\n"


def test_killed_before_the_first_commit_starts_over(
    repo: Path, store: BranchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> bool:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Git, "move_ref", die)
        with pytest.raises(Killed):
            store.commit(batch(), None)
    assert branch_store(repo).recall() is None
    assert branch_store(repo).commit(batch(), None).memory.header.serial == 1


def test_processes_that_race_get_one_winner_each_round(repo: Path, past: MemorySnapshot) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.adapters.storage.memory.making import *\n"
        "from ralph_mission.errors import Lost\n"
        "store = branch_store(Path(sys.argv[1])); past = store.recall(); print('ready', flush=True); input()\n"
        "try: print(store.commit(batch(past), past).oid)\n"
        "except Lost: print('lost')\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(repo)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[4],
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.communicate()[0].strip() for racer in racers)
    assert said.count("lost") == 3
    recalled = branch_store(repo).recall()
    assert recalled is not None
    assert recalled.oid in said


def test_a_move_that_fails_for_another_reason_leaves_memory_as_it_was(
    repo: Path, store: BranchStore, past: MemorySnapshot
) -> None:
    lock = repo / ".git" / "refs" / "heads" / "ralph-memory.lock"
    lock.write_text("")
    with pytest.raises((UserError, Lost)):
        store.commit(batch(past), past)
    lock.unlink()
    assert branch_store(repo).recall() == past
    assert store.commit(batch(past), past).memory.header.serial == 2


def test_a_disk_that_takes_no_more_is_one_line_and_changes_nothing(
    repo: Path, store: BranchStore, past: MemorySnapshot
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(UserError) as caught:
            store.commit(batch(past), past)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.what.startswith("cannot write memory: ")
    assert "\n" not in caught.value.what
    assert branch_store(repo).recall() == past
    git(repo, "fsck", "--strict")


def test_a_full_disk_for_the_anchor_is_one_line_and_changes_nothing(
    repo: Path, store: BranchStore, past: MemorySnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "anchor.json")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(UserError, match="no space left on device"):
            store.commit(batch(past), past)
    assert branch_store(repo).recall() == past


def test_a_holder_is_host_boot_and_process(repo: Path) -> None:
    assert branch_store(repo).holder() == f"{socket.gethostname()}:{boot_id()}:{os.getpid()}"


def test_a_holder_on_this_host_is_proven_dead_only_by_the_lock(store: BranchStore) -> None:
    other = f"{socket.gethostname()}:{boot_id()}:1"
    assert not store.proven_dead(other)
    with store.exclusive():
        assert store.proven_dead(other)
        assert not store.proven_dead("https://example.org/runs/1")
        assert not store.proven_dead(f"{socket.gethostname()}-2:{boot_id()}:1")
    assert not store.proven_dead(other)


def test_the_lock_goes_with_its_holder(repo: Path, store: BranchStore) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.adapters.storage.memory.making import branch_store\n"
        "lock = branch_store(Path(sys.argv[1])).exclusive(); lock.__enter__(); print('held', flush=True); input()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(repo)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with store.exclusive() as held:
        assert not held
    other.kill()
    other.communicate()
    with store.exclusive() as held:
        assert held


def test_a_work_tree_in_which_memory_was_never_kept_is_not_written_by_looking(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    store = branch_store(repo)
    assert store.recall() is None
    assert not store.paused()
    assert not (repo / ".git" / "ralph").exists()
