"""A merge that is killed or overtaken does no harm, and is finished or known later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local.desk import ThreadStore
from ralph_mission.adapters.forges.local.threads import LocalThread
from ralph_mission.adapters.git.git import Git
from tests.adapters.forges.conftest import LocalWorld
from tests.adapters.forges.work_trees import checked_out, in_sync
from tests.contract.forge_world import merge_pull, pulled
from tests.helpers import commit, git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with main checked out."""
    return checked_out(tmp_path / "repo")


class Killed(BaseException):
    """The process ends here."""


def killed_before(name: str, monkeypatch: pytest.MonkeyPatch, when: Callable[..., bool]) -> None:
    """The next call of the Git method that `when` accepts never happens, and neither does anything after it."""
    real = getattr(Git, name)
    dead = []

    def run(self: Git, *arguments: object, **named: object) -> object:
        if dead or when(*arguments):
            dead.append(True)
            raise Killed
        return real(self, *arguments, **named)

    monkeypatch.setattr(Git, name, run)


STEPS: dict[str, Callable[..., bool]] = {
    "before the trees move": lambda *a: a[:2] == ("read-tree", "-m"),
    "before the branch moves": lambda *a: a[0] == "update-ref",
}


@pytest.mark.parametrize("step", STEPS)
def test_merge_that_was_killed_is_finished_later(
    repo: Path, world: LocalWorld, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    opened = pulled(world)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_before("run", patch, STEPS[step])
        world.forge.perform(merge_pull(opened))
    assert world.forge.pull(opened.number).state == "open"
    receipt = world.forge.perform(merge_pull(opened))
    assert (receipt.status, world.forge.default_branch().sha) == ("done", receipt.sha)
    assert in_sync(repo, world)
    assert git(repo, "rev-list", "--count", "main") == "2"


def test_merge_that_was_killed_after_the_branch_moved_is_known_as_merged(
    repo: Path, world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = pulled(world)
    real = ThreadStore.write

    def write(desk: ThreadStore, thread: LocalThread) -> None:
        if thread.state == "merged":
            raise Killed
        real(desk, thread)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ThreadStore, "write", write)
        world.forge.perform(merge_pull(opened))
    pull = world.forge.pull(opened.number)
    assert (pull.state, pull.merged_sha, pull.merged_by) == (
        "merged",
        git(repo, "rev-parse", "main"),
        world.forge.identity(),
    )
    receipt = world.forge.perform(merge_pull(opened))
    assert (receipt.status, receipt.sha) == ("adopted", git(repo, "rev-parse", "main"))
    assert in_sync(repo, world)


def test_branch_that_moves_during_the_merge_wins(
    repo: Path, world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = pulled(world)
    git(repo, "switch", "--quiet", "--create", "other")
    real = Git.move_ref

    def move_ref(self: Git, ref: str, new: str, old: str) -> bool:
        if ref == "refs/heads/main":
            monkeypatch.setattr(Git, "move_ref", real)
            world.push("main", {"theirs.txt": b"x\n"})
        return real(self, ref, new, old)

    monkeypatch.setattr(Git, "move_ref", move_ref)
    receipt = world.forge.perform(merge_pull(opened))
    assert (receipt.status, receipt.detail) == ("failed", "main moved meanwhile: merge again")
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert {e.path for e in world.git.listing("main")} >= {"theirs.txt"}


def test_pull_merged_by_hand_is_known_as_merged(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world)
    commit(repo, {"other.txt": "o\n"})
    mara = {f"GIT_{role}_{part}": "mara@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    git(repo, "merge", "--quiet", "--no-edit", "ralph/fix", env=mara)
    git(repo, "branch", "--delete", "--quiet", "ralph/fix")
    pull = world.forge.pull(opened.number)
    assert (pull.state, pull.merged_by, pull.head_sha) == ("merged", None, opened.sha)
    assert world.forge.perform(merge_pull(opened)).status == "adopted"
