"""What the runner of GitHub Actions is told, in the files it names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.mission.account import CycleSummary, MissionLine
from ralph_mission.mission.model import Status
from ralph_mission.report.outputs import outputs, places, tell_runner, tell_trouble
from tests.report.samples import REPORT


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The environment of a step."""
    return {
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "harbour/slackwater",
    }


def read(environ: dict[str, str]) -> dict[str, str]:
    """The outputs, as the runner reads them."""
    text = Path(environ["GITHUB_OUTPUT"]).read_text()
    found = re.findall(r"^([a-z-]+)<<(\S+)\n(.*?)\n\2$", text, re.MULTILINE | re.DOTALL)
    return {name: value for name, _, value in found}


def test_outputs_are_those_of_the_action(environ: dict[str, str]) -> None:
    tell_runner(REPORT, CycleSummary(), environ)
    told = read(environ)
    summary = Path(told.pop("summary-path"))
    assert told == {
        "cycle": "3",
        "urgency": "medium",
        "next-due-at": "2026-05-04T13:00:00Z",
        "missions-active": "1",
        "actions-taken": "1",
    }
    assert summary.read_text() == Path(environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.stat().st_mode & 0o077 == 0


@pytest.mark.attack(39)
def test_the_fence_is_another_one_each_time(environ: dict[str, str]) -> None:
    for _ in range(2):
        tell_runner(REPORT, CycleSummary(), environ)
    fences = set(re.findall(r"<<(ralph-[0-9a-f]{32})$", Path(environ["GITHUB_OUTPUT"]).read_text(), re.MULTILINE))
    assert len(fences) == 2


def test_what_earlier_steps_wrote_is_kept(environ: dict[str, str]) -> None:
    Path(environ["GITHUB_STEP_SUMMARY"]).write_text("before\n")
    tell_runner(REPORT, CycleSummary(), environ)
    assert Path(environ["GITHUB_STEP_SUMMARY"]).read_text().startswith("before\n## Ralph, cycle 3")


def test_outside_of_a_runner_nothing_is_written(tmp_path: Path) -> None:
    tell_runner(REPORT, CycleSummary(), {"RUNNER_TEMP": str(tmp_path)})
    tell_trouble({"who": "you", "what": "x", "next": "y"}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_staged_cycle_took_no_action() -> None:
    assert outputs(replace(REPORT, staged=True))["actions-taken"] == "0"


def test_a_parked_mission_is_not_active() -> None:
    parked = MissionLine(8, "Old", Status.PARKED, 9, None, 1)
    assert outputs(replace(REPORT, missions=(*REPORT.missions, parked)))["missions-active"] == "1"


def test_without_a_next_cycle_there_is_no_moment() -> None:
    assert outputs(replace(REPORT, next_due_at=None))["next-due-at"] == ""


def test_an_error_is_told_on_the_page(environ: dict[str, str]) -> None:
    tell_trouble({"who": "network", "what": "no answer", "next": "nothing"}, environ)
    assert "no answer" in Path(environ["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_page_that_cannot_be_written_hides_no_error(tmp_path: Path) -> None:
    tell_trouble({"who": "you", "what": "x", "next": "y"}, {"GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "folder")})


def test_rules_are_linked_in_the_version_of_the_action(environ: dict[str, str]) -> None:
    assert places(environ).rules == ""
    told = places({**environ, "RALPH_ACTION_REPOSITORY": "ralph/mission", "RALPH_ACTION_REF": "v1"})
    assert told.rules == "https://github.com/ralph/mission/blob/v1/docs/rules.md"
