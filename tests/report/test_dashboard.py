"""The dashboard: one page, a function of memory, safe whatever a title says."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from ralph_mission.mission.ledger import OpenState
from ralph_mission.mission.memory import Memory
from ralph_mission.mission.model import Status
from ralph_mission.report.dashboard import dashboard
from tests.report.samples import MEMORY, STATE, mission


def test_every_part_is_there() -> None:
    page = dashboard(MEMORY, STATE, "slackwater")
    for expected in (
        "# Ralph looks after slackwater", "## Missions (1 of 3 slots)", "| IN_REVIEW | #4, #5 | 2 d |",
        "## Waiting for you", "review the change", "ralph journal resolve e4", "## Done", "small fixes are welcome",
        "| spelling | 3 | 1 | 67% |", "spelling: 3 of 4 accepted", "$0.25",
        "started 42 s after it was due", "```mermaid",
    ):  # fmt: skip
        assert expected in page


def test_empty_memory_makes_a_page() -> None:
    page = dashboard(Memory(), OpenState(), "new")
    assert "No cycle yet." in page
    assert "mermaid" not in page


def test_a_paused_repository_says_so() -> None:
    paused = replace(MEMORY, header=replace(MEMORY.header, paused=True))
    assert "**Paused.**" in dashboard(paused, STATE, "x")


@given(st.text(max_size=120))
@example("a | b \\| c")
def test_a_title_stays_within_its_row(title: str) -> None:
    plain = dashboard(MEMORY, replace(STATE, missions=(mission(title="t"),)), "x")
    page = dashboard(MEMORY, replace(STATE, missions=(mission(title=title, next_step=title),)), "x")
    assert page.count("\n") == plain.count("\n")
    row = next(line for line in page.splitlines() if line.startswith("| 7 |"))
    assert row.count("|") == 7


@given(st.text(max_size=120))
def test_a_title_cannot_leave_the_diagram(title: str) -> None:
    page = dashboard(MEMORY, replace(STATE, missions=(mission(title=f"{title}```:;%%{{init}}#"),)), "x")
    bar = next(line for line in page.splitlines() if " :active, " in line)
    name = bar.partition(" :active, ")[0]
    assert not set(name) & set('`:;%{}#<>"')


def test_a_proposal_waits_for_a_person_once_it_is_made() -> None:
    made = mission(status=Status.DISCOVERED, proposal_hash="ab12cd34")
    assert "approve or reject the proposal" in dashboard(MEMORY, OpenState(missions=(made,)), "x")
    assert "approve or reject" not in dashboard(MEMORY, OpenState(missions=(replace(made, proposal_hash=""),)), "x")


def test_a_planned_mission_that_nobody_here_can_carry_out_waits_for_a_person() -> None:
    page = dashboard(MEMORY, OpenState(missions=(mission(status=Status.PLANNED, pull=0),)), "x")
    assert "#4 Fix two misspellings in README.md: carry it out, or decide otherwise" in page
