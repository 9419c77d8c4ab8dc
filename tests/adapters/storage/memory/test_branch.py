"""The branch store in every kind of repository: it works there, and touches nothing of the user's."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.errors import Lost, UserError
from ralph_mission.mission import memory as layout
from ralph_mission.mission.memory.text import merge_edits, parse_notes, render_notes
from ralph_mission.mission.model.ledger import MemoryBatch, MemorySnapshot
from ralph_mission.mission.model.memory import CompletedNote, CycleNote
from ralph_mission.mission.model.mission import Urgency
from tests.adapters.storage.memory.making import (
    LOG,
    Intruder,
    batch,
    branch_store,
    claim,
    finding,
    fingerprint,
    full_batch,
    intended,
    key,
)
from tests.helpers import NOON, commit, git

ENDED = CompletedNote("2026-05-04", "count the boats", 1, "rejected")


def two_cycles(repo: Path) -> None:
    """The least that a store must manage anywhere."""
    first = branch_store(repo).commit(batch(None, intended(1)), None)
    second = branch_store(repo).commit(batch(first, finding(2)), first)
    recalled = branch_store(repo).recall()
    assert recalled == second
    assert branch_store(repo).records([key(1), key(2)], recalled) == {key(1): intended(1), key(2): finding(2)}
    assert git(repo, "rev-list", "--count", "ralph-memory") == "2"
    git(repo, "fsck", "--strict")


def test_a_dirty_tree_index_stash_and_configuration_stay_as_they_are(repo: Path) -> None:
    commit(repo, {"a.txt": "1\n"})
    (repo / "a.txt").write_text("stashed\n")
    git(repo, "-c", "user.name=m", "-c", "user.email=m@example.org", "stash")
    (repo / "a.txt").write_text("staged\n")
    git(repo, "add", "a.txt")
    (repo / "a.txt").write_text("dirty\n")
    (repo / "untracked").write_text("x")
    git(repo, "config", "core.hooksPath", "hooks")
    before = fingerprint(repo)
    two_cycles(repo)
    assert fingerprint(repo) == before


@pytest.mark.parametrize(
    "command",
    [
        "clone --quiet --bare repo where",
        "clone --quiet --depth=1 file://{repo} where",
        "init --quiet where",
    ],
    ids=["bare", "shallow", "without a commit"],
)
def test_a_repository_of_another_kind(repo: Path, tmp_path: Path, command: str) -> None:
    commit(repo, {"a": "1"})
    where = tmp_path / "where"
    git(tmp_path, *command.format(repo=repo, where=where).split())
    two_cycles(where)


def test_linked_work_trees_share_memory_and_lock(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    two_cycles(tmp_path / "linked")
    assert branch_store(repo).recall() == branch_store(tmp_path / "linked").recall()
    with branch_store(repo).exclusive(), branch_store(tmp_path / "linked").exclusive() as held:
        assert not held


def test_packed_refs_and_objects(repo: Path) -> None:
    past = branch_store(repo).commit(batch(), None)
    git(repo, "gc", "--quiet")
    assert branch_store(repo).recall() == past
    branch_store(repo).commit(batch(past), past)


def test_another_branch_and_path(repo: Path) -> None:
    store = branch_store(repo, branch="bots/memory", path="notes/log.md")
    past = store.commit(batch(), None)
    assert store.recall() == past
    assert "notes/log.md" in git(repo, "ls-tree", "-r", "--name-only", "bots/memory").splitlines()


def test_hooks_of_the_repository_do_not_run(repo: Path) -> None:
    hooks = repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-commit", "reference-transaction", "pre-commit", "post-update"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {repo}/ran\n")
        (hooks / name).chmod(0o755)
    two_cycles(repo)
    assert not (repo / "ran").exists()


def test_the_layout_on_the_branch(repo: Path, store: BranchStore) -> None:
    store.commit(replace(full_batch(None, 3), archive=(("2026-05", render_notes([ENDED], ())),)), None)
    comment, found = key("comment", 3), key("finding", 3)
    assert set(git(repo, "ls-tree", "-r", "--name-only", "ralph-memory").splitlines()) == {
        "README.md",
        "memory/archive/2026-05.md",
        "memory/journal/0000/000003-abc.json",
        f"memory/ledger/{comment[:2]}/{comment}.json",
        f"memory/ledger/{found[:2]}/{found}.json",
        LOG,
        "memory/open.json",
    }


def test_a_commit_skips_ci_and_names_the_cycle(repo: Path, past: MemorySnapshot) -> None:
    assert git(repo, "log", "-1", "--format=%s|%an", "ralph-memory") == "ralph: cycle 1: test [skip ci]|Ralph"


def test_no_ref_but_the_branch_is_made(repo: Path, past: MemorySnapshot) -> None:
    refs = git(repo, "for-each-ref", "--format=%(refname)").splitlines()
    assert refs == ["refs/heads/main", "refs/heads/ralph-memory"]


@pytest.mark.long  # ten seconds; tests/load asks the same of less
def test_200_cycles_keep_the_file_bounded_and_lose_nothing(repo: Path, store: BranchStore) -> None:
    past = None
    for cycle in range(1, 201):
        past = store.commit(full_batch(past, cycle), past)
    assert past is not None
    assert (len(past.memory.completed), len(past.memory.observations)) == (10, 5)
    assert len(git(repo, "cat-file", "blob", f"ralph-memory:{LOG}")) < 4096
    completed, observations = parse_notes(git(repo, "cat-file", "blob", "ralph-memory:memory/archive/2026-05.md"))
    missions = {note.title for note in (*completed, *past.memory.completed)}
    assert missions == {f"mission {cycle}" for cycle in range(1, 201)}
    assert {note.cycle for note in (*observations, *past.memory.observations)} == set(range(1, 201))
    assert [document["report"]["cycle"] for document in store.journal()] == list(range(1, 201))
    assert branch_store(repo).recall() == past


def test_no_folder_of_the_journal_grows_for_ever() -> None:
    folders = Counter(layout.journal(cycle, f"{cycle:06d}-abc").rpartition("/")[0] for cycle in range(1, 1201))
    assert max(folders.values()) == 100


def test_a_journal_of_an_earlier_version_is_read_before_what_came_since(
    store: BranchStore, past: MemorySnapshot, intruder: Intruder
) -> None:
    head = intruder.write("memory/journal/000001-flat.json", '{"n": 1}')
    files = store.files(replace(batch(past, cycle=2), journal=("later", {"n": 2})), head)
    store.move(head, files, "later", past.memory)
    assert [document["n"] for document in store.journal()] == [1, 2]


@pytest.mark.long  # thousands of objects
def test_loose_objects_are_packed_before_they_are_many(
    repo: Path, store: BranchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ralph_mission.adapters.storage.memory.branch.PACKED", 5)
    past, loose = None, []
    for cycle in range(1, 31):
        past = store.commit(full_batch(past, cycle), past)
        loose.append(int(git(repo, "count-objects").split()[0]))
    assert max(loose[15:]) <= max(loose[:15])
    assert branch_store(repo).recall() == past


def test_the_number_of_git_processes_does_not_grow_with_the_number_of_cycles(
    store: BranchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [0]
    real = subprocess.Popen.__init__

    def counted(self: object, *arguments: object, **options: object) -> None:
        calls[0] += 1
        real(self, *arguments, **options)  # type: ignore[call-overload]  # whatever the real one was given

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    past, spent = None, []
    for cycle in range(1, 31):
        before = calls[0]
        past = store.commit(full_batch(past, cycle), past)
        spent.append(calls[0] - before)
    assert max(spent[10:]) <= 4


def test_memory_that_could_not_be_read_back_is_not_written(
    repo: Path, store: BranchStore, past: MemorySnapshot
) -> None:
    huge = replace(batch(past).memory, measured=("x" * 1100 * 1024,))
    with pytest.raises(UserError, match="1024 KiB"):
        store.commit(replace(batch(past), memory=huge), past)
    assert branch_store(repo).recall() == past


def test_a_branch_that_is_checked_out_is_left_alone(repo: Path, store: BranchStore, past: MemorySnapshot) -> None:
    git(repo, "switch", "--quiet", "ralph-memory")
    for action in (store.recall, lambda: store.commit(batch(past), past)):
        with pytest.raises(UserError, match=f"checked out in {repo}"):
            action()
    git(repo, "switch", "--quiet", "main")
    assert store.recall() == past


def test_a_branch_checked_out_in_a_linked_work_tree_is_left_alone(
    repo: Path, tmp_path: Path, store: BranchStore, past: MemorySnapshot
) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"), "ralph-memory")
    with pytest.raises(UserError, match="linked"):
        store.recall()


def test_a_work_tree_that_stands_on_the_unborn_branch_is_left_alone(repo: Path, store: BranchStore) -> None:
    git(repo, "symbolic-ref", "HEAD", "refs/heads/ralph-memory")
    with pytest.raises(UserError, match="checked out"):
        store.commit(batch(), None)


# --- secrets ---------------------------------------------------------------------------


@pytest.mark.attack(33, 34)
def test_no_value_that_the_runner_knows_gets_onto_the_branch_and_what_stood_there_stays(repo: Path) -> None:
    known, later = "tidal-harbour-4711", "neaps-and-springs-815"
    first = branch_store(repo).commit(noted(batch(), f"long ago {known}"), None)
    store = branch_store(repo, secrets=(known, later))
    made = noted(batch(first, replace(finding("x"), title=f"use {later}")), f"now {later}", f"long ago {known}")
    landed = store.commit(replace(made, dashboard=f"# {later}\n", journal=("000002-abc", {"said": [later]})), first)
    added = git(repo, "diff", f"{first.oid}..{landed.oid}")
    assert later not in added and added.count("[redacted: known-value]") >= 4
    assert landed == store.recall() and f"long ago {known}" in git(repo, "show", f"ralph-memory:{LOG}")


def test_no_value_that_the_runner_knows_gets_into_the_archive_and_its_notes_can_be_read(repo: Path) -> None:
    known = "tidal-Harbour-4711"
    store = branch_store(repo, secrets=(known,))
    ended = [replace(ENDED, title=f"use {one}", learning=one) for one in (known, f"a {known}", "neaps")]
    text = render_notes(ended, ())
    store.commit(replace(batch(), archive=(("2026-05", text),)), None)
    archived = git(repo, "cat-file", "blob", "ralph-memory:memory/archive/2026-05.md")
    assert known not in archived
    assert [note.learning for note in parse_notes(archived)[0]] == [
        "[redacted: known-value]",
        "a [redacted: known-value]",
        "neaps",
    ]


def test_who_holds_memory_is_said_though_an_address_in_it_is_a_value_that_the_runner_knows(repo: Path) -> None:
    home = "https://github.example/harbour/slackwater"
    run = f"{home}/actions/runs/4711"
    landed = branch_store(repo, run, secrets=(home,)).commit(batch(claim=claim(run)), None)
    assert landed.state.claim == claim(run)
    assert landed == branch_store(repo).recall()


def noted(made: MemoryBatch, *seen: str) -> MemoryBatch:
    """With a cycle's note of what was seen."""
    note = CycleNote(made.memory.header.cycle, NOON, seen, (), Urgency.LOW, "6h")
    return replace(made, memory=replace(made.memory, observations=(note,)))


