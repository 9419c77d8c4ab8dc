"""The ten agents that loops are compared by, on three stories, without and with a check: who ends as complete has done
the work. What counts as done is what the files hold, whatever anybody says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.loop_world import World, world

COUNT = 3
WORKS = """
def build(id):
    pathlib.Path(f"{id}.txt").write_text("done\\n")

def work():
    build(todo()[0])
    commit(f"feat: {todo()[0]}")
    flip(todo()[0])
    print("did it")

first = not (here / "once").exists()
(here / "once").touch()
"""
AGENTS = {
    "good": "work()",
    "says the promise falsely": "if call == 2: print('COMPLETE')\nelse: work()",
    "quotes the promise": "work(); print('When all is done I say COMPLETE.')\nprint('> COMPLETE')",
    "cannot do one": "if todo()[0] == 'US-002': print('I could not do it.')\nelse: work()",
    "is killed once": "if first: build('half'); os.kill(os.getpid(), 9)\nwork()",
    "meets a limit once": "if first: print('429 rate_limit_error: try again in 1 seconds', file=sys.stderr)\n"
    "if first: sys.exit(1)\nwork()",
    "flips a story without work": "if call == 1: flip(todo()[0]); print('did it')\nelse: work()",
    "flips all": "if call == 1: flip(*todo()); print('COMPLETE')\nelse: work()",
    "flips another story too": "if call == 1: build(todo()[0]); flip(*todo()[:2]); print('did both')\nelse: work()",
    "deletes the open stories": "if call == 1:\n    prd = json.loads(pathlib.Path('prd.json').read_text())\n"
    "    prd['userStories'] = prd['userStories'][:1]\n    pathlib.Path('prd.json').write_text(json.dumps(prd))\n"
    "    work()\n    print('COMPLETE')\nelse: work()",
}  # fmt: skip  # a table
CHECK = """import json, pathlib, sys
stories = json.loads(pathlib.Path("prd.json").read_text())["userStories"]
sys.exit(any(story["passes"] and not pathlib.Path(f"{story['id']}.txt").exists() for story in stories))
"""
UNFINISHED = ("cannot do one",)


def done_in(here: World) -> list[str]:
    """The stories whose work is on the branch."""
    return [f"US-{number:03}" for number in range(1, COUNT + 1) if (here.repo / f"US-{number:03}.txt").exists()]


def played(folder: Path, name: str, checked: bool) -> tuple[World, int, str]:
    here = world(folder, {"check.py": CHECK})
    here.stories(COUNT)
    check = ("--verify", f"{sys.executable} check.py") if checked else ()
    told = here.run("--prd", "--max-iterations", "8", *check, *here.agent(WORKS + AGENTS[name]))
    return here, told.code, told.err


FAST = ("flips a story without work", "flips all")
TABLE = [
    pytest.param(name, checked, marks=() if name in FAST and not checked else pytest.mark.long)
    for name in AGENTS
    for checked in (False, True)
]


@pytest.mark.parametrize(("name", "checked"), TABLE)
def test_nobody_ends_as_complete_with_work_missing(tmp_path: Path, name: str, checked: bool) -> None:
    here, code, said = played(tmp_path, name, checked)
    missing = COUNT - len(done_in(here))
    assert not (code == 0 and missing), f"a false completion: {said}"
    assert (missing == 0) is (name not in UNFINISHED), said
    assert json.loads((here.repo / "prd.json").read_text())["userStories"][COUNT - 1]["id"] == f"US-{COUNT:03}"
