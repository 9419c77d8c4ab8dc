"""What is not there, or not what it should be."""

from __future__ import annotations

from typing import Any

import pytest

from ralph_mission.forges.github import reading
from ralph_mission.mission.effects import OpenIssue, marker
from ralph_mission.mission.threads import Actor
from ralph_mission.trouble import Missing, UserError
from tests.contract.forge_world import KEY
from tests.forges.github_world import GitHubWorld


def test_deleted_issue_is_missing(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    mara.delete_issue(number)
    with pytest.raises(Missing, match=f"deleted issue or pull #{number}"):
        world.forge.issue(number)


def test_what_an_unreadable_repository_lacks_is_no_proof(world: GitHubWorld) -> None:
    forge = world.connected(world.fake.token("jonas", scopes=()))
    world.fake.world.private = True
    with pytest.raises(UserError, match="may not see it") as caught:
        forge.issue(7)
    assert not isinstance(caught.value, Missing)


def test_renamed_repository_is_read_where_it_went(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    world.fake.fail("redirect", ("GET", "/issues"))
    assert [issue.number for issue in world.forge.issues()] == [number]


def test_transferred_issue_is_missing(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")

    def elsewhere(request: Any, response: Any) -> None:
        if request.below == f"/issues/{number}":
            response.status, response.content = 301, b"{}"
            response.headers["Location"] = f"{world.fake.api_url}/repositories/4711/issues/{number}"

    world.fake.after(elsewhere)
    with pytest.raises(Missing, match=f"moved away issue or pull #{number}"):
        world.forge.issue(number)


def test_redirect_to_another_host_is_not_followed(world: GitHubWorld) -> None:
    def elsewhere(request: Any, response: Any) -> None:
        if request.below == "/issues":
            response.status, response.headers["Location"] = 301, "http://127.0.0.2:9/repositories/723001/issues"

    world.fake.after(elsewhere)
    with pytest.raises(UserError):
        world.forge.issues()


def test_head_that_cannot_be_fetched_costs_only_its_own_details(world: GitHubWorld) -> None:
    for name in ("one", "two"):
        world.fake.push(name, {f"{name}.txt": b"x\n"})
        world.human("mara").open_pull(name, "main", name)
    assert world.git.text("update-ref", "-d", "refs/pull/1/head") == ""
    first, second = world.forge.pulls()
    assert (first.touches, len(second.touches)) == ((), 1)
    assert any("refs/pull/1/head" in note for note in world.notes)


def a_pull(**changes: Any) -> dict[str, Any]:
    side = {"ref": "topic", "sha": "a" * 40, "label": "kim:topic", "repo": {"id": 2}}
    return {
        "number": 7,
        "title": "T",
        "body": None,
        "state": "open",
        "user": None,
        "html_url": "u",
        "created_at": "2026-05-04T12:00:00Z",
        "updated_at": "2026-05-04T12:00:00Z",
        "head": side,
        "base": {"ref": "main", "sha": "b" * 40, "repo": {"id": 1}},
    } | changes


def test_branch_of_a_fork_is_told_with_its_owner() -> None:
    assert reading.pull(reading.read(reading.PullWire, a_pull())).head == "kim:topic"
    deleted = a_pull(head={"ref": "topic", "sha": "a" * 40, "label": None, "repo": None})
    assert reading.pull(reading.read(reading.PullWire, deleted)).head == "unknown:topic"


def test_who_left_is_the_ghost() -> None:
    assert reading.pull(reading.read(reading.PullWire, a_pull())).author == Actor(10137, "ghost")


@pytest.mark.parametrize("changes", [{"number": None}, {"head": None}, {"state": "odd"}, {"created_at": "yesterday"}])
def test_answer_of_another_shape_is_trouble_with_the_forge(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError) as caught:
        reading.read(reading.PullWire, a_pull(**changes))
    assert caught.value.who == "forge" and "\n" not in caught.value.what


def test_what_happened_within_one_second_keeps_its_order() -> None:
    at = "2026-05-04T12:00:00Z"
    wires = [
        reading.EventWire.model_validate({"id": n, "event": kind, "created_at": at, "label": {"name": "x"}})
        for n, kind in ((3, "labeled"), (2, "unlabeled"), (1, "labeled"))
    ]
    assert [event.added for event in reading.events(wires)] == [True, False, True]


def test_review_that_was_not_handed_in_is_not_told() -> None:
    wires = [reading.ReviewWire(id=1, user=None, state="PENDING")]
    assert reading.reviews(wires) == ()


def test_issue_opened_with_the_marker_of_somebody_else_is_not_ours(world: GitHubWorld) -> None:
    effect = OpenIssue(KEY, "Typo", f"x\n{marker(KEY)}")
    world.human("github-actions").create_issue("Typo", effect.body)
    assert world.forge.find(effect) is None
