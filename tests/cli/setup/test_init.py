"""`ralph init`: a file that loads and fits the repository."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.adapters.observers.commands import RECIPES
from ralph_mission.cli.setup.files import ActionReference, action_of
from ralph_mission.cli.setup.settings import render_settings
from ralph_mission.config.reading import load, read
from ralph_mission.config.settings import Config
from ralph_mission.mission.model.mission import Limits
from tests.cli.init_place import LOOP, PINNED, SHA, hosted, install, states, workflow
from tests.helpers import cli_here, commit, git, make_repo


def test_the_file_loads_without_warnings(tmp_path: Path) -> None:
    repo = make_repo(tmp_path)
    told = cli_here("init", repo=repo)
    assert told.code == 0
    assert read(Git.open(repo), read_shared).warnings == ()


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
    assert read(Git.open(repo), read_shared).owners == ()


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
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": "[tool.ruff]\n"})
    told = cli_here("init", "--json", repo=repo)
    assert told.json["commands"] == ["ruff"]
    assert [command.name for command in read(Git.open(repo), read_shared).observers.commands] == ["ruff"]


def test_a_tool_that_the_project_does_not_use_is_left_out(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": "[tool.black]\n"})
    assert cli_here("init", "--json", repo=repo).json["commands"] == []


def test_a_tool_that_is_not_here_is_written_as_a_comment(tmp_path: Path) -> None:
    """That of ralph's own environment is here, though it is on no PATH."""
    repo = make_repo(tmp_path / "repo", {"pyproject.toml": "[tool.ruff]\n", "mypy.ini": "", "tsconfig.json": "{}"})
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(str(shutil.which("git")))
    told = cli_here("init", "--json", repo=repo, env={"PATH": str(bare)})
    assert "ruff" in told.json["commands"] and "types" not in told.json["commands"]
    assert "types" not in [one.name for one in read(Git.open(repo), read_shared).observers.commands]
    assert "    # - name: types\n" in (repo / "ralph.yml").read_text()


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


def test_checks_are_those_of_the_project_by_the_tool_of_its_lock_file(tmp_path: Path) -> None:
    scripts = {"scripts": {"lint": "eslint .", "test": "jest"}, "devDependencies": {"typescript": "5", "prisma": "6"}}
    files = {"package.json": json.dumps(scripts), "yarn.lock": "# yarn lockfile v1\n", "tsconfig.json": "{}"}
    repo = make_repo(tmp_path / "repo", files)
    told = cli_here("init", "--json", repo=repo)
    config = read(Git.open(repo), read_shared)
    assert config.hands.verify == ("yarn run lint", "yarn run test", "tsc --noEmit --pretty false")
    assert told.json["commands"] == ["types"] and config.observers.commands[0].setup
    text = (repo / "ralph.yml").read_text()
    assert "found here: yarn." in text and "npm ci" not in text


# --- `ralph init`: the action is named by a commit that somebody knows, and never by a name that nobody promised. ---


def vcs(url: str, commit: str) -> str:
    return json.dumps({"url": url, "vcs_info": {"vcs": "git", "commit_id": commit}})


@pytest.mark.parametrize(
    ("told", "action"),
    [
        (None, None),
        ("{", None),
        ('{"url": "https://files.example/x.zip", "archive_info": {}}', None),
        ('{"url": "file:///no/such/folder", "dir_info": {"editable": true}}', None),
        (vcs("https://git.example/x", SHA), None),
        (vcs("https://github.com/a/b", "main"), None),
        (vcs("https://github.com/a/b.git", SHA), ActionReference("a/b", SHA)),
    ],
)
def test_the_action_is_the_commit_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, told: str | None, action: ActionReference | None
) -> None:
    install(monkeypatch, told)
    assert action_of(None) == action


# --- an editable installation, as `make run` makes one in a clone -----------------------


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of the project's repository on GitHub, installed from there."""
    repo = make_repo(tmp_path / "a clone", {"action.yml": "name: ralph\n"})
    git(repo, "remote", "add", "origin", "https://github.com/mara/ralph_mission.git")
    git(repo, "update-ref", "refs/remotes/origin/main", "HEAD")
    install(monkeypatch, json.dumps({"url": repo.as_uri(), "dir_info": {"editable": True}}))
    return repo


def test_a_clone_runs_the_commit_that_its_remote_has(clone: Path) -> None:
    assert action_of(None) == ActionReference("mara/ralph_mission", git(clone, "rev-parse", "HEAD"))


def test_a_commit_that_was_never_pushed_is_named_to_nobody(clone: Path) -> None:
    commit(clone, {"x": "1"})
    assert action_of(None) is None


