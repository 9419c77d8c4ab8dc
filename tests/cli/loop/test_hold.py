"""What runs in one terminal is seen and held from another: `ralph status`, `logs`, `pause`, `resume`, `stop`."""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import inbox, live, run_files, state
from ralph_mission.cli.loop import hold
from ralph_mission.loop.model.state import RunState
from tests.cli.loop_world import World, until, world
from tests.helpers import cli_here, git, make_repo

WAITS = """
print("I look first.", flush=True)
until = here / f"go-{call}"
while not until.exists():
    time.sleep(0.01)
change()
print(json.dumps({"type": "result", "is_error": False, "result": "did it", "total_cost_usd": 0.25, "usage": {}}))
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    return world(tmp_path)


def records(shop: World) -> list[live.LiveRecord]:
    return [one for one in live.list_runs(shop.repo / ".ralph") if one.state != "ended"]


def go(shop: World, call: int) -> None:
    (shop.aside / f"go-{call}").touch()


def test_a_run_is_seen_paused_resumed_and_stopped_from_a_second_terminal(shop: World) -> None:
    first = shop.start("Write it", "--max-iterations", "9", *shop.agent(WAITS))
    until(lambda: records(shop) and live.last_words(shop.repo / ".ralph", "run-1", 1))
    (record,) = shop.ralph("status", "--json").json["runs"]
    assert (record["id"], record["state"], record["sessions"]) == ("run-1", "running", 0)
    assert "I look first." in shop.ralph("logs").out
    transcript = shop.repo / f".ralph/live/run-1/{record['run']}-0001"
    assert (
        "Write it" in Path(f"{transcript}.md").read_text() and "I look first." in Path(f"{transcript}.md").read_text()
    )
    assert json.loads(Path(f"{transcript}.jsonl").read_text())["text"] == "I look first."

    assert shop.ralph("pause", "run-1").out == "run-1 pauses at its next safe point\n"
    assert "pauses at its next safe point" in shop.ralph("status").out
    go(shop, 1)  # the session ends as ever
    until(lambda: records(shop)[0].state == "paused")
    assert (records(shop)[0].sessions, records(shop)[0].usd, shop.calls) == (1, 0.25, ["ralph"])
    assert "PAUSED" in shop.ralph("status").out
    assert (shop.repo / "file-1.txt").exists()  # what it did is judged, and has landed

    told = shop.ralph("pause")  # before the first cycle there is no memory that could be paused
    assert told.code == 0 and "RALPH_PAUSED=1" in told.err
    assert shop.ralph("resume", "run-1").out == "run-1 continues\n"
    until(lambda: len(shop.calls) == 2)
    assert shop.ralph("stop").out == "run-1 stops at its next safe point\n"
    go(shop, 2)
    out, err = first.communicate()
    assert (first.returncode, json.loads(out)["ending"], json.loads(out)["sessions"]) == (1, "stop", 2)
    assert "on main: 2 commits, 2 files changed" in err and ".ralph/loop/runs/" in err
    assert records(shop) == [] and shop.ralph("stop").code == 2
    told = shop.ralph("status").out
    assert "Last loop\n  run-1, ended 20" in told and "stop: asked to stop" in told and "--continue\n" in told
    assert "no cycle has run here yet" in told
    said = shop.ralph("logs", "run-1", "--follow").out  # which ends, as the run did
    assert all(word in said for word in ("paused", "resumed", "stop: asked to stop"))


def test_a_cancelled_run_is_never_offered_to_be_continued(shop: World) -> None:
    script = "change()\n(run_dir / 'signal').write_text('{}\\n')"
    ends = {word: shop.ralph("run", "Write it", *shop.agent(script.format(word))) for word in ("stop", "cancel")}
    assert "continue: " in ends["stop"].err and "cancel: cancelled" in ends["cancel"].err
    assert "continue" not in ends["cancel"].err
    told = shop.ralph("status").out
    assert "cancelled" in told and "continue" not in told


def test_a_run_in_the_background_is_followed_to_its_end(shop: World) -> None:
    started = shop.run_apart("Write it", "--max-iterations", "1", *shop.agent(WAITS), "--detach")
    assert started.code == 0 and started.json == {"run": "run-1"}, started.err
    until(lambda: len(shop.calls) == 1)
    go(shop, 1)
    assert "iterations: 1 session" in shop.ralph("logs", "-f").out
    ended = live.list_runs(shop.repo / ".ralph")[0]
    assert (ended.state, ended.code) == ("ended", 2)


def test_what_cannot_run_is_refused_in_the_foreground(shop: World) -> None:
    refused = shop.run_apart("Write it", "--agent", "nobody", "--detach")
    assert refused.code == 64 and "nobody is not one of" in refused.err


def test_what_is_refused_after_the_first_notes_is_reported_in_every_terminal(shop: World) -> None:
    (shop.repo / "README.md").write_text("Mine.\n")
    refused = shop.run_apart("Write it", "--command", "true", "--detach")
    assert refused.code == 1 and "README.md" in refused.err
    assert "error: the checkout has changes" in shop.ralph("logs").out
    status = shop.ralph("status").out
    assert "run-1, ended" in status and "error: the checkout has changes" in status and "--continue" not in status


def test_a_run_that_was_killed_is_told_with_what_goes_on(shop: World) -> None:
    first = shop.start("Write it", *shop.agent(WAITS))
    until(lambda: len(shop.calls) == 1 and records(shop) and records(shop)[0].run)
    first.send_signal(signal.SIGKILL)
    shop.end(first)
    assert records(shop)[0].state == "killed"
    said = shop.ralph("status").out
    assert "run-1 ended without a report" in said
    assert shop.ralph("pause", "run-1").code == 2
    command = said.partition("go on: ")[2].partition("\n")[0]
    (shop.repo / "README.md").write_text("Mine.\n")
    assert shop.ralph("run", "Write it", *shop.agent(WAITS)).code == 1  # a refused one does not hide it
    assert "run-1 ended without a report" in shop.ralph("status").out
    git(shop.repo, "checkout", "-q", "README.md")
    go(shop, 2)
    go(shop, 3)
    assert shop.ralph(*shlex.split(command)[1:], "--max-iterations", "2").code == 2
    assert len(shop.calls) == 3


@pytest.mark.parametrize("code", [2, None])
def test_no_command_is_offered_to_continue_the_run_of_a_python_program(shop: World, code: int | None) -> None:
    at, doing = "2026-11-22T10:15:00+00:00", "iterations: 1 session"
    began = live.LiveRecord("run-1", "run", began=at, run="20261122-101500-loop", doing=doing, code=code)
    folder = shop.repo / ".ralph/live/run-1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(asdict(replace(began, owner="", started="gone"))))
    told = shop.ralph("status").out
    assert "run-1" in told and "--continue" not in told and "go on" not in told, shop.ralph("status").err


def test_a_cycle_waits_where_nothing_is_half_done(shop: World) -> None:
    home = shop.repo / ".ralph"
    name = live.take_id(home, "cycle")
    (home / live.FOLDER / name / live.ORDER).write_text("stop\n")
    stopped = shop.ralph("cycle", env={live.NAMED: name})
    assert stopped.code == 130 and not (shop.repo / ".git/refs/heads/ralph-memory").exists()


def test_work_that_is_asked_to_stop_while_it_waits_says_so(shop: World) -> None:
    home = shop.repo / ".ralph"
    name = live.take_id(home, "work")
    (home / live.FOLDER / name / live.ORDER).write_text("stop\n")
    stopped = shop.ralph("work", "--json", *shop.agent("print('x')"), env={live.NAMED: name})
    assert (stopped.code, stopped.json["outcome"], stopped.json["reason"]) == (130, "stopped", "as somebody asked")


# --- ralph agent cancel ---


def test_where_nothing_runs_what_an_earlier_run_left_is_cleared_away_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "STARTING", 0.0)
    repo = make_repo(tmp_path / "repo")
    state.save(repo, RunState("r-1", "build", datetime(2026, 5, 4, tzinfo=UTC)))
    run_files.prepare(repo / ".ralph")
    inbox.write(repo / ".ralph", "stop")
    done = cli_here("agent", "cancel", repo=repo)
    left = "a signal, the state of r-1, which cannot be continued any more"
    assert done.out == f"Nothing runs here; cleaned up after an earlier run: {left}.\n"
    again = cli_here("agent", "cancel", "--json", repo=repo)
    assert again.json == {"running": False, "signal": "cancel", "said": "Nothing runs here."}


def test_a_session_may_ask_its_own_loop_to_end(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    home = repo / ".ralph"
    run_files.prepare(home)
    clone = home / run_files.WORKSPACE / "repo"
    clone.mkdir(parents=True)
    done = cli_here("agent", "cancel", "--stop", repo=clone, env={"RALPH_RUN_DIR": str(home / "agent")})
    assert done.out.startswith("The loop was asked to stop: ") and inbox.read(home) == "stop"


def test_a_bare_repository_has_no_loop_to_cancel(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    done = cli_here("agent", "cancel", repo=bare)
    assert done.code == 64 and "Name a checkout with --repo DIR" in done.err
