"""A run on a real terminal has a live line, drawn again and again; the same run into a pipe is plain lines."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.loop_world import RALPH, World, world

pytestmark = pytest.mark.long  # takes ten seconds or more

FLIP = (
    "python3 -c \"import json, pathlib; p = pathlib.Path('prd.json'); d = json.loads(p.read_text()); "
    "next(s for s in d['userStories'] if not s['passes'])['passes'] = True; p.write_text(json.dumps(d))\""
)
SCRIPT = {
    "hats": {
        "builder": [
            {
                "delay": 1.2,  # so that the line is drawn with a second on it
                "write": {name: "x"},
                "run": [FLIP],
                "event": "build.again",
                "usage": {"input_tokens": 3000, "output_tokens": 400, "cost_usd": 0.125},
            }
            for name in ("first.txt", "second.txt")
        ]
    }
}
HATS = "hats:\n  builder: {triggers: [loop.start, build.again], publishes: [build.again]}\n"
STEERING = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")


@pytest.fixture
def shop(tmp_path: Path) -> World:
    """Two stories, a hat, and a script that does one of them in each session."""
    here = world(tmp_path, {"ralph.yml": HATS})
    here.stories(2)
    (here.aside / "script.json").write_text(json.dumps(SCRIPT))
    return here


def line(here: World) -> list[str]:
    script = str(here.aside / "script.json")
    return [*RALPH, "run", "--prd", "--agent", "scripted", "--command", script, "--verify", "true"]


def on_a_terminal(here: World) -> tuple[int, str]:
    """The exit code, and everything that was sent to the terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 200))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(line(here), cwd=here.repo, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs)  # fmt: skip  # one call
    os.close(theirs)
    seen = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return process.wait(), seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # on Linux: nobody holds the other end any more
        return b""


def test_a_terminal_gets_a_line_that_lives_and_the_history_above_it(shop: World) -> None:
    code, seen = on_a_terminal(shop)
    assert code == 0, seen
    assert "\x1b[2K" in seen  # a line is wiped and drawn anew
    drawn = re.split(r"[\r\n]+", STEERING.sub("", seen))
    first = [text for text in drawn if "[1/10] builder, US-001 Part 1, 0/2 stories … " in text]
    assert {text.rpartition("… ")[2].strip() for text in first} >= {"0s", "1s"}
    assert any("[2/10] builder, US-002 Part 2, 1/2 stories, $0.12, " in text and "…" in text for text in drawn)
    history = [text.rstrip() for text in drawn if "…" not in text]
    came = next(text for text in history if text.startswith("  passed US-001, emitted build.again, first.txt, "))
    assert re.search(r", checks green, \$0\.12, 3,400 tokens, \d+s$", came)
    assert history.index("[1/10] builder, US-001 Part 1, 0/2 stories") < history.index(came)
    assert any(text.startswith("complete: 2 sessions; total $0.25, ") for text in history)


def test_a_pipe_gets_the_same_as_plain_lines(shop: World) -> None:
    done = subprocess.run(line(shop), cwd=shop.repo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {"\x1b", "\r", "…"} & set(done.stderr)
    told = done.stderr.splitlines()
    at = told.index("[1/10] builder, US-001 Part 1, 0/2 stories")
    assert told[at + 1].startswith("  passed US-001, emitted build.again, first.txt")
    assert re.search(r"checks green, \$0\.12, 3,400 tokens, \d+s$", told[at + 1])
    assert re.fullmatch(r"\[2/10\] builder, US-002 Part 2, 1/2 stories, \$0\.12, \d+s", told[at + 2])
