"""`ralph run TASK --prd` without stories: the planner is the first part of the run, with its limits and endings."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.loop.hats import PATTERNS
from tests.cli.loop.test_run_teams import AGREES, OWNS, SAYS
from tests.cli.loop.test_run_teams import PLANS as PLANS_run_ralplan
from tests.cli.loop_world import World, until, world
from tests.helpers import git

pytestmark = pytest.mark.long  # takes ten seconds or more

PLANS = """
def write_stories(*titles):
    listed = [{"id": f"US-{number:03}", "title": title, "priority": number, "passes": False, "notes": "",
               "description": "As a keeper, I want to see what is left so that I can order more.",
               "acceptanceCriteria": ["an empty shelf counts 0", "Typecheck passes"]}
              for number, title in enumerate(titles, 1)]
    prd = {"project": "Shop", "branchName": "ralph/shop", "description": "A shop.", "userStories": listed}
    pathlib.Path("prd.json").write_text(json.dumps(prd))

def told(words="done", usd=5):
    print(json.dumps({"type": "result", "result": words, "is_error": False, "total_cost_usd": usd,
                      "usage": {"input_tokens": 10, "output_tokens": 1}}))
    sys.exit()

planner = os.environ["RALPH_HAT"] == "planner"
"""
WRITES = """
if planner:
    write_stories("Count the shelf")
    told()
"""
BUILDS = """
change()
commit()
flip(*todo()[:1])
told()
"""
WAITS = """
if planner and not (here / "again").exists():
    change()
    pathlib.Path("prd.json").write_text("{")
    (here / "waits").write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """A repository without stories."""
    return world(tmp_path)


def state(here: World) -> dict[str, object]:
    """Where the run was left."""
    document = json.loads((here.repo / ".ralph/loop/state.json").read_text())
    found: dict[str, object] = document["state"]
    return found


def test_planner_and_builders_are_one_run_with_one_account(shop: World) -> None:
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + WRITES + BUILDS))
    assert (done.code, shop.calls) == (0, ["planner", "ralph"]), done.err
    assert (done.json["sessions"], done.json["usage"]["cost_usd"]) == (2, 10.0)
    assert done.json["stories"] == {"passing": 1, "total": 1}
    costs = json.loads(shop.ralph("cost", "--json").out)
    assert (costs["runs"], costs["total"]["sessions"], costs["total"]["cost_usd"]) == (1, 2, 10.0)
    assert {row["hat"]: row["cost_usd"] for row in costs["hats"]} == {"planner": 5.0, "ralph": 5.0}


def test_a_cost_limit_counts_what_the_planner_took(shop: World) -> None:
    agent = shop.agent(PLANS + WRITES + BUILDS)
    done = shop.run("a shop", "--prd", "--max-cost", "4", *agent)
    assert (done.code, done.json["ending"], shop.calls) == (2, "cost", ["planner"])
    more = shop.run("a shop", "--prd", "--max-cost", "6", "--continue", *agent)
    assert (more.code, more.json["sessions"], shop.calls) == (0, 2, ["planner", "ralph"]), more.err


@pytest.mark.parametrize(
    ("limit", "ending"),
    [(["--max-cost", "1"], "cost"), (["--max-iterations", "1"], "iterations"), (["--max-runtime", "0.001"], "runtime")],
)
def test_no_planner_starts_beyond_a_limit(shop: World, limit: list[str], ending: str) -> None:
    done = shop.run("a shop", "--prd", *limit, *shop.agent(PLANS + "told()"))
    assert (done.code, done.json["ending"]) == (2, ending), done.err
    assert len(shop.calls) == (0 if ending == "runtime" else 1)


def test_ctrl_c_in_a_planner_ends_as_any_run_does_and_is_gone_on_from(shop: World) -> None:
    agent = shop.agent(PLANS + WAITS + WRITES + BUILDS)
    running = shop.start("a shop", "--prd", *agent)
    until(lambda: (shop.aside / "waits").exists() and (shop.aside / "waits").read_text())
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    document = json.loads(out)
    assert (running.returncode, document["ending"], document["code"]) == (130, "interrupted", 130), err
    assert state(shop)["kind"] == "plan"
    (shop.aside / "again").touch()
    done = shop.run("a shop", "--prd", "--continue", *agent)
    assert (done.code, shop.calls) == (0, ["planner", "planner", "ralph"]), done.err
    assert not (shop.repo / "file-1.txt").exists()
    assert [*shop.repo.glob(".ralph/aside/*.patch")]
    assert done.json["run"] == document["run"]


