"""`ralph doctor` on the workflows in which agents act, and on what starts a review."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.cli.doctor.github import present, reviewing
from ralph_mission.cli.setup.workflow import PLACES, ActionReference, render_workflow
from tests.cli.doctor_place import WORKFLOW, Place

JOB = "github-actions[bot]"


def written(folder: Path, mode: str) -> Path:
    """A checkout with the workflow of a mode as `init` writes it."""
    text = render_workflow(mode, ActionReference("mara/ralph", "a" * 40), ("self-hosted", "gpu"))
    (folder / PLACES[mode]).parent.mkdir(parents=True, exist_ok=True)
    (folder / PLACES[mode]).write_text(text)
    return folder


@pytest.mark.parametrize("mode", ["work", "review", "publish"])
def test_a_self_hosted_runner_for_agents_of_a_public_repository_is_wrong(
    here: Place, tmp_path: Path, mode: str
) -> None:
    agents = present(written(tmp_path, mode))
    checks = here.checks(workflow=WORKFLOW, agents=agents)
    assert "the workflow asks for a self-hosted one, and the repository is public" in checks["runner"].found
    here.changes = {"private": True}
    assert "runner" not in here.checks(workflow=WORKFLOW, agents=agents)


def test_a_workflow_that_was_not_pushed_or_is_switched_off_is_found(here: Place, tmp_path: Path) -> None:
    agents = present(written(tmp_path, "review"))
    here.fake.workflow(".github/workflows/ralph-loop.yml")
    assert here.checks(agents=agents)["workflow"].found == "the default branch has no ralph-review.yml"
    here.fake.workflow(".github/workflows/ralph-review.yml", state="disabled_fork")
    assert here.checks(agents=agents)["workflow"].found.startswith("ralph-review.yml: GitHub switches")
    here.fake.workflow(".github/workflows/ralph-review.yml")
    assert here.checks(agents=agents)["workflow"].status == "ok"


@pytest.mark.parametrize(
    ("wanted", "account", "status", "found"),
    [
        ("auto", JOB, "ok", "by a dispatch"),
        ("auto", "ralph-app[bot]", "ok", "by GitHub"),
        ("never", JOB, "note", "nothing starts it"),
        ("never", "ralph-app[bot]", "ok", "schedule.review: never"),
        ("always", "ralph-app[bot]", "note", "the second does nothing"),
    ],
)
def test_what_starts_a_review_is_named(tmp_path: Path, wanted: str, account: str, status: str, found: str) -> None:
    (check,) = reviewing(wanted, account, written(tmp_path, "review"))
    assert (check.name, check.status, found in check.found) == ("review", status, True), check


def test_without_a_workflow_people_review_alone(tmp_path: Path) -> None:
    (check,) = reviewing("auto", JOB, tmp_path)
    assert (check.status, check.found) == ("ok", "by people alone; ralph init --review has an agent look first")
