"""Who starts the review of what we propose: GitHub, or a dispatch of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.wakers.dispatch import DispatchAnswer, DispatchWaker
from ralph_mission.wakers.review import by_dispatch
from tests.wakers.test_dispatch import Line

JOB, APP = "github-actions[bot]", "ralph-app[bot]"


@pytest.mark.parametrize(
    ("wanted", "account", "ok", "why"),
    [
        ("auto", JOB, True, "a workflow's own token"),
        ("auto", APP, False, "by GitHub: what ralph-app[bot] opens starts workflows"),
        ("auto", "mara", False, "by GitHub"),
        ("always", APP, True, "schedule.review: always"),
        ("never", JOB, False, "schedule.review: never"),
    ],
)
def test_a_dispatch_wakes_it_where_github_starts_none(
    tmp_path: Path, wanted: str, account: str, ok: bool, why: str
) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "any.yml").write_text("on: {repository_dispatch: {types: [ralph-review-trigger]}}\n")
    standing = by_dispatch(wanted, account, tmp_path)
    assert (standing.ok, why in standing.reason) == (ok, True), standing


@pytest.mark.parametrize("text", ["", "# types: [ralph-review-trigger]\n", "on: {issues: {}}\n"])
def test_where_no_workflow_listens_nobody_is_woken(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "any.yml").write_text(text)
    assert by_dispatch("always", JOB, tmp_path).reason == "no workflow here listens to ralph-review-trigger"
    assert not by_dispatch("always", JOB, None).ok


def test_the_request_names_the_pull_and_nothing_more() -> None:
    line = Line(DispatchAnswer(204))
    assert DispatchWaker("mara/harbour", line).review(8).status == "done"
    body = {"event_type": "ralph-review-trigger", "client_payload": {"pull_request": 8}}
    assert line.sent == [("/repos/mara/harbour/dispatches", body)]
