"""`ralph agent emit`: the one event that ends a session."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.storage.loop import events, state
from ralph_mission.adapters.storage.loop.inbox import Guide
from ralph_mission.adapters.storage.loop.tasks import Tasks
from tests.adapters.storage.loop.test_state_verdicts import RUN
from tests.helpers import Result, cli_here, git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def test_an_event_carries_its_hat_and_iteration(repo: Path) -> None:
    env = {"RALPH_HAT": "builder", "RALPH_ITERATION": "4"}
    result = cli_here("agent", "emit", "build.complete", "two files", "--json", repo=repo, env=env)
    assert result.code == 0
    assert result.json == {"topic": "build.complete", "payload": "two files", "hat": "builder", "iteration": 4}
    (event,) = events.read_events(repo / ".ralph")
    assert (event.topic, event.payload, event.hat, event.iteration) == ("build.complete", "two files", "builder", 4)
    assert event.at is not None


def test_a_payload_that_has_to_be_json_is_checked(repo: Path) -> None:
    assert cli_here("agent", "emit", "review.verdict", '{"issues":[]}', "--json-payload", repo=repo).code == 0
    result = cli_here("agent", "emit", "review.verdict", "{issues}", "--json-payload", repo=repo)
    assert result.code == 64
    assert "not JSON" in result.err
    assert [event.payload for event in events.read_events(repo / ".ralph")] == ['{"issues": []}']


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing argument 'TOPIC'"),
        (("two words",), "not a topic"),
        (("",), "not a topic"),
        (("a\nb",), "not a topic"),
        (("x" * 101,), "not a topic"),
        (("a.b", "payload", "more"), "unexpected extra argument"),
        (("a.b", "x" * 100_001), "too long"),
        (("a.b", "--nope"), "--nope"),
    ],
)
def test_wrong_usage_ends_with_64(repo: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_here("agent", "emit", *arguments, repo=repo)
    assert (result.code, result.out) == (64, "")
    assert message in result.err
    assert events.read_events(repo / ".ralph") == ()


def test_an_event_without_a_loop_waits_for_one(repo: Path) -> None:
    cli_here("agent", "emit", "loop.note", repo=repo, env={"RALPH_ITERATION": "many"})
    (event,) = events.read_events(repo / ".ralph")
    assert (event.payload, event.hat, event.iteration) == ("", "", 0)


# --- `ralph agent guidance`: a person steers from wherever they are. ---


@pytest.mark.parametrize("words", [("Wrap the existing code",), ("Wrap", "the", "existing", "code")])
def test_words_wait_for_the_next_session(repo: Path, words: tuple[str, ...]) -> None:
    result = cli_here("agent", "guidance", *words, "--json", repo=repo)
    assert result.code == 0
    (said,) = Guide(repo / ".ralph").pending()
    assert (said.id, said.text) == (result.json["id"], "Wrap the existing code")


def test_the_list_tells_what_was_given(repo: Path) -> None:
    assert cli_here("agent", "guidance", "--list", repo=repo).out == "No guidance.\n"
    cli_here("agent", "guidance", "First", repo=repo)
    cli_here("agent", "guidance", "Second", repo=repo)
    guide = Guide(repo / ".ralph")
    guide.acknowledge([guide.pending()[0].id])
    listed = cli_here("agent", "guidance", "--list", "--json", repo=repo).json["guidance"]
    assert [(one["text"], one["given"]) for one in listed] == [("First", True), ("Second", False)]
    first, second = cli_here("agent", "guidance", "--list", repo=repo).out.splitlines()
    assert "given" in first
    assert "waiting" in second


@pytest.mark.parametrize("arguments", [(), ("words", "--list"), ("--nope",)])
def test_wrong_usage_ends_with_64_tasks_guidance(repo: Path, arguments: tuple[str, ...]) -> None:
    result = cli_here("agent", "guidance", *arguments, repo=repo)
    assert (result.code, result.out) == (64, "")
    assert result.err.startswith("error: ")


def test_no_words_are_no_guidance(repo: Path) -> None:
    assert cli_here("agent", "guidance", "  ", repo=repo).code == 1
    assert Guide(repo / ".ralph").all() == ()


# --- `ralph agent task` as agents and people call it. ---

HEAVY = ("pydantic", "rich", "yaml", "mcp", "ralph_mission.config", "ralph_mission.app")


def _task(repo: Path, *arguments: str, **env: str) -> Result:
    return cli_here("agent", "task", *arguments, repo=repo, env=env)


def _json(repo: Path, *arguments: str) -> Any:
    result = _task(repo, *arguments, "--json")
    assert (result.code, result.err) == (0, "")
    return result.json


def test_a_task_from_pending_to_done(repo: Path) -> None:
    assert _json(repo, "add", "Schema", "--id", "a")["status"] == "ready"
    added = _json(repo, "add", "API", "--needs", "a", "--id", "b", "--priority", "1", "--description", "Ports")
    assert added == {
        "id": "b", "title": "API", "status": "pending", "priority": 1, "needs": ["a"],
        "waits": "waits for a (ready)", "owner": "", "description": "Ports",
    }  # fmt: skip  # one task
    assert [task["id"] for task in _json(repo, "list", "--ready")["tasks"]] == ["a"]
    assert _json(repo, "claim", "--owner", "me") == _json(repo, "show", "a")
    assert _json(repo, "show", "a")["owner"] == "me"
    assert _json(repo, "done", "a")["status"] == "done"
    assert _json(repo, "claim", "b")["status"] == "active"
    assert _json(repo, "done", "b", "--failed", "--why", "no port")["status"] == "failed"
    assert [task["status"] for task in _json(repo, "list")["tasks"]] == ["done", "failed"]


def test_people_read_one_line_for_each_task(repo: Path) -> None:
    _task(repo, "add", "Schema", "--id", "a")
    _task(repo, "add", "API \x1b[31m in red", "--id", "b", "--needs", "a")
    assert _task(repo, "done", "a", "--failed").out == "a  failed   Schema\n"
    assert _task(repo, "list").out.splitlines() == [
        "! task b waits for a (failed)",
        "a  failed   Schema",
        "b  pending  API  [31m in red (waits for a (failed))",
    ]
    assert _task(repo, "list", "--ready").out == "No task is ready.\n"


@pytest.mark.parametrize("which", [(), ("--ready",)])
def test_a_session_on_stories_is_told_that_its_work_is_not_in_the_list_of_tasks(
    repo: Path, which: tuple[str, ...]
) -> None:
    state.save(repo, replace(RUN, item="US-2"))
    (repo / ".ralph/loop/prd.json").write_text(json.dumps({"userStories": [{"id": "US-2", "title": "Search"}]}))
    session = {"RALPH_ITERATION": "3", "RALPH_RUN_DIR": str(repo / ".ralph/loop")}
    first, second = _task(repo, "list", *which, **session).out.splitlines()
    assert first == "The work of this session is story US-2, in the list that its prompt names."
    assert second == ("No task is ready." if which else "No tasks.")
    assert _task(repo, "list", *which, "--json", **session).json["story"] == "US-2"
    assert "US-2" not in _task(repo, "list", *which).out  # no session asks
    state.save(repo, replace(RUN, item="t-1"))
    assert "The work" not in _task(repo, "list", *which, **session).out


def test_needs_are_repeated_or_separated_by_commas(repo: Path) -> None:
    for name in "abc":
        _task(repo, "add", name, "--id", name)
    assert _json(repo, "add", "All", "--needs", "a", "--needs", "b,c")["needs"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("claim",), 1, "no task is ready"),
        (("done", "zz"), 1, "there is no task 'zz'"),
        (("add", "X", "--needs", "zz"), 1, "there is no task 'zz'"),
        (("add", ""), 1, "title"),
        (("add",), 64, "missing argument 'TITLE'"),
        (("add", "two", "titles"), 64, "unexpected extra argument"),
        (("add", "X", "--priority", "9"), 64, "--priority"),
        (("add", "X", "--priority", "high"), 64, "--priority"),
        (("add", "X", "--nope"), 64, "--nope"),
        (("list", "--status", "paused"), 64, "--status"),
        (("done",), 64, "missing argument 'ID'"),
        (("burn", "a"), 64, "burn"),
        ((), 64, ""),
    ],
)
def test_wrong_usage_ends_with_64_and_what_cannot_be_done_with_1(
    repo: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = cli_here("agent", "task", *arguments) if not arguments else _task(repo, *arguments)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert "Traceback" not in result.err


def test_an_error_is_one_document_too(repo: Path) -> None:
    result = _task(repo, "claim", "--json")
    assert result.code == 1
    assert result.json["error"]["what"] == "no task is ready"


@pytest.mark.parametrize("line", ["task add Title", "task claim", "emit build.complete done", "guidance Wrap it"])
def test_what_agents_call_imports_nothing_heavy(repo: Path, line: str) -> None:
    Tasks(repo / ".ralph").add("One")
    script = (
        "import sys; from ralph_mission.cli.main import main\n"
        f"try: main()\nfinally: print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    words = line.split(maxsplit=1 if line.startswith("guidance") else 2)
    done = subprocess.run(
        [sys.executable, "-c", script, *words, "--repo", str(repo)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_git_does_not_see_the_folder_that_the_first_task_makes(repo: Path) -> None:
    _task(repo, "add", "One")
    assert git(repo, "status", "--porcelain", "--untracked-files=all") == ""


def test_a_linked_work_tree_has_tasks_of_its_own_and_stays_clean(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    _task(tmp_path / "linked", "add", "One")
    assert Tasks(tmp_path / "linked" / ".ralph").all()[0].title == "One"
    assert Tasks(repo / ".ralph").all() == ()
    assert git(tmp_path / "linked", "status", "--porcelain", "--untracked-files=all") == ""


def test_the_checkout_is_found_from_a_folder_inside_it_and_from_the_running_loop(repo: Path, tmp_path: Path) -> None:
    (repo / "deep" / "er").mkdir(parents=True)
    assert cli_here("agent", "task", "add", "One", "--json", cwd=repo / "deep" / "er").code == 0
    assert (
        cli_here("agent", "task", "add", "Two", cwd=tmp_path, env={"RALPH_RUN_DIR": str(repo / ".ralph" / "loop")}).code
        == 0
    )
    assert [task.title for task in Tasks(repo / ".ralph").all()] == ["One", "Two"]


def test_outside_of_a_repository_it_says_where_to_go(tmp_path: Path) -> None:
    result = cli_here("agent", "task", "add", "One", repo=tmp_path)
    assert result.code == 64
    assert "not in the work tree of a git repository" in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_claim_names_the_session_of_the_loop(repo: Path) -> None:
    _task(repo, "add", "One", "--id", "a")
    assert "host:boot:7:session-3" in _task(repo, "claim", RALPH_OWNER="host:boot:7:session-3").out


def test_a_claim_outside_of_a_loop_and_a_terminal_outlives_its_command(repo: Path) -> None:
    _task(repo, "add", "One", "--id", "a")
    command = [sys.executable, "-m", "ralph_mission", "agent", "task", "claim", "--repo", str(repo)]
    assert subprocess.run(command, capture_output=True, check=False, start_new_session=True).returncode == 0
    assert subprocess.run(command, capture_output=True, check=False, start_new_session=True).returncode == 1


def test_help_is_there_for_each_verb() -> None:
    for verb in ("add", "list", "claim", "done", "show"):
        result = cli_here("agent", "task", verb, "--help")
        assert result.code == 0
        assert "Usage: ralph agent task" in result.out


# --- `ralph agent verdict`, as a person types it. ---


def test_a_verdict_is_kept_and_the_next_threshold_knows_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shop", {"a.txt": "a\n"})
    state.save(repo, RUN)
    done = cli_here("agent", "verdict", "accept", "--json", repo=repo)
    assert (done.code, json.loads(done.out)) == (
        0,
        {"run": RUN.run_id, "kind": "refactor", "left": 1, "accepted": True},
    )
    assert json.loads((repo / ".ralph/loop/verdicts.jsonl").read_text())["left"] == 1


def test_a_verdict_on_no_run_is_wrong_usage_of_a_loop_command(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shop", {"a.txt": "a\n"})
    done = cli_here("agent", "verdict", "reject", repo=repo)
    assert done.code == 64 and "no run" in done.err
