"""The page of a job in which an agent worked or reviewed, from the document that the command prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.report.agent_summary import agent_outputs, review_page, work_page
from ralph_mission.report.outputs import tell_agent
from ralph_mission.report.step_summary import Places

HERE = "https://github.example/mara/harbour"
PLACES = Places(repository=HERE)
WORKED: dict[str, Any] = {
    "outcome": "done", "code": 0, "issue": 7, "title": "Add a table", "try": 1, "branch": "ralph/issue-7",
    "pull_request": 8, "reason": "", "run": "r", "sessions": 2, "seconds": 61.4, "cost_usd": 0.5, "skipped": [],
    "settled": [],
}  # fmt: skip  # one document
REVIEWED: dict[str, Any] = {
    "outcome": "posted", "code": 0, "pull_request": 8, "head": "c" * 40, "url": "", "reason": "", "sessions": 1,
    "points": [{"gravity": "major"}, {"gravity": "minor"}, {"gravity": "major"}], "seconds": 3.0, "cost_usd": 0.25,
}  # fmt: skip  # one document
HOSTILE = "x](https://evil.example) @mara closes #1\n::add-mask::harbour\n<img src=x> | `touch owned`"


def test_work_that_ended_in_a_pull_request() -> None:
    assert work_page(WORKED, PLACES).splitlines() == [
        f"## Ralph, issue [#7]({HERE}/issues/7): done",
        "",
        "Add a table",
        "",
        "### What came of it",
        "",
        f"- pull request [#8]({HERE}/pull/8)",
        "- 2 sessions in 61 s, $0.50",
    ]


def test_a_try_that_came_to_nothing_says_why_and_how_it_ended() -> None:
    page = work_page(
        WORKED | {"outcome": "waiting", "code": 2, "pull_request": None, "reason": "max-iterations"}, PLACES
    )
    assert "- max-iterations\n- exit code 2\n- 2 sessions" in page


def test_without_an_issue_it_says_what_is_not_taken_and_what_was_put_in_order() -> None:
    more = {"skipped": [{"issue": 3, "why": "it had its 2 tries"}], "settled": [{"issue": 2, "outcome": "failed"}]}
    idle = WORKED | {"outcome": "idle", "issue": None, "title": "", "pull_request": None, "sessions": 0} | more
    page = work_page(idle, Places())
    assert page.startswith("## Ralph, no issue: idle\n")
    assert "### Not taken\n\n- #3: it had its 2 tries" in page
    assert "### Left behind by a runner that died\n\n- #2: failed" in page


def test_a_review_says_how_much_was_found() -> None:
    page = review_page(REVIEWED, PLACES)
    assert page.startswith(f"## Ralph, review of [#8]({HERE}/pull/8): posted\n")
    assert "- 3 points (2 major, 1 minor); they stand in the review\n- 1 session in 3 s, $0.25" in page
    assert "- 0 points; they" in review_page(REVIEWED | {"points": []}, PLACES)
    assert "point" not in review_page(REVIEWED | {"points": None, "outcome": "reviewed"}, PLACES)


@pytest.mark.attack(40)
def test_what_strangers_wrote_is_words_and_no_more() -> None:
    for page in (
        work_page(WORKED | {"title": HOSTILE, "reason": HOSTILE}, PLACES),
        review_page(REVIEWED | {"reason": HOSTILE}, PLACES),
    ):
        assert "](https://evil.example)" not in page and "<img" not in page and "@mara" not in page
        assert not [line for line in page.splitlines() if line.lstrip().startswith(("::", "##["))]


def test_outputs_are_empty_where_there_is_nothing() -> None:
    assert agent_outputs(WORKED) == {"outcome": "done", "issue": "7", "pull-request": "8"}
    assert agent_outputs(WORKED | {"issue": None, "pull_request": None}) == {
        "outcome": "done",
        "issue": "",
        "pull-request": "",
    }
    assert agent_outputs(REVIEWED) == {"outcome": "posted", "issue": "", "pull-request": "8"}


def test_the_runner_gets_page_outputs_and_a_copy_of_the_page(tmp_path: Path) -> None:
    environ = {"GITHUB_STEP_SUMMARY": str(tmp_path / "page"), "GITHUB_OUTPUT": str(tmp_path / "out"),
               "RUNNER_TEMP": str(tmp_path)}  # fmt: skip  # one environment
    tell_agent(WORKED, environ, work_page)
    told = (tmp_path / "out").read_text()
    (copy,) = tmp_path.glob("ralph-summary-*.md")
    assert copy.read_text() == (tmp_path / "page").read_text() == work_page(WORKED, Places())
    assert "pull-request<<ralph-" in told and json.dumps(str(copy)).strip('"') in told


def test_outside_of_a_workflow_nothing_is_written(tmp_path: Path) -> None:
    tell_agent(WORKED, {"RUNNER_TEMP": str(tmp_path)}, work_page)
    assert list(tmp_path.iterdir()) == []
