"""Sessions at the same time: real clones, real processes, one merge; nobody's crash is another one's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.workspace.parallel import MEANWHILE
from ralph_mission.app import teams
from ralph_mission.app.run import build_run
from ralph_mission.app.run_options import RunOptions
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunResult
from ralph_mission.loop.model.state import Hat, LoopEvent, RunSnapshot, RunState, SessionUsage
from ralph_mission.loop.ports import ParallelResult, ParallelSession
from tests.cli.loop_world import World, world
from tests.helpers import commit, git, make_repo
from tests.loop.fakes import START_OF_TIME, FakeProgress

pytestmark = pytest.mark.long  # takes ten seconds or more

ANY = Hat("builder", publishes=("build.complete",), default_publishes="build.complete")
ALIKE = "i=0; until [ $(ls ../.. | grep -c here-) = 2 ]; do i=$((i+1)); [ $i -lt 600 ] || exit 9; sleep 0.05; done"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.py": "a\n", "b.py": "b\n", ".gitignore": "*.log\n"})


def made(repo: Path, command: str, agent: str = "command", **more):
    return build_run(RunOptions(repo, task="Build it.", agent=agent, command=command, **more), FakeProgress())


def together(
    repo: Path,
    command: str,
    *names: str,
    hat: Hat = ANY,
    may_start=lambda used: True,
    most: int = 4,
    artifacts: dict[str, str] | None = None,
) -> tuple[ParallelResult, ...]:
    base = made(repo, command)
    state = RunState("run", "Build it.", START_OF_TIME)
    jobs = [
        ParallelSession(
            name,
            base.spec,
            replace(state, iteration=number, pending=LoopEvent("plan.complete", name)),
            RunSnapshot(),
            hat,
            artifacts or {},
        )
        for number, name in enumerate(names)
    ]
    with base.store.exclusive(base.spec):
        return teams.pool(base, Git.open(repo), most).together(jobs, may_start)


def left_over(repo: Path) -> list[str]:
    """Clones that outlived their session."""
    return [place.name for place in (repo / ".ralph/apart").glob("*")]


def subjects(repo: Path) -> list[str]:
    return git(repo, "log", "--reverse", "--format=%s").split("\n")


# --- taking over ---------------------------------------------------------------------


def test_work_of_several_is_in_the_checkout_in_order_and_nothing_is_left_of_the_clones(repo):
    dones = together(repo, 'echo "$RALPH_TASK" > "$RALPH_TASK.txt"; rm -f "$RALPH_TASK.py"', "b", "a")
    assert [done.output.failure for done in dones] == ["", ""]
    assert subjects(repo) == ["Start", "Build it. (builder, session 1)", "Build it. (builder, session 2)"]
    assert ((repo / "a.txt").read_text(), (repo / "b.txt").read_text()) == ("a\n", "b\n")
    assert not (repo / "a.py").exists()
    assert git(repo, "status", "--porcelain") == "" and left_over(repo) == []
    assert git(repo, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_they_play_at_the_same_time(repo):
    """Each waits until it sees the other one."""
    dones = together(repo, f'touch "../../here-$RALPH_TASK"; {ALIKE}', "a", "b")
    assert [done.output.failure for done in dones] == ["", ""]


def test_a_conflict_leaves_out_the_later_one_whole_and_is_told(repo):
    dones = together(repo, 'echo "$RALPH_TASK" > shared.txt; echo x > "$RALPH_TASK.txt"', "one", "two")
    assert dones[0].conflicts == ()
    assert [(change.path, change.reverted) for change in dones[1].conflicts] == [("shared.txt", "one had it first")]
    assert (repo / "shared.txt").read_text() == "one\n" and not (repo / "two.txt").exists()


def test_uncommitted_work_of_a_person_is_never_overwritten(repo):
    meanwhile = f"""echo "a person's" > {repo}/a.py"""
    dones = together(repo, f'{meanwhile}; echo x > a.py; echo x > "$RALPH_TASK.txt"', "one")
    assert [change.path for change in dones[0].conflicts] == ["a.py"]
    assert (repo / "a.py").read_text() == "a person's\n" and not (repo / "one.txt").exists()


# --- harming nobody ------------------------------------------------------------------


def test_a_crash_takes_nothing_over_and_harms_nobody(repo):
    dones = together(repo, 'echo x > "$RALPH_TASK.txt"; [ "$RALPH_TASK" = good ] || exit 3', "bad", "good")
    assert [done.output.failure for done in dones] == ["exit", ""]
    assert not (repo / "bad.txt").exists() and (repo / "good.txt").exists()


def test_what_is_outside_of_a_hats_globs_is_undone_and_the_rest_is_taken_over(repo):
    own = replace(ANY, write_allowed=("a.py",))
    [done] = together(repo, "echo x > a.py; echo x > b.py; git config core.editor evil", "t", hat=own)
    assert {change.path for change in done.output.reverted} >= {"b.py"}
    assert ((repo / "a.py").read_text(), (repo / "b.py").read_text()) == ("x\n", "b\n")
    assert "evil" not in (repo / ".git/config").read_text()


def test_a_repository_within_the_clone_fails_its_job_and_no_other(repo):
    commits = "git -C sub -c user.name=x -c user.email=x commit -q --allow-empty -m x"
    nested = f'[ "$RALPH_TASK" = good ] || {{ git init -q sub; {commits}; }}'
    dones = together(repo, f'{nested}; echo x > "$RALPH_TASK.txt"', "bad", "good")
    assert dones[1].output.failure == "" and (repo / "good.txt").exists()
    assert not (repo / "sub").exists()


@pytest.mark.parametrize(
    "destroys", ["rm -rf .git .ralph", "echo > .git/HEAD", "rm -rf .git; git init -q .; echo '*' > .git/info/exclude"]
)
def test_a_session_that_destroys_its_clone_hides_nothing_by_it_and_harms_no_other(destroys, repo):
    own = replace(ANY, write_allowed=("good.txt",))
    dones = together(
        repo, f'[ "$RALPH_TASK" = good ] || {{ {destroys}; }}; echo x > "$RALPH_TASK.txt"', "bad", "good", hat=own
    )
    assert not (repo / "bad.txt").exists()
    assert dones[1].output.failure == "" and (repo / "good.txt").exists()
    assert subjects(repo) == ["Start", "Build it. (builder, session 2)"]


def test_papers_go_into_the_clone_and_come_back(repo):
    [done] = together(repo, "tr a-z A-Z < .ralph/plan.md > p; mv p .ralph/plan.md", "t", artifacts={"plan.md": "plan"})
    assert done.artifacts == {"plan.md": "PLAN"}
    assert not (repo / ".ralph/plan.md").exists() and git(repo, "status", "--porcelain") == ""


def test_who_may_not_start_does_not(repo):
    asked: list[SessionUsage] = []

    def twice(used: SessionUsage) -> bool:
        asked.append(used)
        return used.sessions < 2

    dones = together(repo, 'echo x > "$RALPH_TASK.txt"', *"abcd", may_start=twice, most=1)
    assert [done.output is not None for done in dones] == [True, True, False, False]
    assert [used.sessions for used in asked] == [0, 1, 2, 2]


def test_a_repository_without_a_commit_is_refused(tmp_path):
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "-q", "-b", "main", str(empty)], check=True)
    with pytest.raises(UserError, match="no commit to start from"):
        together(empty, "true", "t")


def test_what_a_person_commits_meanwhile_is_built_upon(repo):
    commits = f"cd '{repo}' && echo p > p.py && git add p.py && git commit -q -m moved"
    (done,) = together(repo, f"echo x > c.py; ({commits})", "t")
    assert not done.conflicts and subjects(repo)[-2:] == ["moved", "Build it. (builder, session 1)"]
    assert (repo / "c.py").read_text() == "x\n" and git(repo, "status", "--porcelain") == ""


def test_what_meets_a_commit_of_a_person_is_left_out_and_told(repo):
    commits = f"cd '{repo}' && echo p > a.py && git commit -q -a -m moved"
    (done,) = together(repo, f"echo x > a.py; ({commits})", "t")
    assert [(one.path, one.reverted) for one in done.conflicts] == [("a.py", MEANWHILE)]
    assert subjects(repo)[-1] == "moved" and (repo / "a.py").read_text() == "p\n"


def test_a_branch_that_was_rewritten_meanwhile_is_left_as_it_is_and_the_work_kept(repo):
    rewrites = 'git -C "$OUTSIDE" commit -q --amend -m moved; echo x > c.py'
    with pytest.raises(UserError, match="the branch moved while a session worked apart; what it built is in "):
        together(repo, rewrites.replace("$OUTSIDE", str(repo)), "t")
    assert subjects(repo)[-1] == "moved" and not (repo / "c.py").exists()
    (patch,) = (repo / ".ralph/aside").iterdir()
    git(repo, "apply", str(patch))
    assert (repo / "c.py").read_text() == "x\n"


# --- a person's word -----------------------------------------------------------------


def test_an_interrupt_ends_every_session_and_leaves_no_clone(repo, tmp_path):
    started = tmp_path / "started"
    started.mkdir()
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from pathlib import Path
from tests.adapters.workspace.test_parallel_pool import together
together(Path({str(repo)!r}), 'echo $$ > {started}/$RALPH_TASK; sleep 600', "a", "b")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    wait = threading.Event()
    while len([file for file in started.iterdir() if file.read_text().strip()]) < 2:
        assert process.poll() is None, process.stderr.read().decode()
        wait.wait(0.05)
    pids = [int(file.read_text()) for file in started.iterdir()]
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=300)[1]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert left_over(repo) == []


# --- whole stories -------------------------------------------------------------------


def script(tmp_path: Path, **hats) -> str:
    place = tmp_path / "script.json"
    place.write_text(json.dumps({"hats": hats}))
    return str(place)


def event(topic: str, payload: object = "", **more):
    return {"event": {"topic": topic, "payload": payload if isinstance(payload, str) else json.dumps(payload)}, **more}


def story(repo: Path, name: str, command: str, **more) -> RunResult:
    return teams.play(made(repo, command, "scripted", **more), name)


def test_a_story_of_several_hats_holds_the_checkout_like_any_other(repo, tmp_path):
    command = script(tmp_path, planner=[event("plan.complete")])
    base = made(repo, command, "scripted")
    with base.store.exclusive(base.spec), pytest.raises(UserError, match="works in this checkout"):
        story(repo, "ralplan", command)


def test_branches_and_commits_of_a_run_start_where_the_checkout_stands(repo):
    commit(repo, {"c.py": "c\n"})
    together(repo, "test -f c.py && echo more >> c.py", "t")
    assert (repo / "c.py").read_text() == "c\nmore\n"


# --- The checks of a project have a home that no session, and nothing a session wrote, has been in. ---

LIMIT = ("--max-iterations", "2")
GREEN = 'test -e "$HOME/green"'
CLAIMS = "change()\nflip(todo()[0])\n"
EVERYWHERE = """
for folder in (pathlib.Path(os.environ["HOME"]), *run_dir.rglob("*"), run_dir / "checks", run_dir / "checks/home"):
    if folder.is_dir() or not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "green").touch()
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """One story."""
    here = world(tmp_path)
    here.stories(1)
    return here


def stays_red(here: World, script: str, *checks: str) -> None:
    asked = [word for check in checks for word in ("--verify", check)]
    done = here.run("--prd", *LIMIT, *asked, *here.agent(script))
    assert (done.code, done.json["ending"]) == (2, "iterations"), done.err
    assert done.err.count("checks red") == 2
    assert here.passing() == []


def test_the_home_of_a_session_is_not_that_of_the_checks(shop: World) -> None:
    stays_red(shop, "(pathlib.Path(os.environ['HOME']) / 'green').touch()\n" + CLAIMS, GREEN)


def test_what_a_session_lays_into_any_folder_of_the_run_turns_no_check_green(shop: World) -> None:
    stays_red(shop, EVERYWHERE + CLAIMS, GREEN)


def test_what_its_code_leaves_when_it_is_checked_turns_no_later_check_green(shop: World) -> None:
    stays_red(shop, CLAIMS, f'{GREEN} || {{ touch "$HOME/green"; exit 1; }}')


def test_one_check_leaves_nothing_at_home_for_the_next(shop: World) -> None:
    stays_red(shop, CLAIMS, 'touch "$HOME/green"', GREEN)
