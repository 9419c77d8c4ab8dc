"""`ralph run` as a process: how it ends, and how it goes on."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import read_shared
from ralph_mission.adapters.report.loop_progress import PlainRunProgress
from ralph_mission.app.run import build_run
from ralph_mission.app.run_options import ResolvedRun, RunOptions, resolve_run
from ralph_mission.config.reading import read
from ralph_mission.loop import hats
from ralph_mission.loop.model.state import RESUME, LoopEvent
from ralph_mission.loop.rules import routing
from tests.cli.loop_world import ONE_STORY, World, until, world
from tests.helpers import Result, cli_here, commit, git

THRASH = """
hats:
  builder: {triggers: [loop.start, build.again], publishes: [build.again]}
"""
CLAUDE_SAYS = """
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "more to do",
                  "usage": {"input_tokens": 10, "output_tokens": 2}, "total_cost_usd": 0.3}))
"""
ASKS = "change()\n(run_dir / 'signal').write_text('{}\\n')"


@dataclass(frozen=True, slots=True)
class Row:
    """One way to end: what the agent does, how it was asked, the exit code, the ending, the sessions it took."""

    name: str
    script: str
    code: int
    ending: str
    sessions: int
    options: tuple[str, ...] = ("build it",)
    files: Mapping[str, str] = field(default_factory=dict)
    stories: int = 0
    signal: signal.Signals | None = None


ROWS = [
    Row("the event", "change()\nprint('<event topic=\"LOOP_COMPLETE\">all done</event>')", 0, "complete", 1),
    Row("the promise on the last line", "change()\nprint('all done\\nLOOP_COMPLETE\\n')", 0, "complete", 1),
    Row("iterations", "change()", 2, "iterations", 2, ("build it", "--max-iterations", "2")),
    Row("cost", f"change(){CLAUDE_SAYS}", 2, "cost", 2, ("build it", "--max-cost", "0.5")),
    Row("consecutive failures", "sys.exit(1)", 1, "failures", 3),
    Row("thrashing", "print('<event topic=\"build.again\">the same</event>')", 1, "thrash", 4,
        files={"ralph.yml": THRASH}),
    Row("stop", ASKS.format("stop"), 1, "stop", 1),
    Row("cancel", ASKS.format("cancel"), 1, "cancel", 1),
    Row("restart", ASKS.format("restart"), 3, "restart", 1),
    Row("SIGINT", "change()\ntime.sleep(600)", 130, "interrupted", 0, signal=signal.SIGINT),
    Row("SIGTERM", "change()\ntime.sleep(600)", 130, "interrupted", 0, signal=signal.SIGTERM),
    Row("nothing moves", "pass", 1, "idle", 8),
    Row("every story skipped", "change()\ncommit()", 1, "stuck", 6, ("--prd", "--pattern", "fresh"), stories=1),
]  # fmt: skip  # a table


QUICK = ("the promise on the last line", "iterations", "stop", "SIGINT")
"""One of each kind; why a run ends has pure tests."""


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=() if row.name in QUICK else pytest.mark.long, id=row.name) for row in ROWS]
)
def test_each_way_to_end_has_its_exit_code(tmp_path: Path, row: Row) -> None:
    here = world(tmp_path, row.files)
    if row.stories:
        here.stories(row.stories)
    asked = (*row.options, *here.agent(row.script))
    done = _interrupted(here, row.signal, asked) if row.signal else here.run(*asked, env={"RALPH_RESTART": "exit"})
    assert done.code == row.code, done.err
    said = done.json
    assert (said["ending"], said["code"], said["sessions"]) == (row.ending, row.code, row.sessions)
    assert f"{row.ending}: " in done.err
    assert "Traceback" not in done.err


def _interrupted(here: World, number: signal.Signals, asked: Sequence[str]) -> Result:
    process = here.start(*asked)
    until(lambda: (here.clone / "file-1.txt").exists())
    process.send_signal(number)
    out, err = process.communicate()
    return Result(process.returncode, out, err)


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_higher_limit_goes_on_where_the_lower_one_ended(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("change()\nprint('LOOP_COMPLETE' if call == 4 else 'more')")
    assert here.run("build it", "--max-iterations", "2", *agent).code == 2
    assert here.run("--continue", "--max-iterations", "2", *agent).code == 2
    done = here.run("--continue", "--max-iterations", "9", *agent)
    assert (done.code, done.json["sessions"], len(here.calls)) == (0, 4, 4)
    assert "build it" in here.prompt(4)


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_new_prompt_starts_a_new_run(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("commit() if change() else commit()\nprint('LOOP_COMPLETE')")
    assert here.run("build it", *agent).json["sessions"] == 1
    done = here.run("build something else", "--continue", *agent)
    assert (done.code, done.json["sessions"], len(here.calls)) == (0, 1, 2)


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_restart_replaces_the_process_and_starts_anew(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent(
        "change()\n(here / f'iteration-{call}').write_text(os.environ['RALPH_ITERATION'])\n"
        "if call == 2:\n    (run_dir / 'signal').write_text('restart\\n')\n"
        "if call == 3:\n    print('LOOP_COMPLETE')"
    )
    process = here.start("build it", *agent)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    said = json.loads(out)  # one document, of the last run
    assert (said["ending"], said["sessions"], len(here.calls)) == ("complete", 1, 3)
    assert [here.pids(call)[1] for call in (1, 2, 3)] == [process.pid] * 3
    assert [(here.aside / f"iteration-{call}").read_text() for call in (1, 2, 3)] == ["1", "2", "1"]
    runs = [path.name for path in (here.repo / ".ralph/loop/runs").iterdir()]
    assert len(runs) == 2 and said["run"] == max(runs)


# --- Where `ralph run` works: a clean checkout, a branch of the stories' own, a linked work tree. ---


def test_a_dirty_checkout_is_refused_and_named(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("build it", *here.agent("pass"))
    assert (done.code, here.calls) == (1, [])
    assert "mine.txt" in done.err
    assert "--worktree" in done.err and not (here.repo / ".ralph/workspace").exists()


@pytest.mark.parametrize("command", ["./my-agent", "sh my-agent"])
@pytest.mark.parametrize("options", [[], ["--worktree"]])
def test_an_agent_that_is_not_committed_is_named_before_anything_else(
    tmp_path: Path, command: str, options: list[str]
) -> None:
    here = world(tmp_path)
    (here.repo / "my-agent").write_text("#!/bin/sh\necho LOOP_COMPLETE\n")
    (here.repo / "my-agent").chmod(0o755)
    done = here.run("build it", "--command", command, *options)
    assert done.code == 1 and "my-agent is not committed, and sessions work in a clone" in done.err
    assert "git add my-agent && git commit" in done.err and not (here.repo / ".ralph/worktrees").exists()
    git(here.repo, "add", "my-agent")
    git(here.repo, "commit", "-qm", "My agent")
    assert "is not committed" not in here.run("build it", "--command", command, *options).err


def test_a_program_that_is_not_there_is_missed_before_the_first_session(tmp_path: Path) -> None:
    done = world(tmp_path).run("build it", "--command", "./my-agnt")
    assert done.code == 1 and "there is no program ./my-agnt in" in done.err and "session" not in done.err


def test_who_still_allows_a_dirty_checkout_is_told_that_it_has_no_effect(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("build it", "--allow-dirty", *here.agent("pass"))
    assert (done.code, here.calls) == (1, []) and "--allow-dirty no longer has an effect" in done.err


def test_what_sessions_do_lands_and_the_checkout_is_clean(tmp_path: Path) -> None:
    here = world(tmp_path)
    done = here.run("build it", *here.agent("change()\nif call == 2: print('LOOP_COMPLETE')\nelse: commit('Mine')"))
    assert (done.code, here.messages()) == (0, ["build it (ralph, session 2)", "Mine", "Start"]), done.err
    assert git(here.repo, "status", "--porcelain") == "" and (here.repo / "file-2.txt").read_text() == "2"
    assert git(here.repo, "log", "-2", "--format=%an") == "Mara Quint\nMara Quint"


def test_a_session_works_in_a_clone_and_reaches_the_engines_files_from_there(tmp_path: Path) -> None:
    here = world(tmp_path)
    script = "(here / 'cwd').write_text(os.getcwd())\nsubprocess.run(['ralph', 'task', 'add', 'More'], check=True)\n"
    more = "pathlib.Path('.ralph/agent/scratchpad.md').write_text('a note')"
    done = here.run("build it", "--max-iterations", "1", *here.agent(script + more))
    assert done.code == 2, done.err
    assert (here.aside / "cwd").read_text() == str(here.repo / ".ralph/workspace/tree")
    assert "More" in (here.repo / ".ralph/agent/tasks.jsonl").read_text()
    assert (here.repo / ".ralph/agent/scratchpad.md").read_text() == "a note"


def test_without_its_repository_a_clone_is_no_part_of_the_checkout(tmp_path: Path) -> None:
    here = world(tmp_path)
    gone = "import shutil\nshutil.rmtree('.git')\nchange()\nsubprocess.run(['git', 'commit', '-aqm', 'x'])\n"
    branch = "subprocess.run(['git', 'branch', 'evil'])"
    assert here.run("build it", "--max-iterations", "1", *here.agent(gone + branch)).code == 2
    assert here.messages() == ["build it (ralph, session 1)", "Start"] and git(here.repo, "branch") == "* main"


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_file_of_mine_that_stands_in_the_way_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    here = world(tmp_path)
    script = f"change()\npathlib.Path({str(here.repo)!r}, 'file-1.txt').write_text('mine')"
    done = here.run("build it", *here.agent(script))
    assert done.code == 1 and "cannot be taken over" in done.err and here.messages() == ["Start"]
    assert (here.repo / "file-1.txt").read_text() == "mine" and len([*here.repo.glob(".ralph/aside/*.patch")]) == 1
    (here.repo / "file-1.txt").unlink()
    again = here.run("build it", "--continue", "--max-iterations", "1", *here.agent("change()"))
    assert again.code == 2 and here.messages() == ["build it (ralph, session 1)", "Start"], again.err


def test_the_engines_own_files_do_not_make_it_dirty(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    for name in ("progress.txt", "PROMPT.md", "ralph.yml", "archive/2026-01-01-old/prd.json"):
        (here.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (here.repo / name).write_text("" if name == "ralph.yml" else "# notes\n")
    assert here.run("--prd", *here.agent(ONE_STORY)).code == 0


def test_a_linked_work_tree_leaves_the_checkout_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("--prd", "--worktree", *here.agent(ONE_STORY))
    assert done.code == 0, done.err
    assert git(here.repo, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(here.repo, "log", "-1", "--format=%s", "ralph/shop") == "feat: US-001 - Part 1"
    assert here.passing() == []
    assert here.passing(".ralph/worktrees/ralph-shop/prd.json") == ["US-001"]


def test_a_named_list_of_stories_goes_along_into_a_linked_work_tree(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, place="tasks/prd.json")
    flipping = ONE_STORY.replace("flip(todo()[0])", "os.chdir('tasks'); flip('US-001'); os.chdir('..')")
    done = here.run("--prd-file", "tasks/prd.json", "--worktree", *here.agent(flipping))
    assert done.code == 0, done.err
    assert here.passing("tasks/prd.json") == []
    assert here.passing(".ralph/worktrees/ralph-shop/tasks/prd.json") == ["US-001"]


def test_the_branch_of_the_stories_is_gone_back_to(tmp_path: Path) -> None:
    here = world(tmp_path)
    git(here.repo, "branch", "ralph/shop")
    here.stories(1)
    assert here.run("--prd", *here.agent(ONE_STORY)).code == 0
    assert git(here.repo, "log", "-1", "--format=%s", "ralph/shop") == "feat: US-001 - Part 1"


def test_a_branch_name_that_is_none_is_refused(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, branch="--upload-pack=x")
    done = here.run("--prd", *here.agent(ONE_STORY))
    assert (done.code, here.calls) == (64, [])
    assert "branchName" in done.err


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_linked_work_tree_says_how_its_work_gets_here_and_is_gone_on_in(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("change()\ncommit()")
    first = here.run("build it", "--worktree", "--max-iterations", "1", *agent)
    assert "git merge ralph-run/build-it" in first.err and ".ralph/worktrees/" in first.err
    again = here.run("--worktree", "--continue", "--max-iterations", "2", *agent)
    assert again.json["sessions"] == 2, again.err
    assert not (here.repo / "file-1.txt").exists()


def test_what_stands_where_the_engine_keeps_its_files_is_for_a_person_to_move(tmp_path: Path) -> None:
    here = world(tmp_path)
    place = here.repo / ".ralph"
    ways = {": file exists.": lambda: place.write_text("mine"), " is a link.": lambda: place.symlink_to(tmp_path)}
    for why, make in ways.items():
        make()
        done = here.run("build it", *here.agent("pass"))
        assert (done.code, here.calls) == (1, [])
        (error,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
        assert error.startswith(f"error: {place}{why}"), done.err
        place.unlink()


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_what_a_killed_session_left_is_in_no_commit(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1)
    staging = "pathlib.Path('half.py').write_text('half')\nsubprocess.run(['git', 'add', '-A'])\nflip('US-001')\n"
    process = here.start("--prd", *here.agent(f"{staging}(here / 'staged').touch()\ntime.sleep(60)"))
    until((here.aside / "staged").exists)
    here.end(process)
    assert git(here.repo, "status", "--porcelain") == "?? .last-branch\n?? prd.json"
    assert here.passing() == []
    done = here.run("--prd", "--continue", *here.agent("change(); flip('US-001'); commit()"))
    assert done.code == 0, done.err
    assert {one["path"] for one in done.json["reverted"]} == {"half.py", "prd.json"}
    named = git(here.repo, "log", "--format=", "--name-only", "main..ralph/shop").split()
    assert sorted(named) == ["file-2.txt", "prd.json"] and here.passing() == ["US-001"]
    [patch] = here.repo.glob(".ralph/aside/*.patch")
    assert "half.py" in patch.read_text()


# --- What `ralph run` makes of ralph.yml, hat files and people's verdicts before the first session. ---

PERSISTENT = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"


def ordered(shop: World, **asked: str) -> ResolvedRun:
    """The order of a task in words."""
    return resolve_run(
        RunOptions(shop.repo, task="build it", **asked), read(Git.open(shop.repo), read_shared, None), shop.repo, None
    )


def test_a_key_of_a_hat_file_that_means_nothing_is_told_with_the_nearest(tmp_path: Path) -> None:
    hat = "[hat]\nname = 'scribe'\ntriggers = ['loop.start']\n[files]\nwrite_alowed = ['docs/**']\n"
    shop = world(tmp_path, {"ralph.yml": "loop: {hats: 'hats/*.toml'}", "hats/scribe.toml": hat})
    told = "hats/scribe.toml: files.write_alowed means nothing here, did you mean files.write_allowed?"
    assert told in ordered(shop).doubts
    assert f"note: {told}" in shop.run("build it", *shop.agent("print('LOOP_COMPLETE')")).err


def test_a_key_of_a_hat_in_ralph_yml_that_means_nothing_is_told(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": "hats: {builder: {triggers: [loop.start], instrctions: x}}"})
    assert "instrctions" in shop.run("build it", *shop.agent("print('LOOP_COMPLETE')")).err


def test_what_is_doubtful_about_a_set_of_hats_is_told_and_not_refused(tmp_path: Path) -> None:
    settings = "hats: {builder: {triggers: [loop.start], publishes: [build.done]}, idler: {triggers: [never.said]}}"
    doubts = "\n".join(ordered(world(tmp_path, {"ralph.yml": settings})).doubts)
    assert "builder publishes build.done, to which no hat listens" in doubts
    assert "nothing triggers idler" in doubts


def test_a_disallowed_tool_that_is_a_command_is_a_denied_command(tmp_path: Path) -> None:
    settings = "hats: {builder: {triggers: [loop.start], disallowed_tools: ['Bash(git push:*)', WebFetch]}}"
    (hat,) = ordered(world(tmp_path, {"ralph.yml": settings})).spec.hats
    assert (hat.commands_denied, hat.tools_denied) == (("git push",), ("WebFetch",))


def test_a_persistent_loop_without_limits_of_its_own_has_a_day_ten_thousand_sessions_and_fifty_dollars(
    tmp_path: Path,
) -> None:
    limits = ordered(world(tmp_path, {"ralph.yml": PERSISTENT})).spec.limits
    assert (limits.iterations, limits.runtime, limits.usd) == (10_000, 86_400.0, 50.0)
    assert limits.failures == hats.PERSISTENT.failures


def test_what_a_loop_without_work_waits_for_is_a_file_or_an_issue_that_changes(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT})
    asked = RunOptions(shop.repo, task="build it", command="true")
    look = build_run(asked, PlainRunProgress(io.StringIO(), ())).store.look
    seen = [look()]
    assert look() == seen[-1]
    steps = (
        lambda: (shop.repo / "todo.md").write_text("one"),
        lambda: (shop.repo / "todo.md").write_text("one, two"),
        lambda: commit(shop.repo, {"todo.md": "none"}),
        lambda: shop.ralph("issue", "create", "--title", "Mend the door"),
        lambda: shop.ralph("task", "add", "Mend the window"),
    )
    for step in steps:
        step()
        assert look() not in seen
        seen.append(look())


def test_limits_of_its_own_hold_in_a_persistent_loop(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT.replace("true", "true, max_iterations: 7")})
    assert ordered(shop).spec.limits.iterations == 7


@pytest.mark.long  # a variation; the loop's rules have pure tests
@pytest.mark.parametrize(("asked", "ending"), [((), "iterations"), (("--max-cost", "50"), "cost")])
def test_a_cost_that_nobody_tells_ends_only_a_run_whose_cost_somebody_limited(
    tmp_path: Path, asked: tuple[str, ...], ending: str
) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT})
    done = shop.run("build it", "--max-iterations", "2", *asked, *shop.agent("change()\nprint('LOOP_COMPLETE')"))
    assert (done.code, done.json["ending"]) == (2, ending), done.err


def test_persistent_and_stories_are_refused_as_a_pair(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": PERSISTENT})
    shop.stories(2)
    done = shop.run("--prd", *shop.agent("pass"))
    assert (done.code, shop.calls) == (64, [])
    assert "event_loop.persistent" in done.err and "stories" in done.err


def test_a_branch_that_holds_an_untracked_file_of_the_checkout_is_refused_with_its_name(tmp_path: Path) -> None:
    shop = world(tmp_path)
    git(shop.repo, "switch", "-qc", "ralph/shop")
    (shop.repo / "prd.json").write_text("{}")
    git(shop.repo, "add", "-A")
    git(shop.repo, "commit", "-qm", "An older list")
    git(shop.repo, "switch", "-q", "main")
    shop.stories(1)
    refused = shop.run("--prd", "--command", "true")
    assert refused.code == 1 and "overwritten by checkout: prd.json" in refused.err


def test_stories_that_need_each_other_are_named_at_the_start_and_taken_as_they_come(tmp_path: Path) -> None:
    here = world(tmp_path)
    needs = {"a": ["b"], "b": ["a"], "c": []}
    listed = [{"id": id, "title": id, "passes": False, "needs": needs[id]} for id in needs]
    (here.repo / "prd.json").write_text(json.dumps({"userStories": listed}))
    done = here.run("--prd", *here.agent(ONE_STORY))
    assert done.err.count("need each other") == 1
    assert re.search("note: (a, b|b, a) need each other, so they are taken as they come\n", done.err), done.err
    assert (done.code, here.passing()) == (0, ["a", "b", "c"]), done.err


@pytest.mark.parametrize("resumes", ["", "task.resume"])
def test_who_begins_takes_a_persistent_loop_up_again_unless_another_hat_does(tmp_path: Path, resumes: str) -> None:
    other = f"\n  keeper: {{triggers: [build.done, {resumes}], publishes: [build.start]}}" if resumes else ""
    settings = (
        "event_loop: {persistent: true, starting_event: build.start}\n"
        f"hats:\n  builder: {{triggers: [build.start], publishes: [build.done]}}{other}\n"
    )
    spec = ordered(world(tmp_path, {"ralph.yml": settings})).spec
    hat = routing.find_hat(spec.hats, LoopEvent(RESUME))
    assert hat and hat.name == ("keeper" if resumes else "builder")


def test_a_persistent_loop_that_no_hat_takes_up_again_is_taken_up_without_one(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [build.start]}}"
    told = "no hat listens to task.resume, so the session that looks for more work has none"
    assert told in ordered(world(tmp_path, {"ralph.yml": settings})).doubts


@pytest.mark.parametrize(
    ("settings", "verdicts", "threshold"),
    [
        ("", 0, 0),
        ("", 3, 2),
        ("loop: {thresholds: learn}", 3, 2),
        ("loop: {thresholds: {debug: learn}}", 3, 2),
        ("loop: {thresholds: {debug: 1}}", 3, 1),
    ],
)
def test_how_many_issues_may_be_left_is_fixed_or_what_people_accepted(
    tmp_path: Path, settings: str, verdicts: int, threshold: int
) -> None:
    shop = world(tmp_path, {"ralph.yml": settings or "{}"})
    (shop.repo / ".ralph/loop").mkdir(parents=True)
    line = json.dumps({"kind": "debug", "left": 2, "accepted": True}) + "\n"
    (shop.repo / ".ralph/loop/verdicts.jsonl").write_text("torn {\n" + line * verdicts)
    assert ordered(shop, pattern="debug").spec.threshold == threshold


# --- Settings, stories and notes that people wrote for other tools: they load unchanged, as a process shows. ---

HATLESS = """\
# One agent, no roles: it looks for what is next by itself.
cli:
  backend: "custom"
  command: "/bin/sh"
  args: ["../agent.sh"]
  prompt_mode: "stdin"
