"""A set-up that attacks: packages' own scripts run there with the network, and get nothing besides their clone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.projects.setup import LentSetup
from ralph_mission.adapters.workspace.clone import clone
from ralph_mission.app import workplaces
from ralph_mission.config.settings import Config
from tests.cli.loop_world import until
from tests.helpers import git, make_repo
from tests.integration.isolation_attacks import TOKEN, Place, level_or_skip, place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A machine with a token in its environment and a key in its home."""
    level_or_skip("bwrap")
    with place() as made:
        (made.root / "user/.ssh").mkdir(parents=True)
        (made.root / "user/.ssh/id_ed25519").write_text(TOKEN)
        (made.root / "user/.npmrc").write_text(f"//registry.example/:_authToken={TOKEN}\n")
        monkeypatch.setenv("HOME", str(made.root / "user"))
        for name in ("GITHUB_TOKEN", "ANTHROPIC_API_KEY", "NPM_TOKEN", "DATABASE_URL", "SSH_AUTH_SOCK"):
            monkeypatch.setenv(name, TOKEN)
        monkeypatch.setenv("PIP_INDEX_URL", f"https://user:{TOKEN}@index.example/simple")
        make_repo(made.root / "repo", {"a.txt": "one\n", "package.json": "{}\n"})
        yield made


def attack(here: Place, script: str) -> tuple[LentSetup, dict[str, bytes]]:
    """What was lent after a set-up by `script`, and all files of the clone that got it, its `.git` too."""
    repo = Git.open(here.root / "repo")
    settings = Config.model_validate({"hands": {"setup": [script]}})
    setup = workplaces.project_setup(settings, repo, repo.state_dir / "setup")
    head = git(here.root / "repo", "rev-parse", "HEAD")
    with clone(repo, head, here.root) as folder:
        lent = setup.lend(head, folder, here.root / "tools")
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return lent, files


def checkout(here: Place) -> dict[str, bytes]:
    """All files of the user's repository, but for what set-ups are kept in."""
    repo = here.root / "repo"
    return {
        str(p.relative_to(repo)): p.read_bytes()
        for p in repo.rglob("*")
        if p.is_file() and ".ralph" not in p.relative_to(repo).parts
    }


def test_it_writes_nowhere_but_into_its_clone(here: Place) -> None:
    before = checkout(here)
    targets = [
        here.ours / "x",
        here.root / "x",
        here.root / "user/.bashrc",
        here.root / "repo/a.txt",
        Path("/tmp/ralph-x"),
    ]
    attack(here, "; ".join(f"echo x >> '{target}'" for target in targets) + "; echo fine > made")
    assert checkout(here) == before
    assert not any(target.exists() for target in targets if target.name != "a.txt")


def test_it_reads_no_credential_of_environment_or_home(here: Place) -> None:
    places = " ".join(f"'{here.root}/user/{name}'" for name in (".ssh/id_ed25519", ".npmrc"))
    _, files = attack(
        here, f"env > seen; cat {places} ~/.ssh/* ~/.npmrc >> seen 2>&1; cat /proc/*/environ >> seen; true"
    )
    assert b"CI=1" in files["seen"]
    assert TOKEN.encode() not in files["seen"]


def runs(mark: str) -> bool:
    """Whether a program runs that was started with this word."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended
            if mark.encode() in file.read_bytes().split(b"\0"):
                return True
    return False


def test_it_leaves_no_daemon(here: Place) -> None:
    mark = f"daemon-{here.root.name}"
    _, files = attack(
        here,
        f"(setsid sh -c 'touch begun; while :; do /bin/sleep 1; done' {mark} >/dev/null 2>&1 &); "
        "until [ -e begun ]; do sleep 0.02; done",
    )
    assert "begun" in files
    until(lambda: not runs(mark))


def test_the_git_of_the_checkout_and_of_later_clones_is_not_its_to_change(here: Place) -> None:
    plain = checkout(here), set(attack(here, "true")[1])
    script = (
        "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch owned' > .git/hooks/post-checkout; chmod +x .git/hooks/*; "
        "git config core.fsmonitor /bin/false; git config filter.x.smudge 'touch owned'; "
        "echo '* filter=x' > .git/info/attributes; git commit --allow-empty -qm x; "
        f"for f in config hooks/pre-commit; do echo x >> '{here.root}/repo/.git/'$f; done; true"
    )
    lent, files = attack(here, script)
    assert (checkout(here), set(files)) == plain and lent.names == ()
    assert b"fsmonitor" not in files[".git/config"]


def test_files_of_the_commit_and_links_out_of_the_clone_bring_nothing(here: Place) -> None:
    (here.ours / "secret").write_text(TOKEN)
    _, files = attack(here, f"echo evil > a.txt; ln -s '{here.ours}' out; echo x > out/y; cat out/secret > copy; true")
    assert files["a.txt"] == b"one\n" and not (here.ours / "y").exists()
    assert files["copy"] == b""


def test_what_one_set_up_leaves_cannot_be_changed_by_those_it_is_lent_to(here: Place) -> None:
    attack(here, "mkdir m; echo good > m/f")
    (kept,) = (here.root / "repo/.ralph/setup").glob("*/tree/m/f")
    assert kept.read_text() == "good\n" and os.stat(kept).st_nlink == 1
