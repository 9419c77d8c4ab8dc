from __future__ import annotations

import pytest

from ralph_mission.mission.model import Finding, Signal
from ralph_mission.publishers import facts

PRIVATE = "mara@example.org lives at 7 Quay Street"


@pytest.mark.attack(35)
def test_a_fact_of_an_odd_name_is_none() -> None:
    told = (("a b", 1), ("tvl\n", 2), ("tvl", 3))
    offered = facts.template_facts(
        Finding("f" * 16, Signal("database", "change", "a title", ("essence",), "o1", facts=told))
    )
    assert "tvl" in offered and not {"a b", "tvl\n"} & {*offered}


@pytest.mark.attack(35)
@pytest.mark.parametrize("observer", [*sorted(facts.SOURCES), "web", "code", "commands"])
def test_of_what_a_finding_says_in_words_a_template_knows_nothing(observer: str) -> None:
    told = Signal(
        observer, "change", PRIVATE, (PRIVATE,), "o1", detail=PRIVATE, path=PRIVATE, author=PRIVATE,
        facts=(("value", 3),),
    )  # fmt: skip  # one call
    offered = facts.template_facts(Finding("f" * 16, told))
    assert "Quay" not in repr(offered)
    assert bool(offered) is (observer in facts.SOURCES)
