"""`ralph cycle` and the commands that look at what it left: run for real, on a real repository."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import jsonschema
import pytest

from ralph_mission.adapters.report.summary import schema
from ralph_mission.mission.lifecycle.checkboxes import without_boxes
from ralph_mission.mission.model.effects import Receipt
from tests.helpers import cli_here, commit, git, make_repo

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
    told = cli_here("cycle", "--json", "--now", NOW, repo=repo)
    assert told.code == 0
    jsonschema.validate(told.json, schema())
    assert (told.json["cycle"], told.json["outcome"], told.json["trigger"]) == (1, "done", "cli")


def test_the_phases_are_told_on_stderr_and_the_summary_on_stdout(repo: Path) -> None:
    told = cli_here("cycle", "--now", NOW, repo=repo)
    assert told.code == 0
    phases = [line.split(":")[0] for line in told.err.splitlines() if not line.startswith(" ")]
    assert phases == ["check", "observe", "think", "act", "reflect"]
    assert told.out.startswith("Cycle 1 done in ")
    assert len(told.out.splitlines()) <= 40


TERMS = {"usd_per_day": None, "pulls": True, "spoke": False, "priors": {}, "extends": "", "onboard": True}
NEW_IN_FLEET = {"RALPH_FLEET": json.dumps(TERMS)}


def test_a_new_repository_of_a_fleet_is_asked_before_its_first_cycle(repo: Path) -> None:
    assert cli_here("cycle", "--staged", "--json", repo=repo, env=NEW_IN_FLEET).json["staged"]
    assert "ralph/configure" not in refs(repo)
    assert cli_here("cycle", "--json", repo=repo, env=NEW_IN_FLEET).json["staged"]
    assert "ralph/configure" in refs(repo) and "ralph-memory" not in refs(repo)
    assert "observers:" in git(repo, "show", "ralph/configure:ralph.yml")


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", [".ralph", ".ralph/forge", ".ralph/cache", ".git/ralph"])
def test_where_a_link_stands_for_a_folder_of_ours_nothing_begins(repo: Path, tmp_path: Path, link: str) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (repo / link).parent.mkdir(exist_ok=True)
    (repo / link).symlink_to(theirs)
    before = refs(repo)
    for fleet in ({}, NEW_IN_FLEET):
        told = cli_here("cycle", "--now", NOW, repo=repo, env=fleet)
        assert told.code == 1 and f"{repo / link} is a link" in told.err and "observe" not in told.err
        assert (repo / link).is_symlink() and list(theirs.iterdir()) == [] and refs(repo) == before
    assert cli_here("cycle", "--staged", "--now", NOW, repo=repo).code == 0
    assert list(theirs.iterdir()) == []


@pytest.mark.attack(46)
@pytest.mark.parametrize("link", ["ralph", "ralph/forge", "ralph/cycles"])
@pytest.mark.parametrize("bare", [False, True])
def test_where_a_link_stands_in_a_git_directory_apart_nothing_begins(
    repo: Path, tmp_path: Path, link: str, bare: bool
) -> None:
    apart, theirs = tmp_path / "git-directory", tmp_path / "theirs"
    if bare:
        git(tmp_path, "clone", "--quiet", "--bare", str(repo), str(apart))
    else:
        git(repo, "init", "--quiet", "--separate-git-dir", str(apart))
    theirs.mkdir()
    (apart / link).parent.mkdir(exist_ok=True)
    (apart / link).symlink_to(theirs)
    told = cli_here("cycle", "--now", NOW, repo=apart if bare else repo)
    assert told.code == 1 and f"{apart / link} is a link" in told.err and "observe" not in told.err
    assert list(theirs.iterdir()) == []


def test_a_link_in_the_place_of_a_folder_takes_no_switch_away(repo: Path, tmp_path: Path) -> None:
    assert cli_here("cycle", "--now", NOW, repo=repo).code == 0
    (theirs := tmp_path / "theirs").mkdir()
    (repo / ".ralph/worktrees").symlink_to(theirs)
    for command in ("pause", "status", "resume"):
        assert cli_here(command, repo=repo).code == 0
    assert list(theirs.iterdir()) == []


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


def test_an_approval_makes_a_cycle_due_at_once_and_the_journal_names_what_was_merged(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    (pull,) = cli_here("pr", "list", "--json", repo=repo).json["pulls"]
    cli_here("pr", "approve", "1", "--as", "mara", repo=repo)
    assert "type ralph cycle --repo" in cli_here("status", repo=repo).out
    told = cli_here("cycle", repo=repo)
    assert f"Merged pull request #1: {pull['title']}" in told.out
    assert f"merged pull request #1, {pull['title']}\n" in cli_here("journal", repo=repo).out
    assert cli_here("cycle", repo=repo).out.startswith("Not due before ")


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
    assert "resumed: the next cycle runs when it is due" in cli_here("resume", repo=repo).out
    assert cli_here("status", "--json", repo=repo).json["paused"] is False
    assert cli_here("resume", repo=repo).out == "nothing is paused here\n"


def test_status_before_the_first_cycle_says_how_to_start(repo: Path) -> None:
    told = cli_here("status", repo=repo)
    assert told.code == 0
    assert f"ralph cycle --repo {repo} --staged" in told.out
    assert f"to start: ralph cycle --repo {repo}\n" in told.out


def test_status_after_a_cycle_shows_what_is_open(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    known = cli_here("status", "--json", repo=repo).json
    assert known["cycle"] == 1
    assert [mission["id"] for mission in known["missions"]] == [mission["id"] for mission in report["missions"]]
    assert known["next_due_at"] == report["next_due_at"]


def test_the_dashboard_goes_to_a_file_when_asked(repo: Path, tmp_path: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    place = tmp_path / "dashboard.md"
    told = cli_here("report", "--format", "md", "--output", str(place), repo=repo)
    assert (told.code, told.out) == (0, "")
    assert place.read_text() == cli_here("report", "--format", "md", repo=repo).out
    assert without_boxes(place.read_text()) == git(repo, "show", "ralph-memory:README.md") + "\n"


def test_the_journal_lists_what_was_done(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("journal", "--json", repo=repo)
    assert told.code == 0
    listed = json.dumps(told.json)
    assert report["effects"]
    assert all(effect["key"] in listed for effect in report["effects"])


def test_what_was_learned_is_counted_again_and_what_somebody_made_up_shows(repo: Path) -> None:
    cli_here("cycle", repo=repo)
    told = cli_here("journal", "count", "--json", repo=repo)
    assert (told.code, told.json) == (0, {"lines": [], "same": True})
    with mock.patch(
        "ralph_mission.mission.memory.learning.recount_learnings", lambda documents: ("Bugs (bug): 9 of 9.",)
    ):
        told = cli_here("journal", "count", repo=repo)
    assert (told.code, told.out) == (1, "Bugs (bug): 9 of 9.\nLearnings differs\n")


def test_the_journal_shows_one_cycle_with_the_rules_that_held(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("journal", "show", report["cycle_id"], repo=repo)
    assert told.code == 0
    opened, score = report["effects"][-1], report["findings"][0]["score"]
    assert opened["url"] in told.out and opened["key"] not in told.out and f"{score:.2f}" not in told.out
    assert "cycle 1: opened pull request #1, Correct" in cli_here("journal", "list", repo=repo).out
    assert cli_here("journal", "show", report["cycle_id"], "--json", repo=repo).json == report
    assert cli_here("journal", "show", "nope", repo=repo).code == 2


def test_the_journal_offers_nothing_that_waited_in_an_earlier_cycle(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    assert "Waiting for you" in cli_here("journal", "show", "1", repo=repo).out
    cli_here("cycle", "--force", repo=repo)
    told = cli_here("journal", "show", "1", repo=repo).out
    assert "Waiting for you" not in told and told.rstrip().endswith(f"now: ralph status --repo {repo}")


def test_the_journal_says_why_an_effect_failed(repo: Path) -> None:
    def refuse(_: object, effect: Any) -> Receipt:
        return Receipt(effect.key, "failed", detail="no room")

    with mock.patch("ralph_mission.adapters.forges.local.LocalForge.perform", refuse):
        report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("journal", "show", report["cycle_id"], repo=repo)
    assert any(line.endswith(": no room") and "could not" in line for line in told.out.splitlines())


def test_what_was_opened_can_be_opened_from_where_one_stands(repo: Path, tmp_path: Path) -> None:
    told = cli_here("cycle", "--now", NOW, "--repo", "sample", cwd=tmp_path)
    lines = told.out.splitlines()
    (row,) = (number for number, line in enumerate(lines) if line.startswith("  Opened pull request #1: "))
    place = lines[row + 1].strip()
    assert place.startswith("sample/") and (tmp_path / place).is_file()


@pytest.mark.long  # a terminal of its own
@pytest.mark.parametrize(("value", "coloured"), [("", True), ("1", False)])
def test_no_color_is_obeyed_on_a_terminal(repo: Path, value: str, coloured: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ralph_mission", "doctor", "--repo", str(repo)]
    subprocess.run(command, env=os.environ | {"NO_COLOR": value}, stdout=theirs, check=False)
    assert (b"\x1b[" in os.read(ours, 65536)) is coloured


def test_settling_an_effect_that_does_not_exist_is_an_error(repo: Path) -> None:
    cli_here("cycle", "--now", NOW, repo=repo)
    told = cli_here("journal", "resolve", "0" * 16, "--sent", "--json", repo=repo)
    assert told.code in (1, 2)
    assert told.json["error"]["who"] == "you"


def test_a_cycle_replays_to_the_same_decisions(repo: Path) -> None:
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    told = cli_here("replay", report["cycle_id"], "--json", repo=repo)
    assert (told.code, told.json["same"]) == (0, True)


def test_a_cycle_that_held_a_value_we_know_replays_to_the_same_decisions(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARBOUR_TOKEN", "Tr0ub4dor-XyZ-77")
    commit(repo, {"README.md": FILES["README.md"] + "# recieve the Tr0ub4dor-XyZ-77 token\n"})
    report = cli_here("cycle", "--json", "--now", NOW, repo=repo).json
    assert any("secret" in decision["rules"] for decision in report["decisions"])
    told = cli_here("replay", report["cycle_id"], "--json", repo=repo)
    assert (told.code, told.json["differences"]) == (0, [])


def test_memory_never_goes_onto_a_branch_of_peoples_commits(repo: Path) -> None:
    git(repo, "switch", "--quiet", "--create", "work")
    (repo / "ralph.yml").write_text("memory: {branch: main}\n")
    before = refs(repo)
    for command in (["cycle", "--force"], ["memory", "recover"]):
        told = cli_here(*command, repo=repo)
        assert (told.code, told.out) == (2, "")
        assert "the branch main shares its history with your commits" in told.err
    assert refs(repo) == before


def test_a_git_that_is_too_old_is_refused_before_anything(repo: Path, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        f'#!/bin/sh\ncase "$*" in *version) echo git version 2.37.9;; *) exec {shutil.which("git")} "$@";; esac\n'
    )
    old.chmod(0o755)
    before = refs(repo)
    told = cli_here("cycle", repo=repo, env={"PATH": f"{old.parent}:{os.environ['PATH']}"})
    assert (told.code, told.err) == (1, "error: git version 2.37.9 is too old. Install git 2.38 or newer\n")
    assert refs(repo) == before and not (repo / ".ralph").exists()


def test_warnings_of_the_settings_are_told(repo: Path) -> None:
    (repo / "ralph.yml").write_text("plugins: {}\n")
    told = cli_here("cycle", "--staged", "--now", NOW, repo=repo)
    assert "plugins is a key of ralph-orchestrator; not used here" in told.err
