"""What `ralph work` opened goes on as a mission: reviewed by a person, merged by the next cycle, its issue closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ralph_mission.mission.lifecycle.ownership import work_facts
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.operations.recover import recover_memory
from tests.crash.dying import dying_after
from tests.crash.witness import duplicates
from tests.integration.at_work import FORGES, Place, Scripted
from tests.integration.coding import FILES, settings
from tests.integration.coding import HEAD as PROGRAM
from tests.integration.world import TYPOS


@pytest.fixture(params=["local", pytest.param("github", marks=pytest.mark.long)])
def place(request, tmp_path) -> Iterator[Place]:
    with FORGES[request.param](tmp_path) as found:
        yield found


@pytest.fixture
def here(tmp_path) -> Iterator[Place]:
    with FORGES["local"](tmp_path) as found:
        yield found


def cycle(place: Place) -> list[tuple[str, int, int]]:
    """One cycle, and its missions: state, issue, pull."""
    world: Any = place.hub or place.local
    report, _ = world.cycle()
    return [(line.status.value, line.issue, line.pull_request) for line in report.missions]


def worked(place: Place) -> tuple[int, int]:
    """An issue, and the pull that an agent opened for it."""
    number = place.ready()
    report = place.work(Scripted())
    assert report.outcome == "done" and report.record is not None
    return number, report.record.pull


def stands(place: Place, number: int) -> tuple[str, str]:
    """An issue's state and why."""
    issue = place.issue(number)
    return issue.state, issue.state_reason


def test_a_pull_of_ralph_work_is_merged_by_the_cycle_after_a_persons_yes_and_its_issue_closed(place):
    number, pull = worked(place)
    assert cycle(place) == [("IN_REVIEW", number, pull)]
    assert cycle(place) == [("IN_REVIEW", number, pull)], "nothing is merged unasked"
    assert stands(place, number) == ("open", "") and place.work(Scripted()).outcome == "idle"
    place.person().review(pull, "approved")
    assert cycle(place) == [("COMPLETED", number, pull)]
    assert stands(place, number) == ("closed", "completed")
    assert place.house().forge.pull(pull).state == "merged"
    assert place.content("main", f"work-{number}.txt") == b"done\n"
    recalled = place.house().store.recall()
    assert (recalled.state.missions, recalled.memory.issues) == ((), ())
    assert [note.title for note in recalled.memory.completed] == ["Add a tide table"]
    begin, done, story = place.comments(number)
    assert "At work on this" in begin and f"**Done:** #{pull}" in done and "approved by mara" in story
    assert cycle(place) == [] and len(place.comments(number)) == 3


def test_a_person_who_merges_before_any_cycle_looked_has_the_issue_closed_once(here):
    number, pull = worked(here)
    here.person().merge(pull)
    assert cycle(here) == [("COMPLETED", number, pull)]
    assert stands(here, number) == ("closed", "completed")
    assert cycle(here) == []


def test_a_no_to_the_pull_ends_the_issue_too(here):
    number, pull = worked(here)
    here.person().close_pull(pull)
    assert cycle(here) == [("REJECTED", number, pull)]
    assert stands(here, number) == ("closed", "not_planned") and "ralph:rejected" in here.labels(number)


def test_a_no_to_the_issue_closes_the_pull(here):
    number, pull = worked(here)
    cycle(here)
    here.person().comment(number, "/ralph reject not like this")
    assert cycle(here) == [("REJECTED", number, pull)]
    assert here.house().forge.pull(pull).state == "closed"


