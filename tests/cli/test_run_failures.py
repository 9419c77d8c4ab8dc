"""Every pattern and every way in which it fails, as a process: how that ends, and what is kept of the work.

The endings are those of docs/hats.md, docs/loop.md and docs/teams.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.loop.hats import PATTERNS
from tests.cli.loop_world import World, world

pytestmark = pytest.mark.long  # takes ten seconds or more

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
    Failing("red checks", "ultrawork", ULTRAWORK, {}, 2, "rounds", "not mended in 3 fixes", ("--verify", "false"),
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
