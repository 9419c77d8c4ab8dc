"""`ralph run` plays sessions and checks at the level that the owner wrote, and says which one it is."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.cli.loop.run import team_script
from tests.cli import loop_world
from tests.cli.loop_world import ONE_STORY, World, until, world
from tests.helpers import cli_here, git
from tests.integration.isolation_attacks import level_or_skip, place

ONE = ("build it", "--max-iterations", "1")
LOOK = "ls / > seen.txt"


@pytest.fixture
def here() -> Iterator[World]:
    with place() as made:
        yield world(made.root / "there")


@pytest.fixture(params=["env", "bwrap"])
def level(request: pytest.FixtureRequest) -> str:
    return level_or_skip(request.param)


@pytest.fixture
def strong() -> str:
    return level_or_skip("bwrap")


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
    told = run(here, f"{LOOK}; ralph agent emit build.done x >&2; git add -A; git commit -qm made")
    assert told["isolation"].startswith(f"{level}: ") and f"isolation: {level}: " in told["said"].splitlines()[0]
    assert git(here.repo, "log", "-1", "--format=%s") == "made", told
    assert "build.done" in (here.repo / ".ralph/events.jsonl").read_text()
    assert ("sys" in (here.repo / "seen.txt").read_text().split()) == (level != "bwrap")


@pytest.mark.parametrize("environ", [{}, {"GITHUB_ACTIONS": "true"}], ids=["here", "on-github"])
def test_where_nothing_is_asked_for_it_is_bwrap_and_env_where_it_is(here: World, environ: dict[str, str]) -> None:
    level_or_skip("bwrap")
    assert run(here, LOOK, env=environ)["isolation"].startswith("bwrap: ")
    at(here, "env")
    assert run(here, LOOK, *ONE, env=environ)["isolation"].startswith("env: ")


def test_where_nothing_is_asked_for_and_there_is_no_bwrap_one_line_says_what_stays_open(here: World) -> None:
    done = run(here, LOOK)  # no test has it that does not ask for it
    (line,) = (line for line in done["said"].splitlines() if "isolation: " in line)
    assert done["isolation"].startswith("env: ") and "stay open to it" in line and "bwrap" in line
    refused = run(here, "touch played", *ONE, env={"GITHUB_ACTIONS": "true"})
    assert "no agent runs on GitHub without isolation" in refused["error"]["what"]
    assert not (here.repo / "played").exists()


def test_a_level_that_cannot_be_had_ends_it_before_anything_is_played(here: World) -> None:
    tools = here.aside / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    at(here, "bwrap")
    told = run(here, "touch played", env={"PATH": str(tools)})
    assert told["exit"] != 0 and "bubblewrap" in told["error"]["what"] and "install" in told["error"]["next"]
    assert not (here.repo / "played").exists()


def test_a_credential_of_the_repository_is_not_there_in_a_clone(here: World) -> None:
    at(here, level_or_skip("bwrap"))
    git(here.repo, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic abc")
    lookups = f"(git config --list; cat {here.repo}/.git/config; ls -a {here.repo}) > seen.txt 2>&1; true"
    assert run(here, lookups)["exit"] == 2
    seen = (here.repo / "seen.txt").read_text()
    assert "user.name=Mara Quint" in seen and "basic" not in seen and "README.md" not in seen


def test_whoever_takes_over_is_kept_apart_too(here: World, strong: str) -> None:
    (here.repo / "ralph.yml").write_text(f"hands: {{agent: {{kind: gemini, fallback: [codex], sandbox: {strong}}}}}\n")
    tools = here.aside / "tools"
    tools.mkdir()
    for name, does in (("gemini", "exec no-such-program"), ("codex", f"{LOOK}; touch {here.aside}/out")):
        (tools / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo 1\n{does}\n')
        (tools / name).chmod(0o755)
    done = here.run(
        *ONE, env={"PATH": f"{tools}:{os.environ['PATH']}", "GEMINI_API_KEY": "a-key", "OPENAI_API_KEY": "a-key"}
    )
    assert (here.repo / "seen.txt").exists(), done.err
    assert not (here.aside / "out").exists()


@pytest.mark.long  # a variation; levels have their own tests
def test_those_who_play_apart_are_kept_apart_in_their_clones(here: World, strong: str) -> None:
    at(here, strong)
    git(here.repo, "add", "-A")
    git(here.repo, "commit", "-qm", "settings")
    play = team_script("ultrawork")
    for steps in play["hats"].values():
        for step in steps:
            harm = f'touch {here.aside}/out || true; [ -z "$RALPH_TASK" ] || touch {here.repo}/out || true'
            step["run"] = [*step.get("run", ()), f"{harm}; ls / >> $HOME/who"]
    script = here.aside / "script.json"
    script.write_text(json.dumps(play))
    done = here.run("build it", "--pattern", "ultrawork", "--agent", "scripted", "--command", str(script))
    assert json.loads(done.out)["ending"] == "complete", done.err
    apart = [place.read_text().split() for place in here.repo.glob(".ralph/loop/apart/*/who")]
    assert len(apart) > 1 and all("sys" not in seen for seen in apart)
    assert not (here.aside / "out").exists() and not (here.repo / "out").exists()


@pytest.mark.long  # a variation; levels have their own tests
def test_a_home_that_a_session_made_a_link_leads_nowhere(here: World, level: str) -> None:
    victim = here.aside / "victim"
    victim.mkdir()
    at(here, level)
    script = f"echo x > $HOME/mine || true; cd .ralph/loop && /bin/rm -rf home && ln -s {victim} home"
    told = run(here, script, "build it", "--max-iterations", "2")
    assert list(victim.iterdir()) == [] and told["sessions"] == 2
    linked = {one["path"] for one in told["reverted"] if one["how"] == "made a link"}
    assert linked == (set() if level == "bwrap" else {".ralph/loop/home"})  # there it is a mount, which stays


@pytest.mark.long  # a variation; levels have their own tests
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
    ours = here.repo / ".ralph"
    told = run(here, "".join(f"rm -rf {ours}/{name}; ln -s {victim} {ours}/{name}; " for name in names))
    linked = {one["path"] for one in told["reverted"]}
    assert linked >= {f".ralph/{name}" for name in names} if level == "env" else not linked, told
    assert cli_here("cycle", "--now", "2026-05-05T12:00:00Z", repo=here.repo).code == 0
    assert sorted(victim.rglob("*")) == before and (victim / "1" / "kept").read_text() == "mine"


def test_links_that_stand_where_a_run_writes_are_told_before_it_begins(here: World) -> None:
    (here.repo / ".ralph").symlink_to(here.aside)
    told = run(here, "touch played", *ONE)
    assert "is a link" in told["error"]["what"] and not (here.repo / "played").exists()


# --- checks --------------------------------------------------------------------------


def test_checks_run_what_a_session_wrote_and_are_kept_apart_as_it_is(here: World, level: str) -> None:
    at(here, level)
    check = f"sh ./check.sh; touch {here.aside}/out"
    told = run(here, f"echo 'ls / > .ralph/checked' > check.sh; {LOOK}", *ONE, "--verify", check)
    assert (here.aside / "out").exists() == (level == "env"), told
    places = (here.clone / ".ralph/checked", here.repo / "seen.txt")
    seen = [place.read_text().split() for place in places]
    assert {"sys" in names for names in seen} == {level == "env"}


def test_a_check_at_bwrap_has_nobody_to_talk_to(here: World) -> None:
    at(here, level_or_skip("bwrap"))
    listed = "grep -c : /proc/net/dev > .ralph/interfaces"
    run(here, "echo x > x", *ONE, "--verify", listed, env={"ANTHROPIC_API_KEY": "of-nobody"})
    assert (here.clone / ".ralph/interfaces").read_text() == "1\n"


# --- What a session did that it was not allowed to, as a process: it is gone afterwards, and the report says so. ---

SETTINGS = """
hats:
  builder: {triggers: [loop.start], publishes: [LOOP_COMPLETE], write_allowed: ['src/**']}
