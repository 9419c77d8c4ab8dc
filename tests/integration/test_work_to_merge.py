"""What `ralph work` opened goes on as a mission: reviewed by a person, merged by the next cycle, its issue closed."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.mission.lifecycle.ownership import work_facts
from ralph_mission.mission.model.effects import marker
from ralph_mission.mission.operations.recover import recover_memory
from tests.crash.dying import dying_after
from tests.crash.witness import duplicates
from tests.integration.at_work import FORGES, Place, Scripted, made
from tests.integration.coding import FILES, settings
from tests.integration.coding import HEAD as PROGRAM
from tests.integration.world import TYPOS


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


def forge_file(place: Place, folder: str, number: int) -> Path:
    """Where the local forge keeps an issue or pull request."""
    return place.house().git.state_dir / "forge" / folder / f"{number:04d}.md"


def open_again(place: Place, number: int, pull: int) -> None:
    """A person opens an issue and its pull request again, restores its branch, and takes our label off."""
    thread = place.house().forge.pull(pull)
    place.house().git.run("update-ref", f"refs/heads/{thread.head}", thread.head_sha)
    for path in (forge_file(place, "issues", number), forge_file(place, "pulls", pull)):
        told = path.read_text().replace("state: closed", "state: open", 1)
        path.write_text(re.sub(r"^(state_reason|closed_by|closed_at): .*\n", "", told, flags=re.MULTILINE))
    place.person().unlabel(number, ("ralph:rejected",))


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


@pytest.mark.long  # a variation; the steps have pure tests
def test_a_person_who_merges_before_any_cycle_looked_has_the_issue_closed_once(here):
    number, pull = worked(here)
    here.person().merge(pull)
    assert cycle(here) == [("COMPLETED", number, pull)]
    assert stands(here, number) == ("closed", "completed")
    assert cycle(here) == []


@pytest.mark.long  # a variation; the steps have pure tests
def test_a_no_to_the_pull_ends_the_issue_too(here):
    number, pull = worked(here)
    here.person().close_pull(pull)
    assert cycle(here) == [("REJECTED", number, pull)]
    assert stands(here, number) == ("closed", "not_planned") and "ralph:rejected" in here.labels(number)


@pytest.mark.long  # a variation; the steps have pure tests
def test_a_no_to_the_issue_closes_the_pull(here):
    number, pull = worked(here)
    cycle(here)
    here.person().comment(number, "/ralph reject not like this")
    assert cycle(here) == [("REJECTED", number, pull)]
    assert here.house().forge.pull(pull).state == "closed"


@pytest.mark.long  # a variation; the steps have pure tests
@pytest.mark.parametrize(
    "no", [lambda mara, number: mara.comment(number, "/ralph reject no"), lambda mara, number: mara.close_issue(number)]
)
def test_a_no_to_the_issue_before_any_cycle_looked_closes_the_pull_once(here, no):
    number, pull = worked(here)
    no(here.person(), number)
    assert cycle(here) == [("REJECTED", number, pull)]
    assert here.house().forge.pull(pull).state == "closed" and stands(here, number)[0] == "closed"
    assert cycle(here) == [] and here.house().store.recall().memory.issues == ()


@pytest.mark.long  # a variation; the steps have pure tests
def test_what_is_opened_again_after_a_no_is_brought_to_its_end_like_the_first_time(here):
    number, pull = worked(here)
    for _ in range(2):
        here.person().close_pull(pull)
        assert cycle(here) == [("REJECTED", number, pull)] and cycle(here) == []
        assert stands(here, number) == ("closed", "not_planned") and "ralph:rejected" in here.labels(number)
        open_again(here, number, pull)
        assert cycle(here) == [("IN_REVIEW", number, pull)]
    here.person().review(pull, "approved")
    assert cycle(here) == [("COMPLETED", number, pull)]
    assert stands(here, number) == ("closed", "completed")


@pytest.mark.long  # a variation; the steps have pure tests
def test_an_issue_that_is_opened_again_without_its_pull_is_nobodys(here):
    number, pull = worked(here)
    here.person().close_pull(pull)
    cycle(here)
    open_again(here, number, pull)
    here.person().close_pull(pull)
    assert cycle(here) == [] and stands(here, number)[0] == "open"


@pytest.mark.long  # a variation; the steps have pure tests
def test_a_parked_mission_whose_issue_ralph_work_takes_goes_on_with_its_pull(here):
    assert here.local is not None
    number = here.person().create_issue("Add a tide table", "It should show tides.")
    here.person().label(number, ("ralph:mission",))
    for _ in range(4):
        cycle(here)
    here.local.now += timedelta(days=15)
    assert cycle(here) == [("PARKED", number, None)]
    here.person().label(number, ("ralph-ready",))
    report = here.work(Scripted())
    assert report.record is not None
    assert cycle(here) == [("IN_REVIEW", number, report.record.pull)]
    here.person().review(report.record.pull, "approved")
    assert cycle(here) == [("COMPLETED", number, report.record.pull)]


@pytest.mark.long  # a variation; the steps have pure tests
def test_an_issue_that_ralph_work_is_at_is_no_mission_by_its_label_until_then(here):
    seen = []

    def labelled(job):
        here.person().label(job.number, ("ralph:mission",))
        seen.append(cycle(here))
        return made()(job)

    number = here.ready()
    report = here.work(Scripted([labelled]))
    assert report.record is not None
    assert (seen, cycle(here)) == ([[]], [("IN_REVIEW", number, report.record.pull)])


@pytest.mark.long  # a variation; the steps have pure tests
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


@pytest.mark.long  # a variation; the steps have pure tests
def test_without_an_agent_for_missions_a_review_that_asks_for_changes_asks_a_person(here):
    number, pull = worked(here)
    here.person().review(pull, "changes_requested", "call it TIDES")
    cycle(here)
    assert cycle(here) == [("ESCALATED", number, pull)]
    assert "ralph:escalated" in here.labels(number)


@pytest.mark.long  # a variation; the steps have pure tests
def test_pulls_of_ralph_work_are_never_refused_a_slot_and_leave_none_for_what_nobody_asked_for(tmp_path):
    with FORGES["local"](tmp_path, files=TYPOS) as here:
        pairs = [worked(here) for _ in range(4)]
        assert cycle(here) == [("IN_REVIEW", number, pull) for number, pull in pairs]
        assert [mission.id for mission in here.state().missions] == [1, 2, 3, 4]
        for _, pull in pairs[:2]:
            here.person().merge(pull)
        assert sorted(status for status, *_ in cycle(here)) == ["COMPLETED"] * 2 + ["IN_REVIEW"] * 2
        assert [status for status, *_ in cycle(here)] == ["IN_REVIEW"] * 3


@pytest.mark.long  # a variation; the steps have pure tests
def test_the_label_of_missions_on_an_issue_whose_pull_is_open_makes_no_second_one(here):
    number, pull = worked(here)
    here.person().label(number, ("ralph:mission",))
    assert cycle(here) == [("IN_REVIEW", number, pull)]
    here.person().unlabel(number, ("ralph:mission",))
    assert cycle(here) == [("IN_REVIEW", number, pull)]


@pytest.mark.long  # a variation; the steps have pure tests
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


@pytest.mark.long  # a variation; the steps have pure tests
def test_a_pull_of_an_earlier_version_which_says_nothing_of_it_is_left_to_people(here):
    number, pull = worked(here)
    path = forge_file(here, "pulls", pull)
    told = path.read_text()
    facts = work_facts(number)
    key = told.partition("<!-- ralph:v1 key=")[2][:16]
    assert marker(key, **facts) in told
    path.write_text(told.replace(marker(key, **facts), marker(key)))
    here.person().review(pull, "approved")
    assert cycle(here) == [] and here.house().forge.pull(pull).state == "open"


@pytest.mark.attack(17)
def test_a_pull_of_somebody_else_in_the_same_words_is_nobodys_mission(here):
    _, pull = worked(here)
    path = forge_file(here, "pulls", pull)
    path.write_text(re.sub("author: .*", "author: {id: 77, login: mallory}", path.read_text(), count=1))
    here.person().review(pull, "approved")
    assert cycle(here) == [] and here.house().forge.pull(pull).state == "open"


@pytest.mark.long  # a variation; the steps have pure tests
@pytest.mark.attack(17)
def test_a_pull_whose_last_line_was_made_to_say_more_is_nobodys_mission_and_nothing_is_told_of_it_again_and_again(here):
    number, pull = worked(here)
    path, said = forge_file(here, "pulls", pull), f"kind=human issue={number} "
    assert said in path.read_text()
    path.write_text(path.read_text().replace(said, f"{said}finding={'0' * 16} "))
    here.person().review(pull, "approved")
    assert [cycle(here) for _ in range(2)] == [[], []] and here.house().forge.pull(pull).state == "open"
