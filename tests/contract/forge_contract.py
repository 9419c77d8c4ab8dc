"""What every forge must do, whatever it is made of: the same test bodies for each of them.

A binding subclasses `ForgeContract` and provides the fixture `world`. A `World` has a real
repository with one commit on `main` that holds README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import pytest

from ralph_mission.gateways.git import Git
from ralph_mission.mission.effects import (
    CloseIssue,
    ClosePull,
    Comment,
    EditComment,
    Label,
    MergePull,
    OpenIssue,
    OpenPull,
    PushBranch,
    Receipt,
    Ref,
    marker,
)
from ralph_mission.mission.ledger import Anchor
from ralph_mission.mission.model import Actor, Touch
from ralph_mission.mission.ports import Forge
from ralph_mission.mission.trouble import Missing
from ralph_mission.safety.edits import Edit, FileDelta
from ralph_mission.safety.patch import patch_id

WHEN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
KEY, OTHER = "a1" * 8, "b2" * 8


class Human(Protocol):
    """Somebody with write access, acting through the forge's own human side."""

    @property
    def actor(self) -> Actor: ...
    def create_issue(self, title: str, body: str = "", labels: tuple[str, ...] = ()) -> int: ...
    def open_pull(self, head: str, base: str, title: str, body: str = "") -> int: ...
    def comment(self, number: int, text: str) -> int: ...
    def label(self, number: int, labels: tuple[str, ...]) -> int: ...
    def unlabel(self, number: int, labels: tuple[str, ...]) -> int: ...
    def review(self, number: int, state: str, text: str = "") -> int: ...
    def close_issue(self, number: int, reason: str = "") -> int: ...
    def close_pull(self, number: int) -> int: ...


class World(Protocol):
    """A forge under test, the repository behind it, and people."""

    @property
    def forge(self) -> Forge: ...
    @property
    def git(self) -> Git: ...
    def human(self, login: str) -> Human: ...
    def push(self, branch: str, files: Mapping[str, bytes | None]) -> str:
        """Somebody's commit on top of a branch (made from main when there is none); its object id."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull of the bot's and the commit at its head."""

    number: int
    sha: str


def open_issue(key: str = KEY, title: str = "Typo", labels: tuple[str, ...] = ("ralph:mission",)) -> OpenIssue:
    return OpenIssue(key, title, f"There is a typo.\n\n{marker(key)}", labels)


def comment(issue: int, key: str = KEY, text: str = "Done.") -> Comment:
    return Comment(key, issue, f"{text}\n\n{marker(key)}")


def push_branch(world: World, *files: FileDelta, branch: str = "ralph/fix", key: str = KEY) -> PushBranch:
    base = world.forge.default_branch().sha
    return PushBranch(key, branch, base, "Fix a typo", WHEN, files or (line("README.md", "# Better\n"),))


def line(path: str, text: str, at: int = 0, delete: int = 1) -> FileDelta:
    return FileDelta(path, "100644", (Edit(at, delete, (text,)),))


def new_file(path: str, text: str) -> FileDelta:
    return FileDelta(path, "100644", (Edit(0, 0, (text,)),))


def pulled(world: World, *files: FileDelta, branch: str = "ralph/fix") -> Opened:
    """A branch pushed and a pull opened on it by the bot."""
    pushed = world.forge.perform(push_branch(world, *files, branch=branch))
    assert pushed.status == "done", pushed
    receipt = world.forge.perform(open_pull(branch))
    assert receipt.status == "done", receipt
    return Opened(receipt.number, pushed.sha)


def open_pull(head: str = "ralph/fix", key: str = KEY) -> OpenPull:
    return OpenPull(key, "Fix a typo", f"Why not.\n\n{marker(key)}", head, "main", 1, ("ralph:auto-fix",))


def merge_pull(pull: Opened, method: str = "squash", head_sha: str = "") -> MergePull:
    return MergePull(KEY, pull.number, head_sha or pull.sha, method, "Fix a typo (#1)")


