"""Labels, closing and people on any forge."""

from __future__ import annotations

from ralph_mission.mission.model.effects import CloseIssue, Label
from ralph_mission.mission.model.forge import Actor
from tests.contract.forge_world import KEY, World, comment, open_issue, pulled


class LabelContract:
    """Labels, closing and people on any forge."""

    def test_labels_tell_who_and_when(self, world: World) -> None:
        mara = world.human("mara")
        number = world.forge.perform(open_issue(labels=())).number
        mara.label(number, ("ralph:approved",))
        mara.unlabel(number, ("ralph:approved",))
        events = world.forge.issue(number).events
        assert [(e.label, e.actor, e.added) for e in events] == [
            ("ralph:approved", mara.actor, True),
            ("ralph:approved", mara.actor, False),
        ]
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
