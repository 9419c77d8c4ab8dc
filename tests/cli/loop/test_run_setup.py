"""`ralph run` begins with what the project's set-up installed: sessions and checks find it, and no change holds it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.loop.test_run_teams import BUILDS, SAYS
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


def test_a_set_up_that_failed_is_tried_again_by_the_next_run_of_a_person(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = here.repo.parent / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    settle(here, "env", f"installer && ({INSTALL})")
    assert run(here, SESSION)["exit"] == 1
    (programs / "installer").write_text("#!/bin/sh\n")
    (programs / "installer").chmod(0o755)
    assert "checks green" in run(here, SESSION)["said"]


def test_without_checks_a_set_up_that_fails_is_a_note(here: World) -> None:
    settle(here, "env", "exit 3", verify="[]")
    told = run(here, "echo made > made.txt; git add -A; git commit -qm made")
    assert "sessions begin without it" in told["said"]
    assert git(here.repo, "show", "HEAD:made.txt") == "made"


@pytest.mark.long  # clones of a team, with an environment each
def test_members_of_a_team_find_what_was_installed_in_clones_of_their_own(here: World, level: str) -> None:
    settle(here, level, INSTALL)
    installed = 'write(task + ".txt", str(os.system("test -x node_modules/.bin/lint && which lint")))'
    done = here.run(
        "two files",
        "--pattern",
        "ultrawork",
        *here.agent(SAYS + BUILDS.replace('write(task + ".txt")', installed + '; write("src.txt", "good")')),
    )
    assert done.json and done.json["sessions"] >= 3, done.err
    assert (here.repo / "one.txt").read_text() == "0"
    files = git(here.repo, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert not any(name.startswith(("node_modules", ".ralph")) or name == "installs" for name in files)


def test_a_check_finds_no_link_that_leads_nowhere_and_the_next_session_finds_what_is_shared(
    here: World, level: str
) -> None:
    """Node's test runner fails at such a link."""
    settle(here, level, "true", verify=json.dumps(['test -z "$(find . -type l)"']))
    script = "ls .ralph/agent > /dev/null && echo x >> src.txt; git add -A; git commit -qm x"
    told = run(here, script, "--max-iterations", "2")
    assert told["said"].count("checks green") == 2 and git(here.repo, "show", "HEAD:src.txt") == "bad\nx\nx"


def test_a_run_says_first_which_checks_are_red_and_they_have_to_turn_green(here: World) -> None:
    settle(here, "env", "true", verify="['echo error: src is bad; grep good src.txt']")
    told = run(here, "echo good > src.txt; git add -A; git commit -qm x")
    assert "red before the first session: `echo error: src is bad; grep good src.txt`" in told["said"]
    assert "error: src is bad" in told["said"] and git(here.repo, "show", "HEAD:src.txt") == "good"


def test_packages_that_are_missing_in_many_places_end_a_run_before_any_session(here: World) -> None:
    check = "for n in react next swr a b; do echo Error: Cannot find module \\'$n\\'; done; exit 1"
    settle(here, "env", "true", verify=json.dumps([check]))
    told = run(here, "echo played > played.txt")
    assert told["exit"] == 1 and "not set up: react, next, swr" in told["said"] and "hands.setup" in told["said"]
    assert not (here.repo / ".ralph/workspace/tree/played.txt").exists()


def test_what_the_set_up_installed_lasts_where_the_repository_does_not_ignore_it(here: World, level: str) -> None:
    settle(here, level, INSTALL)
    commit(here.repo, {".gitignore": ".ralph/\n"})
    again = "lint; echo $? >> log.txt; git status --porcelain >> log.txt; echo >> src.txt; git add -A; git commit -qm x"
    told = run(here, again, "--max-iterations", "3")
    log = git(here.repo, "show", "HEAD:log.txt").splitlines()
    assert [line for line in log if not line.endswith("log.txt")] == ["1", "1", "1"], told["said"]
    files = git(here.repo, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert not {"node_modules/.bin/lint", "installs"}.intersection(files)


def test_an_ending_names_the_red_check_and_why_although_the_agent_says_that_it_is_done(here: World) -> None:
    settle(here, "env", "true", verify="[\"echo tidy; echo 'E   ModuleNotFoundError: no tides' >&2; exit 2\"]")
    told = run(here, "date +%N > moved.txt; echo LOOP_COMPLETE", "--max-iterations", "2")
    why = "exit 2: ModuleNotFoundError: no tides"
    assert told["ending"] == "iterations" and why in told["detail"], told
    assert "never ended with" not in told["detail"]
    assert f"{why})" in told["said"], "beside each session"
