"""`ralph init`: a file that loads and fits the repository."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.commands.recipes import RECIPES
from ralph_mission.cli.setup_files import render_settings
from ralph_mission.config.reading import load, read
from ralph_mission.config.settings import Config
from ralph_mission.mission.model.mission import Limits
from tests.helpers import cli_here, git, make_repo


def test_the_file_loads_without_warnings(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", repo=repo)
    assert told.code == 0
    assert read(Git.open(repo)).warnings == ()


def test_it_says_what_else_it_did(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", repo=repo)
    assert ".git/info/exclude" in told.out
    (repo / ".ralph").mkdir()
    (repo / ".ralph" / "x").touch()
    assert git(repo, "status", "--porcelain") == "?? ralph.yml"


def test_an_exclude_file_keeps_its_lines_and_gets_ours_once(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    exclude = repo / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.swp")
    cli_here("init", repo=repo)
    cli_here("init", "--force", repo=repo)
    assert exclude.read_text() == "*.swp\n/.ralph/\n"


def test_a_file_that_is_there_and_differs_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    told = cli_here("init", repo=repo)
    assert told.code == 2
    assert "ralph.yml is there already, and nothing was written" in told.err and "--force" in told.err
    assert (repo / "ralph.yml").read_text() == "owners: [mara]\n"
    assert git(repo, "status", "--porcelain") == "?? ralph.yml"


def test_force_overwrites(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text("owners: [mara]\n")
    assert cli_here("init", "--force", repo=repo).code == 0
    assert read(Git.open(repo)).owners == ()


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    (repo / "ralph.yml").symlink_to(target)
    assert cli_here("init", "--force", repo=repo).code == 2
    assert target.read_text() == "mine"


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare")
    told = cli_here("init", repo=tmp_path)
    assert told.code == 2
    assert "is bare" in told.err


def test_a_tool_that_is_here_is_switched_on(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": ""})
    told = cli_here("init", "--json", repo=repo)
    assert told.json["commands"] == ["ruff"]
    assert [command.name for command in read(Git.open(repo)).observers.commands] == ["ruff"]


def test_a_tool_that_is_not_here_is_written_as_a_comment(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": ""})
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(str(shutil.which("git")))
    told = cli_here("init", "--json", repo=repo, env={"PATH": str(bare)})
    assert told.json["commands"] == []
    assert read(Git.open(repo)).observers.commands == ()
    assert "    # - name: ruff\n" in (repo / "ralph.yml").read_text()


def test_every_recipe_is_written_so_that_it_loads() -> None:
    names = [command.name for command in load(render_settings(RECIPES)).observers.commands]
    assert names == [recipe.settings["name"] for recipe in RECIPES]


def test_a_commented_recipe_loads_once_it_is_uncommented() -> None:
    text = render_settings(RECIPES[:1], RECIPES[1:])
    uncommented = re.sub(r"^    # ((?:-|  ).*)$", r"    \1", text, flags=re.MULTILINE)
    assert len(load(uncommented).observers.commands) == len(RECIPES)


def test_what_is_commented_out_shows_the_default() -> None:
    text = re.sub(r"^( *)# ([a-z]+: .*)$", r"\1\2", render_settings(()), flags=re.MULTILINE)
    config = load(text)
    assert text != render_settings(())
    assert config.limits.limits() == Limits()
    assert (config.schedule, config.memory, config.forge) == (Config().schedule, Config().memory, Config().forge)
    assert config.hands.fixers == Config().hands.fixers
    assert config.observers.code.markers == Config().observers.code.markers
