"""What a repository on GitHub is told: the same dashboard anywhere, and what each cycle asked and how late it was."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.report.step_summary import tell_runner
from tests.helpers import cli_here, git
from tests.integration.hub import hub, unpaced


@pytest.mark.parametrize("place", ["in the clone that ran the cycle", "in another"])
def test_the_report_of_a_repository_on_github_is_the_readme_of_its_memory_branch(tmp_path: Path, place: str) -> None:
    with hub(tmp_path) as harbour:
        harbour.cycle()
        harbour.runner = harbour.runner if "ran" in place else "another"
        job = {**harbour.environ, "GITHUB_ACTIONS": "true"}
        with unpaced():
            told = cli_here("report", repo=harbour.clone, env=job)
        readme = git(harbour.fake.bare, "show", "ralph-memory:README.md")
        assert told.code == 0, told.err
        assert told.out == f"{readme}\n"
        assert f"{harbour.fake.url}/harbour/slackwater/pull/" in told.out
        changed = git(harbour.fake.bare, "log", "-1", "--name-only", "--format=", "ralph-memory").splitlines()
        assert {"README.md", "memory/ralph-log.md"} <= set(changed), "not in one commit with memory"


@pytest.mark.parametrize("as_json", [False, True], ids=["at a terminal", "in the action"])
def test_requests_and_those_that_found_nothing_changed_are_told_by_the_command(tmp_path: Path, as_json: bool) -> None:
    page = tmp_path / "page"
    with hub(tmp_path, {"a.txt": "fine\n"}) as harbour, unpaced():
        job = {**harbour.environ, "GITHUB_STEP_SUMMARY": str(page)}
        for _ in range(2):
            harbour.fake.journal.clear()
            page.unlink(missing_ok=True)
            options = ["--json"] if as_json else []
            told = cli_here("cycle", "--force", "--forge", "github", *options, repo=harbour.clone, env=job)
            assert told.code == 0, told.err
        api = [request for request in harbour.fake.journal if request.transport != "git"]
        unchanged = [request for request in api if request.status == 304]
    assert unchanged
    words = f"{len(api)} requests to the forge, {len(unchanged)} of them unchanged"
    assert words in page.read_text()
    assert as_json or told.out.splitlines()[-2] == f"asked: {words}"


def test_how_late_a_cycle_started_is_told_beside_the_next_one_under_a_quarter_of_an_hour_too(tmp_path: Path) -> None:
    page = tmp_path / "page"
    with hub(tmp_path, {"a.txt": "fine\n"}) as harbour:
        report, _ = harbour.cycle()
        assert report.next_due_at
        for late, words in ((10, "this one started 10 min after it was due"), (0, "this one was not late")):
            report, telling = harbour.cycle(report.next_due_at - harbour.now + timedelta(minutes=late))
            assert report.next_due_at
            page.unlink(missing_ok=True)
            tell_runner(report, telling, {"GITHUB_STEP_SUMMARY": str(page)})
            assert re.search(rf"^\*\*Next\*\*: .* UTC \(urgency low\); {words}$", page.read_text(), re.MULTILINE)
