"""What is read from GitHub is read completely and with few requests."""

from __future__ import annotations

import pytest

from ralph_mission.adapters.forges.github.forge import GitHubForge
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.model.ledger import Anchor, key_of
from tests.adapters.forges.github_world import GitHubWorld
from tests.contract.forge_world import open_issue


def cycle(forge: GitHubForge, missions: list[tuple[int, int]]) -> set[Actor]:
    """What a cycle asks when it finds nothing to do: lists, its missions, who spoke there, and the anchor."""
    forge.anchor()
    forge.issues(), forge.pulls("all"), forge.identity(), forge.default_branch()
    people: set[Actor] = set()
    for issue, pull in missions:
        people |= {event.actor for event in forge.issue(issue).events} | {r.author for r in forge.pull(pull).reviews}
    for person in people:
        forge.may_approve(person)
    forge.set_anchor(Anchor("lineage", 1 + forge.requests.total, "c" * 40))
    return people


def three_missions(world: GitHubWorld) -> list[tuple[int, int]]:
    mara, missions = world.human("mara"), []
    for place in range(3):
        number = world.forge.perform(open_issue(key_of(str(place)))).number
        world.fake.push(f"topic-{place}", {f"{place}.txt": b"x\n"})
        pull = mara.open_pull(f"topic-{place}", "main", "Mine")
        world.human("mara").comment(number, "Hm")
        mara.label(number, ("ralph:approved",))
        mara.review(pull, "changes_requested", "Wait.")
        missions.append((number, pull))
    return missions


def test_idle_cycle_with_three_missions_takes_six_requests_at_most(world: GitHubWorld) -> None:
    missions = three_missions(world)
    cycle(world.connected(), missions)
    for _ in range(2):
        world.fake.clock.advance(900)
        forge = world.connected()
        people = cycle(forge, missions)
        details = forge.requests
    assert {person.login for person in people} >= {"mara"}
    assert details.total <= 6, details
    assert details.mutations == 1 and details.not_modified >= 1


@pytest.mark.long  # ten seconds; tests/load asks the same of less
def test_cycle_among_300_issues_and_80_pulls_takes_less_than_40_requests(world: GitHubWorld) -> None:
    missions, jonas = three_missions(world), world.human("jonas")
    world.fake.clock.advance(3600)
    for place in range(300):
        jonas.create_issue(f"Issue {place}")
    tip = world.fake.branch("main")
    for place in range(80):
        world.git.move_ref(f"refs/heads/jonas-{place}", _commit(world, tip, place), "")
        jonas.open_pull(f"jonas-{place}", "main", f"Pull {place}")
    forge = world.connected()
    cycle(forge, missions)
    assert forge.requests.total < 40, forge.requests
    assert len(forge.issues()) == 303 and len(forge.pulls()) == 83
    assert all(len(pull.touches) == 1 for pull in forge.pulls())
    world.fake.clock.advance(900)
    later = world.connected()
    cycle(later, missions)
    assert later.requests.total <= 12, later.requests


def _commit(world: GitHubWorld, tip: str, place: int) -> str:
    tree = world.git.write_tree(tip, {f"{place}.txt": ("100644", b"x\n")})
    return world.git.commit_tree(tree, (tip,), f"{place}\n", world.fake.clock.now)


def test_requests_are_counted_by_kind(world: GitHubWorld) -> None:
    world.human("mara").create_issue("One")
    forge = world.connected()
    forge.issues()
    forge.threads.forget()
    forge.issues()
    assert (forge.requests.total, forge.requests.not_modified, forge.requests.mutations) == (2, 1, 0)


def test_lists_are_read_to_their_last_page(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    mara = world.human("mara")
    numbers = [mara.create_issue(f"Issue {place}") for place in range(7)]
    for place in range(5):
        mara.comment(numbers[0], f"Comment {place}")
    assert [issue.number for issue in world.forge.issues()] == numbers
    assert [remark.body for remark in world.forge.issue(numbers[0]).remarks] == [f"Comment {n}" for n in range(5)]


def test_open_pull_that_slept_for_long_is_listed_still(world: GitHubWorld) -> None:
    world.fake.page_size_cap = 2
    world.fake.push("old", {"old.txt": b"x\n"})
    old = world.human("mara").open_pull("old", "main", "Old")
    world.fake.clock.advance(30 * 86_400)
    for place in range(4):
        world.fake.push(f"new-{place}", {f"{place}.txt": b"x\n"})
        number = world.human("mara").open_pull(f"new-{place}", "main", "New")
        world.human("mara").close_pull(number)
    assert [pull.number for pull in world.forge.pulls()] == [old]
    world.forge.threads.forget()
    world.forge.issues()
    assert [pull.number for pull in world.forge.pulls("all")] == [old, 2, 3, 4, 5]
