"""The table of errors of the fresh-context loop (its §7.6), row by row, each on a real `ralph run`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.loop_world import World, until, works, world
from tests.helpers import Result, git

pytestmark = pytest.mark.long  # takes ten seconds or more

STORY = "change()\nflip(todo()[0])\n"
QUICK = """
import sys
from dataclasses import replace
from ralph_mission.cli.main import main
from ralph_mission.loop import hats
fresh = hats.PRESETS["fresh"]
hats.PRESETS["fresh"] = replace(fresh, limits=replace(fresh.limits, session=1.5, retry_pause=0.01))
sys.exit(main())
"""
"""The real program; only 45 minutes and 5 seconds are not waited for."""
CONCURRENCY = "print('API Error: 400 due to tool use concurrency issues.')\nsys.exit(1)\n"


@pytest.fixture
def shop(tmp_path: Path) -> World:
    here = world(tmp_path)
    here.stories(2)
    return here


def line(here: World, script: str, *options: str) -> list[str]:
    asked = ("--prd", "--preset", "fresh", *options, *here.agent(script))
    return [sys.executable, "-c", QUICK, "run", *asked, "--json"]


def run(here: World, script: str, *options: str) -> Result:
    command = line(here, script, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here.repo, timeout=300)
    assert "Traceback" not in done.stderr and "bug" not in done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def test_a_session_that_takes_too_long_is_told_and_the_next_one_goes_on(shop: World) -> None:
    done = run(shop, f"if call == 1:\n    time.sleep(600)\n{STORY}")
    assert (done.code, done.json["sessions"], len(shop.calls)) == (0, 3, 3), done.err
    assert "not done after" in shop.prompt(2) and shop.passing() == ["US-001", "US-002"]


def test_tool_concurrency_is_tried_again_three_times_and_no_more(shop: World) -> None:
    done = run(shop, CONCURRENCY, "--max-iterations", "1")
    assert (done.code, done.json["sessions"], len(shop.calls)) == (2, 1, 4), done.err


def test_control_c_saves_where_the_run_stands(shop: World) -> None:
    script = f"(here / 'pid').write_text(str(os.getpid()))\nif call == 2:\n    time.sleep(600)\n{STORY}"
    command = [part.replace("session=1.5", "session=600") for part in line(shop, script)]
    process = subprocess.Popen(command, text=True, cwd=shop.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: (shop.aside / "prompt-2").exists())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["ending"]) == (130, "interrupted"), err
    assert "--continue" in err and not works(int((shop.aside / "pid").read_text()))
    state = json.loads((shop.repo / ".ralph/loop/state.json").read_text())
    assert json.dumps(state).count('"iteration": 1') or '"iteration":1' in json.dumps(state, separators=(",", ":"))
    done = run(shop, script, "--continue")
    assert (done.code, done.json["sessions"], shop.passing()) == (0, 2, ["US-001", "US-002"]), done.err


BREAK = "if call == 1:\n    place = pathlib.Path('.git/{}')\n    {}\n"
PIPE = "place.unlink(missing_ok=True); os.mkfifo(place)"
JUNK = "place.write_bytes(bytes(range(200)))"
GONE = "os.rename(place, here / 'objects')"
CORRUPTED = [("HEAD", PIPE), ("HEAD", "place.unlink()"), ("index", JUNK), ("index", "place.unlink(); place.mkdir()"),
             ("packed-refs", PIPE), ("refs/heads/ralph/shop", JUNK), ("objects", GONE)]  # fmt: skip  # a table


@pytest.mark.parametrize(("name", "how"), CORRUPTED)
def test_a_session_that_corrupts_its_clone_harms_nothing_and_the_run_goes_on(shop: World, name: str, how: str) -> None:
    done = run(shop, STORY + BREAK.format(name, how))
    assert (done.code, done.json["sessions"], shop.passing()) == (0, 2, ["US-001", "US-002"]), done.err
    assert shop.messages() == ["feat: US-002 - Part 2", "feat: US-001 - Part 1", "Start"]
    assert git(shop.repo, "status", "--porcelain", "-uno") == "" and git(shop.repo, "fsck", "--no-dangling") == ""


def test_objects_that_are_gone_end_the_run_with_what_to_do_and_it_can_be_continued(shop: World) -> None:
    objects = shop.repo / ".git/objects"
    lose = f"if call == 2:\n    os.rename({str(objects)!r}, here / 'objects')\n    os.mkdir({str(objects)!r})\n"
    command = line(shop, STORY + lose)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shop.repo, timeout=300)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["who"] == "you" and "git fsck" in error["next"] and "--continue" in error["next"]
    objects.rename(shop.aside / "left")
    (shop.aside / "objects").rename(objects)
    again = run(shop, STORY, "--continue")
    assert (again.code, again.json["sessions"], shop.passing()) == (0, 2, ["US-001", "US-002"]), again.err


@pytest.mark.parametrize("how", ["place.write_text('{')", "place.unlink()", "place.unlink(); os.mkfifo(place)",
                                 "place.write_bytes(bytes(range(200)))"])  # fmt: skip  # one list
def test_stories_that_cannot_be_read_are_the_last_known_ones(shop: World, how: str) -> None:
    done = run(
        shop, f"change()\nif call == 1:\n    place = pathlib.Path('prd.json')\n    {how}\nelse:\n    flip(todo()[0])\n"
    )
    assert (done.code, done.json["sessions"], shop.passing()) == (0, 3, ["US-001", "US-002"]), done.err
    assert "US-001" in shop.prompt(2) and "prd.json" in json.dumps(done.json["reverted"])
