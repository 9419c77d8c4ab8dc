"""The schema of an answer: an order of what was named, words, and not one thing more."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ralph_mission.mission.analysis import WRITABLE
from ralph_mission.thinkers.answer import Heading, wrong
from tests.thinkers.asked import LEAST, SECOND, WORST, answer, ranked, thing

KINDS = {one.fingerprint: one.kind for one in (WORST, SECOND, LEAST)}
TEXT = {"heading": "Risks", "text": "It may fall over."}


def test_the_headings_are_those_of_an_analysis():
    assert Heading.__args__ == WRITABLE


@pytest.mark.parametrize(
    "line",
    [
        ranked(WORST, action="merge"),
        ranked(WORST, tier="low"),
        ranked(WORST, why="w" * 401),
        ranked(WORST, why=None),
        ranked(WORST, ask="perhaps"),
        ranked(WORST, sections=[TEXT | {"heading": "What a yes does"}]),
        ranked(WORST, sections=[TEXT | {"text": "t" * 801}]),
        ranked(WORST, sections=[TEXT] * 5),
        {"fingerprint": WORST.fingerprint},
        "worst",
    ],
)
def test_nothing_else_can_be_said(line):
    with pytest.raises(ValidationError):
        answer(line)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([ranked(thing("invented"))], "findings that there are not"),
        ([ranked(WORST), ranked(WORST)], "twice"),
        ([ranked(WORST, kind="spelling")], "another kind"),
        ([ranked(one, sections=[TEXT]) for one in (WORST, SECOND, LEAST)], ""),
        ([], ""),
    ],
)
def test_an_answer_is_about_what_was_asked(lines, said):
    found = wrong(answer(*lines), KINDS)
    assert said in found
    assert bool(found) == bool(said)


def test_sections_are_written_for_few():
    many = [thing(f"n{number}") for number in range(4)]
    kinds = {one.fingerprint: one.kind for one in many}
    assert "more than 3" in wrong(answer(*(ranked(one, sections=[TEXT]) for one in many)), kinds)
