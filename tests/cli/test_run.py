"""`ralph run` as a process: how it ends, what it may touch, and that a kill loses one session at most."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.loop_world import World, until, works, world
from tests.helpers import commit, git

THRASH = """
hats:
  builder: {triggers: [loop.start, build.again], publishes: [build.again]}
"""
CLAUDE_SAYS = """
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "more to do",
                  "usage": {"input_tokens": 10, "output_tokens": 2}, "total_cost_usd": 0.3}))
"""
ASKS = "change()\n(run_dir / 'signal').write_text('{}\\n')"
ONE_STORY = "change()\nflip(todo()[0])\nprint('did it')"


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
    Row("runtime", "change()\ntime.sleep(5.1)", 2, "runtime", 1, ("build it", "--max-runtime", "5s")),
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
    Row("every story skipped", "change()\ncommit()", 1, "stuck", 2, ("--prd", "--preset", "fresh"),
        {"ralph.yml": "loop: {stuck: 1}"}, stories=1),
]  # fmt: skip  # a table


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_way_to_end_has_its_exit_code(tmp_path: Path, row: Row) -> None:
    here = world(tmp_path, row.files)
    if row.stories:
        here.stories(row.stories)
    process = subprocess.Popen(here.line([*row.options, *here.agent(row.script)]), cwd=here.repo, text=True,
                               env=os.environ | {"RALPH_RESTART": "exit"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip  # one call
    if row.signal:
        until(lambda: (here.repo / "file-1.txt").exists())
        process.send_signal(row.signal)
    out, err = process.communicate(timeout=120)
    assert process.returncode == row.code, err
    said = json.loads(out)
    assert (said["ending"], said["code"], said["sessions"]) == (row.ending, row.code, row.sessions)
    assert f"{row.ending}: " in err
    assert "Traceback" not in err


# --- stories ---------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """Five stories."""
    here = world(tmp_path)
    here.stories(5)
    return here


def test_five_stories_take_five_sessions_and_five_commits(shop: World) -> None:
    done = shop.run("--prd", *shop.agent(ONE_STORY))
    assert done.code == 0, done.err
    assert done.json["stories"] == {"passing": 5, "total": 5}
    assert len(shop.calls) == 5
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert git(shop.repo, "symbolic-ref", "--short", "HEAD") == "ralph/shop"
    assert (shop.repo / "progress.txt").read_text().count("- Passed in session") == 5


def test_a_kill_in_the_third_session_and_nothing_is_done_twice(shop: World) -> None:
    agent = shop.agent("if call == 3:\n    change()\n    time.sleep(600)\n" + ONE_STORY)
    process = shop.start("--prd", *agent)
    until(lambda: (shop.repo / "file-3.txt").exists())
    process.kill()
    process.communicate()
    again = shop.run("--prd", "--continue", *agent)
    assert again.code == 0, again.err
    assert again.json["sessions"] == 5
    assert len(shop.calls) == 6  # the one that was killed was given once more
    assert shop.messages() == [f"feat: US-00{number} - Part {number}" for number in (5, 4, 3, 2, 1)] + ["Start"]
    assert not (shop.repo / "file-3.txt").exists()
    assert git(shop.repo, "for-each-ref", "--format=%(refname)", "refs/ralph/aside")


def test_work_that_is_done_takes_no_session(shop: World) -> None:
    agent = shop.agent(ONE_STORY)
    assert shop.run("--prd", *agent).code == 0
    git(shop.repo, "add", "-A")
    git(shop.repo, "commit", "-qm", "The list")
    assert shop.run("--prd", *agent).json["sessions"] == 0
    assert len(shop.calls) == 5


def test_who_only_quotes_the_promise_never_completes(shop: World) -> None:
    quoting = "change()\nprint('I must not say COMPLETE yet.\\nWhen done: <promise>COMPLETE</promise> comes last.')"
    done = shop.run("--prd", "--max-iterations", "2", *shop.agent(quoting))
    assert (done.code, done.json["stories"]["passing"]) == (2, 0)


def test_the_promise_alone_does_not_complete_stories(shop: World) -> None:
    done = shop.run("--prd", "--max-iterations", "2", *shop.agent("change()\nprint('<promise>COMPLETE</promise>')"))
    assert (done.code, done.json["ending"]) == (2, "iterations")


def test_who_flips_all_stories_with_red_checks_never_completes(shop: World) -> None:
    agent = shop.agent("change()\nflip(*todo())\nprint('<promise>COMPLETE</promise>')")
    done = shop.run("--prd", "--max-iterations", "2", "--verify", "false", *agent)
    assert (done.code, done.json["stories"]["passing"], shop.passing()) == (2, 0, [])


def test_who_flips_all_stories_with_green_checks_gets_one_at_a_time(shop: World) -> None:
    done = shop.run("--prd", "--max-iterations", "2", "--verify", "true", *shop.agent("change()\nflip(*todo())"))
    assert (done.code, shop.passing()) == (2, ["US-001", "US-002"])


def test_the_stories_of_another_branch_put_the_former_ones_away(shop: World) -> None:
    agent = shop.agent(ONE_STORY)
    assert shop.run("--prd", *agent).code == 0
    shop.stories(1, branch="ralph/cellar")
    assert shop.run("--prd", "--allow-dirty", *agent).code == 0
    archived = sorted(path.name for path in shop.repo.glob("archive/*-shop/*"))
    assert archived == ["prd.json", "progress.txt"]
    put_away = next(shop.repo.glob("archive/*-shop/prd.json"))
    assert len(shop.passing(str(put_away.relative_to(shop.repo)))) == 5


def test_the_former_stories_may_stay_where_they_are(shop: World) -> None:
    agent = shop.agent(ONE_STORY)
    assert shop.run("--prd", *agent).code == 0
    shop.stories(1, branch="ralph/cellar")
    assert shop.run("--prd", "--allow-dirty", "--no-archive-previous", *agent).code == 0
    assert not (shop.repo / "archive").exists()


def test_a_run_of_one_story(shop: World) -> None:
    done = shop.run("--prd", "--single-story-per-run", *shop.agent(ONE_STORY))
    assert (done.code, shop.passing()) == (0, ["US-001"])


def test_required_tests_need_a_check(shop: World) -> None:
    done = shop.run("--prd", "--require-tests", *shop.agent(ONE_STORY))
    assert done.code == 64
    assert "--require-tests needs a check" in done.err
    assert shop.calls == []


def test_stories_of_the_user_interface_pass_the_browser_check_as_well(tmp_path: Path) -> None:
    here = world(tmp_path, {"ralph.yml": "loop: {browser_check: 'test -e browsed'}"})
    here.stories(2)
    prd = json.loads((here.repo / "prd.json").read_text())
    prd["userStories"][1]["acceptanceCriteria"].append("Verify in browser")
    (here.repo / "prd.json").write_text(json.dumps(prd))
    done = here.run("--prd", "--max-iterations", "3", *here.agent(ONE_STORY))
    assert (done.code, here.passing()) == (2, ["US-001"])
    assert "test -e browsed" in here.prompt(3)


def test_stories_in_omc_stay_there_and_its_state_follows(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(1, place=".omc/prd.json")
    flipping = ONE_STORY.replace("flip(todo()[0])", "os.chdir('.omc'); flip('US-001'); os.chdir('..')")
    done = here.run("--prd", "--preset", "fresh", *here.agent(flipping))
    assert (done.code, here.passing(".omc/prd.json")) == (0, ["US-001"])
    handoff = json.loads((here.repo / ".omc/state/ralph-fresh-handoff.json").read_text())
    assert (handoff["completed"], handoff["prd"]["storiesCompleted"]) == (True, 1)
    assert json.loads((here.repo / ".omc/state/ralph-fresh-state.json").read_text())["active"] is False


# --- going on --------------------------------------------------------------------------


def test_a_higher_limit_goes_on_where_the_lower_one_ended(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("change()\nprint('LOOP_COMPLETE' if call == 4 else 'more')")
    assert here.run("build it", "--max-iterations", "2", *agent).code == 2
    assert here.run("--continue", "--max-iterations", "2", *agent).code == 2
    done = here.run("--continue", "--max-iterations", "9", *agent)
    assert (done.code, done.json["sessions"], len(here.calls)) == (0, 4, 4)
    assert "build it" in here.prompt(4)


def test_a_new_prompt_starts_a_new_run(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("commit() if change() else commit()\nprint('LOOP_COMPLETE')")
    assert here.run("build it", *agent).json["sessions"] == 1
    done = here.run("build something else", "--continue", *agent)
    assert (done.code, done.json["sessions"], len(here.calls)) == (0, 1, 2)


def test_a_restart_replaces_the_process_and_starts_anew(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent(
        "(here / f'pid-{call}').write_text(str(os.getppid()))\n"
        "change()\n"
        "if call == 1:\n    (run_dir / 'signal').write_text('restart\\n')\n"
        "else:\n    print('LOOP_COMPLETE')"
    )
    process = here.start("build it", *agent)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    said = json.loads(out)  # one document, of the last run
    assert (said["ending"], said["sessions"], len(here.calls)) == ("complete", 1, 2)


# --- interrupting ----------------------------------------------------------------------


@pytest.mark.parametrize("stubborn", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"])
def test_an_interrupt_leaves_nothing_running_and_the_run_goes_on(tmp_path: Path, stubborn: str) -> None:
    here = world(tmp_path)
    waiting = (
        f"import signal\n{stubborn}change()\n(here / 'pid').write_text(str(os.getpid()))\n"
        "if call == 1:\n    time.sleep(600)\nprint('LOOP_COMPLETE')"
    )
    agent = here.agent(waiting)
    process = here.start("build it", *agent)
    until(lambda: (here.aside / "pid").exists())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not works(int((here.aside / "pid").read_text()))
    done = here.run("--continue", *agent)
    assert (done.code, done.json["sessions"]) == (0, 1)


def test_cancel_ends_the_session_at_once_and_the_run_is_not_continued(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.repo / "file-1.txt").exists())
    told = here.ralph("cancel", "--json")
    out, _ = process.communicate(timeout=60)
    assert (told.code, told.json["running"]) == (0, True)
    assert (process.returncode, json.loads(out)["ending"]) == (1, "cancel")
    again = here.run("--continue", *here.agent("pass"))
    assert again.code == 64
    assert "there is no task" in again.err


def test_cancel_lets_the_session_end_when_asked_to_stop(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start(
        "build it", *here.agent("change()\nwhile not (here / 'go').exists():\n    time.sleep(0.02)\nprint('half way')")
    )
    until(lambda: (here.repo / "file-1.txt").exists())
    assert here.ralph("cancel", "--stop").code == 0
    (here.aside / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["ending"], json.loads(out)["sessions"]) == (1, "stop", 1)


def test_cancel_where_nothing_runs_says_so(tmp_path: Path) -> None:
    here = world(tmp_path)
    told = here.ralph("cancel")
    assert (told.code, told.out) == (0, "Nothing runs here.\n")


def test_cancel_clears_up_after_a_loop_that_was_killed(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.repo / "file-1.txt").exists())
    process.kill()
    process.communicate()
    told = here.ralph("cancel", "--json")
    assert (told.code, told.json["running"]) == (0, False)
    assert "the state of " in told.json["said"]
    assert here.ralph("cancel").out == "Nothing runs here.\n"


def test_a_second_loop_in_the_same_checkout_is_refused(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.repo / "file-1.txt").exists())
    other = here.run("build that", "--command", "true")
    process.terminate()
    process.communicate(timeout=60)
    assert other.code == 1
    assert f"process {process.pid}" in other.err
    assert "ralph cancel" in other.err


# --- where it works ----------------------------------------------------------------------


def test_a_dirty_checkout_is_refused_and_named(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    done = here.run("build it", *here.agent("pass"))
    assert (done.code, here.calls) == (1, [])
    assert "mine.txt" in done.err
    assert "--allow-dirty" in done.err


def test_a_dirty_checkout_may_be_allowed(tmp_path: Path) -> None:
    here = world(tmp_path)
    (here.repo / "mine.txt").write_text("half written")
    assert here.run("build it", "--allow-dirty", *here.agent("change()\nprint('LOOP_COMPLETE')")).code == 0
    assert (here.repo / "mine.txt").read_text() == "half written"


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


# --- what is asked -----------------------------------------------------------------------


def test_prompt_md_is_the_task_by_default(tmp_path: Path) -> None:
    here = world(tmp_path, {"PROMPT.md": "Paint it blue"})
    assert here.run(*here.agent("change()\nprint('LOOP_COMPLETE')")).code == 0
    assert "> Paint it blue" in here.prompt(1)


def test_the_settings_of_ralph_orchestrator_are_obeyed(tmp_path: Path) -> None:
    settings = """
