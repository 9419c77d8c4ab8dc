"""A person's word to a run: Ctrl-C, `ralph cancel`, and who is not let in beside it."""

from __future__ import annotations

import json
import shlex
import signal
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ralph_mission.adapters.storage.loop import inbox, lock
from ralph_mission.cli.loop.cancel import cancel
from tests.cli.loop_world import until, works, world
from tests.helpers import make_repo

pytestmark = pytest.mark.long  # takes ten seconds or more

STUBBORN = "import signal\nfor word in (signal.SIGTERM, signal.SIGINT):\n    signal.signal(word, signal.SIG_IGN)\n"
WAITS = """
change()
(here / "busy").write_text(str(os.getpid()))
if call == 1:
    time.sleep(600)
print("LOOP_COMPLETE")
"""
CHECK = "test -e {0} && exit 0; trap '' TERM INT; echo $$ > {0}.new; mv {0}.new {0}; sleep 600"
BUSY = {
    "an agent": (WAITS, False),
    "an agent that ignores it": (STUBBORN + WAITS, False),
    "a check that ignores it": ("change()\nprint('LOOP_COMPLETE')", True),
}
"""Who is at work when the word comes: for ten minutes, if nobody ends it."""


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", BUSY)
def test_an_interrupt_leaves_nothing_running_and_the_run_goes_on(
    tmp_path: Path, busy: str, word: signal.Signals
) -> None:
    here = world(tmp_path)
    script, checked = BUSY[busy]
    mark = here.aside / "busy"
    asked = [*here.agent(script), *(["--verify", CHECK.format(shlex.quote(str(mark)))] if checked else [])]
    process = here.start("build it", *asked)
    until(mark.exists)
    process.send_signal(word)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["ending"]) == (130, "interrupted"), err
    assert not works(int(mark.read_text()))
    done = here.run("--continue", *asked)
    assert (done.code, done.json["sessions"]) == (0, 1)


def test_cancel_ends_the_session_at_once_and_the_run_is_not_continued(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    told = here.ralph("cancel", "--json")
    out, _ = process.communicate(timeout=300)
    assert (told.code, told.json["running"]) == (0, True)
    assert (process.returncode, json.loads(out)["ending"]) == (1, "cancel")
    again = here.run("--continue", *here.agent("pass"))
    assert again.code == 64
    assert "there is no task" in again.err


def test_cancel_lets_the_session_end_when_asked_to_stop(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start(
        "build it", *here.agent("change()\nwhile not (here / 'go').exists():\n    time.sleep(0.02)\nprint('half way')")
    )
    until(lambda: (here.clone / "file-1.txt").exists())
    assert here.ralph("cancel", "--stop").code == 0
    (here.aside / "go").touch()
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["ending"], json.loads(out)["sessions"]) == (1, "stop", 1)


def test_cancel_reaches_a_run_that_begins_only_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the lock after the first look, and forgets what was asked of an earlier run after that."""
    git_dir, home = make_repo(tmp_path) / ".git", tmp_path / ".ralph"
    held, looks = ExitStack(), list[str]()

    def goes_on(_seconds: float) -> None:
        looks.append(inbox.read(home))
        if len(looks) == 1:
            held.enter_context(lock.exclusive(git_dir, tmp_path, "prd", datetime.now(UTC)))
        if len(looks) == 2:
            inbox.clear(home)

    clock = SimpleNamespace(sleep=goes_on, monotonic=count(0, 0.1).__next__)
    monkeypatch.setattr("ralph_mission.cli.loop.cancel.time", clock)
    with held:
        told = CliRunner().invoke(cancel, ["--repo", str(tmp_path)])
    assert "was asked to cancel" in told.output, told.output
    assert (looks[:2], inbox.read(home)) == (["", "cancel"], "cancel")


def test_cancel_where_nothing_runs_says_so(tmp_path: Path) -> None:
    here = world(tmp_path)
    told = here.ralph("cancel")
    assert (told.code, told.out) == (0, "Nothing runs here.\n")


def test_cancel_clears_up_after_a_loop_that_was_killed(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    here.end(process)
    told = here.ralph("cancel", "--json")
    assert (told.code, told.json["running"]) == (0, False)
    assert "the state of " in told.json["said"]
    assert here.ralph("cancel").out == "Nothing runs here.\n"


def test_a_second_loop_in_the_same_checkout_is_refused(tmp_path: Path) -> None:
    here = world(tmp_path)
    process = here.start("build it", *here.agent("change()\ntime.sleep(600)"))
    until(lambda: (here.clone / "file-1.txt").exists())
    other = here.run("build that", "--command", "true")
    process.terminate()
    process.communicate(timeout=300)
    assert other.code == 1
    assert f"process {process.pid}" in other.err
    assert "ralph cancel" in other.err
