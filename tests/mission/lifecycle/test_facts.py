"""What is asked of the forge about a mission: how far its issue was seen, by the forge's own clock."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.facts import facts_about
from ralph_mission.mission.model.ledger import OpenState
from tests.mission.build import BOT, DAY, MARA, NOW, OUTSIDER, issue, labelled, mission, patch, push, remark

LINES = {asked: ownership.announcement_line((push(patch()),), asked) for asked in (False, True)}


def ports(author: Any = OUTSIDER, **there: Any) -> Any:
    forge = SimpleNamespace(
        issue=lambda number: issue(author=author, **there),
        identity=lambda: BOT,
        may_approve=lambda one: one == MARA,
        usual_reason="",
    )
    return SimpleNamespace(forge=forge, progress=SimpleNamespace(note=lambda text: None), coder=None, seal=None)


@pytest.mark.parametrize(("by", "ours"), [(MARA, True), (OUTSIDER, False)], ids=["a mission's", "foreign"])
@pytest.mark.parametrize("said", [True, False], ids=["a remark", "a label"])
def test_an_issue_was_seen_until_the_newest_that_anybody_did_there(by: Any, ours: bool, said: bool) -> None:
    there = {"labels": frozenset({"ralph:mission"}), "events": (labelled("ralph:mission", by=by, at=NOW + DAY),)}
    there |= {"remarks": (remark("hm", at=NOW + 2 * DAY),)} if said else {}
    told = facts_about(
        ports(**there), SimpleNamespace(owners=()), mission(pull=0, kind="human", members=()), OpenState()
    )
    assert bool(told.foreign) is not ours
    assert told.seen_at == NOW + (2 if said else 1) * DAY


@pytest.mark.parametrize(
    ("author", "body", "told", "unasked"),
    [
        (BOT, LINES[False], "", True),
        (BOT, LINES[True], "", False),
        (BOT, "a question", LINES[False], False),
        (OUTSIDER, LINES[False], "", False),
    ],
    ids=["our fix", "our question", "an agent's change, told in a remark", "somebody else's words"],
)
def test_that_nobody_was_asked_about_a_mission_is_what_our_own_issue_says_of_it(
    author: Any, body: str, told: str, unasked: bool
) -> None:
    there = {"labels": frozenset({"ralph:mission"}), "events": (labelled("ralph:mission"),), "body": body}
    there |= {"remarks": (remark(told, by=BOT),)} if told else {}
    said = facts_about(ports(author, **there), SimpleNamespace(owners=()), mission(pull=0, members=()), OpenState())
    assert (said.foreign, said.unasked) == ("", unasked)


ASIDE = labelled("ralph:escalated", by=BOT, at=NOW + DAY)
NO_WISH = {
    "a stranger": (ASIDE, labelled("ralph:escalated", by=OUTSIDER, at=NOW + 2 * DAY, added=False)),
    "a yes to no text": (ASIDE, labelled("ralph:approved", at=NOW + 2 * DAY)),
    "before": (labelled("ralph:mission", at=NOW + DAY / 2), ASIDE),
    "no label": (labelled("ralph:mission", at=NOW + 2 * DAY),),
    "not ours": (replace(ASIDE, actor=OUTSIDER), labelled("ralph:escalated", at=NOW + 2 * DAY, added=False)),
    "aside again": (ASIDE, labelled("ralph:mission", at=NOW + 2 * DAY), replace(ASIDE, at=NOW + 3 * DAY)),
}


@pytest.mark.parametrize(
    ("events", "unasked"),
    [
        pytest.param((ASIDE, labelled("ralph:escalated", at=NOW + 2 * DAY, added=False)), False, id="label off"),
        pytest.param((ASIDE, labelled("ralph:mission", at=NOW + 2 * DAY)), False, id="wanted anew"),
        *(pytest.param(events, True, id=name, marks=pytest.mark.attack(12)) for name, events in NO_WISH.items()),
    ],
)
def test_a_fix_is_a_persons_wish_once_she_brought_it_back_after_our_label(events: Any, unasked: bool) -> None:
    there = {"labels": frozenset({"ralph:mission"}), "events": (labelled("ralph:mission"), *events)}
    owed = mission(pull=0, members=(), seen_at=NOW - DAY)  # memory may say of it what it likes
    said = facts_about(ports(BOT, body=LINES[False], **there), SimpleNamespace(owners=()), owed, OpenState())
    assert (said.foreign, said.unasked) == ("", unasked)
