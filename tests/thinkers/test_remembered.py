from __future__ import annotations

import pytest

from ralph_mission.thinkers.answer import ModelAnswer
from ralph_mission.thinkers.remembered import ROOM, Remembered, identity
from tests.thinkers.asked import thing


def test_another_basis_or_a_finding_that_is_new_is_asked_about_anew() -> None:
    kept = Remembered(basis="one", asked=(identity(thing("x")),))
    assert kept.covers("one", [thing("x")])
    assert not kept.covers("another", [thing("x")]) and not kept.covers("one", [thing("x"), thing("y")])


@pytest.mark.attack(15)
def test_what_is_kept_has_so_much_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tuple(f"{number:012}" for number in range(200))
    monkeypatch.setattr("ralph_mission.thinkers.remembered.ROOM", 100)
    assert Remembered(asked=asked, answer=ModelAnswer(ranking=())).written() == "" and ROOM > 100
