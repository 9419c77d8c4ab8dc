"""Suggested commands can be copied and pasted from where the person stands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ralph_mission
from ralph_mission.cli import app
from ralph_mission.cli.app import run
from ralph_mission.cli.spelling import repo_of, spell, type_commands
from ralph_mission.errors import UserError

REPO = Path("../my project")
ROOT = Path(ralph_mission.__file__).parent
SAID = re.compile(r"(?<![\w./@-])ralph ([a-z][a-z-]*(?: [^\s`'\",;:.)(\\]+)*)")
PROSE = frozenset(
    "call failed has holds http in is itself keeps knows leaves made needs on out process proposed remembers that"
    " thinker was".split()
)
"""What may follow the name where no command is meant."""


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


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for below in (*command.list_commands(context), *(app.UNLISTED if name == "ralph" else ())):
        if found := command.get_command(context, below):
            yield from _commands(found, f"{name} {below}")


def test_every_command_that_takes_a_repository_is_written_out() -> None:
    every = list(_commands(app.app, "ralph"))
    takes = {name for name, command in every if any("--repo" in one.opts for one in command.params)}
    assert len(takes) > 40
    assert {name for name in takes if not type_commands(name, REPO).endswith("--repo '../my project'")} == set()


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


def hints() -> Iterator[tuple[str, list[str]]]:
    """Every command that a text or comment of the product names, with its file; what is filled in is a number."""
    for path in sorted(ROOT.rglob("*.py")):
        for found in SAID.finditer(re.sub(r"\{[^{}\n]*\}", "1", path.read_text())):
            yield path.name, found[1].split()


def typed(words: list[str]) -> list[str]:
    """The words as a person types them: the command, its options and values, without the prose after."""
    group: click.Command = app.app
    line: list[str] = []
    for word in (one.partition("|")[0] for one in words):
        inner = group.get_command(click.Context(group), word) if isinstance(group, click.Group) else None
        takes = [one for one in group.params if line and line[-1] in one.opts and not getattr(one, "is_flag", False)]
        if inner is None and not takes and not re.match(r"-|\d|[A-Z]", word):
            break
        group = inner or group
        line.append("1" if re.match(r"\d|[A-Z]", word) else word)
    return line


def test_every_command_that_a_text_of_ours_names_is_one_that_ralph_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: 0)
    known, wrong = {*app.COMMANDS, *app.MORE, *app.UNLISTED}, []
    seen = {(place, *words) for place, words in hints() if words[0] not in PROSE}
    for place, *words in sorted(seen):
        try:
            assert words[0] in known, "there is no such command"
            run(typed(words))
        except (UserError, AssertionError) as error:
            unfilled = ("missing" in str(error) and len(typed(words)) < 4) or "'1'" in str(error)
            if not unfilled:  # a command without what it is given, or a word that stands for one of a few
                wrong.append(f"{place}: ralph {' '.join(words)}: {error}")
    assert len(seen) > 150
    assert wrong == []