@pytest.mark.parametrize(("word", "code"), [("stop", 1), ("cancel", 1), ("restart", 3)])
def test_a_persons_word_in_a_planner_ends_it_as_documented(shop: World, word: str, code: int) -> None:
    script = f"(run_dir / 'signal').write_text('{word}')\ntold()"
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + script), env={"RALPH_RESTART": "exit"})
    assert (done.code, done.json["ending"], shop.calls) == (code, word, ["planner"]), done.err
    assert (shop.repo / ".ralph/loop/state.json").exists() == (word != "cancel")


def test_restart_in_a_planner_replaces_the_process(shop: World) -> None:
    first = """
(here / f"holder-{call}").write_text(str(json.loads((run_dir.parents[1] / ".git/ralph-running").read_text())["pid"]))
if call == 1:
    pathlib.Path("prd.json").write_text("[]")
    (run_dir / "signal").write_text("restart")
    told()
"""
    running = shop.start("a shop", "--prd", *shop.agent(PLANS + first + WRITES + BUILDS))
    out, err = running.communicate(timeout=300)
    assert (running.returncode, shop.calls) == (0, ["planner", "planner", "ralph"]), err
    assert json.loads(out)["ending"] == "complete"
    assert json.loads(out)["sessions"] == 2, "a restart starts a new run"
    assert {(shop.aside / f"holder-{call}").read_text() for call in (1, 2, 3)} == {str(running.pid)}


def test_a_planner_that_is_killed_is_gone_on_from(shop: World) -> None:
    agent = shop.agent(PLANS + WAITS + WRITES + BUILDS)
    running = shop.start("a shop", "--prd", *agent)
    until(lambda: (shop.aside / "waits").exists() and (shop.aside / "waits").read_text())
    running.kill()
    running.communicate(timeout=300)
    os.kill(int((shop.aside / "waits").read_text()), signal.SIGKILL)
    (shop.aside / "again").touch()
    done = shop.run("a shop", "--prd", "--continue", *agent)
    assert (done.code, shop.calls) == (0, ["planner", "planner", "ralph"]), done.err


def test_the_stories_of_another_branch_are_put_away_after_planning(shop: World) -> None:
    (shop.repo / ".last-branch").write_text("ralph/old\n")
    (shop.repo / "progress.txt").write_text("# Ralph Progress Log\nStarted: x\n---\n## old - US-009\n- did it\n---\n")
    done = shop.run("a shop", "--prd", *shop.agent(PLANS + WRITES + BUILDS))
    assert done.code == 0, done.err
    assert (shop.repo / ".last-branch").read_text() == "ralph/shop\n"
    assert [path.parent.name[11:] for path in shop.repo.glob("archive/*/progress.txt")] == ["old"]
    assert git(shop.repo, "branch", "--show-current") == "ralph/shop"


# --- Stories of several hats and what they have no use for; ralplan that builds what its critic approved. ---

TWO_SECTIONS = """
if hat == "planner":
    again = "mended" if call > 1 else "vague"
    write(".ralph/plan.md", f"# Shop\\n\\n## Store\\nOne table.\\n\\n## Shelf\\n{again}\\n")
    say("plan.complete", "the plan")
elif hat == "architect":
    say("plan.advice", "one table is enough")
elif hat == "critic":
    shelf = "approve" if "mended" in pathlib.Path(".ralph/plan.md").read_text() else "reject"
    rows = [{"section": "Store", "verdict": "approve"},
            {"section": "Shelf", "verdict": shelf, "objections": [] if shelf == "approve" else ["which shelf?"]}]
    say("plan.verdict", {"sections": rows})
elif hat == "builder":
    name = "store" if "> One table." in prompt and "EVENT: plan.approved" in prompt else "shelf"
    write(f"{name}.txt")
    commit(name)
    say("build.complete", name)
"""


