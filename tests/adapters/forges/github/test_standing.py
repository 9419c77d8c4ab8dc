"""The standing issue, workflow runs, and where people click."""

from __future__ import annotations

import pytest

from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.model.ledger import Anchor, key_of
from tests.adapters.forges.github_world import GitHubWorld, kept_file


def test_standing_issue_is_no_work_and_tells_people_what_this_is(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 3, "c" * 40))
    assert world.forge.issues() == world.forge.issues("all") == ()
    assert not world.forge.has_our_work()
    body = world.fake.issue(1).body or ""
    assert body.splitlines()[-2:] == [
        f"<!-- ralph:anchor lineage=lineage serial=3 oid={'c' * 40} -->",
        marker(key_of("anchor")),
    ]
    assert "/blob/ralph-memory/README.md" in body


def test_standing_issue_that_was_closed_is_used_and_never_reopened(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 1, "c" * 40))
    world.human("mara").close_issue(1)
    kept_file(world).unlink()
    world.connected().set_anchor(Anchor("lineage", 2, "d" * 40))
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)
    assert len(world.fake.threads) == 1 and world.fake.issue(1).state == "closed"


def test_of_two_standing_issues_that_a_race_made_the_younger_is_closed(world: GitHubWorld) -> None:
    ours = world.human(world.forge.identity().login)
    for _ in range(2):
        ours.create_issue("Ralph looks after this repository", marker(key_of("anchor")))
    assert [world.fake.issue(number).state for number in (1, 2)] == ["open", "open"]
    world.connected().set_anchor(Anchor("lineage", 2, "d" * 40))
    assert [world.fake.issue(number).state for number in (1, 2)] == ["open", "closed"]
    assert world.connected().anchor() == Anchor("lineage", 2, "d" * 40)


def test_standing_issue_of_somebody_else_is_none(world: GitHubWorld) -> None:
    line = f"<!-- ralph:anchor lineage=x serial=9 oid={'c' * 40} -->"
    world.human("mara").create_issue("Mine", f"{line}\n{marker(key_of('anchor'))}")
    assert world.forge.anchor() is None
    assert [issue.number for issue in world.forge.issues()] == [1]


def test_standing_issue_that_a_person_edited_on_the_page_is_read(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 1, "c" * 40))
    body = world.fake.issue(1).body or ""
    world.human("mara").edit_issue(1, body=body.replace("\n", "\r\n") + "\r\n")  # as a browser sends it
    assert world.connected().anchor() == Anchor("lineage", 1, "c" * 40)


def test_damaged_standing_issue_is_told(world: GitHubWorld) -> None:
    world.forge.set_anchor(Anchor("lineage", 1, "c" * 40))
    world.human("mara").edit_issue(1, body=f"Hello\n{marker(key_of('anchor'))}")
    with pytest.raises(UserError, match="issue #1 are damaged"):
        world.connected().anchor()


@pytest.mark.parametrize(
    ("holder", "over"),
    [
        ("{page}/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/actions/runs/7/attempts/1", True),
        ("{page}/actions/runs/7/attempts/2 (loop, box)", False),
        ("{page}/actions/runs/8/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/9/attempts/1 (loop, box)", False),
        ("{page}/actions/runs/7", False),
        ("{page}-as-it-was-called-before/actions/runs/7/attempts/1 (loop, box)", True),
        ("{page}/x/actions/runs/7/attempts/1 (loop, box)", False),
        ("https://elsewhere.example/harbour/slackwater/actions/runs/7/attempts/1", False),
        ("box 1234 5678", False),
        ("", False),
    ],
)
def test_run_is_over_when_github_says_so(world: GitHubWorld, holder: str, over: bool) -> None:
    world.fake.workflow_run(7, "completed", "success")
    world.fake.workflow_run(8, "in_progress")
    assert world.forge.run_is_over(holder.format(page=world.forge.api.place.page)) is over


def test_an_attempt_is_over_when_the_run_was_started_again(world: GitHubWorld) -> None:
    world.fake.workflow_run(8, "in_progress", attempt=2)
    page = f"{world.forge.api.place.page}/actions/runs/8/attempts"
    assert world.forge.run_is_over(f"{page}/1 (loop, box)")
    assert not world.forge.run_is_over(f"{page}/2 (loop, box)")


def test_people_are_told_where_to_click(world: GitHubWorld) -> None:
    page = f"{world.fake.url}/harbour/slackwater"
    told = f"approve {page}/pull/7 (Files changed, Review changes, Approve)"
    assert world.forge.how("approve_pull", 7) == told
    assert f"{page}/issues/7" in world.forge.how("approve_issue", 7)