"""
FILES = {"ralph.yml": SETTINGS, "README.md": "# Shop\n", "kept.txt": "kept\n", "moved.txt": "one\ntwo\nthree\n",
         "linked.txt": "a file\n", "src/a.py": "x = 1\n"}  # fmt: skip  # one table
DONE = """print('<event topic="LOOP_COMPLETE">done</event>')"""
WAYS = f"""
path = pathlib.Path
path("src/a.py").write_text("x = 2\\n")
path("committed.txt").write_text("x")
subprocess.run(["git", "mv", "moved.txt", "renamed.txt"], check=True)
commit("Sneaked in")
path("README.md").write_text("# Mine\\n")
path("untracked.txt").write_text("x")
path("kept.txt").unlink()
path("linked.txt").unlink()
path("linked.txt").symlink_to("/etc/hostname")
path(".git/hooks/post-commit").parent.mkdir(exist_ok=True)
path(".git/hooks/post-commit").write_text("#!/bin/sh\\ntouch hooked\\n")
path(".git/hooks/post-commit").chmod(0o755)
subprocess.run(["git", "config", "core.pager", "touch paged"], check=True)
{DONE}
"""


def test_eight_ways_to_leave_the_globs_are_gone_afterwards_and_in_the_report(tmp_path: Path) -> None:
    shop = world(tmp_path, FILES)
    done = shop.run("build it", *shop.agent(WAYS))
    assert (done.code, done.json["sessions"]) == (0, 1), done.err
    told = {undone["path"]: undone["why"] for undone in done.json["reverted"]}
    files = {"committed.txt", "README.md", "untracked.txt", "kept.txt", "moved.txt", "renamed.txt", "linked.txt"}
    assert set(told) == files
    assert {told[path] for path in files} == {"builder may write src/** only"}
    assert {path: (shop.repo / path).read_text() for path in FILES} == {**FILES, "src/a.py": "x = 2\n"}
    assert not (shop.repo / "linked.txt").is_symlink()
    assert sorted(os.listdir(shop.repo)) == sorted([".git", ".ralph", *{path.split("/")[0] for path in FILES}])
    assert git(shop.repo, "diff", "--name-only", "main~1", "main") == "src/a.py"
    assert git(shop.repo, "status", "--porcelain") == ""
    assert not (shop.repo / ".git/hooks/post-commit").exists()
    assert "paged" not in (shop.repo / ".git/config").read_text()


COMMANDS = {
    "git push -f": "`git push -f`",
    "sh -c 'git push --force-with-lease'": "`git push --force-with-lease`",
    "env git push origin +main": "`git push origin +main`",
    'bash -lc "git push --force"': "`git push --force`",
    "rm -r -f /": "`rm -r -f /`",
}
"""What an agent runs, and what the report calls it."""


def test_commands_that_are_denied_are_refused_in_any_spelling_and_in_the_report(tmp_path: Path) -> None:
    shop = world(tmp_path)
    git(shop.repo, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    harmless = tmp_path / "bin/rm"  # the one that is found where nothing stands before it
    harmless.parent.mkdir()
    harmless.write_text("#!/bin/sh\nexit 0\n")
    harmless.chmod(0o755)
    agent = shop.agent(
        f"codes = [subprocess.run(command, shell=True).returncode for command in {list(COMMANDS)!r}]\n"
        "(here / 'codes').write_text(json.dumps(codes))\npathlib.Path('made.txt').touch()\nprint('LOOP_COMPLETE')"
    )
    done = shop.run("build it", *agent, env={"PATH": f"{harmless.parent}{os.pathsep}{os.environ['PATH']}"})
    assert done.code == 0, done.err
    refused = [(row["session"], row["why"].partition(" is denied by ")[0]) for row in done.json["refused"]]
    assert refused == [(1, why) for why in COMMANDS.values()]
    assert 0 not in json.loads((shop.aside / "codes").read_text())


# --- run killed ---

STORIES = 5
TAKES = 0.6  # seconds of a session and of the engine around it, or so: the moment is anywhere in there
NOTES = "story = todo()[0]\nwith (here / 'given').open('a') as file:\n    file.write(f'{story}\\n')\n"
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.crash) for seed in range(2, 12))]  # the whole takes long


@pytest.mark.long  # a variation; levels have their own tests
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_at_any_moment_and_nothing_is_redone(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shop = world(tmp_path)
    shop.stories(STORIES)
    asked = ["--prd", "--preset", "fresh", *shop.agent(NOTES + ONE_STORY)]
    process = shop.start(*asked)
    session = chance.randint(1, STORIES)
    until(lambda: len(shop.calls) >= session)
    time.sleep(chance.uniform(0, TAKES))  # nothing to wait for: any moment will do
    shop.end(process)
    passed, before = committed(shop), len(given(shop))
    done = shop.run("--continue", *asked)
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    noted = (shop.repo / "progress.txt").read_text().count("- Passed in session")
    assert noted - done.json["sessions"] in (0, 1), done.err  # killed between the note and the count of a session
    assert noted in (STORIES, STORIES - 1)  # killed between a commit and its note: the story is done all the same
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in range(STORIES, 0, -1)] + ["Start"]
    assert not set(given(shop)[before:]) & set(passed)
    assert len(shop.calls) <= STORIES + 1


@pytest.mark.long  # a variation; levels have their own tests
def test_what_a_killed_write_left_beside_a_list_is_in_nobodys_way(tmp_path: Path) -> None:
    shop = world(tmp_path)
    shop.stories(1)
    for name in (".prd.json.27338", ".progress.txt.27342"):
        (shop.repo / name).write_text("half of")
    done = shop.run("--prd", "--preset", "fresh", *shop.agent(ONE_STORY))
    assert (done.code, shop.passing()) == (0, ["US-001"]), done.err
    assert not list(shop.repo.glob(".p*.*.*"))


DIES = """
import os, sys
from ralph_mission.cli.main import main
from ralph_mission.adapters.git.git import Git
move = Git.move_ref
def die(*given, **named):
    {after} and move(*given, **named)
    os.kill(os.getpid(), 9)
