"""`ralph init` a second time: nothing that differs is overwritten unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.config.reading import read
from tests.cli.init_place import LOOP, PINNED, hosted, states, workflow
from tests.helpers import cli_here

pytestmark = pytest.mark.usefixtures("known_commit")


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "timer", repo=repo)
    told = cli_here("init", "--wake", "timer", "--json", repo=repo)
    assert set(states(told).values()) == {"unchanged"}


def test_a_workflow_is_written_anew_when_asked_to(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    told = cli_here("init", "--runner", "gpu", "--force", "--json", repo=repo)
    assert states(told)["ralph-loop.yml"] == "replaced"


def test_what_was_chosen_once_stays_chosen(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--wake", "heartbeat", "--runner", "self-hosted,gpu", repo=repo)
    assert states(cli_here("init", "--action", PINNED, "--json", repo=repo))["ralph.yml"] == "unchanged"
    jobs = workflow(repo)["jobs"]
    assert states(cli_here("init", "--json", repo=repo))["ralph.yml"] == "unchanged"
    assert all(job["runs-on"] == ["self-hosted", "gpu"] for job in jobs.values())
    told = cli_here("init", "--wake", "timer", "--json", repo=repo)
    assert states(told)["ralph.yml"] == "kept" and "in ralph.yml: schedule: {wake: timer}" in told.json["steps"]
    assert read(Git.open(repo)).schedule.wake == "heartbeat"


def test_an_edited_workflow_is_in_the_way_and_nothing_is_written(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    edited = (repo / LOOP).read_text().replace("timeout-minutes: 60", "timeout-minutes: 30")
    (repo / LOOP).write_text(edited)
    told = cli_here("init", "--runner", "gpu", "--wake", "timer", repo=repo)
    assert told.code == 2
    assert "ralph-loop.yml is there already" in told.err
    assert (repo / LOOP).read_text() == edited
    assert not (repo / ".ralph").exists()
    assert states(cli_here("init", "--wake", "timer", "--json", repo=repo))["ralph-loop.yml"] == "kept"


def test_a_folder_that_is_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    repo, elsewhere = hosted(tmp_path / "repo"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repo / ".github").symlink_to(elsewhere)
    assert cli_here("init", "--force", repo=repo).code == 2
    assert list(elsewhere.iterdir()) == []
