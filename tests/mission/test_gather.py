"""Memory that is gone is no new beginning where the forge holds our work, nor is a forge that is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.errors import Missing, UserError
from ralph_mission.mission.gather import check_anchor, read_ticks
from ralph_mission.mission.model.forge import Tick
from ralph_mission.mission.model.ledger import MemorySnapshot, OpenState
from ralph_mission.mission.model.memory import CompletedNote, Header, Memory
from ralph_mission.mission.model.mission import Mission
from tests.mission.build import MARA, NOW, OUTSIDER, mission


def ports(our_work: bool, issues: tuple[int, ...] = (), proof: bool = True) -> Any:
    def issue(number: int) -> int:
        if number not in issues:
            raise Missing(f"there is no issue #{number}", "look")
        return number

    forge = SimpleNamespace(anchor=lambda: None, has_our_work=lambda: our_work, issue=issue, lists_at_once=proof)
    return SimpleNamespace(forge=forge)


def memory(*missions: Mission, completed: bool = False) -> MemorySnapshot:
    notes = (CompletedNote("2026-05-04", "a mission", 1, "merged"),) if completed else ()
    return MemorySnapshot(
        Memory(Header(lineage="a", serial=4), completed=notes), OpenState(missions=missions), "0" * 40
    )


def test_work_of_ours_without_any_memory_stops_the_cycle():
    with pytest.raises(UserError, match="there is no memory") as caught:
        check_anchor(ports(our_work=True).forge, None)
    assert "ralph memory recover" in caught.value.next_step


def test_a_repository_that_never_saw_us_is_a_new_beginning():
    check_anchor(ports(our_work=False).forge, None)


@pytest.mark.parametrize("past", [memory(mission(issue=4)), memory(completed=True)], ids=["missions", "completed"])
def test_a_forge_that_has_nothing_of_what_memory_knows_stops_the_cycle(past):
    with pytest.raises(UserError, match="the forge holds none of them") as caught:
        check_anchor(ports(our_work=False).forge, past)
    assert "ralph memory recover" in caught.value.next_step
    check_anchor(ports(our_work=True).forge, past)


def test_where_a_list_is_no_proof_or_an_issue_is_there_a_cycle_goes_on():
    check_anchor(ports(our_work=False, proof=False).forge, memory(mission(issue=4), completed=True))
    check_anchor(ports(our_work=False, issues=(4,)).forge, memory(mission(issue=4), mission(id=2, issue=5)))
    check_anchor(ports(our_work=False).forge, memory(mission(issue=0, pull=0)))


def heard(tick: Tick, owners: tuple[str, ...] = (), obeyed: int = 0) -> tuple[list[str], list[str]]:
    """What it orders, and why it counts for nothing."""
    forge = SimpleNamespace(ticks=lambda: (tick,), may_approve=lambda actor: actor == MARA)
    world: Any = SimpleNamespace(forge=forge)
    settings: Any = SimpleNamespace(owners=owners)
    told = read_ticks(world, settings, OpenState(obeyed=obeyed))
    return list(told["orders"]), [why for _, why in told["ignored"]]


def test_a_tick_about_ralph_of_who_may_decide_is_a_wish_once():
    tick = Tick("pause 0", MARA, NOW)
    assert heard(tick) == (["pause 0"], []) and heard(tick, obeyed=1) == ([], [])


@pytest.mark.parametrize("box", ["pause 0", "reject 3"])
@pytest.mark.parametrize(
    ("who", "owners", "why"),
    [
        (OUTSIDER, (), f"ticked by {OUTSIDER.login}, but only people with write access decide here"),
        (MARA, ("jonas",), "ticked by mara, but only owners decide here"),
        (None, (), "it is unclear who ticked this: untick it and tick it again"),
    ],
)
def test_a_tick_of_who_may_not_decide_is_no_wish_and_is_told_why(box, who, owners, why):
    assert heard(Tick(box, who, NOW), owners) == ([], [why])
