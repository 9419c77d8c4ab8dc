"""The page of a repository: what waits, missions as the journal saw them, what was learned; escaped and small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ralph_mission.adapters.report import to_document
from ralph_mission.adapters.report.report_page import page
from ralph_mission.adapters.report.repository_report import RepositoryReport, collect_report
from ralph_mission.mission.lifecycle.waiting import find_waiting
from ralph_mission.mission.model.ledger import HeldFix, OpenState, RedBase
from ralph_mission.mission.model.mission import Limits, Status, Usage
from tests.adapters.report.samples import MEMORY, NOON, RECALLED, REPORT, STATE, mission


def journal(cycle: int, status: Status, **changes: Any) -> Mapping[str, Any]:
    """The document of one cycle, an hour after the one before."""
    lines = tuple(replace(line, status=status) for line in REPORT.missions)
    start = NOON - timedelta(hours=10 - cycle)
    told = replace(
        REPORT, cycle=cycle, started_at=start, finished_at=start + timedelta(seconds=4), missions=lines, **changes
    )
    return {"report": to_document(told), "telling": {"late": 60}}


def collect(*told: Mapping[str, Any], **changes: Any) -> RepositoryReport:
    missions = changes.pop("missions", STATE.missions)
    past = replace(RECALLED, state=replace(STATE, missions=missions))
    asks = find_waiting(missions, lambda action, number: f"{action} {number}")
    return collect_report("harbour", past, told, Limits(), NOON, asks, **changes)


def test_a_mission_is_told_by_the_cycles_that_saw_it_change() -> None:
    told = [journal(n, Status.FIXING if n in (3, 4) else Status.IN_REVIEW) for n in (1, 2, 3, 4, 5)]
    (story,) = collect(*told).missions
    assert [(mark.cycle, mark.status) for mark in story.marks] == [
        (1, Status.IN_REVIEW),
        (3, Status.FIXING),
        (5, Status.IN_REVIEW),
    ]


def test_a_mission_that_ended_is_told_with_its_outcome() -> None:
    title = REPORT.missions[0].title
    past = replace(MEMORY, completed=(replace(MEMORY.completed[0], title=title),))
    recalled = replace(RECALLED, memory=past, state=replace(STATE, missions=()))
    report = collect_report("harbour", recalled, [journal(1, Status.COMPLETED)], Limits(), NOON)
    assert [(one.title, one.outcome) for one in report.ended] == [(title, "merged")]
    assert "merged" in page(report)


def test_an_answer_on_the_forge_stands_on_the_page() -> None:
    report = collect(answers={7: "approved; the next cycle merges it"})
    assert "approved; the next cycle merges it" in page(report)


def test_the_page_says_what_to_type_and_what_was_learned() -> None:
    text = page(collect(journal(1, Status.IN_REVIEW)))
    for expected in ("show_pull</span>", "3 accepted, 1 rejected", "tsc is missing", "$0.25 of $10.00", "observer"):
        assert expected in text


def test_red_checks_of_the_base_wait_and_nothing_needs_a_person_only_where_that_is_true() -> None:
    def rendered(state: OpenState) -> str:
        return page(collect_report("harbour", replace(RECALLED, state=state), (), Limits(), NOON))

    assert "Nothing needs you." in rendered(OpenState())
    red = rendered(OpenState(red=RedBase("0" * 40, "main", ("make test",))))
    assert "Your check <code>make test</code> is red on main." in red and "<dt>Waiting for you</dt><dd>1</dd>" in red
    held = rendered(OpenState(held=(HeldFix("k", "Fix it", "make test failed", ran=True),)))
    assert "Nothing needs you." not in red + held and "Waiting for you" not in held and "Held back" in held


def test_what_models_cost_is_drawn_by_day() -> None:
    told = [journal(n, Status.IN_REVIEW, usage=Usage(cost_usd=0.5)) for n in (1, 2)]
    assert "Dollars spent on models a day, from 2026-05-04 to 2026-05-04: $1.00 in all" in page(collect(*told))


def test_titles_never_become_mark_up_and_the_page_stays_small() -> None:
    evil = mission(title='<img src=x onerror="alert(1)">' * 9)
    missions = tuple(replace(evil, id=number) for number in range(1, 30))
    text = page(collect(*(journal(n, Status.IN_REVIEW) for n in range(300)), missions=missions))
    assert "<img" not in text and len(text.encode()) < 200_000


def test_links_lead_to_the_forge_where_it_has_pages() -> None:
    text = page(collect(find_url="https://example.org/{}".format))
    assert 'href="https://example.org/5"' in text


def test_the_report_is_json_too() -> None:
    document = to_document(collect(journal(1, Status.IN_REVIEW)))
    assert json.loads(json.dumps(document)) == document
    assert document["missions"][0]["marks"][0]["status"] == "IN_REVIEW"
