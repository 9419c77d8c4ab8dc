"""`ralph init --uninstall`: what it wrote goes, what a person wrote stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.init_place import LOOP, hosted, states
from tests.helpers import cli_here, git, make_repo

pytestmark = pytest.mark.usefixtures("known_commit")


def test_uninstall_leaves_the_repository_as_it_was(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    before = sorted(path for path in repo.rglob("*") if path != repo / ".git" / "info")
    cli_here("init", "--wake", "timer", "--service", repo=repo)
    told = cli_here("init", "--uninstall", "--json", repo=repo)
    assert set(states(told).values()) == {"removed", "cleaned"}
    exclude = repo / ".git" / "info" / "exclude"
    assert exclude.read_text() == ""
    after = sorted(path for path in repo.rglob("*") if path not in (exclude, exclude.parent))
    assert after == before


def test_uninstall_keeps_and_names_what_was_edited(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    with (repo / "ralph.yml").open("a") as file:
        file.write("owners: [mara]\n")
    told = cli_here("init", "--uninstall", repo=repo)
    assert "kept " in told.out
    assert (repo / "ralph.yml").exists()
    assert not (repo / LOOP).exists()
    assert cli_here("init", "--uninstall", "--yes", repo=repo).code == 0
    assert not (repo / "ralph.yml").exists()


def test_uninstall_never_removes_what_init_did_not_write(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"ralph.yml": "owners: [mara]\n", LOOP: "on: push\n"})
    told = cli_here("init", "--uninstall", "--yes", "--json", repo=repo)
    assert set(states(told).values()) == {"kept"}
    assert git(repo, "status", "--porcelain") == ""


def test_line_endings_that_git_changed_are_no_edit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    (repo / LOOP).write_bytes((repo / LOOP).read_bytes().replace(b"\n", b"\r\n"))
    assert states(cli_here("init", "--uninstall", "--json", repo=repo))["ralph-loop.yml"] == "removed"


def test_uninstall_where_nothing_is_says_so(tmp_path: Path) -> None:
    told = cli_here("init", "--uninstall", repo=make_repo(tmp_path))
    assert (told.code, told.out) == (0, "there is nothing of ralph init here\n")
