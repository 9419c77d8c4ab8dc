"""A list or a standing remark that people took away is never reported as written on: a new one is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ralph_mission.adapters.forges.local.documents import parse, render
from ralph_mission.mission.model.ledger import MonitorRecord, monitor_key
from tests.integration.forging import (
    ASKING,
    LISTING,
    TODO,
    forge_memory,
    issue,
    opened,
    place,
    push_to_main,
    state_of,
)
from tests.integration.hub import Hub
from tests.integration.test_hub_claimed import edit
from tests.integration.world import statuses

pytestmark = pytest.mark.long  # takes ten seconds or more

__all__ = ["place"]
ONE, TWO, THREE = ({f"{name}.py": f"# TODO: {name}\n"} for name in ("one", "two", "three"))


def lists(harbour) -> list[int]:
    return [each.number for each in opened(harbour) if each.title.startswith("Watching")]


def strip(harbour, number) -> None:
    edit(harbour, number, lambda body: "Shortened.")


def listing(place):
    """A world with one list."""
    harbour = place(TODO, LISTING)
    harbour.cycle()
    (number,) = lists(harbour)
    return harbour, number


def test_a_list_without_its_marker_gets_a_successor_as_often_as_it_is_lost(place):
    harbour, first = listing(place)
    strip(harbour, first)
    push_to_main(harbour, ONE)
    harbour.cycle()
    _, second = lists(harbour)
    assert "one.py" in issue(harbour, second).body
    strip(harbour, second)
    push_to_main(harbour, TWO)
    harbour.cycle()
    *_, third = lists(harbour)
    assert third not in (first, second)
    push_to_main(harbour, THREE)
    harbour.cycle()
    assert lists(harbour) == [first, second, third]
    assert all(f"{word}.py" in issue(harbour, third).body for word in ("one", "two", "three"))
    assert {issue(harbour, number).body.strip() for number in (first, second)} == {"Shortened."}


def test_a_lost_list_is_not_opened_again_while_nothing_new_is_seen(place):
    harbour, first = listing(place)
    strip(harbour, first)
    for _ in range(2):
        harbour.cycle()
    assert lists(harbour) == [first]


def test_closing_the_successor_silences_its_kind(place):
    harbour, first = listing(place)
    strip(harbour, first)
    push_to_main(harbour, ONE)
    harbour.cycle()
    harbour.person().close_issue(lists(harbour)[-1])
    push_to_main(harbour, TWO)
    harbour.cycle()
    assert lists(harbour) == [first]
    assert state_of(harbour).silenced == ("todo",)


@pytest.mark.parametrize("which", ["first", "successor"])
def test_the_list_that_was_opened_last_is_written_on_when_memory_names_another_issue(place, which):
    harbour, number = listing(place)
    if which == "successor":
        strip(harbour, number)
        push_to_main(harbour, ONE)
        harbour.cycle()
        _, number = lists(harbour)
    theirs = harbour.person().create_issue("The tables are late", "again")
    key = monitor_key("todo")
    forge_memory(harbour, lambda state: (state, (MonitorRecord(key, "todo", theirs, (), 0),)))
    push_to_main(harbour, TWO)
    harbour.cycle()
    assert lists(harbour)[-1] == number
    assert "two.py" in issue(harbour, number).body


# --- remarks --------------------------------------------------------------------------


def remarks(harbour, number) -> list[int]:
    return [remark.id for remark in issue(harbour, number).remarks if "ralph:v1" in remark.body]


def delete(harbour, number, remark) -> None:
    if isinstance(harbour, Hub):
        harbour.person().delete_comment(remark)
        return
    file = harbour.repo / ".ralph" / "forge" / "issues" / f"{number:04d}.md"
    thread = parse(file.read_text())
    file.write_text(render(replace(thread, remarks=tuple(r for r in thread.remarks if r.id != remark))))


def remarked(place):
    """A question that was parked, with our standing remark."""
    harbour = place({"README.md": "Tides are seperate from waves.\n"}, ASKING)
    harbour.cycle()
    (mission,) = state_of(harbour).missions
    assert statuses(harbour.cycle(after=timedelta(days=40))[0]) == ["PARKED"]
    (remark,) = remarks(harbour, mission.issue)
    return harbour, mission.issue, remark


def refuse(harbour, number) -> None:
    harbour.person().label(number, ("ralph:rejected",))
    assert statuses(harbour.cycle()[0]) == ["REJECTED"]


def revive(harbour, number) -> None:
    harbour.person().unlabel(number, ("ralph:mission",))
    harbour.person().label(number, ("ralph:mission",))


def test_a_deleted_remark_gets_a_successor_as_often_as_it_is_lost(place):
    harbour, number, first = remarked(place)
    delete(harbour, number, first)
    revive(harbour, number)
    harbour.cycle()
    (second,) = remarks(harbour, number)
    assert "brought back" in text(harbour, number)
    delete(harbour, number, second)
    refuse(harbour, number)
    assert "said no" in text(harbour, number)


def test_a_successor_is_edited_like_the_first(place):
    harbour, number, first = remarked(place)
    delete(harbour, number, first)
    revive(harbour, number)
    harbour.cycle()
    (second,) = remarks(harbour, number)
    refuse(harbour, number)
    assert remarks(harbour, number) == [second]
    assert "said no" in text(harbour, number)


def test_the_remark_that_stands_there_is_edited_when_memory_names_none(place):
    harbour, number, first = remarked(place)
    forge_memory(harbour, lambda state: (replace(state, missions=(replace(state.missions[0], comment=0),)), ()))
    revive(harbour, number)
    harbour.cycle()
    assert remarks(harbour, number) == [first]
    assert "brought back" in text(harbour, number)


def text(harbour, number) -> str:
    (body,) = (remark.body for remark in issue(harbour, number).remarks if "ralph:v1" in remark.body)
    return body