event_loop:
  prompt_file: "GOAL.md"
  completion_promise: "ALL_GREEN"
  max_iterations: 40
  max_runtime_seconds: 5400
  idle_timeout_secs: 1200
  checkpoint_interval: 5
  starting_event: "task.start"
core:
  specs_dir: "./specs/"
  guardrails:
    - "Tests first"
tui:
  prefix_key: "ctrl-a"
"""
FIRST_VERSION = """\
# Written before there were sections.
agent: claude
prompt_file: GOAL.md
completion_promise: "SHIPPED"
max_iterations: 25
max_runtime: 3600
max_cost: 5.0
retry_delay: 2
checkpoint_interval: 5
max_tokens: 500000
context_window: 100000
context_threshold: 0.9
archive_prompts: false
git_checkpoint: true
enable_metrics: true
iteration_telemetry: true
output_preview_length: 200
max_prompt_size: 100000
allow_unsafe_paths: false
verbose: false
adapters:
  claude: {enabled: true, timeout: 300, args: ["--fast"]}
"""
MANY_HATS = """\
# Research in waves: somebody asks, several look, one writes, one doubts.
event_loop:
  prompt_file: "GOAL.md"
  completion_promise: "REPORT_DONE"
  max_iterations: 30
  starting_event: "research.start"
  mutation_score_warn_threshold: 0.8
