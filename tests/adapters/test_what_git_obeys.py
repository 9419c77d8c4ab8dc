"""What git obeys when we call it: our settings, and nothing of the repository, the user or our own environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import Remote
from tests.helpers import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Git:
    return Git.open(make_repo(tmp_path / "repo"))


@pytest.mark.parametrize(
    ("setting", "hostile", "ours"),
    [
        ("core.fsmonitor", "/elsewhere/run-me", "false"),
        ("core.hooksPath", "/elsewhere/hooks", "/dev/null"),
        ("core.attributesFile", "/elsewhere/attributes", "/dev/null"),
        ("diff.external", "/elsewhere/run-me", ""),
        ("protocol.allow", "always", "never"),
        ("submodule.recurse", "true", "false"),
        ("commit.gpgSign", "true", "false"),
    ],
)
@pytest.mark.attack(41, 47, 48)
def test_what_the_repository_sets_is_not_obeyed(repo: Git, setting: str, hostile: str, ours: str) -> None:
    git(repo.common_dir, "config", setting, hostile)
    assert repo.text("config", "--get", setting) == ours


@pytest.mark.attack(41, 43)
def test_git_sees_a_path_and_nothing_else_of_ours(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_canary")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/elsewhere/settings")
    told = dict(line.partition("=")[::2] for line in repo.text("-c", "alias.told=!env", "told").splitlines())
    ours = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    assert {name: told.get(name) for name in ours} == ours
    assert "ghp_canary" not in told.values()


def environment_for_server(repo: Git, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a git that asks a server: one on the path writes it down instead."""
    program, log = folder / "bin" / "git", folder / "environment"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase " $* " in *" ls-remote "*) env > {log}; exit 0;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert Remote(repo, "https://git.example/o/r.git", "ghp_token").heads() == {}
    return dict(line.partition("=")[::2] for line in log.read_text().splitlines())


@pytest.mark.attack(42, 43, 60)
def test_a_token_goes_to_its_server_alone(repo: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    told = environment_for_server(repo, tmp_path, monkeypatch)
    pins = {
        told[f"GIT_CONFIG_KEY_{place}"]: told[f"GIT_CONFIG_VALUE_{place}"]
        for place in range(int(told["GIT_CONFIG_COUNT"]))
    }
    assert {"credential.helper": "", "core.askPass": "", "http.followRedirects": "false"}.items() <= pins.items()
    assert [name for name in pins if name.endswith(".extraHeader")] == ["http.https://git.example/.extraHeader"]
    assert "canary" not in told.values()
