"""Merging on any forge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.mission.model.effects import ClosePull
from ralph_mission.mission.model.mission import FailureReason
from tests.contract.forge_world import (
    KEY,
    World,
    merge_pull,
    outcome,
    pulled,
)


class MergeContract:
    """Merging on any forge."""

    @pytest.mark.parametrize("method", ["squash", "merge"])
    def test_merge_brings_the_change_to_the_base(self, world: World, method: str) -> None:
        before = world.forge.default_branch().sha
        opened = pulled(world)
        receipt = world.forge.perform(merge_pull(opened, method))
        tip = world.forge.default_branch().sha
        assert (receipt.status, receipt.sha) == ("done", tip)
        assert world.git.blobs([f"{tip}:README.md"]) == {f"{tip}:README.md": b"# Better\n"}
        parents = world.git.text("rev-list", "--parents", "-1", tip).split()[1:]
        assert parents == ([before] if method == "squash" else [before, opened.sha])

    def test_merged_pull_says_so(self, world: World) -> None:
        opened = pulled(world)
        receipt = world.forge.perform(merge_pull(opened))
        pull = world.forge.pull(opened.number)
        assert (pull.state, pull.merged_sha, pull.merged_by) == ("merged", receipt.sha, world.forge.identity())
        assert (pull.head_sha, pull.commits) == (opened.sha, (opened.sha,))
        assert not world.forge.pulls() and world.forge.pulls("closed")[0].state == "merged"

    def test_merging_twice_is_merging_once(self, world: World) -> None:
        opened = pulled(world)
        assert world.forge.find(merge_pull(opened)) is None
        first, second = (world.forge.perform(merge_pull(opened)) for _ in range(2))
        assert (second.status, second.sha) == ("adopted", first.sha)
        assert world.forge.default_branch().sha == first.sha

    @pytest.mark.attack(52)
    def test_head_that_moved_is_not_merged(self, world: World) -> None:
        before = world.forge.default_branch()
        opened = pulled(world)
        world.push("ralph/fix", {"evil.txt": b"x\n"})
        assert outcome(world.forge.perform(merge_pull(opened))) == ("failed", "approval-head")
        assert world.forge.default_branch() == before

    def test_base_that_moved_is_merged_when_there_is_no_conflict(self, world: World) -> None:
        opened = pulled(world)
        world.push("main", {"other.txt": b"o\n"})
        tip = world.forge.perform(merge_pull(opened)).sha
        assert {entry.path for entry in world.git.listing(tip)} >= {"README.md", "other.txt"}

    def test_merge_whose_approval_stands_goes_through(self, world: World) -> None:
        opened = pulled(world)
        mara = world.human("mara")
        mara.review(opened.number, "approved")
        merge = replace(merge_pull(opened), approver=mara.actor.id, base="main")
        assert world.forge.perform(merge).status == "done"

    @pytest.mark.attack(53)
    def test_merge_without_the_approval_it_rests_on_is_refused(self, world: World) -> None:
        opened = pulled(world)
        mara, jonas = world.human("mara"), world.human("jonas")
        merge = replace(merge_pull(opened), approver=mara.actor.id, base="main")
        assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")
        mara.review(opened.number, "approved")
        jonas.review(opened.number, "changes_requested", "Wait.")
        receipt = world.forge.perform(merge)
        assert receipt.reason is FailureReason.NEEDS_PERSON and "jonas asks for changes" in receipt.detail
        mara.review(opened.number, "commented", "I still like it.")
        jonas.review(opened.number, "approved")
        assert world.forge.perform(merge).status == "done"

    @pytest.mark.attack(53)
    def test_merge_into_another_base_than_approved_is_refused(self, world: World) -> None:
        opened = pulled(world)
        merge = replace(merge_pull(opened), base="release")
        assert outcome(world.forge.perform(merge)) == ("failed", "approval-content")

    def test_conflict_is_not_merged(self, world: World) -> None:
        opened = pulled(world)
        theirs = world.push("main", {"README.md": b"# Third\n"})
        receipt = world.forge.perform(merge_pull(opened))
        assert receipt.status == "failed" and "conflict" in receipt.detail
        assert world.forge.default_branch().sha == theirs
        assert world.forge.pull(opened.number).state == "open"

    def test_pull_is_ready_while_it_is_open_and_merges_without_conflicts(self, world: World) -> None:
        opened = pulled(world)
        assert world.forge.is_ready(opened.number)
        world.push("main", {"README.md": b"# Third\n"})
        world.forge.forget_lists()
        assert not world.forge.is_ready(opened.number)
        world.human("mara").close_pull(opened.number)
        world.forge.forget_lists()
        assert not world.forge.is_ready(opened.number)

    def test_closed_pull_is_not_merged(self, world: World) -> None:
        opened = pulled(world)
        world.human("mara").close_pull(opened.number)
        assert world.forge.perform(merge_pull(opened)).status == "failed"

    def test_merged_pull_is_not_closed(self, world: World) -> None:
        opened = pulled(world)
        world.forge.perform(merge_pull(opened))
        assert world.forge.perform(ClosePull(KEY, opened.number)).status == "failed"
        assert world.forge.pull(opened.number).state == "merged"

    def test_invalid_utf8_name_on_the_base_survives_a_merge(self, world: World) -> None:
        opened = pulled(world)
        world.push("main", {"odd\udcff": b"o\n"})
        tip = world.forge.perform(merge_pull(opened)).sha
        assert "odd\udcff" in [entry.path for entry in world.git.listing(tip)]
