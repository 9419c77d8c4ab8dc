"""The schema of an answer: an order of what was named, words, and not one thing more.

What a model took is kept beside the repository, by no link, and what somebody planted there is not believed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from ralph_mission.adapters.thinkers import llm
from ralph_mission.adapters.thinkers.llm import ROOM, Heading, ModelAnswer, Remembered, identity, wrong
from ralph_mission.mission.model.memory import Header
from ralph_mission.mission.proposals.analysis import WRITABLE
from tests.adapters.thinkers.asked import LEAST, SECOND, WORST, answer, ranked, thing

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
        ranked(WORST, sections=[TEXT | {"heading": "What approval does"}]),
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


HERE = replace(Header(), lineage="kelp", cycle=3)
PAID = llm.KeptReply(lineage="kelp", cycle=3, paid="3:think", usd=0.25, cursor="c")


def test_what_was_paid_is_known_after_a_death(tmp_path: Path) -> None:
    llm.save(tmp_path / ".ralph", PAID)
    assert llm.load(tmp_path / ".ralph", HERE, ()) == PAID
    assert llm.load(tmp_path / ".ralph", HERE, ("3:think",)).usd == 0


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/cache", ".ralph/cache/thinker.json"])
def test_nothing_is_read_or_written_behind_a_link(tmp_path: Path, link: str) -> None:
    folder = tmp_path / ".ralph" / "cache"
    llm.save(folder, PAID)
    (tmp_path / link).rename(tmp_path / "theirs")
    (tmp_path / link).symlink_to(tmp_path / "theirs")
    assert llm.load(folder, HERE, ()).usd == 0
    before = {path: path.stat().st_mtime_ns for path in [*tmp_path.glob("theirs"), *tmp_path.glob("theirs/**/*")]}
    llm.save(folder, PAID.model_copy(update={"usd": 1.0}))
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    "planted", ["{", pytest.param("[" * 200_000, id="nested"), '{"usd": NaN}', "[]"],
)  # fmt: skip  # one list
def test_what_cannot_be_read_is_as_good_as_absent(tmp_path: Path, planted: str) -> None:
    (tmp_path / llm.FILE).write_text(planted)
    assert llm.load(tmp_path, HERE, ()) == llm.KeptReply(lineage="kelp", cycle=3)


def test_another_basis_or_a_finding_that_is_new_is_asked_about_anew() -> None:
    kept = Remembered(basis="one", asked=(identity(thing("x")),))
    assert kept.covers("one", [thing("x")])
    assert not kept.covers("another", [thing("x")]) and not kept.covers("one", [thing("x"), thing("y")])


@pytest.mark.attack(15)
def test_what_is_kept_has_so_much_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tuple(f"{number:012}" for number in range(200))
    monkeypatch.setattr("ralph_mission.adapters.thinkers.llm.ROOM", 100)
    assert Remembered(asked=asked, answer=ModelAnswer(ranking=())).written() == "" and ROOM > 100
