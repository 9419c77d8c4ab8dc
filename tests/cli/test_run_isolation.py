"""`ralph run` plays sessions and checks at the level that the owner wrote, and says which one it is."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from ralph_mission.gateways import isolation_uid as users
from ralph_mission.loop import rehearsal
from tests.cli.loop_world import World, until, world
from tests.gateways.test_isolation import owners
from tests.helpers import cli_here, git
from tests.integration.isolation_attacks import level_or_skip, place

ONE = ("build it", "--max-iterations", "1")
WHO = "id -u > who.txt; ls / > seen.txt"
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root plays sessions as another user")


@pytest.fixture
def here() -> Iterator[World]:
    """A repository where another user may get to."""
    with place() as made:
        yield world(made.root / "there")


@pytest.fixture(params=["env", "uid", "bwrap"])
def level(request: pytest.FixtureRequest) -> str:
    return level_or_skip(request.param)


@pytest.fixture(params=["uid", "bwrap"])
def strong(request: pytest.FixtureRequest) -> str:
    return level_or_skip(request.param)


STRONGEST = pytest.mark.parametrize(
    "strong",
    [pytest.param("uid", marks=pytest.mark.long), "bwrap"],  # takes two seconds for each
    indirect=True,
)


def at(here: World, level: str, more: str = "") -> None:
    (here.repo / "ralph.yml").write_text(f"hands: {{agent: {{kind: command, sandbox: {level}}}}}\n{more}")


def run(here: World, script: str, *options: str, env: dict[str, str] | None = None) -> Any:
    """A run in this process, which is quicker than one of its own."""
    done = cli_here("run", *(options or ONE), "--command", script, "--json", repo=here.repo, env=env)
    assert done.out, done.err
    return json.loads(done.out) | {"said": done.err, "exit": done.code}


# --- sessions ------------------------------------------------------------------------


def test_a_session_plays_at_the_level_that_is_asked_for_and_the_report_says_so(here: World, level: str) -> None:
    at(here, level)
    told = run(here, f"{WHO}; ralph emit build.done x >&2; git add -A; git commit -qm made")
    assert told["isolation"].startswith(f"{level}: ") and f"isolation: {level}: " in told["said"].splitlines()[0]
    assert git(here.repo, "log", "-1", "--format=%s") == "made", told
    assert "build.done" in (here.repo / ".ralph/events.jsonl").read_text()
    assert (int((here.repo / "who.txt").read_text()) == os.getuid()) == (level == "env" or os.getuid() != 0)
    assert owners(here.repo) == {os.getuid()}
    assert ("sys" in (here.repo / "seen.txt").read_text().split()) == (level != "bwrap")


def test_on_github_it_is_the_strongest_that_is_there(here: World) -> None:
    strongest = level_or_skip("bwrap")
    told = run(here, WHO, env={"GITHUB_ACTIONS": "true"})
    assert told["isolation"].startswith(strongest)
    at(here, "env")
    told = run(here, WHO, *ONE, "--allow-dirty", env={"GITHUB_ACTIONS": "true"})
    assert told["isolation"].startswith("env")


def test_a_level_that_cannot_be_had_ends_it_before_anything_is_played(here: World) -> None:
    tools = here.aside / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    at(here, "bwrap")
    told = run(here, "touch played", env={"PATH": str(tools)})
    assert told["exit"] != 0 and "bubblewrap" in told["error"]["what"] and "install" in told["error"]["next"]
    assert not (here.repo / "played").exists()


def test_a_credential_in_the_checkout_is_named_before_anything_is_played(here: World, strong: str) -> None:
    at(here, strong)
    git(here.repo, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic abc")
    told = run(here, "touch played")
    assert "credential" in told["error"]["what"] and "persist-credentials: false" in told["error"]["next"]
    assert not (here.repo / "played").exists()


@STRONGEST
def test_whoever_takes_over_is_kept_apart_too(here: World, strong: str) -> None:
    (here.repo / "ralph.yml").write_text(f"hands: {{agent: {{kind: gemini, fallback: [codex], sandbox: {strong}}}}}\n")
    tools = here.aside / "tools"
    tools.mkdir()
    for name, does in (("gemini", "exec no-such-program"), ("codex", f"{WHO}; touch {here.aside}/out")):
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    done = here.run(*ONE, env={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert (here.repo / "who.txt").exists(), done.err
    assert not (here.aside / "out").exists()


@STRONGEST
def test_those_who_play_apart_are_kept_apart_in_their_clones(here: World, strong: str) -> None:
    at(here, strong)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "settings")
    play = rehearsal.script("ultrawork")
    for steps in play["hats"].values():
        for step in steps:
            harm = f'touch {here.aside}/out || true; [ -z "$RALPH_TASK" ] || touch {here.repo}/out || true'
            step["run"] = [*step.get("run", ()), f"{harm}; id -u >> $HOME/who"]
    script = here.aside / "script.json"
    script.write_text(json.dumps(play))
    done = here.run("build it", "--pattern", "ultrawork", "--agent", "scripted", "--command", str(script))
    assert json.loads(done.out)["ending"] == "complete", done.err
    apart = [place.read_text().split() for place in here.repo.glob(".ralph/loop/apart/*/who")]
    assert len(apart) > 1 and (os.getuid() != 0 or all("0" not in who for who in apart))
    assert not (here.aside / "out").exists() and not (here.repo / "out").exists()
    assert owners(here.repo) == {os.getuid()}


def test_a_home_that_a_session_made_a_link_leads_nowhere(here: World, level: str) -> None:
    victim = here.aside / "victim"
    victim.mkdir()
    at(here, level)
    script = f"echo x > $HOME/mine || true; cd .ralph/loop && rm -rf home && ln -s {victim} home"
    told = run(here, script, "build it", "--max-iterations", "2")
    assert list(victim.iterdir()) == [] and told["sessions"] == 2
    linked = {one["path"] for one in told["reverted"] if one["how"] == "made a link"}
    assert linked == (set() if level == "bwrap" else {".ralph/loop/home"})  # there it is a mount, which stays


@pytest.mark.parametrize(
    "name",
    ["shims", pytest.param("bin", marks=pytest.mark.long)],  # each level takes a second
)
def test_a_folder_of_its_home_that_a_session_made_a_link_leads_nowhere(here: World, level: str, name: str) -> None:
    victim = here.aside / "victim"
    victim.mkdir()
    at(here, level)
    told = run(here, f"rm -rf $HOME/{name}; ln -s {victim} $HOME/{name}", "build it", "--max-iterations", "2")
    assert list(victim.iterdir()) == [] and told["sessions"] == 2


def test_folders_of_ours_that_a_session_made_links_cost_nobody_a_file(here: World, level: str) -> None:
    victim = here.aside / "victim"
    for name in ("20200101-000000-old", "1"):
        (victim / name).mkdir(parents=True)
        (victim / name / "kept").write_text("mine")
    before = sorted(victim.rglob("*"))
    at(here, level)
    names = ("agent", "cache", "cycles", "forge", "missions")
    told = run(here, "".join(f"rm -rf .ralph/{name}; ln -s {victim} .ralph/{name}; " for name in names))
    assert {one["path"] for one in told["reverted"]} >= {f".ralph/{name}" for name in names}, told
    assert cli_here("cycle", "--now", "2026-05-05T12:00:00Z", repo=here.repo).code == 0
    assert sorted(victim.rglob("*")) == before and (victim / "1" / "kept").read_text() == "mine"


def test_links_that_stand_where_a_run_writes_are_told_before_it_begins(here: World) -> None:
    (here.repo / ".ralph").symlink_to(here.aside)
    told = run(here, "touch played", *ONE, "--allow-dirty")
    assert "is a link" in told["error"]["what"] and not (here.repo / "played").exists()


# --- checks --------------------------------------------------------------------------


def test_checks_run_what_a_session_wrote_and_are_kept_apart_as_it_is(here: World, level: str) -> None:
    at(here, level)
    check = f"sh ./check.sh; touch {here.aside}/out"
    told = run(here, f"echo 'id -u > checked' > check.sh; {WHO}", *ONE, "--verify", check)
    assert (here.aside / "out").exists() == (level == "env"), told
    ours = str(os.getuid())
    assert {(here.repo / name).read_text().strip() == ours for name in ("checked", "who.txt")} == {
        level == "env" or ours != "0"
    }


def test_a_check_at_bwrap_has_nobody_to_talk_to(here: World) -> None:
    at(here, level_or_skip("bwrap"))
    listed = "grep -c : /proc/net/dev > interfaces"
    run(here, "echo x > x", *ONE, "--verify", listed, env={"ANTHROPIC_API_KEY": "of-nobody"})
    assert (here.repo / "interfaces").read_text() == "1\n"


# --- after a kill --------------------------------------------------------------------


@root
@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("--worktree",), marks=pytest.mark.long)],  # takes four seconds
    ids=["in-place", "linked"],
)
def test_what_a_killed_run_left_to_its_user_is_taken_back(here: World, more: tuple[str, ...]) -> None:
    level_or_skip("uid")
    at(here, "uid")
    process = here.start("build it", *more, "--command", "echo half > half.txt; sleep 300")
    until(lambda: [*here.repo.rglob("half.txt")])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = owners(here.repo) - {0}
    assert left, "nothing was left"
    told = run(here, "echo whole > whole.txt", "build it", *more, "--continue", "--max-iterations", "2")
    assert told["exit"] == 2 and owners(here.repo) == {0}
    assert not [uid for uid in left if users.running(uid) and not users.in_use(uid)]  # tests beside it take it anew


@root
def test_what_a_killed_run_left_is_taken_back_by_any_command(here: World) -> None:
    gone = users.OURS[-1]  # the last one: tests beside this one hold the first ones
    os.chown(here.repo, gone, gone)
    os.chown(here.repo / "README.md", gone, gone)
    (here.repo / "theirs").touch()
    os.chown(here.repo / "theirs", 1234, 1234)
    assert here.ralph("cancel").code == 0
    assert owners(here.repo) == {0, 1234}


@root
def test_a_run_is_cancelled_while_its_session_works_as_another_user(here: World, strong: str) -> None:
    at(here, strong)
    process = here.start("build it", "--command", "echo half > half.txt; sleep 300")
    until(lambda: (here.repo / "half.txt").exists())
    for word in ("status", "doctor"):
        assert "a session works in" in (done := here.ralph(word)).out + done.err
    assert "was asked to cancel" in here.ralph("cancel").out
    assert json.loads(process.communicate(timeout=60)[0])["ending"] == "cancel"
    assert owners(here.repo) == {0}