def test_a_fork_that_has_the_commit_is_the_one_that_is_named(clone: Path) -> None:
    pushed = commit(clone, {"x": "1"})
    git(clone, "remote", "add", "fork", "git@github.com:joe/fork.git")
    git(clone, "update-ref", "refs/remotes/fork/topic", pushed)
    assert action_of(None) == ActionReference("joe/fork", pushed)


def test_a_remote_elsewhere_names_nothing(clone: Path) -> None:
    git(clone, "remote", "set-url", "origin", "https://git.example/mara/ralph_mission")
    assert action_of(None) is None


def test_a_repository_that_only_holds_a_copy_of_it_is_not_taken_for_it(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "vendor").mkdir()
    install(monkeypatch, json.dumps({"url": (clone / "vendor").as_uri(), "dir_info": {"editable": True}}))
    assert action_of(None) is None


def test_a_repository_without_an_action_is_not_the_action(clone: Path) -> None:
    git(clone, "update-ref", "refs/remotes/origin/main", commit(clone, {"action.yml": None}))
    assert action_of(None) is None


# --- when nobody knows ------------------------------------------------------------------


@pytest.mark.usefixtures("unknown_commit")
def test_without_a_known_commit_all_but_the_workflow_is_written_and_naming_it_is_to_do(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    told = cli_here("init", repo=repo)
    assert told.code == 0
    assert (repo / "ralph.yml").exists() and not (repo / LOOP).exists()
    assert f"to do: {LOOP} is not written" in told.out
    command = rf"ralph init --repo {re.escape(str(repo))} --action OWNER/NAME@(?:[0-9a-f]{{40}}|COMMIT), where"
    assert re.search(command, told.out), "with the commit that is installed, if that is known"
    assert "Access for repositories of the same owner" in told.out
    assert "to do: Settings, Actions, General: allow GitHub Actions to create and approve pull requests" in told.out


@pytest.mark.usefixtures("unknown_commit")
def test_what_was_to_do_is_done_by_naming_the_commit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    told = cli_here("init", "--action", PINNED, "--json", repo=repo)
    assert states(told) == {"ralph.yml": "unchanged", "ralph-loop.yml": "new"}
    assert workflow(repo)["jobs"]["cycle"]["steps"][0]["uses"] == PINNED


@pytest.mark.usefixtures("unknown_commit")
def test_a_commit_that_was_named_once_stays_named(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", "--action", PINNED, repo=repo)
    assert states(cli_here("init", "--runner", "gpu", "--force", "--json", repo=repo))["ralph-loop.yml"] == "replaced"
    (job,) = workflow(repo)["jobs"].values()
    assert (job["steps"][0]["uses"], job["runs-on"]) == (PINNED, "gpu")


@pytest.mark.usefixtures("unknown_commit")
def test_a_step_of_somebody_else_is_never_taken_for_the_action(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    (repo / LOOP).parent.mkdir(parents=True)
    (repo / LOOP).write_text(f"on: push\njobs: {{}}\n      - uses: actions/checkout@{SHA}\n")
    assert "is not written" in cli_here("init", repo=repo).out


@pytest.mark.usefixtures("unknown_commit")
def test_units_are_written_without_a_known_commit(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    assert "ralph-wake@.timer" in states(cli_here("init", "--wake", "timer", "--json", repo=repo))
    assert not (repo / LOOP).exists()


@pytest.mark.parametrize("ref", ["v0.1.0", "main", SHA[:12]])
def test_a_name_that_may_move_is_refused_with_the_way_to_its_commit(tmp_path: Path, ref: str) -> None:
    repo = hosted(tmp_path)
    told = cli_here("init", "--action", f"mara/ralph_mission@{ref}", repo=repo)
    assert told.code == 2
    assert f"git ls-remote https://github.com/mara/ralph_mission {ref} '{ref}^{{}}'" in told.err
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.usefixtures("known_commit")
def test_nothing_that_is_used_can_move(tmp_path: Path) -> None:
    repo = hosted(tmp_path)
    cli_here("init", repo=repo)
    jobs = workflow(repo)["jobs"].values()
    assert {step["uses"] for job in jobs for step in job["steps"]} == {PINNED}


def test_a_check_that_nobody_installs_is_not_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    repo = make_repo(tmp_path / "repo", {"ruff.toml": "", "requirements.txt": "mypy\n", "mypy.ini": ""})
    cli_here("init", repo=repo)
    assert read(Git.open(repo), read_shared).hands.verify == ("mypy .",)


def test_checks_that_were_found_are_written_with_a_note_that_nobody_tried_them(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"package.json": '{"scripts": {"test": "mocha"}}', "package-lock.json": "{}"})
    told = cli_here("init", repo=repo)
    (check,) = read(Git.open(repo), read_shared).hands.verify
    assert f"(hands.verify): {check} (not tried)" in told.out
    assert "Not tried by `ralph init`" in (repo / "ralph.yml").read_text().partition("verify: [")[0]