def test_a_review_is_answered_by_the_agent_of_the_missions(tmp_path):
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "agent.py").write_text(
        PROGRAM.format(here=str(aside)) + "write('tides.txt', 'TIDES\\n')\nprint('LOOP_COMPLETE')\n"
    )
    with FORGES["local"](tmp_path, settings(aside), FILES) as here:
        number, pull = worked(here)
        assert cycle(here) == [("IN_REVIEW", number, pull)]
        here.person().review(pull, "changes_requested", "call it TIDES")
        assert cycle(here) == [("FIXING", number, pull)]
        assert cycle(here) == [("IN_REVIEW", number, pull)]
        (told,) = (path.read_text() for path in aside.glob("prompt-*"))
        assert "call it TIDES" in told and "It should show tides." in told
        assert here.content(here.pulls()[0].head, "tides.txt") == b"TIDES\n"
        here.person().review(pull, "approved")
        assert cycle(here) == [("COMPLETED", number, pull)]


def test_without_an_agent_for_missions_a_review_that_asks_for_changes_asks_a_person(here):
    number, pull = worked(here)
    here.person().review(pull, "changes_requested", "call it TIDES")
    cycle(here)
    assert cycle(here) == [("ESCALATED", number, pull)]
    assert "ralph:escalated" in here.labels(number)


def test_pulls_of_ralph_work_are_never_refused_a_slot_and_leave_none_for_what_nobody_asked_for(tmp_path):
    with FORGES["local"](tmp_path, files=TYPOS) as here:
        pairs = [worked(here) for _ in range(4)]
        assert cycle(here) == [("IN_REVIEW", number, pull) for number, pull in pairs]
        assert [mission.id for mission in here.state().missions] == [1, 2, 3, 4]
        for _, pull in pairs[:2]:
            here.person().merge(pull)
        assert sorted(status for status, *_ in cycle(here)) == ["COMPLETED"] * 2 + ["IN_REVIEW"] * 2
        assert [status for status, *_ in cycle(here)] == ["IN_REVIEW"] * 3


def test_the_label_of_missions_on_an_issue_whose_pull_is_open_makes_no_second_one(here):
    number, pull = worked(here)
    here.person().label(number, ("ralph:mission",))
    assert cycle(here) == [("IN_REVIEW", number, pull)]
    here.person().unlabel(number, ("ralph:mission",))
    assert cycle(here) == [("IN_REVIEW", number, pull)]


def test_a_pull_is_found_again_when_memory_is_lost_and_said_nothing_of_twice(here):
    number, pull = worked(here)
    cycle(here)
    house = here.house()
    house.git.run("update-ref", "-d", "refs/heads/ralph-memory")
    recover_memory(house.store, house.forge, house.ports.clock.now())
    assert cycle(here) == [("IN_REVIEW", number, pull)]
    here.person().review(pull, "approved")
    assert cycle(here) == [("COMPLETED", number, pull)]
    assert (stands(here, number), len(here.comments(number))) == (("closed", "completed"), 3)


def test_a_try_that_is_not_at_its_end_is_left_to_ralph_work(place):
    """The runner died after its pull was open: the next one says so on the issue, then the pull is a mission's."""
    if place.hub is None:
        pytest.skip("dies at a request")
    number = place.ready()
    with dying_after(place.hub, "POST /pulls"):
        place.work(Scripted())
    assert cycle(place) == []
    assert place.work(Scripted()).settled == ((number, "done"),)
    ((status, _, pull),) = cycle(place)
    place.person().review(pull, "approved")
    with dying_after(place.hub, "PUT /pulls"):
        cycle(place)
    assert (status, cycle(place)) == ("IN_REVIEW", [("COMPLETED", number, pull)])
    assert (stands(place, number), duplicates(place.hub)) == (("closed", "completed"), [])


def test_a_pull_of_an_earlier_version_which_says_nothing_of_it_is_left_to_people(here):
    number, pull = worked(here)
    path = here.house().git.state_dir / "forge" / "pulls" / f"{pull:04d}.md"
    told = path.read_text()
    facts = work_facts(number)
    key = told.partition("<!-- ralph:v1 key=")[2][:16]
    assert marker(key, **facts) in told
    path.write_text(told.replace(marker(key, **facts), marker(key)))
    here.person().review(pull, "approved")
    assert cycle(here) == [] and here.house().forge.pull(pull).state == "open"
