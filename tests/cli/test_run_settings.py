"""What `ralph run` was asked: a task, settings, hats, a pattern; and what makes no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.loop_world import ONE_STORY, world
from tests.helpers import commit

pytestmark = pytest.mark.long  # takes ten seconds or more


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