def test_a_pause_that_came_between_is_kept(past: MemorySnapshot) -> None:
    ours = past.memory
    paused = replace(ours, header=replace(ours.header, paused=True))
    assert merge_edits(ours, ours, paused).header.paused


@pytest.mark.attack(22)
def test_a_branch_that_went_while_nobody_remembered_it_is_not_made_anew(
    repo: Path, store: BranchStore, past: MemorySnapshot
) -> None:
    store.anchorage.forget()
    git(repo, "update-ref", "-d", "refs/heads/ralph-memory")
    with pytest.raises(UserError, match="is missing") as caught:
        store.commit(batch(past), past)
    assert not isinstance(caught.value, Lost)


@pytest.mark.attack(18)
def test_a_machine_field_that_changed_under_way_loses_the_cycle(
    store: BranchStore, past: MemorySnapshot, intruder: Intruder
) -> None:
    intruder.rewrite(lambda memory: replace(memory, header=replace(memory.header, cycle=99)))
    with pytest.raises(Lost):
        store.commit(batch(past), past)


@pytest.mark.attack(22)
def test_the_same_tree_under_another_history_loses_the_cycle(
    repo: Path, store: BranchStore, past: MemorySnapshot, intruder: Intruder
) -> None:
    who = {f"GIT_{role}_{part}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    intruder.move(git(repo, "commit-tree", f"{past.oid}^{{tree}}", "-m", "x", env=who))
    with pytest.raises(Lost):
        store.commit(batch(past), past)


def test_not_even_our_own_process_is_proven_dead_without_the_lock(repo: Path) -> None:
    store = branch_store(repo, "here:boot:1")
    assert not store.proven_dead(store.holder())