def outcome(receipt: Receipt) -> tuple[str, str]:
    return receipt.status, receipt.detail


class ForgeContract:
    """The bodies. Bindings add a fixture `world` and what only they can promise."""

    # --- issues and comments

    def test_issue_reads_back_as_it_was_opened(self, world: World) -> None:
        receipt = world.forge.perform(open_issue())
        issue = world.forge.issue(receipt.number)
        assert (receipt.status, issue.number, issue.title) == ("done", receipt.number, "Typo")
        assert (issue.body, issue.author) == (open_issue().body, world.forge.identity())
        assert (issue.state, issue.labels, issue.url) == ("open", {"ralph:mission"}, receipt.url)

    def test_numbers_are_shared_by_issues_and_pulls(self, world: World) -> None:
        first = world.forge.perform(open_issue()).number
        assert pulled(world).number == first + 1

    def test_issue_that_was_opened_is_found_again(self, world: World) -> None:
        assert world.forge.find(open_issue()) is None
        number = world.forge.perform(open_issue()).number
        found = world.forge.find(open_issue())
        assert found and (found.status, found.number) == ("adopted", number)

    def test_comment_that_was_made_is_found_again(self, world: World) -> None:
        number = world.human("mara").create_issue("Question")
        assert world.forge.find(comment(number)) is None
        made = world.forge.perform(comment(number))
        found = world.forge.find(comment(number))
        assert found and (found.status, found.number) == ("adopted", made.number)
        assert [remark.id for remark in world.forge.issue(number).remarks] == [made.number]

    def test_marker_pasted_by_somebody_else_is_ignored(self, world: World) -> None:
        mara = world.human("mara")
        number = mara.create_issue("Mine", open_issue().body)
        mara.comment(number, comment(number).body)
        assert world.forge.find(open_issue()) is None
        assert world.forge.find(comment(number)) is None
        assert not world.forge.has_our_work()

    def test_marker_quoted_in_our_own_text_is_not_its_key(self, world: World) -> None:
        number = world.human("mara").create_issue("Question")
        world.forge.perform(comment(number, OTHER, f"You wrote: {marker(KEY)}"))
        assert world.forge.find(comment(number, KEY)) is None
        assert world.forge.find(comment(number, OTHER))

    def test_own_work_is_noticed(self, world: World) -> None:
        assert not world.forge.has_our_work()
        world.forge.perform(open_issue())
        assert world.forge.has_our_work()

    def test_alarm_is_no_work_that_memory_would_have_to_know(self, world: World) -> None:
        alarm = OpenIssue(KEY, "Ralph cannot work", f"Help.\n\n{marker(KEY, alarm='1')}")
        assert world.forge.perform(alarm).status == "done"
        assert not world.forge.has_our_work()

    def test_unresolved_number_is_refused(self, world: World) -> None:
        with pytest.raises(ValueError, match="waits for a number"):
            world.forge.perform(Comment(KEY, Ref(OTHER), marker(KEY)))

    def test_text_without_its_marker_is_refused(self, world: World) -> None:
        with pytest.raises(ValueError, match="marker"):
            world.forge.perform(OpenIssue(KEY, "Typo", "no marker", ()))

    def test_effect_on_a_missing_issue_fails(self, world: World) -> None:
        assert world.forge.perform(comment(99)).status == "failed"

    def test_missing_issue_is_trouble(self, world: World) -> None:
        with pytest.raises(Missing, match="99"):
            world.forge.issue(99)

    def test_pull_is_no_issue(self, world: World) -> None:
        number = pulled(world).number
        assert not world.forge.issues("all")
        with pytest.raises(Missing):
            world.forge.issue(number)

    @pytest.mark.parametrize(
        "text", ["", "\n\n", "a\r\nb\rc", "---\nnumber: 9\n---", "===== comment 1", "\x00\u202e\x1b[31m"]
    )
    def test_comment_survives_as_it_is(self, world: World, text: str) -> None:
        number = world.human("mara").create_issue("Question", text)
        world.human("mara").comment(number, text)
        issue = world.forge.issue(number)
        assert (issue.body, issue.remarks[0].body) == (text, text)

    def test_edited_comment_has_a_new_text_and_time(self, world: World) -> None:
        number = world.human("mara").create_issue("Question")
        made = world.forge.perform(comment(number))
        edit = EditComment(KEY, number, made.number, "proposal is now `12345678`")
        before = world.forge.issue(number).remarks[0]
        assert world.forge.perform(edit).status == "done"
        after = world.forge.issue(number).remarks[0]
        assert (after.body, after.created_at) == (edit.body, before.created_at)
        assert after.updated_at > before.updated_at
        assert world.forge.perform(edit).status == "adopted"

    def test_opening_text_is_comment_zero(self, world: World) -> None:
        number = world.forge.perform(open_issue()).number
        before = world.forge.issue(number)
        world.forge.perform(EditComment(KEY, number, 0, "New text"))
        after = world.forge.issue(number)
        assert after.body == "New text" and after.updated_at > before.updated_at

    def test_comment_of_somebody_else_is_not_edited(self, world: World) -> None:
        number = world.human("mara").create_issue("Question", "Mine")
        world.human("mara").comment(number, "Also mine")
        theirs = world.forge.issue(number).remarks[0].id
        assert world.forge.perform(EditComment(KEY, number, 0, "x")).status == "failed"
        assert world.forge.perform(EditComment(KEY, number, theirs, "x")).status == "failed"
        assert world.forge.issue(number).remarks[0].body == "Also mine"

    def test_list_tells_no_details(self, world: World) -> None:
        number = world.human("mara").create_issue("Question", labels=("bug",))
        world.human("mara").comment(number, "Hm")
        (listed,) = world.forge.issues()
        assert (listed.remarks, listed.events, listed.labels) == ((), (), {"bug"})

    def test_list_selects_by_state_and_all_labels(self, world: World) -> None:
        mara = world.human("mara")
        one = mara.create_issue("One", labels=("a", "b"))
        two = mara.create_issue("Two", labels=("a",))
        three = mara.create_issue("Three", labels=("a", "b"))
        mara.close_issue(three)
        assert [issue.number for issue in world.forge.issues()] == [one, two]
        assert [issue.number for issue in world.forge.issues("closed")] == [three]
        assert [issue.number for issue in world.forge.issues("all", ("b", "a"))] == [one, three]

    # --- labels, closing, people

    def test_labels_tell_who_and_when(self, world: World) -> None:
        mara = world.human("mara")
        number = world.forge.perform(open_issue(labels=())).number
        mara.label(number, ("ralph:approved",))
        mara.unlabel(number, ("ralph:approved",))
        events = world.forge.issue(number).events
        assert [(e.label, e.actor, e.added) for e in events] == [
            ("ralph:approved", mara.actor, True), ("ralph:approved", mara.actor, False)]  # fmt: skip
        assert events[0].at < events[1].at

    def test_label_that_is_there_already_is_no_event(self, world: World) -> None:
        mara = world.human("mara")
        number = mara.create_issue("Question", labels=("bug",))
        mara.label(number, ("bug",))
        assert len(world.forge.issue(number).events) == 1

    def test_approval_is_newer_than_what_it_approves(self, world: World) -> None:
        number = world.forge.perform(open_issue()).number
        world.forge.perform(comment(number, text="proposal is now `12345678`"))
        world.human("mara").label(number, ("ralph:approved",))
        issue = world.forge.issue(number)
        assert issue.events[-1].at > issue.remarks[-1].created_at

    def test_labelling_twice_is_labelling_once(self, world: World) -> None:
        number = world.human("mara").create_issue("Question", labels=("old",))
        effect = Label(KEY, number, ("new",), ("old",), ("mara",))
        assert world.forge.find(effect) is None
        assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
        issue = world.forge.issue(number)
        assert (issue.labels, issue.assignees, len(issue.events)) == ({"new"}, ("mara",), 3)

    def test_pull_is_labelled_too(self, world: World) -> None:
        pull = pulled(world)
        world.forge.perform(Label(KEY, pull.number, ("ralph:escalated",), ("ralph:auto-fix",)))
        assert world.forge.pull(pull.number).labels == {"ralph:escalated"}

    def test_closing_twice_is_closing_once(self, world: World) -> None:
        number = world.forge.perform(open_issue()).number
        close = CloseIssue(KEY, number, "completed")
        assert world.forge.find(close) is None
        assert [world.forge.perform(close).status for _ in range(2)] == ["done", "adopted"]
        issue = world.forge.issue(number)
        assert (issue.state, issue.state_reason, issue.closed_by) == ("closed", "completed", world.forge.identity())
        assert issue.closed_at

    def test_issue_closed_by_a_person_stays_as_they_closed_it(self, world: World) -> None:
        mara = world.human("mara")
        number = world.forge.perform(open_issue()).number
        mara.close_issue(number, "not_planned")
        assert world.forge.perform(CloseIssue(KEY, number, "completed")).status == "adopted"
        issue = world.forge.issue(number)
        assert (issue.state_reason, issue.closed_by) == ("not_planned", mara.actor)

    def test_people_may_approve_and_bots_may_not(self, world: World) -> None:
        assert world.forge.may_approve(world.human("mara").actor)
        assert not world.forge.may_approve(world.forge.identity())
        assert not world.forge.may_approve(Actor(4711, "other[bot]", is_bot=True))

    def test_people_are_told_apart_by_id(self, world: World) -> None:
        ids = {world.human("mara").actor.id, world.human("jonas").actor.id, world.forge.identity().id}
        assert len(ids) == 3

    # --- branches

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
        assert outcome(world.forge.perform(effect)) == ("failed", "foreign-commit")
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
        more = PushBranch(OTHER, "ralph/fix", world.forge.default_branch().sha, "More", WHEN,
                          (new_file("more", "m\n"),), onto=first.sha)  # fmt: skip
        assert outcome(world.forge.perform(more)) == ("failed", "foreign-commit")
        assert world.forge.branch("ralph/fix") == theirs

    # --- pulls

    def test_pull_reads_back_with_touches_and_commits(self, world: World) -> None:
        opened = pulled(world)
        pull = world.forge.pull(opened.number)
        assert (pull.state, pull.head, pull.base, pull.head_sha) == ("open", "ralph/fix", "main", opened.sha)
        assert (pull.commits, pull.touches) == ((opened.sha,), (Touch("README.md", 1, 1),))
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

    def test_review_names_the_commit_that_was_reviewed(self, world: World) -> None:
        opened = pulled(world)
        mara = world.human("mara")
        mara.review(opened.number, "changes_requested", "Too loud.")
        theirs = world.push("ralph/fix", {"x": b"x\n"})
        mara.review(opened.number, "approved")
        reviews = world.forge.pull(opened.number).reviews
        assert [(r.state, r.sha, r.author) for r in reviews] == [
            ("changes_requested", opened.sha, mara.actor), ("approved", theirs, mara.actor)]  # fmt: skip
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

    # --- merging

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

    def test_merge_without_the_approval_it_rests_on_is_refused(self, world: World) -> None:
        opened = pulled(world)
        mara, jonas = world.human("mara"), world.human("jonas")
        merge = replace(merge_pull(opened), approver=mara.actor.id, base="main")
        assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")
        mara.review(opened.number, "approved")
        jonas.review(opened.number, "changes_requested", "Wait.")
        assert outcome(world.forge.perform(merge)) == ("failed", "approval-author")

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

    # --- memory's anchor

    def test_anchor_is_remembered(self, world: World) -> None:
        assert world.forge.anchor() is None
        for serial in (1, 2):
            world.forge.set_anchor(Anchor("lineage", serial, "c" * 40))
        assert world.forge.anchor() == Anchor("lineage", 2, "c" * 40)