backpressure:
  gates: [{name: tests, command: "true"}]
memories: {enabled: true, inject: auto, budget: 2000}
tasks: {enabled: true}
skills: {enabled: false}
RObot: {enabled: false, timeout_seconds: 300}
hats:
  asker:
    name: "❓ Asker"
    description: "Turns the goal into questions."
    triggers: ["research.start", "report.rejected"]
    publishes: ["question.asked"]
    instructions: |
      ## ASKER
      One question for each thing that is not known.
  looker:
    name: "🔭 Looker"
    triggers: ["question.*"]
    publishes: ["question.answered", "answer.found"]
    default_publishes: "answer.found"
    concurrency: 4
    aggregate: {mode: wait_for_all, timeout: 600}
    max_activations: 12
    backend: {type: "kiro", agent: "reader"}
  writer:
    name: "✍️ Writer"
    triggers: ["answer.found"]
    publishes: ["report.written"]
    disallowed_tools: ["Bash(git push:*)", "WebFetch"]
  doubter:
    name: "🧐 Doubter"
    triggers: ["report.written"]
    publishes: ["report.rejected", "REPORT_DONE"]
    extra_instructions: ["Believe nothing that has no source."]
"""
GOAL = {"GOAL.md": "Find out why the tide tables are late.\n"}


def test_settings_without_hats(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": HATLESS.replace("../agent.sh", str(tmp_path / "agent.sh")), **GOAL})
    (tmp_path / "agent.sh").write_text(
        f'cat > "{tmp_path}/prompt-$RALPH_ITERATION"\necho "$RALPH_ITERATION" > found.txt\n'
        '[ "$RALPH_ITERATION" = 2 ] && echo ALL_GREEN\nexit 0\n'
    )
    done = shop.run()
    assert (done.code, done.json["ending"], done.json["sessions"]) == (0, "complete", 2), done.err
    assert "> Find out why the tide tables are late." in (tmp_path / "prompt-1").read_text()
    assert "limits: 40 sessions, 1h30" in done.err
    for key in ("idle_timeout_secs", "checkpoint_interval", "specs_dir", "tui"):
        assert key in done.err


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_settings_of_the_first_version(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": FIRST_VERSION, **GOAL})
    told = {"type": "result", "result": "more to do", "is_error": False, "total_cost_usd": 3.0,
            "usage": {"input_tokens": 10, "output_tokens": 2}}  # fmt: skip  # one document
    done = shop.run(*shop.agent(f"change()\nprint(json.dumps({told!r}))"))
    assert (done.code, done.json["ending"], done.json["sessions"]) == (2, "cost", 2), done.err
    assert "limits: 25 sessions, 1h00" in done.err
    assert "SHIPPED" in shop.prompt(1) and "tide tables" in shop.prompt(1)
    for key in ("checkpoint_interval", "git_checkpoint", "context_threshold", "adapters"):
        assert key in done.err


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_settings_with_many_hats_that_work_in_waves(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": MANY_HATS, **GOAL})
    playing = """