Git.move_ref = die
sys.exit(main())
"""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.long  # five seconds
def test_a_story_counts_when_its_own_commit_landed_whatever_a_person_commits_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    shop = world(tmp_path)
    shop.stories(2)
    asked = ["--prd", "--preset", "fresh", *shop.agent(ONE_STORY)]
    with monkeypatch.context() as patched:
        patched.setattr(loop_world, "RALPH", [sys.executable, "-c", DIES.format(after=after)])
        assert shop.start(*asked).wait() == -9
    git(shop.repo, "commit", "--quiet", "--allow-empty", "--message", "A person's")
    done = shop.run("--continue", *asked)
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    wanted = ["feat: US-002 - Part 2", "A person's", "feat: US-001 - Part 1", "Start"]
    redone = ["feat: US-002 - Part 2", "feat: US-001 - Part 1", "A person's", "Start"]
    assert shop.messages() == (wanted if after else redone)


def given(shop: World) -> list[str]:
    """The story of each session, in order."""
    path = shop.aside / "given"
    return path.read_text().split() if path.exists() else []


def committed(shop: World) -> list[str]:
    """The stories that have their commit."""
    return [message.split()[1] for message in shop.messages() if message.startswith("feat: ")]


@pytest.mark.long  # a variation; levels have their own tests
def test_what_a_killed_run_left_running_is_ended_by_the_next(tmp_path: Path) -> None:
    shop = world(tmp_path)
    shop.stories(1)
    pid = shop.aside / "pid"
    lingers = f"import time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    process = shop.start("--prd", "--preset", "fresh", *shop.agent(lingers))
    until(pid.exists)
    process.kill()
    process.communicate()
    agent = Path("/proc") / pid.read_text()
    assert agent.exists()
    done = shop.run("--continue", "--prd", "--preset", "fresh", *shop.agent(ONE_STORY))
    assert done.code == 0, done.err
    until(lambda: not agent.exists())  # whoever collects the dead may take a moment


@pytest.mark.parametrize("leaves", ["pathlib.Path('prd.json').write_text('')", "os.unlink('prd.json')"])
@pytest.mark.long  # six seconds
def test_a_kill_in_the_middle_of_a_write_of_the_stories_loses_none(tmp_path: Path, leaves: str) -> None:
    shop = world(tmp_path)
    shop.stories(3)
    halfway = shop.aside / "halfway"
    dies = f"if call == 2:\n    {leaves}\n    pathlib.Path({str(halfway)!r}).touch()\n    time.sleep(600)\n"
    asked = ["--prd", "--preset", "fresh", *shop.agent(dies + ONE_STORY)]
    process = shop.start(*asked)
    until(halfway.exists)
    shop.end(process)
    done = shop.run("--continue", *asked)
    assert (done.code, shop.passing()) == (0, ["US-001", "US-002", "US-003"]), done.err
    assert "prd.json" in (shop.aside / "prompt-3").read_text()
