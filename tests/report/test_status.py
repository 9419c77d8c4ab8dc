"""Status: the same keys always, and lines that say what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from ralph_mission.mission.model import Limits, Status
from ralph_mission.report.status import facts, lines
from tests.report.samples import MEMORY, NOON, RECALLED, STATE, mission


def test_a_repository_without_memory_has_the_same_keys() -> None:
    assert facts(None, Limits(), NOON).keys() == facts(RECALLED, Limits(), NOON).keys()


def test_facts_are_json() -> None:
    known = facts(RECALLED, Limits(), NOON)
    assert json.loads(json.dumps(known)) == known


def test_due_follows_the_clock() -> None:
    assert facts(RECALLED, Limits(), NOON)["due"] is False
    assert facts(RECALLED, Limits(), NOON + timedelta(hours=1))["due"] is True


def test_a_paused_repository_is_never_due_and_says_so() -> None:
    paused = replace(RECALLED, memory=replace(MEMORY, header=replace(MEMORY.header, paused=True)))
    known = facts(paused, Limits(), NOON + timedelta(days=1))
    assert known["due"] is False
    assert "PAUSED (ralph resume)" in "\n".join(lines(known))


def test_a_parked_mission_takes_no_slot() -> None:
    state = replace(STATE, missions=(*STATE.missions, mission(id=8, status=Status.PARKED)))
    assert facts(replace(RECALLED, state=state), Limits(), NOON)["slots"] == {"used": 1, "total": 3}


def test_yesterdays_money_is_not_todays() -> None:
    assert facts(RECALLED, Limits(), NOON)["spend"]["usd_today"] == 0.25
    assert facts(RECALLED, Limits(), NOON + timedelta(days=1))["spend"]["usd_today"] == 0.0


def test_lines_name_the_mission_its_next_step_and_the_unknown_effect() -> None:
    text = "\n".join(lines(facts(RECALLED, Limits(), NOON, ["say yes: ralph pr approve 5"])))
    for expected in (
        "waiting for you\n  say yes: ralph pr approve 5",
        "#7 IN_REVIEW, 2 days old: Fix two misspellings",
        "ralph pr approve 5",
        "ralph journal resolve e4 --sent|--not-sent",
        "42 s late",
    ):
        assert expected in text


def test_a_title_cannot_paint_the_terminal() -> None:
    state = replace(STATE, missions=(mission(title="\x1b[2Jgone", next_step="\x1b[31m"),))
    assert "\x1b" not in "\n".join(lines(facts(replace(RECALLED, state=state), Limits(), NOON)))