cli: {backend: custom, command: /bin/sh, args: [agent.sh], prompt_mode: stdin}
event_loop: {prompt: "Find the cause", completion_promise: DEBUG_DONE, max_iterations: 7, starting_event: debug.start}
core: {guardrails: [Search first]}
hats:
  investigator: {triggers: [debug.start, fix.done], publishes: [fix.propose, DEBUG_DONE], instructions: Look.}
  fixer: {triggers: [fix.propose], publishes: [fix.done], default_publishes: fix.done}
"""
    script = """cat > prompt-$RALPH_ITERATION.txt
case $RALPH_ITERATION in
1) echo '<event topic="fix.propose">the lock</event>';;
3) echo '<event topic="DEBUG_DONE">fixed</event>';;
esac
"""
    here = world(tmp_path, {"ralph.yml": settings, "agent.sh": script})
    done = here.run()
    assert (done.code, done.json["sessions"]) == (0, 3), done.err
    runs = here.repo / ".ralph/loop/runs" / done.json["run"]
    hats = [json.loads((runs / f"session-000{number}.json").read_text())["hat"] for number in (1, 2, 3)]
    assert hats == ["investigator", "fixer", "investigator"]
    assert "Search first" in (here.repo / "prompt-1.txt").read_text()


def test_a_pattern_takes_turns_until_the_reviewer_is_content(tmp_path: Path) -> None:
    here = world(tmp_path)
    said = {"planner": "plan.complete", "builder": "build.complete", "fixer": "fix.complete"}
    playing = f"""