change()
said = {"asker": "question.asked", "writer": "report.written", "doubter": "report.rejected"}
said |= {"doubter": "REPORT_DONE"} if call > 4 else {}
hat = os.environ["RALPH_HAT"]
if hat in said:
    print(f'<event topic="{said[hat]}">{call}</event>')
"""
    done = shop.run(*shop.agent(playing))
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    assert shop.calls == ["asker", "looker", "writer", "doubter"] * 2
    assert "One question for each thing" in shop.prompt(1) and "Believe nothing" in shop.prompt(4)
    for key in ("concurrency", "aggregate", "max_activations", "backpressure", "mutation_score_warn_threshold"):
        assert key in done.err


SNARKTANK = """{
    "project":"Tides",
    "branchName": "ralph/late-tables",
    "description": "Tables arrive on time",
    "userStories": [
        {"id": "US-002", "title": "Send them", "description": "As a pilot…",
         "acceptanceCriteria": ["Typecheck passes"],
         "priority": 2, "passes": false, "notes": "", "architectVerified": false},
        {"id": "US-001", "title": "Count them", "description": "As a pilot…",
         "acceptanceCriteria": ["Typecheck passes"],
         "priority": 1, "passes": true, "notes": "by hand", "estimate": 3.50}
    ],
    "x-board": {"column":  "next" }
}
"""
PROGRESS = """\
# Ralph Progress Log
Started: Mon Mar 2 09:00:00 2026

