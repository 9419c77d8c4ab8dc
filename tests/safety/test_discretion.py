"""Nothing secret stays in a value, wherever in it that stands; all else of it is the same."""

from __future__ import annotations

import pytest

from ralph_mission.loop.model import Event, HatOutput, Issue
from ralph_mission.mission.model import Status
from ralph_mission.safety.discretion import discreet, texts, untold

SECRET = "Zq9x" + "Rt2Lm7ZpW4vKd8NsB3yHc6Tj"


@pytest.mark.attack(33)
def test_no_text_of_a_record_keeps_it_however_deep_it_lies() -> None:
    issue = Issue(message=f"it says {SECRET}")
    event = Event("review.verdict", f"see {SECRET[::-1]} there", issues=(issue,))
    kept = discreet(HatOutput("reviewer", 3, event, f"I found {SECRET}.", calls=(f"Bash echo {SECRET}",)), (SECRET,))
    assert SECRET not in str(kept) and SECRET[::-1] not in str(kept)
    assert (kept.hat, kept.iteration, kept.event and kept.event.topic) == ("reviewer", 3, "review.verdict")


def test_what_holds_nothing_is_the_same() -> None:
    record = HatOutput("builder", 1, Event("build.done", "done"), "It is there.")
    assert discreet(record, (SECRET,)) == record
    assert untold(record, (SECRET,)) is record


@pytest.mark.attack(33)
@pytest.mark.parametrize("form", [SECRET, SECRET[::-1], SECRET.encode().hex(), " ".join(SECRET), SECRET.upper()])
def test_a_known_value_goes_from_every_kind_of_container(form: str) -> None:
    value = ({"a": [f"one {form}", 2]}, frozenset({f"two {form}"}), Event("x", f"3 {form}"), Status.PLANNED, b"4")
    kept = untold(value, (SECRET,))
    assert not any(form in text for text in texts(kept))
    assert kept[0]["a"][1] == 2 and kept[3] is Status.PLANNED and kept[4] == b"4"
    assert [type(one) for one in kept] == [type(one) for one in value]


@pytest.mark.attack(33)
@pytest.mark.parametrize("before", ["a <!-- b", "a <b", "\x1b]8;;", "`", "[a](", "A" * 20])
@pytest.mark.parametrize("form", ["<br>".join(SECRET), "\n".join(SECRET), SECRET.encode().hex()])
def test_nothing_that_another_text_opens_hides_it(before: str, form: str) -> None:
    kept = untold((before, form, "--> end > )"), (SECRET,))
    assert kept[0] == before and form not in kept[1]


def test_a_text_that_stood_before_stays_as_it_was() -> None:
    old, new = f"an old {SECRET}", f"a new {SECRET}"
    assert untold((old, new), (SECRET,), {old}) == (old, "a new [redacted: known-value]")
