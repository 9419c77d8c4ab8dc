"""Settings, stories and notes that people wrote for other tools: they load unchanged, as a process shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import ONE_STORY, World, world

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
    assert "at most 40 sessions, 1h30" in done.err
    for key in ("idle_timeout_secs", "checkpoint_interval", "specs_dir", "tui"):
        assert key in done.err


def test_settings_of_the_first_version(tmp_path: Path) -> None:
    shop = world(tmp_path, {"ralph.yml": FIRST_VERSION, **GOAL})
    told = {"type": "result", "result": "more to do", "is_error": False, "total_cost_usd": 3.0,
            "usage": {"input_tokens": 10, "output_tokens": 2}}  # fmt: skip  # one document
    done = shop.run(*shop.agent(f"change()\nprint(json.dumps({told!r}))"))
    assert (done.code, done.json["ending"], done.json["sessions"]) == (2, "cost", 2), done.err
    assert "at most 25 sessions, 1h00" in done.err
    assert "SHIPPED" in shop.prompt(1) and "tide tables" in shop.prompt(1)
    for key in ("checkpoint_interval", "git_checkpoint", "context_threshold", "adapters"):
        assert key in done.err


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
