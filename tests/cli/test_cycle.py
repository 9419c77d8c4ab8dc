"""`ralph cycle` and the commands that look at what it left: run for real, on a real repository."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ralph_mission.report.document import schema
from tests.helpers import cli, cli_here, git, make_repo

NOW = "2026-05-05T12:00:00Z"
FILES = {"README.md": "# Sample\n\nThis is teh documentation, and it recieves little care.\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with misspellings."""
    return make_repo(tmp_path / "sample", FILES)


def refs(repo: Path) -> str:
    """Where every ref points."""
    return git(repo, "for-each-ref")


def test_a_cycle_prints_one_document_that_obeys_its_schema(repo: Path) -> None:
    told = cli("cycle", "--json", "--now", NOW, repo=repo)
    assert told.code == 0
    jsonschema.validate(told.json, schema())
    assert (told.json["cycle"], told.json["outcome"], told.json["trigger"]) == (1, "done", "cli")


def test_the_phases_are_told_on_stderr_and_the_summary_on_stdout(repo: Path) -> None:
    told = cli("cycle", "--now", NOW, repo=repo)
    assert told.code == 0
    phases = [line.split(":")[0] for line in told.err.splitlines() if not line.startswith(" ")]
    assert phases == ["check", "observe", "think", "act", "reflect"]
    assert told.out.startswith("cycle 1: done")
    assert len(told.out.splitlines()) <= 40


def test_a_staged_cycle_changes_no_ref(repo: Path) -> None:
    before = refs(repo)
    told = cli_here("cycle", "--staged", "--json", "--now", NOW, repo=repo)
    assert told.code == 0
    assert told.json["staged"] is True
    assert {effect["status"] for effect in told.json["effects"]} <= {"staged"}
    assert refs(repo) == before
    assert git(repo, "status", "--porcelain") == ""


def test_a_second_cycle_right_after_is_not_due(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    told = cli_here("cycle", "--json", "--now", NOW, repo=repo)
    assert (told.code, told.json["outcome"]) == (0, "not_due")


def test_due_agrees_with_the_cycle(repo: Path) -> None:
    assert cli_here("due", "--now", NOW, repo=repo).code == 0
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("due", "--json", "--now", NOW, repo=repo)
    assert told.code == 10
    assert told.json["next_due_at"] == report["next_due_at"]
    assert cli_here("due", "--now", report["next_due_at"], repo=repo).code == 0


def test_due_looks_where_the_settings_put_memory(repo: Path) -> None:
    (repo / "ralph.yml").write_text("memory: {branch: notes/ralph, path: log.md}\n")
    cli_here("cycle", "--now", NOW, repo=repo)
    assert "refs/heads/notes/ralph" in refs(repo)
    assert cli_here("due", "--now", NOW, repo=repo).code == 10


def test_a_paused_repository_does_nothing_until_it_is_resumed(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    assert cli_here("pause", repo=repo).code == 0
    before = refs(repo)
    told = cli_here("cycle", "--force", "--json", repo=repo)
    assert (told.code, told.json["outcome"]) == (0, "paused")
    assert refs(repo) == before
    assert cli_here("status", "--json", repo=repo).json["paused"] is True
    assert cli_here("resume", repo=repo).code == 0
    assert cli_here("status", "--json", repo=repo).json["paused"] is False


def test_status_before_the_first_cycle_says_how_to_start(repo: Path) -> None:
    told = cli_here("status", repo=repo)
    assert told.code == 0
    assert "ralph cycle --staged" in told.out


def test_status_after_a_cycle_shows_what_is_open(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    known = cli_here("status", "--json", repo=repo).json
    assert known["cycle"] == 1
    assert [mission["id"] for mission in known["missions"]] == [mission["id"] for mission in report["missions"]]
    assert known["next_due_at"] == report["next_due_at"]


def test_the_dashboard_goes_to_a_file_when_asked(repo: Path, tmp_path: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    place = tmp_path / "dashboard.md"
    told = cli_here("report", "--output", str(place), repo=repo)
    assert (told.code, told.out) == (0, "")
    assert place.read_text() == cli_here("report", repo=repo).out
    assert place.read_text() == git(repo, "show", "ralph-memory:README.md") + "\n"


def test_the_journal_lists_what_was_done(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("journal", "--json", repo=repo)
    assert told.code == 0
    listed = json.dumps(told.json)
    assert report["effects"]
    assert all(effect["key"] in listed for effect in report["effects"])


def test_settling_an_effect_that_does_not_exist_is_an_error(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    told = cli_here("journal", "resolve", "0" * 16, "--sent", "--json", repo=repo)
    assert told.code in (1, 2)
    assert told.json["error"]["who"] == "you"


def test_a_cycle_replays_to_the_same_decisions(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("replay", report["cycle_id"], "--json", repo=repo)
    assert (told.code, told.json["same"]) == (0, True)


def test_warnings_of_the_settings_are_told(repo: Path) -> None:
    (repo / "ralph.yml").write_text("publishers: {}\n")
    told = cli_here("cycle", "--staged", "--now", NOW, repo=repo)
    assert "publishers is not used by this version" in told.err
