"""What one guard of publishing alone holds back."""

from __future__ import annotations

import pytest

from ralph_mission.mission.model import Finding, Signal
from ralph_mission.publishers import facts, telegram
from tests.fakes.networks import TelegramServer
from tests.publishers.test_networks import CHART, PNG, post


@pytest.mark.attack(35)
def test_a_fact_of_an_odd_name_is_none() -> None:
    told = (("a b", 1), ("tvl\n", 2), ("tvl", 3))
    offered = facts.offered(Finding("f" * 16, Signal("database", "change", "a title", ("essence",), "o1", facts=told)))
    assert "tvl" in offered and not {"a b", "tvl\n"} & {*offered}


PRIVATE = "mara@example.org lives at 7 Quay Street"


@pytest.mark.attack(35)
@pytest.mark.parametrize("observer", [*sorted(facts.SOURCES), "web", "code", "commands"])
def test_of_what_a_finding_says_in_words_a_template_knows_nothing(observer: str) -> None:
    told = Signal(
        observer, "change", PRIVATE, (PRIVATE,), "o1", detail=PRIVATE, path=PRIVATE, author=PRIVATE,
        facts=(("value", 3),),
    )  # fmt: skip  # one call
    offered = facts.offered(Finding("f" * 16, told))
    assert "Quay" not in repr(offered)
    assert bool(offered) is (observer in facts.SOURCES)


@pytest.mark.attack(36)
def test_a_caption_is_escaped_like_any_text() -> None:
    with TelegramServer() as server:
        channel = telegram.build(lambda _: PNG, server.environment)
        channel.publish("aa11bb22", post("telegram", "a <b>bold</b> & more", chart=CHART))
        assert [(one.text, one.photo) for one in server.delivered] == [("a <b>bold</b> & more", PNG)]
