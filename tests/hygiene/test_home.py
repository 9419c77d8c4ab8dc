"""What stands in the home of a runner's user decides nothing of what an agent's work becomes there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git, Identity
from ralph_mission.adapters.workspace.land import User
from tests.helpers import make_repo

SETTINGS = (
    '[user]\n\tname = Mallory\n\temail = m@example.org\n[filter "lfs"]\n\tclean = harm\n[core]\n\tautocrlf = true\n'
)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A checkout of somebody who has settings of their own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(SETTINGS)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    return Git.open(make_repo(tmp_path / "repo"))


@pytest.mark.attack(41)
def test_on_a_runner_the_settings_of_its_home_are_not_heard(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert User.of(repo) == User(Identity(), (f"core.excludesfile={os.devnull}",))


def test_at_home_they_are(repo: Git) -> None:
    user = User.of(repo)
    assert user.identity == Identity("Mallory", "m@example.org")
    assert {"filter.lfs.clean=harm", "core.autocrlf=true"} <= set(user.settings)


@pytest.mark.attack(42)
def test_who_reads_them_is_told_no_secret(repo: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    real = subprocess.run

    def watched(*words: object, **more: object) -> object:
        seen.append(more["env"])  # type: ignore[arg-type]  # a mapping, or the test fails
        return real(*words, **more)  # type: ignore[call-overload]  # as it was called

    monkeypatch.setattr(subprocess, "run", watched)
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_canary")
    User.of(repo)
    assert seen and not [one for one in seen if "ghs_canary" in one.values()]
