"""An agent's mission of which memory knows nothing any more, or whose pull somebody rewrote. On both forges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ralph_mission.adapters.git.git import Identity
from ralph_mission.mission.model.ledger import MemoryBatch
from ralph_mission.mission.operations.recover import recover_memory
from ralph_mission.mission.operations.salvage import Recovered
from tests.integration.coding import Yard, yard
from tests.integration.world import World, statuses

pytestmark = pytest.mark.long  # takes ten seconds or more


@pytest.fixture(params=["local", "github"])
def shop(request, tmp_path):
    with yard(tmp_path, request.param) as made:
        yield made


def begun(shop: Yard) -> int:
    """The second mission of a person, whose pull is open: its number is not that of the next one in a new memory."""
    first = shop.wanted("Not that one")
    shop.person().close_issue(first, "not_planned")
    issue = shop.wanted()
    shop.cycle()
    shop.cycle()
    assert shop.pull().state == "open"
    return issue


def recovered(shop: Yard) -> Recovered:
    """Memory rebuilt where nothing of the old one is left."""
    house = shop.house()
    house.store.anchorage.forget()
    house.git.run("update-ref", "-d", "refs/heads/ralph-memory")
    if not isinstance(shop.place, World):
        shop.place.fake.world.bare.delete_ref("refs/heads/ralph-memory")
    house = shop.house()
    return recover_memory(house.store, house.forge, house.ports.clock.now())


def forgotten(shop: Yard) -> None:
    """The mission is out of memory, and the rest of it stands."""
    house = shop.house()
    past = house.store.recall()
    house.store.commit(MemoryBatch(past.memory, replace(past.state, missions=(), next_mission=1), (), "x"), past)


def missions(shop: Yard):
    return shop.house().store.recall().state.missions


@pytest.mark.parametrize("lose", [recovered, forgotten])
def test_a_lost_mission_goes_on_where_its_pull_stands_and_no_agent_is_asked(shop, lose):
    begun(shop)
    (before,) = missions(shop)
    lose(shop)
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    (after,) = missions(shop)
    same = ("id", "key", "issue", "pull", "branch", "head_sha", "kind", "comment")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert len(shop.pulls()) == 1 and len(shop.prompts) == 1
    shop.person().review(shop.pull().number, "approved")
    assert statuses(shop.cycle()[0]) == ["COMPLETED"]


@pytest.mark.parametrize("lose", [recovered, forgotten])
def test_a_review_that_a_lost_mission_answered_is_not_answered_again_and_a_new_one_is(shop, lose):
    issue = begun(shop)
    pull = shop.pull().number
    shop.person().review(pull, "changes_requested", "call it TIDES")
    shop.says("write('src/table.py', f'TIDES = {call}\\n')")
    shop.cycle()
    shop.cycle()
    lose(shop)
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert len(shop.prompts) == 2 and missions(shop)[0].comment
    remarks = len(shop.said(issue))
    shop.person().review(pull, "changes_requested", "and sort it")
    assert statuses(shop.cycle()[0]) == ["FIXING"]
    assert statuses(shop.cycle()[0]) == ["IN_REVIEW"]
    assert shop.at(shop.pull().head_sha, "src/table.py") == b"TIDES = 3\n"
    assert len(shop.said(issue)) == remarks  # the one that stands there is brought up to date
    assert "and sort it" in shop.prompts[2] and "call it TIDES" not in shop.prompts[2]


@pytest.mark.parametrize("lose", [recovered, forgotten])
def test_a_commit_of_somebody_else_is_not_taken_for_ours_once_memory_is_lost(shop, lose):
    begun(shop)
    pull = shop.pull()
    somebody_pushes(shop, pull.head)
    lose(shop)
    shop.person().review(pull.number, "approved")
    assert statuses(shop.cycle()[0]) == ["ESCALATED"]
    assert missions(shop)[0].last_action == "escalated: someone else pushed to our branch"
    assert shop.pull().state == "open" and len(shop.prompts) == 1


def somebody_pushes(shop: Yard, branch: str) -> None:
    if isinstance(shop.place, World):
        git = shop.house().git
        before = git.resolve(f"refs/heads/{branch}")
        tree = git.write_tree(before, {"src/theirs.py": ("100644", b"x = 1\n")})
        theirs = git.commit_tree(tree, [before], "Theirs", shop.house().ports.clock.now(), Identity("Eve", "e@e.org"))
        git.run("update-ref", f"refs/heads/{branch}", theirs)
    else:
        shop.person().push(branch, {"src/theirs.py": b"x = 1\n"})


def test_a_wish_without_a_pull_is_adopted_anew_under_a_number_of_its_own(shop):
    begun(shop)
    (before,) = missions(shop)
    forgotten(shop)
    shop.wanted("Add another")
    shop.says("write('src/another.py', 'x = 1\\n')")
    shop.cycle()
    found = {mission.title: (mission.id, mission.status.value) for mission in missions(shop)}
    assert found["Add a tide table"] == (before.id, "IN_REVIEW")
    assert found["Add another"][0] != before.id and found["Add another"][1] == "PLANNED"


def test_a_pull_of_somebody_else_that_claims_a_lost_mission_is_none_of_it(tmp_path):
    with yard(tmp_path, "local") as shop:
        begun(shop)
        body = shop.pull().body
        shop.person().close_pull(shop.pull().number)
        git = shop.house().git
        git.run("update-ref", "refs/heads/ralph/theirs", git.text("rev-parse", shop.pull().head_sha))
        shop.person("eve").open_pull("ralph/theirs", "main", "Mine", body)
        forgotten(shop)
        shop.cycle()
        assert [mission.pull for mission in missions(shop)] == [0]


def test_a_pull_whose_text_somebody_rewrote_makes_its_mission_stuck_and_not_gone(shop):
    begun(shop)
    rewrite(shop, shop.pull().number, "My own words.")
    report, telling = shop.cycle()
    assert statuses(report) == ["ESCALATED"]
    assert any(line.startswith("decide:") for line in telling.waiting)
    assert shop.pull().state == "open" and statuses(shop.cycle()[0]) == ["ESCALATED"]
    assert len(shop.pulls()) == 1 and len(shop.prompts) == 1
    assert (
        missions(shop)[0].last_action
        == f"nothing is written: pull #{shop.pull().number} does not belong to this mission"
    )


def rewrite(shop: Yard, pull: int, text: str) -> None:
    if isinstance(shop.place, World):
        shop.person()._change("pull", pull, lambda thread, actor, now: replace(thread, body=text))
    else:
        shop.person().edit_issue(pull, body=text)
