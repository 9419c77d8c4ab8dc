"""Suggested commands can be copied and pasted from where the person stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralph_mission.cli.spelling import repo_of, spell, type_commands

REPO = Path("../my project")


@pytest.fixture(autouse=True)
def beside_no_ralph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that stands in a checkout: `.venv/bin/ralph` is there, `ralph` is not found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ralph").touch()
    monkeypatch.setattr(sys, "argv", [".venv/bin/ralph", "status"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see: ralph pr list", "see: .venv/bin/ralph pr list --repo '../my project'"),
        ("`ralph memory verify`, then", "`.venv/bin/ralph memory verify --repo '../my project'`, then"),
        ("ralph journal resolve ab12 --sent", ".venv/bin/ralph journal resolve --repo '../my project' ab12 --sent"),
        ("see ralph cycle --help", "see .venv/bin/ralph cycle --help"),
        ("ralph run --continue", ".venv/bin/ralph run --repo '../my project' --continue"),
        (
            "write one: ralph plan TASK, or ralph agent prd lint FILE",
            "write one: .venv/bin/ralph plan --repo '../my project' TASK, "
            "or .venv/bin/ralph agent prd lint --repo '../my project' FILE",
        ),
        ("then: ralph agent task claim ID", "then: .venv/bin/ralph agent task claim --repo '../my project' ID"),
        ("say how with ralph agent guidance", "say how with .venv/bin/ralph agent guidance --repo '../my project'"),
        ("ralph agent prd", "ralph agent prd"),
        ("ralph has no memory of it", "ralph has no memory of it"),
        ("ralph schema config", "ralph schema config"),
        ("/opt/ralph cycle --force", "/opt/ralph cycle --force"),
        ("ralph pr diff 8 --repo x", "ralph pr diff 8 --repo x"),
    ],
)
def test_every_command_of_a_text_is_written_out_once(text: str, expected: str) -> None:
    assert type_commands(text, REPO) == expected
    assert type_commands(type_commands(text, REPO), REPO) == expected


def test_where_the_shell_finds_it_a_command_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/gone/ralph"])
    assert type_commands("see: ralph pr list", Path()) == "see: ralph pr list"


def test_a_whole_command_names_the_repository_last() -> None:
    assert spell("ralph pr diff 2", REPO) == ".venv/bin/ralph pr diff 2 --repo '../my project'"


@pytest.mark.parametrize(
    "line",
    [
        ["due", "--repo", "a=b"],
        ["--x", "due", "--repo=a=b"],
        ["--repo", "x", "due", "--repo", "a=b"],
        ["--repo=a=b", "guidance", "--", "--repo", "x"],
    ],
)
def test_the_repository_of_a_command_line_that_failed(line: list[str]) -> None:
    assert repo_of(line) == Path("a=b")
    assert repo_of(["due"]) == Path()
