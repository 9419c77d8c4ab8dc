"""Branches on any forge."""

from __future__ import annotations

import pytest

from ralph_mission.mission.model.effects import PushBranch
from ralph_mission.safety.patch import FileDelta
from tests.contract.forge_world import (
    OTHER,
    WHEN,
    World,
    line,
    new_file,
    outcome,
    push_branch,
)


class BranchContract:
    """Branches on any forge."""

    def test_branch_has_one_commit_on_its_base(self, world: World) -> None:
        effect = push_branch(world, line("README.md", "# Better\n"), new_file("docs/a b.md", "Übung\n"))
        receipt = world.forge.perform(effect)
        assert (receipt.status, world.forge.branch("ralph/fix")) == ("done", receipt.sha)
        assert world.git.resolve(f"{receipt.sha}^") == effect.base_sha
        blobs = world.git.blobs([f"{receipt.sha}:README.md", f"{receipt.sha}:docs/a b.md"])
        assert list(blobs.values()) == [b"# Better\n", "Übung\n".encode()]

    def test_pushing_twice_is_pushing_once(self, world: World) -> None:
        effect = push_branch(world)
        assert world.forge.find(effect) is None
        first, second = world.forge.perform(effect), world.forge.perform(effect)
        assert (first.status, second.status, first.sha) == ("done", "adopted", second.sha)
        found = world.forge.find(effect)
        assert found and found.sha == first.sha

    def test_branch_with_somebody_elses_commit_is_left_alone(self, world: World) -> None:
        effect = push_branch(world)
        world.forge.perform(effect)
        theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
        assert world.forge.find(effect) is None
        taken = "needs a person: the branch ralph/fix exists already, with a commit that is not of this change"
        assert outcome(world.forge.perform(effect)) == ("failed", f"{taken}: delete or rename that branch")
        assert world.forge.branch("ralph/fix") == theirs

    @pytest.mark.parametrize("name", ["fix", "ralph/", "ralph/a..b", "ralph/-/~x", "ralph-mem", "refs/heads/ralph/x"])
    def test_odd_branch_name_is_refused(self, world: World, name: str) -> None:
        assert outcome(world.forge.perform(push_branch(world, branch=name))) == ("failed", "branch-name")

    def test_default_branch_is_never_pushed(self, world: World) -> None:
        before = world.forge.default_branch()
        assert outcome(world.forge.perform(push_branch(world, branch="main"))) == ("failed", "default-branch")
        assert world.forge.default_branch() == before

    def test_edit_that_does_not_fit_fails_and_leaves_no_branch(self, world: World) -> None:
        effect = push_branch(world, line("README.md", "x\n", at=40))
        assert world.forge.perform(effect).status == "failed"
        assert world.forge.branch("ralph/fix") == ""

    def test_file_is_deleted(self, world: World) -> None:
        receipt = world.forge.perform(push_branch(world, FileDelta("README.md", "", ()), new_file("a", "a\n")))
        assert [entry.path for entry in world.git.listing(receipt.sha)] == ["a"]

    @pytest.mark.parametrize("path", ["a b.txt", "Übung.txt", "two\nlines.txt", 'tab\t"quote".txt', "bad\udcff.txt"])
    def test_any_path_goes_into_the_commit(self, world: World, path: str) -> None:
        receipt = world.forge.perform(push_branch(world, new_file(path, "x\n")))
        assert path in [entry.path for entry in world.git.listing(receipt.sha)]

    def test_branch_follows_its_base_by_a_merge(self, world: World) -> None:
        first = world.forge.perform(push_branch(world))
        base = world.push("main", {"other.txt": b"o\n"})
        effect = PushBranch(OTHER, "ralph/fix", base, "Merge main", WHEN, (), onto=first.sha)
        receipt = world.forge.perform(effect)
        assert (receipt.status, world.forge.branch("ralph/fix")) == ("done", receipt.sha)
        assert world.git.text("rev-list", "--parents", "-1", receipt.sha).split()[1:] == [first.sha, base]
        assert {entry.path for entry in world.git.listing(receipt.sha)} == {"README.md", "other.txt"}
        assert world.forge.perform(effect).status == "adopted"

    def test_branch_that_conflicts_with_its_base_stays(self, world: World) -> None:
        first = world.forge.perform(push_branch(world))
        base = world.push("main", {"README.md": b"# Third\n"})
        receipt = world.forge.perform(PushBranch(OTHER, "ralph/fix", base, "Merge main", WHEN, (), onto=first.sha))
        assert receipt.status == "failed" and "conflict" in receipt.detail
        assert world.forge.branch("ralph/fix") == first.sha

    def test_branch_that_somebody_pushed_to_is_not_moved_on(self, world: World) -> None:
        first = world.forge.perform(push_branch(world))
        theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
        more = PushBranch(
            OTHER,
            "ralph/fix",
            world.forge.default_branch().sha,
            "More",
            WHEN,
            (new_file("more", "m\n"),),
            onto=first.sha,
        )
        assert outcome(world.forge.perform(more)) == ("failed", "foreign-commit")
        assert world.forge.branch("ralph/fix") == theirs
