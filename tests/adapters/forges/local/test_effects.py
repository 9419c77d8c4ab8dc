"""A checked-out branch moves with its work tree, or it does not move."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local.documents import LocalThread
from ralph_mission.adapters.forges.local.threads import ThreadStore
from ralph_mission.adapters.git.git import Git
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import FileDelta
from tests.adapters.forges.conftest import LocalWorld
from tests.adapters.forges.work_trees import checked_out, in_sync, refusal, state
from tests.contract.forge_world import line, merge_pull, new_file, pulled
from tests.helpers import commit, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with main checked out."""
    return checked_out(tmp_path / "repo")


def test_clean_tree_moves_along(repo: Path, world: LocalWorld) -> None:
    files = line("README.md", "# Better\n"), new_file("new/file name.txt", "x\n")
    assert world.forge.perform(merge_pull(pulled(world, *files))).status == "done"
    assert in_sync(repo, world)
    assert (repo / "README.md").read_text() == "# Better\n" and (repo / "new/file name.txt").exists()


def test_touched_but_unchanged_files_are_clean(repo: Path, world: LocalWorld) -> None:
    os.utime(repo / "README.md", (1, 1))
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert in_sync(repo, world)


def test_untracked_files_stay(repo: Path, world: LocalWorld) -> None:
    (repo / "notes.txt").write_text("mine\n")
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert (repo / "notes.txt").read_text() == "mine\n"
    assert git(repo, "status", "--porcelain") == "?? notes.txt"


@pytest.mark.parametrize("staged", [False, True])
def test_dirty_tree_is_refused(repo: Path, world: LocalWorld, staged: bool) -> None:
    (repo / "a/b.txt").write_text("edited\n")
    if staged:
        git(repo, "add", "a/b.txt")
    detail = refusal(world, pulled(world), repo)
    assert "a/b.txt" in detail and "commit or stash" in detail


def test_merge_goes_through_once_the_tree_is_clean(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world)
    (repo / "a/b.txt").write_text("edited\n")
    refusal(world, opened, repo)
    git(repo, "checkout", "--quiet", "--", "a/b.txt")
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert in_sync(repo, world)


@pytest.mark.parametrize("path", ["new.txt", "k.log", "folder/new.txt"])
def test_untracked_or_ignored_file_is_never_written_over(repo: Path, world: LocalWorld, path: str) -> None:
    opened = pulled(world, new_file(path, "theirs\n"))
    (repo / path).parent.mkdir(exist_ok=True)
    (repo / path).write_text("precious\n")
    assert path in refusal(world, opened, repo)
    assert (repo / path).read_text() == "precious\n"


def test_ignored_file_where_a_folder_must_go_is_never_written_over(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world, new_file("k.log/new.txt", "theirs\n"))
    (repo / "k.log").write_text("precious\n")
    assert "k.log" in refusal(world, opened, repo)
    assert (repo / "k.log").read_text() == "precious\n"


def test_folder_with_ignored_files_where_a_file_must_go_is_never_removed(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world, new_file("folder", "theirs\n"))
    (repo / "folder").mkdir()
    (repo / "folder/k.log").write_text("precious\n")
    assert "folder/k.log" in refusal(world, opened, repo)
    assert (repo / "folder/k.log").read_text() == "precious\n"


def test_tracked_folder_becomes_a_file(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world, FileDelta("a/b.txt", "", ()), new_file("a", "now a file\n"))
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert in_sync(repo, world) and (repo / "a").read_text() == "now a file\n"