@pytest.fixture
def shop_run_ralplan(tmp_path: Path) -> World:
    """A repository with a README."""
    return world(tmp_path)


def test_approved_sections_are_built_while_the_rest_is_revised(shop_run_ralplan: World) -> None:
    done = shop_run_ralplan.run(
        "a shop", "--pattern", "ralplan", "--build", *shop_run_ralplan.agent(SAYS + TWO_SECTIONS)
    )
    assert (done.code, done.json["ending"]) == (0, "complete"), done.err
    assert json.loads((shop_run_ralplan.repo / ".ralph/plan.json").read_text())["built"] == ["Store", "Shelf"]
    assert (shop_run_ralplan.repo / "store.txt").exists() and (shop_run_ralplan.repo / "shelf.txt").exists()
    assert sorted(shop_run_ralplan.calls[3:5]) == ["builder", "planner"] and shop_run_ralplan.calls[-1] == "builder"
    assert git(shop_run_ralplan.repo, "status", "--porcelain") == ""


def test_what_is_built_has_to_pass_the_checks(shop_run_ralplan: World) -> None:
    script = (
        SAYS + PLANS_run_ralplan + AGREES + '\nelif hat == "builder":\n    change()\n    say("build.complete", "x")\n'
    )
    done = shop_run_ralplan.run(
        "a shop", "--pattern", "ralplan", "--build", "--verify", "false", *shop_run_ralplan.agent(script)
    )
    assert (done.code, done.json["ending"]) == (2, "rounds"), done.err
    assert shop_run_ralplan.calls.count("builder") == 4


@pytest.mark.parametrize("pattern", ["ralplan", "ultrawork", "team"])
@pytest.mark.parametrize("gate", [["--prd"], ["--prd-file", "prd.json"], ["--preset", "prd"], ["--preset", "fresh"]])
def test_stories_are_no_gate_of_several_hats_and_the_pair_is_refused(
    shop_run_ralplan: World, pattern: str, gate: list[str]
) -> None:
    shop_run_ralplan.stories(2)
    done = shop_run_ralplan.run("a shop", "--pattern", pattern, *gate, *shop_run_ralplan.agent(SAYS + OWNS))
    assert (done.code, shop_run_ralplan.calls) == (64, []), done.err
    assert f"{pattern} works on one task" in done.err
    assert git(shop_run_ralplan.repo, "branch", "--show-current") != "ralph/shop"


@pytest.mark.parametrize("options", [[], ["--pattern", "team"], ["--pattern", "plan-build-review"]])
def test_build_belongs_to_ralplan(shop_run_ralplan: World, options: list[str]) -> None:
    done = shop_run_ralplan.run("a shop", "--build", *options, *shop_run_ralplan.agent(SAYS + OWNS))
    assert (done.code, shop_run_ralplan.calls) == (64, [])
    assert "--pattern ralplan" in done.err


# --- Every pattern and every way in which it fails, as a process: how that ends, and what is kept of the work. ---

Steps = Mapping[str, Sequence[Mapping[str, Any]]]
CRASH = [{"failure": "exit"}]
ISSUE = {"file": "a.txt", "line": 1, "kind": "bug", "severity": "critical", "message": "it is wrong"}


def says(topic: str, payload: object = "done", **more: Any) -> Mapping[str, Any]:
    """One session that ends with this event."""
    return {**more, "event": {"topic": topic, "payload": payload if isinstance(payload, str) else json.dumps(payload)}}


def moves(topic: str) -> Mapping[str, Any]:
    """One that changes something each time."""
    return says(topic, run=["mkdir -p tests", "date +%s%N >> tests/test_a.py", "git add -A", "git commit -qm step"])


FINDS, CONTENT = says("review.verdict", {"issues": [ISSUE]}), says("review.verdict", {"issues": []})
TURNS: Steps = {
    "planner": [says("plan.complete")],
    "tester": [moves("tests.written")],
    "debugger": [moves("diagnosis.complete")],
    "builder": [says("build.complete", run=["date +%s%N >> a.txt"])],
    "refactorer": [says("build.complete", run=["date +%s%N >> a.txt"])],
    "fixer": [says("fix.complete", run=["date +%s%N >> a.txt"])],
    "reviewer": [FINDS],
}
"""Everybody works, and the reviewer always finds as much."""
BUILDERS = {"plan-build-review": "builder", "test-first": "builder", "refactor": "refactorer", "debug": "fixer"}