## Codebase Patterns
- Tables are sorted by harbour
---

## 2026-03-02 - US-001
- Counted the tables
- Files changed: count.py
- **Learnings for future iterations:**
  - The clock of the server is UTC
---
"""
EDITS = """
place = pathlib.Path("scripts/ralph/prd.json")
change()
place.write_text(place.read_text().replace('"passes": false', '"passes": true'))
pathlib.Path("scripts/ralph/progress.txt").write_text("## 2026-03-03 - US-002\\n- Sent them\\n---\\n")
"""


def test_stories_in_the_manner_of_snarktank_keep_every_byte_but_what_passes(tmp_path: Path) -> None:
    shop = world(tmp_path)
    folder = shop.repo / "scripts/ralph"
    folder.mkdir(parents=True)
    (folder / "prd.json").write_text(SNARKTANK)
    (folder / "progress.txt").write_text(PROGRESS)
    (folder / ".last-branch").write_text("ralph/late-tables\n")
    done = shop.run("--prd", *shop.agent(EDITS))
    assert (done.code, len(shop.calls)) == (0, 1), done.err
    assert (folder / "prd.json").read_text() == SNARKTANK.replace('"passes": false', '"passes": true')
    assert "Tables are sorted by harbour" in shop.prompt(1) and "The clock of the server is UTC" in shop.prompt(1)
    assert "US-002" in shop.prompt(1) and shop.messages()[0] == "feat: US-002 - Send them"
    # The session wrote its entry over the others.
    assert (folder / "progress.txt").read_text() == f"{PROGRESS}## 2026-03-03 - US-002\n- Sent them\n---\n"
    assert [row["path"] for row in done.json["reverted"]] == ["scripts/ralph/progress.txt"]
    assert not (folder / "archive").exists()


@pytest.mark.long  # a variation; the loop's rules have pure tests
@pytest.mark.parametrize("how", ["write_text('')", "unlink()"])
def test_notes_that_a_session_cuts_are_put_back_and_told(tmp_path: Path, how: str) -> None:
    shop = world(tmp_path)
    shop.stories(2)
    cutting = f"if call == 2:\n    pathlib.Path('progress.txt').{how}\n"
    done = shop.run("--prd", "--preset", "fresh", *shop.agent(cutting + ONE_STORY))
    assert (done.code, shop.passing()) == (0, ["US-001", "US-002"]), done.err
    assert (shop.repo / "progress.txt").read_text().count("- Passed in session") == 2
    assert [(row["session"], row["path"]) for row in done.json["reverted"]] == [(2, "progress.txt")]


OMC_HANDOFF = {
    "version": "1.0", "created_at": "2026-03-02T09:00:00.000Z", "iteration": 6, "max_iterations": 20,
    "original_prompt": "Make the tables arrive on time", "completion_promise": "TASK_COMPLETE", "completed": False,
    "progress": {"patterns": ["Tables are sorted by harbour"], "recentLearnings": []},
    "git": {"recentCommits": [], "branch": "main", "hasUncommittedChanges": False},
    "stuckDetection": {"lastPrdStatus": [], "iterationsOnSameStory": 1},
    "lastError": {"iteration": 6, "message": "the clock was wrong", "recoveryAttempt": "retry"},
}  # fmt: skip  # one document
OMC_MARK = {"active": False, "started_at": "2026-03-02T09:00:00.000Z", "iteration": 6, "sessionId": "s-1"}


def omc(shop: World, mode: str, mark: dict[str, object]) -> None:
    """`.omc/` as another tool left it."""
    state = shop.repo / ".omc/state"
    state.mkdir(parents=True)
    (state / f"{mode}-state.json").write_text(json.dumps(mark))
    (state / "ralph-fresh-handoff.json").write_text(json.dumps(OMC_HANDOFF))


@pytest.mark.long  # a variation; the loop's rules have pure tests
def test_a_run_that_another_tool_left_is_gone_on_from(tmp_path: Path) -> None:
    shop = world(tmp_path)
    omc(shop, "ralph-fresh", OMC_MARK)
    done = shop.run("--continue", "--preset", "fresh", *shop.agent("change()\nprint('TASK_COMPLETE')"))
    assert (done.code, done.json["sessions"], len(shop.calls)) == (0, 7, 1), done.err
    assert "> Make the tables arrive on time" in shop.prompt(1) and "the clock was wrong" in shop.prompt(1)


def test_another_tool_at_work_is_not_run_into(tmp_path: Path) -> None:
    shop = world(tmp_path)
    omc(shop, "ultrapilot", OMC_MARK | {"active": True})
    done = shop.run("build it", *shop.agent("pass"))
    assert (done.code, shop.calls) == (1, [])
    assert "ultrapilot" in done.err


# --- `ralph run` with agents that it knows how to speak to. They are stubs here; the real ones are in tests/real. ---

CODEX = r"""#!/bin/sh
echo "$@" > "$STUBS/codex-argv"
cat > "$STUBS/codex-prompt"
env > "$STUBS/codex-env"
printf '%s\n' '{"type":"item.completed","item":{"type":"agent_message","text":"All done."}}'
printf '%s\n' '{"type":"turn.completed","usage":{"input_tokens":1000000,"output_tokens":0}}'
"""
PRICED = "cost: {prices: {gpt-5.4: {input: 2, output: 10}}}\n"


def stub(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text.replace("$STUBS", str(folder)))
    (folder / name).chmod(0o755)


@pytest.fixture
def here(tmp_path: Path) -> World:
    return world(tmp_path)


def run(here: World, *options: str):
    stubs = here.aside / "stubs"
    keys = {name: os.environ.get(name, "a-key") for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "AMP_API_KEY")}
    env = {**keys, "PATH": f"{stubs}:{os.environ['PATH']}"}
    return cli_here("run", "build it", "--max-iterations", "1", *options, "--json", repo=here.repo, env=env)


def settings(here: World, text: str) -> None:
    (here.repo / "ralph.yml").write_text(text)


def record(here: World):
    (place,) = here.repo.glob(".ralph/loop/runs/*/session-0001.json")
    return json.loads(place.read_text())


def test_an_agent_is_found_by_its_name_and_its_tokens_are_priced(here: World) -> None:
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: codex, model: gpt-5.4}}\n" + PRICED)
    done = run(here)
    assert json.loads(done.out)["usage"]["cost_usd"] == 2.0, done.err
    assert "-m gpt-5.4" in (here.aside / "stubs/codex-argv").read_text()
    assert "build it" in (here.aside / "stubs/codex-prompt").read_text()
    assert record(here)["agent"] == "codex"


def test_an_agent_sees_its_own_key_and_no_other(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "of-nobody")
    stub(here.aside / "stubs", "codex", CODEX)
    run(here, "--agent", "codex")
    lines = (here.aside / "stubs/codex-env").read_text().splitlines()
    assert [line for line in lines if line.endswith("=of-nobody")] == ["OPENAI_API_KEY=of-nobody"]


def test_the_command_line_names_another_program_for_it(here: World) -> None:
    stub(here.aside / "stubs", "my-codex", CODEX)
    run(here, "--agent", "codex", "--command", f"{here.aside}/stubs/my-codex --extra")
    assert (here.aside / "stubs/codex-argv").read_text().startswith("--extra exec --json")


def test_the_next_agent_takes_over_and_the_record_says_who_played(here: World) -> None:
    stub(here.aside / "stubs", "gemini", "#!/bin/sh\nexec no-such-program\n")
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: gemini, fallback: [codex]}}\n")
    run(here)
    assert (record(here)["agent"], record(here)["failure"]) == ("codex", "")


def test_whoever_takes_over_is_not_paid_by_the_favourites_price(here: World) -> None:
    stub(here.aside / "stubs", "gemini", "#!/bin/sh\nexec no-such-program\n")
    stub(here.aside / "stubs", "codex", CODEX)
    settings(here, "hands: {agent: {kind: gemini, model: gpt-5.4, fallback: [codex]}}\n" + PRICED)
    usage = json.loads(run(here).out)["usage"]
    assert (usage["input_tokens"], usage["cost_usd"], usage["unpriced_sessions"]) == (1_000_000, 0.0, 1)


def test_a_command_that_makes_no_words_is_wrong_usage(here: World) -> None:
    done = run(here, "--agent", "codex", "--command", "codex 'x")
    assert done.code == 64 and "quotation" in done.out


def test_an_agent_that_nobody_knows_is_told_with_those_that_are_known(here: World) -> None:
    done = run(here, "--agent", "cursor")
    assert done.code == 64 and "cursor" in done.out and "claude, codex, gemini" in done.out
    settings(here, "hands: {agent: {kind: codex, fallback: [cursor]}}\n")
    assert "hands.agent.fallback: cursor" in run(here).out


def test_where_the_repository_would_be_obeyed_nobody_plays_before_somebody_trusts_it(here: World) -> None:
    plays = '[ $1 = --version ] && exec echo 1\ntouch $STUBS/played\necho \'{"response": "x", "stats": {}}\'\n'
    stub(here.aside / "stubs", "gemini", f"#!/bin/sh\n{plays}")
    commit(here.repo, {".gemini/settings.json": "{}"})
    run(here, "--agent", "gemini")
    assert ".gemini" in record(here)["reason"] and not (here.aside / "stubs/played").exists()


# --- The model of a run: from the command line or ralph.yml to each session, and to prices. ---

PRICES = "cost: {prices: {small: {input: 1, output: 2}, large: {input: 10, output: 20}}}\n"
AGENT = """
with (here / "models").open("a") as file:
    file.write(os.environ["RALPH_HAT"] + "=" + os.environ["RALPH_MODEL"] + "\\n")
