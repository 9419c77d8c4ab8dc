"""The entry point: what it costs to start, and what it says to those who mistype."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph_mission.cli.app import AGENT, COMMANDS, GROUPS
from tests.helpers import cli, cli_here, make_repo

HEAVY = ("click", "pydantic", "rich", "yaml")


def imported(*arguments: str) -> set[str]:
    """The heavy libraries that a run of `ralph ARGUMENTS` imports."""
    code = (
        "import sys\n"
        "from ralph_mission.cli.main import main\n"
        "try: main()\n"
        f"finally: print(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


def test_due_imports_nothing_heavy(tmp_path: Path) -> None:
    assert imported("due", "--json", "--repo", str(make_repo(tmp_path))) == set()


def test_help_imports_no_command() -> None:
    assert imported("--help") == {"click"}


def test_help_lists_every_command() -> None:
    listed = cli_here("--help")
    assert listed.code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in listed.out
        assert line in " ".join(listed.out.split())


def test_the_first_page_is_short_and_holds_each_command_once() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS) and len(grouped) <= 20


@pytest.mark.parametrize("name", AGENT)
def test_what_agents_call_keeps_its_older_name_for_a_while(name: str, tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    assert f"Usage: ralph agent {name}" in cli_here("agent", name, "--help").out
    older, present = (
        cli_here(name, "--no-such", "--json", repo=repo),
        cli_here("agent", name, "--no-such", "--json", repo=repo),
    )
    assert (older.code, older.out) == (present.code, present.out) == (2 if name == "telegram" else 64, present.out)
    assert older.err.startswith(f"note: `ralph {name}` is `ralph agent {name}` now;") and "note:" not in present.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_has_help(name: str) -> None:
    told = cli_here(name, "--help")
    assert told.code == 0
    assert f"Usage: ralph {name}" in told.out


def test_no_command_shows_help_and_is_wrong_usage() -> None:
    told = cli_here()
    assert told.code == 2
    assert told.out == ""
    assert "Get started:" in told.err


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    told = cli_here("cylce")
    assert told.code == 2
    assert told.err == "error: no command 'cylce', did you mean cycle? See ralph --help\n"


@pytest.mark.parametrize("words", [("run", "--allow-dirt"), ("journal", "lst"), ("agent", "task", "redy")])
def test_what_help_hides_is_never_suggested(words: tuple[str, ...]) -> None:
    told = cli_here(*words)
    assert told.code in (2, 64) and "no such" in told.err and "ean" not in told.err.partition("See ")[0]


def test_what_help_shows_is_suggested() -> None:
    assert "'--max-iterations'" in cli_here("run", "--max-iteration", "1").err
    assert "'label'" in cli_here("issue", "labl").err


def test_wrong_usage_is_one_json_document_when_asked() -> None:
    told = cli_here("cycle", "--frge", "local", "--json")
    assert told.code == 2
    assert told.json["error"]["who"] == "you"
    assert told.json["error"]["next"] == "see ralph cycle --help"


def test_python_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ralph_mission", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "ralph,")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    told = cli_here("completion", shell)
    assert told.code == 0
    assert f"_RALPH_COMPLETE={shell}_complete" in told.out


def test_a_shell_completes_commands() -> None:
    environment = {"_RALPH_COMPLETE": "bash_complete", "COMP_WORDS": "ralph stat", "COMP_CWORD": "1"}
    told = cli(env=os.environ | environment)
    assert told.out.split() == ["plain,status"]


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    told = cli_here("cycle", repo=tmp_path)
    assert told.code == 2
    assert "is not a git repository" in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("environ", "what"),
    [
        ({}, "GITHUB_REPOSITORY is not set"),
        ({"GITHUB_REPOSITORY": "o/n"}, "GITHUB_TOKEN is not set"),
        ({"GITHUB_REPOSITORY": "../n", "GITHUB_TOKEN": "t"}, "GITHUB_REPOSITORY is '../n'"),
        ({"GITHUB_REPOSITORY": "o/n", "GITHUB_TOKEN": "a\nb"}, "GITHUB_TOKEN holds a space or a line break"),
        (
            {"GITHUB_REPOSITORY": "o/n", "GITHUB_TOKEN": "t", "GITHUB_API_URL": "http://example.org"},
            "GITHUB_API_URL is not an https address",
        ),
        (
            {"GITHUB_REPOSITORY": "o/n", "GITHUB_TOKEN": "t", "GITHUB_API_URL": "https://u:p@example.org"},
            "GITHUB_API_URL is not an https address",
        ),
    ],
)
def test_github_without_its_environment_is_wrong_usage(tmp_path: Path, environ: dict[str, str], what: str) -> None:
    told = cli_here("cycle", "--forge", "github", "--json", repo=make_repo(tmp_path), env=environ)
    assert told.code == 2
    assert told.json["error"]["what"] == what


@pytest.mark.parametrize("now", ["tomorrow", "2026-13-01", "0001-01-01", "9999-12-31T23:59:59Z", "\x1b[31m"])
@pytest.mark.parametrize("command", ["cycle", "due"])
def test_a_moment_that_is_none_is_wrong_usage(tmp_path: Path, command: str, now: str) -> None:
    told = cli_here(command, "--now", now, repo=make_repo(tmp_path))
    assert told.code == 2
    assert told.err.startswith("error: --now")
    assert "\x1b" not in told.err