PLAN = says("plan.complete", "the plan", write={".ralph/plan.md": "# Shop\n\n## Store\nOne table.\n"})
REJECTS = {"sections": [{"section": "Store", "verdict": "reject", "objections": ["which table?"]}]}
RALPLAN: Steps = {
    "planner": [PLAN],
    "critic": [says("plan.verdict", REJECTS)],
    "architect": [says("plan.advice", "one table is enough")],
}
TASKS = [{"id": name, "title": name, "files": [f"{name}.txt"]} for name in ("one", "two")]
MORE = says("plan.complete", {"tasks": [*TASKS, {"id": "three", "title": "three", "files": ["three.txt"]}]})
BUILT = says("build.complete", run=['echo built > "$RALPH_TASK.txt"'])
ULTRAWORK: Steps = {
    "planner": [says("plan.complete", {"tasks": TASKS})],
    "builder": [BUILT],
    "reviewer": [CONTENT],
    "fixer": [says("fix.complete", append={"one.txt": "mended\n"})],
}
ONE_CRASHES = says("build.complete", run=['test "$RALPH_TASK" = two', "echo built > two.txt"])
MEMBERS = [{"name": "ada", "files": ["one.txt"]}, {"name": "ben", "files": ["two.txt"]}]
OWNED = [{"id": name, "title": name, "owner": owner} for name, owner in (("one", "ada"), ("two", "ben"))]
FAULT = {"issues": [ISSUE | {"file": "one.txt"}]}
TEAM: Steps = {
    "lead": [says("plan.complete", {"members": MEMBERS, "tasks": OWNED}), says("lead.decision", {"advice": "go on"})],
    "ada": [says("build.complete", append={"one.txt": "built\n"})],
    "ben": [says("build.complete", append={"two.txt": "built\n"})],
    "tester": [says("verification.passed")],
}


@dataclass(frozen=True, slots=True)
class Failing:
    """One way to fail: who plays what besides the usual, how it was asked, what comes of it.

    `hat` played `times`; `made` and `missing` are files afterwards. `mine` is uncommitted before, and stays.
    """

    name: str
    pattern: str
    usual: Steps
    other: Steps
    code: int
    ending: str
    said: str
    options: tuple[str, ...] = ()
    hat: str = ""
    times: int = 0
    made: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    mine: Mapping[str, str] = field(default_factory=dict)