def test_untracked_link_is_not_followed(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    opened = pulled(world, new_file("out/new.txt", "theirs\n"))
    (tmp_path / "elsewhere").mkdir()
    (repo / "out").symlink_to(tmp_path / "elsewhere")
    refusal(world, opened, repo)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_invalid_utf8_name_comes_into_the_tree(repo: Path, world: LocalWorld) -> None:
    assert world.forge.perform(merge_pull(pulled(world, new_file("odd\udcff.txt", "x\n")))).status == "done"
    assert os.path.exists(os.fsencode(repo) + b"/odd\xff.txt")
    assert in_sync(repo, world)


def test_linked_work_tree_moves_along(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    git(repo, "switch", "--quiet", "--create", "other")
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    before = state(repo)
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert in_sync(tmp_path / "linked", world)
    assert state(repo) == before


def test_dirty_linked_work_tree_is_refused(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    git(repo, "switch", "--quiet", "--create", "other")
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    (tmp_path / "linked/README.md").write_text("edited\n")
    assert str(tmp_path / "linked") in refusal(world, pulled(world), tmp_path / "linked")


def test_merge_from_a_linked_work_tree_moves_the_main_one(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    world = LocalWorld.at(tmp_path / "linked")
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert in_sync(repo, world)


def test_two_trees_move_or_none(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    second = tmp_path / "second"
    git(repo, "worktree", "add", "--quiet", "--force", str(second), "main")
    opened = pulled(world)
    (second / "README.md").write_text("edited\n")
    refusal(world, opened, repo)
    git(second, "checkout", "--quiet", "--", "README.md")
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert in_sync(repo, world) and in_sync(second, world)


def test_tree_that_moved_goes_back_when_the_next_one_cannot(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    git(repo, "worktree", "add", "--quiet", "--force", str(tmp_path / "second"), "main")
    (repo / ".git/worktrees/second/index.lock").touch()
    opened = pulled(world)
    refusal(world, opened, repo)
    assert "merging:" not in (repo / world.forge.pull(opened.number).url).read_text()
    (repo / ".git/worktrees/second/index.lock").unlink()
    assert world.forge.perform(merge_pull(opened)).status == "done"
    assert in_sync(repo, world) and in_sync(tmp_path / "second", world)


def test_deleted_work_tree_is_passed_over_but_for_a_locked_one(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    git(repo, "switch", "--quiet", "--create", "other")
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    git(repo, "worktree", "lock", str(tmp_path / "linked"))
    shutil.rmtree(tmp_path / "linked")
    opened = pulled(world)
    assert "cannot be reached" in refusal(world, opened, repo)
    git(repo, "worktree", "unlock", str(tmp_path / "linked"))
    assert world.forge.perform(merge_pull(opened)).status == "done"


def test_git_folder_elsewhere_moves_its_tree_along(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    git(repo, "init", "--quiet", "--separate-git-dir", str(tmp_path / "store"))
    world = LocalWorld.at(repo)
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert in_sync(repo, world)


def test_bare_repository_has_no_tree_to_move(repo: Path, tmp_path: Path) -> None:
    git(repo, "clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare.git"))
    world = LocalWorld.at(tmp_path / "bare.git")
    receipt = world.forge.perform(merge_pull(pulled(world)))
    assert (receipt.status, world.forge.default_branch().sha) == ("done", receipt.sha)


def test_detached_tree_stays_where_it_is(repo: Path, world: LocalWorld) -> None:
    git(repo, "switch", "--quiet", "--detach")
    before = state(repo)
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert state(repo) == before


def test_merge_under_way_is_refused(repo: Path, world: LocalWorld) -> None:
    (repo / ".git/MERGE_HEAD").write_text(git(repo, "rev-parse", "HEAD") + "\n")
    assert "middle of a merge" in refusal(world, pulled(world), repo)


def test_hooks_and_filters_do_not_run(repo: Path, tmp_path: Path, world: LocalWorld) -> None:
    trace = tmp_path / "ran"
    for hook in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
        (repo / ".git/hooks").mkdir(exist_ok=True)
        (repo / ".git/hooks" / hook).write_text(f"#!/bin/sh\necho {hook} >> {trace}\n")
        (repo / ".git/hooks" / hook).chmod(0o755)
    git(repo, "config", "filter.x.clean", f"echo clean >> {trace}; cat")
    git(repo, "config", "filter.x.smudge", f"echo smudge >> {trace}; cat")
    opened = pulled(world, new_file(".gitattributes", "*.md filter=x\n"), line("README.md", "# Better\n"))
    assert "needs a git filter" in refusal(world, opened, repo)
    trace.unlink(missing_ok=True)  # git's own status, asked by this test, may have run the hook
    world.forge.perform(merge_pull(pulled(world, new_file("x.txt", "x\n"), branch="ralph/other")))
    assert not trace.exists()
    assert (repo / "x.txt").exists()


def test_configured_filter_is_not_asked_whether_the_tree_is_clean(
    repo: Path, tmp_path: Path, world: LocalWorld
) -> None:
    commit(repo, {".gitattributes": "*.dat filter=x\n", "a.dat": "data\n"})
    trace = tmp_path / "ran"
    git(repo, "config", "filter.x.clean", f"echo clean >> {trace}; cat")
    os.utime(repo / "a.dat", (1, 1))
    assert world.forge.perform(merge_pull(pulled(world))).status == "done"
    assert not trace.exists()


def test_pull_never_touches_the_forge_itself(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world, new_file(".Ralph/forge/issues/0001.md", "forged\n"))
    assert ".ralph/" in refusal(world, opened, repo)


def test_person_merges_as_safely(repo: Path, world: LocalWorld) -> None:
    opened = pulled(world)
    mara = world.human("mara")
    (repo / "README.md").write_text("edited\n")
    with pytest.raises(UserError, match="uncommitted"):
        mara.merge(opened.number)
    git(repo, "checkout", "--quiet", "--", ".")
    mara.merge(opened.number)
    pull = world.forge.pull(opened.number)
    assert (pull.state, pull.merged_by) == ("merged", mara.actor)
    assert in_sync(repo, world)
    assert git(repo, "log", "-1", "--format=%an: %s") == f"mara: Fix a typo (#{opened.number})"


# --- A merge that is killed or overtaken does no harm, and is finished or known later. ---


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

    def write(store: ThreadStore, thread: LocalThread) -> None:
        if thread.state == "merged":
            raise Killed
        real(store, thread)

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