change()
said = {"planner": '<event topic="plan.complete">go</event>'}.get(os.environ["RALPH_HAT"], "LOOP_COMPLETE")
print(json.dumps({"type": "result", "result": said, "is_error": False,
                  "usage": {"input_tokens": 1_000_000, "output_tokens": 500_000}}))
"""
HATS = """
hats:
  planner: {triggers: [loop.start], publishes: [plan.complete]}
  builder: {triggers: [plan.complete], model: large}
"""


@pytest.mark.long  # a variation; the loop's rules have pure tests
@pytest.mark.parametrize(
    ("settings", "options", "planner"),
    [
        ("", ["--model", "small"], "small"),
        ("hands: {agent: {model: small}}\n", [], "small"),
        ("hands: {agent: {model: small}}\n", ["--model", "large"], "large"),
    ],
)
def test_a_hat_without_a_model_has_the_runs(tmp_path: Path, settings: str, options: list[str], planner: str) -> None:
    here = world(tmp_path, {"ralph.yml": PRICES + settings + HATS})
    done = here.run("build it", *options, *here.agent(AGENT))
    assert done.code == 0, done.err
    assert (here.aside / "models").read_text().split() == [f"planner={planner}", "builder=large"]
    costs = json.loads(here.ralph("cost", "--json").out)
    each = {"small": 2.0, "large": 20.0}
    assert {row["hat"]: row["cost_usd"] for row in costs["hats"]} == {"planner": each[planner], "builder": 20.0}
    assert done.json["usage"]["cost_usd"] == each[planner] + 20.0


def test_a_model_alone_leaves_open_which_program_plays(tmp_path: Path) -> None:
    here = world(tmp_path, {"ralph.yml": "hands: {agent: {model: small}}\n"})
    assert here.run("build it").code == 64


def test_sessions_that_nobody_priced_have_the_model_of_ralph_yml(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = AGENT.replace("said =", "# ").replace('"result": said', '"result": "LOOP_COMPLETE"')
    assert here.run("build it", *here.agent(agent)).code == 0
    assert json.loads(here.ralph("cost", "--json").out)["total"]["cost_usd"] is None
    (here.repo / "ralph.yml").write_text(PRICES + "hands: {agent: {model: small}}\n")
    assert json.loads(here.ralph("cost", "--json").out)["total"]["cost_usd"] == 2.0