BOTH, SHARED = ("one.txt", "two.txt"), [{**task, "files": ["*.txt"]} for task in TASKS]
MINE = {"one.txt": "half written"}
PATHS = [
    *(Failing("cap reached", pattern, TURNS, {}, 2, "iterations", "4 sessions", ("--max-iterations", "4"),
            "fixer", 1 + (pattern == "debug")) for pattern in PATTERNS),
    *(Failing("builder crashes", pattern, TURNS, {BUILDERS[pattern]: CRASH}, 1, "failures", "it crashed",
            hat=BUILDERS[pattern], times=3, missing=("a.txt",)) for pattern in PATTERNS),
    Failing("reviewer never content", "plan-build-review", TURNS, {}, 1, "stuck", "1 issues are left",
            hat="reviewer", times=3, made=("a.txt",)),
    Failing("red checks for ever", "refactor", TURNS, {"reviewer": [CONTENT]}, 1, "stuck", "the checks stay red",
            ("--verify", "false"), "refactorer", 2, ("a.txt",)),
    Failing("critic never satisfied", "ralplan", RALPLAN, {}, 2, "rounds", "which table?", hat="critic", times=5,
          made=(".ralph/plan.md",)),
    Failing("planner crashes", "ralplan", RALPLAN, {"planner": CRASH}, 1, "failures", "it crashed", hat="planner",
          times=3),
    Failing("cap reached", "ralplan", RALPLAN, {}, 2, "iterations", "4 sessions", ("--max-iterations", "4")),
    Failing("conflict", "ultrawork", ULTRAWORK, {}, 1, "stuck", "one: ", (), "builder", 3, ("two.txt",), mine=MINE),
    Failing("builder leaves its files", "ultrawork", ULTRAWORK,
          {"builder": [says("build.complete", run=['echo x > "$RALPH_TASK.txt"', "echo x > README.md"])]},
          1, "stuck", "one: ", hat="builder", times=4),
    Failing("builder crashes", "ultrawork", ULTRAWORK, {"builder": [ONE_CRASHES]}, 1, "stuck", "one: ",
          hat="builder", times=3, made=("two.txt",), missing=("one.txt",)),
    Failing("all builders crash", "ultrawork", ULTRAWORK, {"planner": [MORE], "builder": CRASH}, 1, "failures",
            "it crashed", hat="builder", times=5, missing=BOTH),
    Failing("reviewer never content", "ultrawork", ULTRAWORK, {"reviewer": [FINDS]}, 2, "rounds", "it is wrong",
          hat="fixer", times=3, made=BOTH),
    Failing("red checks", "ultrawork", ULTRAWORK, {}, 2, "rounds", "not fixed in 3 fixes", ("--verify", "false"),
          "fixer", 3, BOTH),
    Failing("plan that cannot be divided", "ultrawork", ULTRAWORK,
          {"planner": [says("plan.complete", {"tasks": SHARED})]}, 1, "stuck", "one and two", hat="planner", times=2),
    Failing("cap reached", "ultrawork", ULTRAWORK, {}, 2, "iterations", "2 sessions", ("--max-iterations", "2"),
          "builder", 1),
    Failing("conflict", "team", TEAM, {}, 1, "stuck", "one (ada)", (), "ada", 2, ("two.txt",), mine=MINE),
    Failing("teammate crashes", "team", TEAM, {"ada": CRASH}, 1, "stuck", "one (ada)", hat="ada", times=2,
          made=("two.txt",), missing=("one.txt",)),
    Failing("tester never content", "team", TEAM, {"tester": [says("verification.failed", FAULT)]}, 2, "rounds",
          "it is wrong", hat="tester", times=4, made=BOTH),
    Failing("red checks", "team", TEAM, {}, 2, "rounds", "The checks are red", ("--verify", "false"),
            "tester", 4, BOTH),
    Failing("plan that cannot be handed out", "team", TEAM, {"lead": [says("plan.complete", {"members": []})]}, 1,
          "stuck", "there are no members", hat="lead", times=2),
    Failing("cap reached", "team", TEAM, {}, 2, "iterations", "3 sessions", ("--max-iterations", "3"), made=BOTH),
]  # fmt: skip  # a table


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.pattern}, {path.name}")
def test_each_way_to_fail_ends_as_documented(tmp_path: Path, path: Failing) -> None:
    shop = world(tmp_path, {"ralph.yml": "loop: {stuck: 1}"})
    script = tmp_path / "play.json"
    play = json.loads(json.dumps({**path.usual, **path.other}))
    writes = [f"printf '{text}' > {shlex.quote(str(shop.repo / name))}" for name, text in path.mine.items()]
    first = next(iter(play.values()))[0]
    first["run"] = [*first.get("run", ()), *writes]
    script.write_text(json.dumps({"hats": play}))
    done = shop.run(
        "two files", "--pattern", path.pattern, "--agent", "scripted", "--command", str(script), *path.options
    )
    assert (done.code, done.json["ending"]) == (path.code, path.ending), done.err
    assert path.said in done.json["detail"] and "Traceback" not in done.err
    assert hats(shop, done.json["run"]).count(path.hat) == path.times or not path.hat
    assert {name: (shop.repo / name).exists() for name in (*path.made, *path.missing)} == (
        dict.fromkeys(path.made, True) | dict.fromkeys(path.missing, False)
    )
    assert {name: (shop.repo / name).read_text() for name in path.mine} == path.mine
    assert not list((shop.repo / ".ralph").glob("apart/*"))


def hats(shop: World, run: str) -> list[str]:
    """Who played, by the records of the run."""
    records = sorted((shop.repo / ".ralph/loop/runs" / run).glob("session-*.json"))
    return [json.loads(record.read_text())["hat"] for record in records]
