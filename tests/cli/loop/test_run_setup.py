"""`ralph run` begins with what the project's set-up installed: sessions and checks find it, and no change holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.loop_world import World, world
from tests.helpers import cli_here, commit, git
from tests.integration.isolation_attacks import level_or_skip, place

INSTALL = """
echo x > installs; mkdir -p node_modules/.bin $HOME/.cargo
printf '#!/bin/sh\\ngrep -q good src.txt' > node_modules/.bin/lint; chmod +x node_modules/.bin/lint
echo crate > $HOME/.cargo/crate
"""
SESSION = """
lint; echo first $? >> log.txt; cat $CARGO_HOME/crate >> log.txt
echo good > src.txt; git add -A; git commit -qm x
"""


@pytest.fixture(params=["env", "bwrap"])
def level(request: pytest.FixtureRequest) -> str:
    return level_or_skip(request.param)


@pytest.fixture
def here() -> Iterator[World]:
    with place() as made:
        yield world(made.root / "there")


def settle(here: World, level: str, setup: str, verify: str = "[lint]") -> None:
    text = f"hands:\n  setup: {json.dumps([setup])}\n  verify: {verify}\n  agent: {{kind: command, sandbox: {level}}}\n"
    commit(here.repo, {"ralph.yml": text, ".gitignore": "node_modules/\ninstalls\n.ralph/\n", "src.txt": "bad\n"})


def run(here: World, script: str, *options: str) -> Any:
    done = cli_here("run", "build it", "--max-iterations", "1", "--command", script, *options, "--json", repo=here.repo)
    return (json.loads(done.out) if done.out else {}) | {"said": done.err, "exit": done.code}


def test_sessions_and_checks_find_what_was_installed_and_the_change_holds_none_of_it(here: World, level: str) -> None:
    settle(here, level, INSTALL)
    told = run(here, SESSION)
    assert git(here.repo, "show", "HEAD:log.txt").splitlines() == ["first 1", "crate"], told["said"]
    files = git(here.repo, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert not any(name.startswith(("node_modules", ".ralph")) or name == "installs" for name in files)


def test_a_set_up_that_fails_ends_a_run_with_checks_before_any_session(here: World) -> None:
    settle(here, "env", "echo 'error: no package left-padd' >&2; exit 1")
    told = run(here, "echo played > played.txt")
    assert told["exit"] == 1 and "no package left-padd" in told["said"] and "hands.setup" in told["said"]
    assert not (here.repo / ".ralph/workspace/tree/played.txt").exists()


def test_without_checks_a_set_up_that_fails_is_a_note(here: World) -> None:
    settle(here, "env", "exit 3", verify="[]")
    told = run(here, "echo made > made.txt; git add -A; git commit -qm made")
    assert "sessions begin without it" in told["said"]
    assert git(here.repo, "show", "HEAD:made.txt") == "made"
