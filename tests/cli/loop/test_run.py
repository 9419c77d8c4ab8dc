"""`ralph run` as a process: how it ends, and how it goes on."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.loop_world import World, until, world
from tests.helpers import Result

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
    Row("every story skipped", "change()\ncommit()", 1, "stuck", 2, ("--prd", "--preset", "fresh"),
        {"ralph.yml": "loop: {stuck: 1}"}, stories=1),
]  # fmt: skip  # a table


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
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
