"""The user whose checkout it is, as git knows them; on a runner nobody is at home."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.adapters.workspace.land import User
from tests.helpers import git, make_repo


@pytest.mark.attack(41)
@pytest.mark.parametrize("on_github", [False, True])
def test_on_a_runner_no_settings_of_a_home_are_heard(
    on_github: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo")
    settings = tmp_path / "settings"
    settings.write_text('[user]\n\tname = Left Here\n\temail = left@example.org\n[filter "x"]\n\tclean = evil\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GITHUB_ACTIONS", "true" if on_github else "")
    found = User.of(Git.open(repo))
    assert (found.identity.name == "Left Here") is not on_github
    assert ("filter.x.clean=evil" in found.settings) is not on_github
    assert ("core.excludesfile=/dev/null" in found.settings) is on_github


def test_who_is_named_nowhere_is_ralph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    repo = make_repo(tmp_path / "repo")
    assert User.of(Git.open(repo)).identity == Identity()
    git(repo, "config", "user.name", "Mara")
    assert User.of(Git.open(repo)).identity == Identity()
    git(repo, "config", "user.email", "mara@example.org")
    assert User.of(Git.open(repo)).identity == Identity("Mara", "mara@example.org")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Nora")
    assert User.of(Git.open(repo)).identity == Identity("Nora", "mara@example.org")
