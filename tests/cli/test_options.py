"""The options of every command stand before or behind its name; older spellings of commands are understood."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from ralph_mission.cli.app import RENAMED, UNLISTED, app, expand_renamed
from tests.helpers import cli_here, make_repo


@pytest.mark.parametrize(
    "line",
    [
        ["status", "--json", "--repo", "HERE"],
        ["--json", "--repo", "HERE", "status"],
        ["--repo=HERE", "status", "--json"],
        ["--repo", "elsewhere", "--json", "status", "--repo", "HERE"],
    ],
)
def test_shared_options_stand_before_or_behind_the_command(tmp_path: Path, line: list[str]) -> None:
    repo = make_repo(tmp_path / "here")
    told = cli_here(*(word.replace("HERE", str(repo)) for word in line), env=dict(os.environ))
    assert told.code == 0, told.err
    assert told.json["started"] is False


@pytest.mark.parametrize(
    "line", [["issue", "--json", "list"], ["--json", "issue", "list"], ["issue", "list", "--json"]]
)
def test_a_group_of_commands_takes_them_too(tmp_path: Path, line: list[str]) -> None:
    repo = make_repo(tmp_path / "here")
    assert cli_here(*line, repo=repo).json == {"issues": []}


def test_settings_can_be_named_before_the_command(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "here")
    told = cli_here("--config", "nowhere.yml", "status", repo=repo)
    assert told.code == 2
    assert "nowhere.yml" in told.err


@pytest.mark.parametrize("line", [["--json", "watch"], ["--config", "x.yml", "issue", "list"]])
def test_an_option_that_a_command_cannot_use_is_refused(tmp_path: Path, line: list[str]) -> None:
    told = cli_here(*line, repo=make_repo(tmp_path / "here"))
    assert told.code == 2
    assert "has no option --" in told.err


def test_wrong_usage_of_a_loops_command_ends_with_64_wherever_its_name_stands(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "here")
    assert cli_here("--json", "run", "--max-iterations", "0", repo=repo).code == 64


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["pr", "diff", "3"], ["pr", "show", "--diff", "3"]),
        (["--repo", "replay", "replay", "c1"], ["--repo", "replay", "journal", "show", "--replay", "c1"]),
        (["issue", "comment", "3", "unlabel"], ["issue", "comment", "3", "unlabel"]),
        (["prd", "new", "task ready"], ["plan", "task ready"]),
        (["--json", "emit", "x"], ["--json", "agent", "emit", "x"]),
        (["agent", "emit", "x"], ["agent", "emit", "x"]),
        (["task", "--json", "ready"], ["agent", "--json", "task", "list", "--ready"]),
        (["--json", "prd", "--repo", ".", "new", "x"], ["--json", "plan", "--repo", ".", "x"]),
        (["pr", "--repo", "diff", "diff", "3"], ["pr", "--repo", "diff", "show", "--diff", "3"]),
        (["issue", "--as", "mara", "unlabel", "3", "x"], ["issue", "--as", "mara", "label", "--remove", "3", "x"]),
        (["--", "replay", "c1"], ["--", "journal", "show", "--replay", "c1"]),
        (["pr", "--repo"], ["pr", "--repo"]),
        (["pr", "--json"], ["pr", "--json"]),
        (["status"], ["status"]),
        ([], []),
    ],
)  # fmt: skip  # one table
def test_an_older_spelling_is_written_out(line: list[str], expected: list[str]) -> None:
    assert expand_renamed(line) == expected


@pytest.mark.parametrize("old", RENAMED, ids=" ".join)
def test_every_older_spelling_has_help(old: tuple[str, ...]) -> None:
    assert cli_here(*old, "--help").code == 0


def test_what_is_not_listed_can_still_be_called() -> None:
    context = click.Context(app)
    for name in UNLISTED:
        assert isinstance(app.get_command(context, name), click.Command)
        assert name not in app.list_commands(context)
