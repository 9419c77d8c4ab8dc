"""Memory that is gone is no new beginning where the forge holds our work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.mission.gathering import check_anchor
from ralph_mission.trouble import Trouble


def ports(our_work: bool) -> Any:
    return SimpleNamespace(forge=SimpleNamespace(anchor=lambda: None, has_our_work=lambda: our_work))


def test_work_of_ours_without_any_memory_stops_the_cycle():
    with pytest.raises(Trouble, match="there is no memory") as caught:
        check_anchor(ports(our_work=True), None)
    assert "ralph memory recover" in caught.value.next_step


def test_a_repository_that_never_saw_us_is_a_new_beginning():
    check_anchor(ports(our_work=False), None)
