"""Issues and comments on any forge."""

from __future__ import annotations

import pytest

from ralph_mission.errors import Missing
from ralph_mission.mission.model.effects import Comment, EditComment, OpenIssue, Ref, marker
from tests.contract.forge_world import (
    KEY,
    OTHER,
    World,
    comment,
    open_issue,
    pulled,
)


class IssueContract:
    """Issues and comments on any forge."""

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
