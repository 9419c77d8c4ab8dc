"""`ralph due`: the right answer in every kind of repository, from the cache or not, importing little."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.adapters.storage.memory.due import due_fast, usual_longest
from ralph_mission.errors import UserError
from ralph_mission.mission.model.ledger import Rhythm
from tests.adapters.storage.memory.making import Intruder, batch
from tests.helpers import NOON, git

LATER = NOON + timedelta(hours=6)


def wake_at(store: BranchStore, when: datetime | None, last: datetime | None = None) -> None:
    past = store.recall()
    made = batch(past)
    header = replace(made.memory.header, next_due_at=when, last_cycle_at=last)
    store.commit(replace(made, memory=replace(made.memory, header=header)), past)


def test_without_memory_a_cycle_is_due(repo: Path) -> None:
    assert due_fast(repo, NOON)[:2] == (True, None)


@pytest.mark.parametrize(("now", "due"), [(NOON, False), (LATER - timedelta(seconds=1), False), (LATER, True)])
def test_it_is_due_from_the_due_minute_on(repo: Path, store: BranchStore, now: datetime, due: bool) -> None:
    wake_at(store, LATER)
    assert [due_fast(repo, now)[:2] for _ in range(2)] == [(due, LATER)] * 2


@pytest.mark.parametrize("cached", [False, True])
def test_a_time_that_no_pause_explains_is_due(repo: Path, store: BranchStore, cached: bool) -> None:
    wake_at(store, NOON + timedelta(days=400))
    if cached:
        due_fast(repo, NOON)
    assert due_fast(repo, NOON)[0]
    assert not due_fast(repo, NOON, longest=lambda: timedelta(days=400))[0]


def test_settings_are_asked_only_when_a_clock_may_have_been_wrong(repo: Path, store: BranchStore) -> None:
    def unasked() -> timedelta:
        raise AssertionError

    wake_at(store, LATER, last=NOON)
    assert not due_fast(repo, NOON, longest=unasked)[0]
    assert due_fast(repo, NOON - timedelta(hours=3), longest=lambda: timedelta(hours=2))[0]


def test_the_usual_pause_is_that_of_the_schedule() -> None:
    assert usual_longest() == Rhythm().longest


def test_no_time_is_due(repo: Path, store: BranchStore) -> None:
    wake_at(store, None)
    assert due_fast(repo, NOON)[0]


def test_a_new_commit_makes_the_cache_void(repo: Path, store: BranchStore) -> None:
    wake_at(store, NOON)
    assert due_fast(repo, NOON)[0]
    wake_at(store, LATER)
    assert not due_fast(repo, NOON)[0]


def test_paused_is_not_due(repo: Path, store: BranchStore, intruder: Intruder) -> None:
    wake_at(store, NOON)
    intruder.change(lambda text: text.replace("paused: false", "paused: true"))
    assert due_fast(repo, NOON)[0] is False
    intruder.change(lambda text: text.replace("paused: true", "paused: false"))
    assert due_fast(repo, NOON)[0] is True


def test_memory_that_cannot_be_read_is_due_so_that_the_cycle_says_why(
    repo: Path, store: BranchStore, intruder: Intruder
) -> None:
    wake_at(store, LATER)
    intruder.change(lambda text: "gone")
    assert due_fast(repo, NOON) == (True, None, "due: memory cannot be read")


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"oid": 1}', "null", pytest.param("[" * 200_000, id="nested")])
def test_a_broken_cache_is_not_believed(repo: Path, store: BranchStore, kept: str) -> None:
    wake_at(store, LATER)
    due_fast(repo, NOON)
    (repo / ".git" / "ralph" / "due.json").write_text(kept)
    assert due_fast(repo, NOON)[0] is False


@pytest.mark.attack(46)
def test_nothing_is_remembered_behind_a_link(repo: Path, store: BranchStore, tmp_path: Path) -> None:
    wake_at(store, LATER)
    (repo / ".git" / "ralph").rename(tmp_path / "theirs")
    (repo / ".git" / "ralph").symlink_to(tmp_path / "theirs")
    assert due_fast(repo, NOON)[0] is False
    assert not (tmp_path / "theirs" / "due.json").exists()


def test_a_cache_with_odd_values_is_not_believed(repo: Path, store: BranchStore) -> None:
    wake_at(store, LATER)
    due_fast(repo, NOON)
    cache = repo / ".git" / "ralph" / "due.json"
    for odd in ({"next_due_at": "2020-01-01T00:00:00"}, {"next_due_at": 3}, {"paused": "no"}):
        cache.write_text(json.dumps(json.loads(cache.read_text()) | odd))
        assert due_fast(repo, NOON)[:2] == (False, LATER)


@pytest.mark.parametrize("place", ["packed", "linked", "bare", "subfolder", "reftable-like"])
def test_it_finds_the_branch_wherever_it_is_kept(repo: Path, store: BranchStore, tmp_path: Path, place: str) -> None:
    wake_at(store, LATER)
    where = repo
    if place == "packed":
        git(repo, "pack-refs", "--all")
    elif place == "linked":
        where = tmp_path / "linked"
        git(repo, "worktree", "add", "--quiet", "--detach", str(where))
    elif place == "bare":
        where = tmp_path / "bare"
        git(tmp_path, "clone", "--quiet", "--mirror", str(repo), "bare")
    elif place == "subfolder":
        where = repo / "sub"
        where.mkdir()
    else:
        (repo / ".git" / "reftable").mkdir()  # only git may then say where a ref is
    assert due_fast(where, NOON)[:2] == (False, LATER)


def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        due_fast(tmp_path, NOON)


@pytest.mark.parametrize("cached", [False, True])
def test_it_imports_neither_pydantic_nor_rich_nor_click(repo: Path, store: BranchStore, cached: bool) -> None:
    wake_at(store, LATER)
    if cached:
        due_fast(repo, NOON)
    script = (
        "import sys, datetime, pathlib; from ralph_mission.adapters.storage.memory.due import due_fast\n"
        "due_fast(pathlib.Path(sys.argv[1]), datetime.datetime.now(datetime.UTC))\n"
        "print(sorted({'pydantic', 'rich', 'click', 'yaml', 'subprocess'} & set(sys.modules)))\n"
    )
    said = subprocess.run([sys.executable, "-c", script, str(repo)], capture_output=True, text=True, check=True).stdout
    assert said == ("[]\n" if cached else "['subprocess']\n")