events = {said!r}
hat = os.environ["RALPH_HAT"]
issues = [] if call > 4 else [{{"file": "file-2.txt", "line": 1, "kind": "bug", "message": "no"}}]
payload = json.dumps({{"issues": issues}}) if hat == "reviewer" else "done"
if hat in ("builder", "fixer"):
    change()
print(f'<event topic="{{events.get(hat, "review.verdict")}}">{{payload}}</event>')
"""
    done = here.run("build it", "--pattern", "plan-build-review", *here.agent(playing))
    assert (done.code, here.calls) == (0, ["planner", "builder", "reviewer", "fixer", "reviewer"]), done.err


def test_a_hat_of_the_settings_without_triggers_changes_the_built_in_one(tmp_path: Path) -> None:
    settings = "hats: {planner: {instructions: Be brief.}, builder: {model: small}}"
    here = world(tmp_path, {"ralph.yml": settings})
    playing = "print('<event topic=\"plan.complete\">go</event>' if call == 1 else 'LOOP_COMPLETE')"
    assert here.run("build it", "--max-iterations", "2", *here.agent(playing)).code == 2
    assert here.calls == ["planner", "builder"]
    assert "Be brief." in here.prompt(1)


def test_hat_files_are_worn(tmp_path: Path) -> None:
    hat = '[hat]\nname = "scribe"\ntriggers = ["loop.start"]\n[files]\nwrite_allowed = ["docs/**"]\n' \
          '[exit]\nemit_event = "LOOP_COMPLETE"\n'  # fmt: skip  # one text
    here = world(tmp_path, {"ralph.yml": "loop: {hats: 'hats/*.toml'}", "hats/scribe.toml": hat})
    done = here.run("write it", *here.agent("change()\nprint('<event topic=\"LOOP_COMPLETE\">done</event>')"))
    assert (done.code, here.calls) == (0, ["scribe"]), done.err
    assert [undone["path"] for undone in done.json["reverted"]] == ["file-1.txt"]
    assert not (here.repo / "file-1.txt").exists()


def test_the_fresh_preset_takes_stories_where_there_are_some(tmp_path: Path) -> None:
    here = world(tmp_path)
    assert here.run("it", "--preset", "fresh", *here.agent("print('TASK_COMPLETE')")).json["stories"] is None
    here.stories(1)
    done = here.run("it", "--preset", "fresh", *here.agent(ONE_STORY))
    assert done.json["stories"] == {"passing": 1, "total": 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["build it"], "--command"),
        (["build it", "--agent", "nobody"], "nobody"),
        (["--command", "true"], "PROMPT.md"),
        (["build it", "-P", "PROMPT.md", "--command", "true"], "two tasks"),
        (["--prd", "--command", "true"], "ralph plan"),
        (["build it", "--max-iterations", "0"], "--max-iterations"),
        (["build it", "--max-runtime", "soon"], "15m"),
        (["build it", "--no-such-option"], "--no-such-option"),
        (["build it", "--preset", "nothing", "--command", "true"], "nothing"),
        (["-P", "gone.md", "--command", "true"], "gone.md"),
    ],
)
def test_wrong_usage_ends_with_64_and_says_what_is_right(tmp_path: Path, options: list[str], said: str) -> None:
    done = world(tmp_path).run(*options)
    assert done.code == 64
    assert said in done.err
    assert done.json["error"]["who"] == "you"


def test_wrong_settings_end_with_64(tmp_path: Path) -> None:
    done = world(tmp_path, {"ralph.yml": "lop: {}"}).run("build it", "--command", "true")
    assert done.code == 64
    assert "did you mean loop?" in done.err


def test_a_persistent_loop_needs_somebody_who_listens(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start]}}"
    done = world(tmp_path, {"ralph.yml": settings}).run("build it", "--command", "true")
    assert done.code == 64
    assert "task.resume" in done.err


def test_a_persistent_loop_goes_on_after_completion_until_a_limit(tmp_path: Path) -> None:
    settings = "event_loop: {persistent: true}\nhats: {builder: {triggers: [loop.start, task.resume]}}"
    here = world(tmp_path, {"ralph.yml": settings})
    done = here.run("build it", "--max-iterations", "3", *here.agent("change()\nprint('LOOP_COMPLETE')"))
    assert (done.code, done.json["ending"], here.calls) == (2, "iterations", ["builder"] * 3)
    assert "failed" not in done.err


def test_progress_is_told_in_plain_lines_and_the_document_stands_alone(tmp_path: Path) -> None:
    here = world(tmp_path)
    here.stories(2)
    done = here.run("--prd", *here.agent(ONE_STORY))
    assert done.json["ending"] == "complete"
    assert "[1/10] no hat, US-001 Part 1, 0/2 stories" in done.err
    assert "passed US-001, file-1.txt, prd.json" in done.err
    assert "\x1b" not in done.err


def test_prices_turn_tokens_into_dollars(tmp_path: Path) -> None:
    settings = "cost: {prices: {small: {input: 1, output: 2}}}\nhats: {builder: {triggers: [loop.start], model: small}}"
    here = world(tmp_path, {"ralph.yml": settings})
    told = {"type": "result", "result": "LOOP_COMPLETE", "is_error": False,
            "usage": {"input_tokens": 1_000_000, "output_tokens": 500_000}}  # fmt: skip  # one document
    done = here.run("build it", *here.agent(f"change()\nprint(json.dumps({told!r}))"))
    assert done.json["usage"]["cost_usd"] == 2.0


def test_a_task_without_stories_is_planned_first(tmp_path: Path) -> None:
    here = world(tmp_path)
    planning = """
