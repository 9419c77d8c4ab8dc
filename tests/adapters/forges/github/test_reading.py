"""Labels are made once, given to those who lack them, and owed where they were refused.

What is not there, or not what it should be.
"""

from __future__ import annotations

from typing import Any

import pytest

from ralph_mission.adapters.forges.github import reading
from ralph_mission.adapters.forges.github.owed import OWED_LABELS
from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.model.effects import Label, OpenIssue, marker
from ralph_mission.mission.model.forge import Actor
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import KEY, OTHER, comment, open_issue, open_pull, pulled, push_branch

GIVING = ("POST", "/issues/*/labels")


def refused_once(world: GitHubWorld, kind: str = "403") -> int:
    """A pull of ours that could not be labelled in the cycle that opened it."""
    world.fake.fail(kind, GIVING)
    number = pulled(world).number
    world.forge.close()
    assert world.fake.pull(number).labels == []
    assert any(f"#{number} could not be labelled" in note for note in world.notes)
    return number


def next_cycle(world: GitHubWorld, key: str = OTHER) -> None:
    """A cycle of another process, which does something else."""
    question = world.human("mara").create_issue("Question")
    forge = world.connected()
    assert forge.perform(comment(question, key)).status == "done"
    forge.close()


def test_labels_are_made_with_our_colours_once(world: GitHubWorld) -> None:
    world.human("mara").create_issue("Other", labels=("RALPH:Mission",))
    world.forge.perform(open_issue(labels=("ralph:mission", "ralph:research")))
    world.connected().perform(open_issue("c3" * 8, labels=("ralph:research",)))
    assert world.fake.count(method="POST", below="/labels") == 1
    assert world.fake.labels["ralph:research"].description
    assert world.forge.issues()[0].labels == {"ralph:mission"}
    assert world.forge.issue(1).events[0].label == "ralph:mission"


def test_somebody_without_an_account_is_not_assigned_and_no_error(world: GitHubWorld) -> None:
    number = world.human("mara").create_issue("Question")
    effect = Label(KEY, number, ("bug",), (), ("nobody", "mara"))
    assert [world.forge.perform(effect).status for _ in range(2)] == ["done", "adopted"]
    assert world.forge.issue(number).assignees == ("mara",)


@pytest.mark.parametrize("kind", ["403", "rate_secondary", "reset_not_applied"])
def test_label_that_was_refused_once_is_given_by_a_later_cycle(world: GitHubWorld, kind: str) -> None:
    number = refused_once(world, kind)
    world.fake.clock.advance(900)
    next_cycle(world)
    assert world.fake.pull(number).labels == ["ralph:auto-fix"]
    given = world.fake.count(method="POST", below=GIVING[1])
    next_cycle(world, "c3" * 8)
    assert world.fake.count(method="POST", below=GIVING[1]) == given


def test_label_that_is_refused_for_good_is_tried_once_a_cycle_and_stops_nothing(world: GitHubWorld) -> None:
    refused_once(world)
    world.fake.fail("403", GIVING, times=9)
    before = world.fake.count(method="POST", below=GIVING[1])
    forge, number = world.connected(), world.human("mara").create_issue("Question")
    assert [forge.perform(comment(number, key)).status for key in (OTHER, "c3" * 8)] == ["done", "done"]
    assert world.fake.count(method="POST", below=GIVING[1]) == before + 1


def test_pull_whose_labels_cannot_be_looked_up_is_opened_all_the_same(world: GitHubWorld) -> None:
    world.fake.fail("500", ("GET", "/labels"), times=4)
    number = pulled(world).number
    world.forge.close()
    assert world.fake.pull(number).labels == []
    next_cycle(world)
    assert world.fake.pull(number).labels == ["ralph:auto-fix"]


@pytest.mark.parametrize("owed", [False, True])
def test_a_missing_list_of_labels_stops_nothing(world: GitHubWorld, owed: bool) -> None:
    number = refused_once(world) if owed else 1
    world.fake.fail("404", ("GET", "/labels"))
    world.forge = world.connected()
    if owed:
        question = world.human("mara").create_issue("Question")
        assert world.forge.perform(comment(question, OTHER)).status == "done"
    else:
        assert pulled(world).number == number
    world.forge.close()
    next_cycle(world, "c3" * 8)
    assert world.fake.pull(number).labels == ["ralph:auto-fix"]


