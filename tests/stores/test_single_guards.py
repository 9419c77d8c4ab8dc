"""What one guard of memory alone holds back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.gateways import durable
from ralph_mission.mission.ledger import Recollection
from ralph_mission.mission.memory_parse import parse
from ralph_mission.mission.position import merged
from ralph_mission.stores.branch import BranchStore
from ralph_mission.trouble import Lost, Trouble
from tests.helpers import git
from tests.stores.making import LOG, Intruder, batch, branch_store


def test_a_pause_that_came_between_is_kept(past: Recollection) -> None:
    ours = past.memory
    paused = replace(ours, header=replace(ours.header, paused=True))
    assert merged(ours, ours, paused).header.paused


@pytest.mark.attack(23, 24)
def test_what_a_file_lacks_is_named(past: Recollection, intruder: Intruder) -> None:
    with pytest.raises(Trouble, match="does not start with a front matter"):
        parse("# no front matter\n")
    with pytest.raises(Trouble, match="## Learnings"):
        parse(intruder.text().partition("## Learnings")[0])


@pytest.mark.attack(25)
def test_a_symbolic_branch_is_refused_though_it_leads_to_the_same_memory(
    repo: Path, store: BranchStore, past: Recollection
) -> None:
    git(repo, "branch", "other", "ralph-memory")
    git(repo, "symbolic-ref", "refs/heads/ralph-memory", "refs/heads/other")
    with pytest.raises(Trouble, match="commit of its own"):
        store.recall()


@pytest.mark.attack(25)
def test_a_clone_that_remembers_nothing_refuses_a_link_anywhere_on_the_branch(
    store: BranchStore, past: Recollection, intruder: Intruder
) -> None:
    intruder.write("memory/notes", "/etc/passwd", "120000")
    store.anchorage.forget()
    with pytest.raises(Trouble, match="not a regular file"):
        store.recall()


@pytest.mark.attack(25)
def test_the_memory_file_with_another_mode_is_refused(
    store: BranchStore, past: Recollection, intruder: Intruder
) -> None:
    intruder.write(LOG, intruder.text(), "100755")
    with pytest.raises(Trouble, match="someone else changed"):
        store.recall()


@pytest.mark.attack(22)
def test_a_branch_that_went_while_nobody_remembered_it_is_not_made_anew(
    repo: Path, store: BranchStore, past: Recollection
) -> None:
    store.anchorage.forget()
    git(repo, "update-ref", "-d", "refs/heads/ralph-memory")
    with pytest.raises(Trouble, match="is gone") as caught:
        store.commit(batch(past), past)
    assert not isinstance(caught.value, Lost)


@pytest.mark.attack(18)
def test_a_machine_field_that_changed_under_way_loses_the_cycle(
    store: BranchStore, past: Recollection, intruder: Intruder
) -> None:
    intruder.rewrite(lambda memory: replace(memory, header=replace(memory.header, cycle=99)))
    with pytest.raises(Lost):
        store.commit(batch(past), past)


@pytest.mark.attack(22)
def test_the_same_tree_under_another_history_loses_the_cycle(
    repo: Path, store: BranchStore, past: Recollection, intruder: Intruder
) -> None:
    who = {f"GIT_{role}_{part}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    intruder.move(git(repo, "commit-tree", f"{past.oid}^{{tree}}", "-m", "x", env=who))
    with pytest.raises(Lost):
        store.commit(batch(past), past)


def test_not_even_our_own_process_is_proven_dead_without_the_lock(repo: Path) -> None:
    store = branch_store(repo, "here:boot:1")
    assert not store.proven_dead(store.holder())


@pytest.mark.attack(22)
def test_an_anchor_of_other_values_is_refused(repo: Path, store: BranchStore, past: Recollection) -> None:
    told = {"lineage": "x", "serial": "7", "oid": "", "pending": ""}
    (repo / ".git" / "ralph" / "anchor.json").write_text(json.dumps(told))
    with pytest.raises(Trouble, match=r"anchor\.json"):
        store.recall()


def test_a_file_is_on_the_disk_before_it_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, take = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("sync"), sync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda here, there: (done.append("replace"), take(here, there)))
    durable.write(tmp_path / "a", b"x")
    assert done == ["sync", "replace", "sync"]
