"""The fast path of `ralph due`: it answers the plain question and leaves the rest to the real parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.cli.gate import Plain, plain
from tests.helpers import cli_here, make_repo


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], Plain()),
        (["--json"], Plain(json=True)),
        (["--repo", "x", "--now=2026-01-01", "--config", "c.yml"], Plain("x", "c.yml", "2026-01-01")),
        (["--repo", "--json"], Plain("--json", json=False)),
    ],
)
def test_plain_questions_are_understood(arguments: list[str], asked: Plain) -> None:
    assert plain(arguments) == asked


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--rep", "x"], ["--repo"], ["here"], ["--json=1"], ["--"]])
def test_anything_else_is_for_the_real_parser(arguments: list[str]) -> None:
    assert plain(arguments) is None


def test_help_and_mistakes_are_answered_like_those_of_any_command() -> None:
    assert "Usage: ralph due" in cli_here("due", "--help").out
    told = cli_here("due", "--jsn")
    assert told.code == 2
    assert told.err.endswith("see ralph due --help\n")


def test_a_folder_that_is_no_repository_is_wrong_usage(tmp_path: Path) -> None:
    told = cli_here("due", "--json", repo=tmp_path)
    assert told.code == 2
    assert told.json["error"]["who"] == "you"


def test_a_repository_without_memory_is_due(tmp_path: Path) -> None:
    told = cli_here("due", "--json", repo=make_repo(tmp_path))
    assert told.code == 0
    assert told.json["due"] is True
    assert set(told.json) == {"due", "next_due_at", "reason"}