def test_idle_cycle_gives_no_label(world: GitHubWorld) -> None:
    number = refused_once(world)
    forge = world.connected()
    forge.issues(), forge.pulls("all")
    forge.close()
    assert forge.requests.mutations == 0 and world.fake.pull(number).labels == []


def test_pull_that_was_closed_or_deleted_is_owed_no_label(world: GitHubWorld) -> None:
    number = refused_once(world)
    world.human("mara").close_pull(number)
    next_cycle(world)
    assert world.fake.pull(number).labels == []
    assert world.connected().api.read_cache.get_lasting(OWED_LABELS) == {}


def test_labels_that_cannot_be_given_let_the_others_go_first(world: GitHubWorld) -> None:
    number = refused_once(world)
    kept = world.connected().api.read_cache
    kept.put_lasting(OWED_LABELS, {str(missing): ["ralph:auto-fix"] for missing in (*range(70, 80), number)})
    fault = world.fake.fail("502_not_applied", ("GET", "/pulls/7*"), times=999)
    next_cycle(world)
    next_cycle(world)
    assert fault.used and world.fake.pull(number).labels == ["ralph:auto-fix"]


@pytest.mark.parametrize(
    "owed",
    [
        {"1": ["agent:claude", 7, "ralph:rejected", "ralph:visit me"]},
        {"2": ["ralph:auto-fix"]},
        {"1": 7},
        {"x": []},
        [1],
        "x",
        {"1" * 5000: []},
    ],
)
def test_debt_that_was_written_by_somebody_else_gives_nothing(world: GitHubWorld, owed: object) -> None:
    assert pulled(world).number == 1
    world.push("topic", {"x.txt": b"x\n"})
    assert world.human("mara").open_pull("topic", "main", "Mine") == 2
    world.forge.api.read_cache.put_lasting(OWED_LABELS, owed)
    world.forge.close()
    next_cycle(world)
    assert [world.fake.pull(number).labels for number in (1, 2)] == [["ralph:auto-fix"], []]


def test_label_that_somebody_just_made_does_not_keep_the_next_one_from_its_colours(world: GitHubWorld) -> None:
    def made_meanwhile(request: object) -> None:
        if getattr(request, "below", "") == "/labels" and getattr(request, "method", "") == "POST":
            world.fake.world.label("ralph:mission")

    world.fake.before(made_meanwhile)
    world.forge.perform(open_issue(labels=("ralph:mission", "ralph:research")))
    assert world.fake.labels["ralph:research"].description


def test_crash_between_opening_a_pull_and_labelling_it_is_repaired(world: GitHubWorld) -> None:
    world.forge.perform(push_branch(world))
    world.fake.fail("reset_not_applied", GIVING)
    assert world.forge.perform(open_pull()).status == "done"
    assert not world.fake.threads[1].labels
    found = world.connected().find(open_pull())
    assert found and found.status == "adopted"
    assert world.fake.threads[1].labels == ["ralph:auto-fix"]
    assert world.fake.count(method="POST", below="/pulls") == 1


def test_deleted_issue_is_missing(world: GitHubWorld) -> None:
    mara = world.human("mara")
    number = mara.create_issue("Question")
    mara.delete_issue(number)
    with pytest.raises(Missing, match=f"deleted issue or pull request #{number}"):
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
    with pytest.raises(Missing, match=f"moved away issue or pull request #{number}"):
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


def test_drafts_and_first_contributions_are_told() -> None:
    def read(**changes: Any) -> tuple[bool, bool]:
        pull = reading.pull(reading.read(reading.PullWire, a_pull(**changes)))
        return pull.draft, pull.newcomer

    assert read() == (False, False)
    assert read(draft=True, author_association="FIRST_TIME_CONTRIBUTOR") == (True, True)
    assert read(author_association="FIRST_TIMER") == (False, True)
    assert read(author_association="CONTRIBUTOR") == (False, False)


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
