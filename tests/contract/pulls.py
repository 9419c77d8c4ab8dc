"""Pulls on any forge."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ralph_mission.mission.model.effects import ClosePull
from ralph_mission.mission.model.forge import Touch
from ralph_mission.safety.patch import patch_id
from tests.contract.forge_world import (
    KEY,
    OTHER,
    Opened,
    World,
    line,
    merge_pull,
    new_file,
    open_pull,
    pulled,
    push_branch,
)


def _end(world: World, opened: Opened, end: str) -> None:
    world.forge.forget_lists()
    if end == "closed by a person":
        world.human("mara").close_pull(opened.number)
    elif end == "merged by a person":
        head = world.forge.branch("ralph/fix")
        assert world.git.move_ref("refs/heads/main", head, world.forge.default_branch().sha)
    world.forge.forget_lists()


class PullContract:
    """Pulls on any forge."""

    def test_pull_reads_back_with_touches_and_commits(self, world: World) -> None:
        opened = pulled(world)
        pull = world.forge.pull(opened.number)
        assert (pull.state, pull.head, pull.base, pull.head_sha) == ("open", "ralph/fix", "main", opened.sha)
        assert (pull.commits, pull.touches) == ((opened.sha,), (Touch("README.md", 1, 1),))
        assert pull.own == {opened.sha}
        assert (pull.labels, pull.author) == ({"ralph:auto-fix"}, world.forge.identity())
        assert [(listed.number, listed.touches) for listed in world.forge.pulls()] == [(pull.number, pull.touches)]

    @pytest.mark.parametrize("path", ["a b", "Übung", "two\nlines", '"quoted"\\', "bad\udcff"])
    def test_touches_name_any_path(self, world: World, path: str) -> None:
        opened = pulled(world, new_file(path, "x\n"), line("README.md", "# Better\n"))
        touches = world.forge.pull(opened.number).touches
        assert set(touches) == {Touch(path, 1, 1), Touch("README.md", 1, 1)}

    def test_opening_a_pull_twice_is_opening_it_once(self, world: World) -> None:
        opened = pulled(world)
        receipt = world.forge.perform(open_pull())
        assert (receipt.status, receipt.number) == ("adopted", opened.number)
        assert len(world.forge.pulls("all")) == 1

    def test_closed_pull_is_never_reopened(self, world: World) -> None:
        opened = pulled(world)
        world.human("mara").close_pull(opened.number)
        assert world.forge.perform(open_pull()).number == opened.number
        assert [pull.state for pull in world.forge.pulls("all")] == ["closed"]

    def test_pull_of_somebody_else_on_our_branch_is_not_adopted(self, world: World) -> None:
        world.forge.perform(push_branch(world))
        world.human("mara").open_pull("ralph/fix", "main", "Mine")
        assert world.forge.find(open_pull()) is None
        assert world.forge.perform(open_pull()).status == "failed"

    def test_pull_without_a_branch_fails(self, world: World) -> None:
        assert world.forge.perform(open_pull("ralph/none")).status == "failed"

    def test_pull_without_commits_fails(self, world: World) -> None:
        assert world.git.move_ref("refs/heads/ralph/same", world.forge.default_branch().sha, "")
        assert world.forge.perform(open_pull("ralph/same")).status == "failed"

    def test_closing_a_pull_twice_is_closing_it_once(self, world: World) -> None:
        opened = pulled(world)
        effect = ClosePull(KEY, opened.number)
        assert world.forge.find(effect) is None
        assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
        assert [pull.state for pull in world.forge.pulls("closed")] == ["closed"]
        assert world.forge.pull(opened.number).closed_by == world.forge.identity()

    @pytest.mark.parametrize("end", ["closed", "merged by us", "merged by a person", "closed by a person"])
    def test_branch_of_a_pull_that_is_over_is_deleted_once(self, world: World, end: str) -> None:
        opened = pulled(world)
        if end == "merged by us":
            assert world.forge.perform(merge_pull(opened)).status == "done"
        else:
            _end(world, opened, end)
            done = world.forge.perform(ClosePull(KEY, opened.number, opened.sha))
            assert done.status == "done"
        assert world.forge.branch("ralph/fix") == ""
        assert world.forge.perform(ClosePull(OTHER, opened.number, opened.sha)).status == "adopted"
        if end == "merged by a person":  # a forge that goes by commits alone would not know any more
            return
        world.push("ralph/fix", {"x.txt": b"x\n"})  # somebody takes the name for something else
        assert world.forge.perform(ClosePull(OTHER, opened.number, opened.sha)).status == "adopted"
        assert world.forge.branch("ralph/fix")

    @pytest.mark.parametrize("end", ["closed", "merged by a person", "closed by a person"])
    def test_branch_with_somebody_elses_commit_is_not_deleted(self, world: World, end: str) -> None:
        opened = pulled(world)
        theirs = world.push("ralph/fix", {"x.txt": b"x\n"})
        _end(world, opened, end)
        world.forge.perform(ClosePull(KEY, opened.number, opened.sha))
        assert world.forge.branch("ralph/fix") == theirs

    @pytest.mark.parametrize("end", ["closed", "merged by us", "closed by a person"])
    def test_branch_that_somebodys_open_pull_builds_on_stays(self, world: World, end: str) -> None:
        opened = pulled(world)
        world.push("jonas/on-top", {"y.txt": b"y\n"})
        theirs = world.human("jonas").open_pull("jonas/on-top", "ralph/fix", "On top of it")
        if end != "merged by us":
            _end(world, opened, end)
        effect = merge_pull(opened) if end == "merged by us" else ClosePull(KEY, opened.number, opened.sha)
        assert world.forge.perform(effect).status == "done"
        assert world.forge.branch("ralph/fix") == opened.sha
        assert world.forge.pull(theirs).state == "open"

    def test_review_names_the_commit_that_was_reviewed(self, world: World) -> None:
        opened = pulled(world)
        mara = world.human("mara")
        mara.review(opened.number, "changes_requested", "Too loud.")
        theirs = world.push("ralph/fix", {"x": b"x\n"})
        mara.review(opened.number, "approved")
        reviews = world.forge.pull(opened.number).reviews
        assert [(r.state, r.sha, r.author) for r in reviews] == [
            ("changes_requested", opened.sha, mara.actor),
            ("approved", theirs, mara.actor),
        ]
        assert reviews[0].body == "Too loud."

    def test_same_change_by_others_has_the_same_patch_id(self, world: World) -> None:
        opened = pulled(world)
        world.push("topic", {"README.md": b"#   Better\n"})
        number = world.human("mara").open_pull("topic", "main", "My own")
        world.push("else", {"README.md": b"# Worse\n"})
        other = world.human("mara").open_pull("else", "main", "Another")
        ids = {pull.number: pull.patch_ids for pull in world.forge.pulls()}
        assert ids[opened.number] == ids[number] == {patch_id("README.md", [b"# Sample\n"], [b"# Better\n"])}
        assert not ids[other] & ids[number]

    def test_merged_pull_is_listed_with_its_patch_id_and_touches_nothing_any_more(self, world: World) -> None:
        opened = pulled(world)
        before = world.forge.pulls()[0].patch_ids
        world.forge.perform(merge_pull(opened))
        (pull,) = world.forge.pulls("all")
        assert (pull.state, pull.touches, pull.patch_ids) == ("merged", (), before)

    def test_pulse_counts_what_happened_since(self, world: World) -> None:
        mara = world.human("mara")
        mara.close_issue(mara.create_issue("Old"))
        opened = pulled(world)
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        assert [p.number for p in world.forge.pulse(long_ago).merged] == []
        world.forge.perform(merge_pull(opened))
        pulse = world.forge.pulse(long_ago)
        assert ([p.number for p in pulse.merged], pulse.opened, pulse.closed) == ([opened.number], 1, 1)
        later = world.forge.pull(opened.number).closed_at
        assert later and world.forge.pulse(later).merged == ()

    def test_pull_of_a_person_is_listed(self, world: World) -> None:
        head = world.push("topic", {"README.md": b"# Other\n"})
        number = world.human("mara").open_pull("topic", "main", "My own")
        (pull,) = world.forge.pulls()
        assert (pull.number, pull.head_sha, pull.author.login) == (number, head, "mara")