if os.environ["RALPH_HAT"] == "planner":
    story = {"id": "US-001", "title": "Show the cart", "priority": 1, "passes": False, "notes": "",
             "description": "As a buyer, I want to see what I chose so that I can pay for it.",
             "acceptanceCriteria": ["The cart lists each product with its price", "Typecheck passes",
                                    "Verify in browser"]}
    prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop.", "userStories": [story]}
    pathlib.Path("prd.json").write_text(json.dumps(prd))
    sys.exit(0)
"""
    done = here.run("a cart", "--prd", *here.agent(planning + ONE_STORY))
    assert done.code == 0, done.err
    assert here.calls == ["planner", "ralph"]
    assert here.passing() == ["US-001"]


def test_a_planner_that_writes_nothing_is_told_and_then_given_up(tmp_path: Path) -> None:
    here = world(tmp_path)
    told = here.ralph("plan", "a cart", "--json", *here.agent("print('no idea')"))
    assert told.code == 1
    assert len(here.calls) == 3
    assert "it holds no userStories" in here.prompt(2)
    commit(here.repo, {"x": "y"})
    assert not (here.repo / "prd.json").exists()


def test_a_linked_work_tree_says_how_its_work_gets_here_and_is_gone_on_in(tmp_path: Path) -> None:
    here = world(tmp_path)
    agent = here.agent("change()\ncommit()")
    first = here.run("build it", "--worktree", "--max-iterations", "1", *agent)
    assert "git merge ralph-run/build-it" in first.err and ".ralph/worktrees/" in first.err
    again = here.run("--worktree", "--continue", "--max-iterations", "2", *agent)
    assert again.json["sessions"] == 2, again.err
    assert not (here.repo / "file-1.txt").exists()
