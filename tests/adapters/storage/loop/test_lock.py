""""""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ralph_mission.adapters.storage.loop import inbox, lock
from ralph_mission.adapters.storage.loop.lock import FORMER, LOCK
from ralph_mission.adapters.storage.loop.run_store import FileRunStore
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import RunSpec
from tests.adapters.storage.loop.run_stores import FREE, NOON, STANDING, Make, begun


def test_a_machine_that_is_not_this_one_is_never_proven_dead() -> None:
    """Whatever its boot was: only a machine knows its own."""
    assert not lock.dead("elsewhere:another boot:1")


# --- One loop per checkout, of whatever mode, and none that is dead holds another one up. ---

HOLDING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from ralph_mission.adapters.storage.loop import lock
root = Path(sys.argv[1])
with lock.exclusive(root / ".git", root, "fresh", datetime(2026, 5, 4, 12, 0, tzinfo=UTC)):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(root: Path) -> subprocess.Popen[str]:
    """Another process that runs a loop in this checkout."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(root)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize(("mode", "text"), [("", "another loop"), ("loop", "a loop"), ("fresh", "a fresh loop")])
def test_a_holder_is_named_by_its_mode(mode: str, text: str) -> None:
    assert str(lock.Holder(mode)) == text


def test_a_second_loop_is_refused_and_told_who_runs(store_at: Make, root: Path) -> None:
    with holding(root) as other:
        with pytest.raises(UserError) as caught, store_at().exclusive(FREE):
            pass
        found = lock.holder(root / ".git")
        other.communicate()
    assert (
        caught.value.what
        == f"a fresh loop (process {other.pid}, since 2026-05-04T12:00:00+00:00) works in this checkout"
    )
    assert "ralph agent cancel" in caught.value.next_step
    assert found is not None
    assert found.pid == other.pid
    assert lock.holder(root / ".git") is None


def test_a_loop_that_was_killed_holds_nobody_up(store_at: Make, root: Path) -> None:
    with holding(root) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    begun(store_at())


def test_a_session_that_deletes_ralphs_folder_lets_no_second_loop_in(store_at: Make, root: Path) -> None:
    with store_at().exclusive(FREE):
        shutil.rmtree(root / ".ralph")
        with pytest.raises(UserError, match="works in this checkout"), store_at().exclusive(FREE):
            pass


@pytest.mark.parametrize("again", [False, True])
def test_a_session_that_deletes_whatever_is_a_lock_lets_no_second_loop_in(
    store_at: Make, root: Path, again: bool
) -> None:
    with store_at().exclusive(FREE):
        for path in (*(root / ".git").rglob("*.lock"), root / ".git" / LOCK):
            path.unlink()
        if again:
            (root / ".git" / LOCK).write_text("")
        found = lock.holder(root / ".git")
        with pytest.raises(UserError, match="another loop works in this checkout"), store_at().exclusive(FREE):
            pass
    assert found == lock.Holder() and lock.holder(root / ".git") is None
    begun(store_at())


def test_no_lock_is_called_as_those_of_git_that_agents_take_away(store_at: Make, root: Path) -> None:
    with holding(root) as other:
        assert not list((root / ".git").rglob("*.lock"))
        assert str(other.pid) in (root / ".git" / LOCK).read_text()
        other.communicate()


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder can be locked."""
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("nfs")
def test_where_no_folder_can_be_locked_the_note_alone_counts(store_at: Make, root: Path) -> None:
    with store_at().exclusive(FREE):
        assert lock.holder(root / ".git") == lock.Holder(
            str(FREE.preset.name), os.getpid(), NOON.isoformat(timespec="seconds")
        )
        with pytest.raises(UserError, match="works in this checkout"), store_at().exclusive(FREE):
            pass


STRANGE = ("link", "folder", "second name", "pipe")


def strange(root: Path, kind: str) -> Path:
    """What a session put in the place of the note; the file of somebody's that it leads to, if any."""
    (theirs := root.parent / "theirs").write_text('{"pid": 1}')
    note = root / ".git" / LOCK
    ways = {
        "link": lambda: note.symlink_to(theirs), "folder": note.mkdir, "pipe": lambda: os.mkfifo(note),
        "second name": lambda: os.link(theirs, note),
    }  # fmt: skip  # one table
    ways[kind]()
    return theirs


@pytest.mark.attack(46)
@pytest.mark.parametrize("kind", STRANGE)
def test_whatever_stands_in_the_notes_place_holds_nobody_up_and_is_neither_written_nor_emptied(
    store_at: Make, root: Path, kind: str
) -> None:
    theirs = strange(root, kind)
    assert not lock.clear(root / ".git") and lock.holder(root / ".git") is None
    with store_at().exclusive(FREE):
        assert (found := lock.holder(root / ".git")) is not None and found.pid == os.getpid()
        with pytest.raises(UserError, match=f"process {os.getpid()}"), store_at().exclusive(FREE):
            pass
    assert theirs.read_text() == '{"pid": 1}'
    assert len(list((root / ".git").glob(f"{LOCK}.*.aside"))) == (kind == "folder")


@pytest.mark.attack(46)
@pytest.mark.parametrize("said", ["[" * 4000, '{"mode":"x","pid":3,"since":5}', '{"mode":"x","pid":"3","since":"x"}'])
def test_a_forged_note_says_nothing_and_stops_nobody(store_at: Make, root: Path, said: str) -> None:
    note = root / ".git" / LOCK
    note.write_text(said)
    with store_at().exclusive(FREE):
        note.write_text(said)
        assert lock.holder(root / ".git") == lock.Holder()


@pytest.mark.attack(37)
def test_a_forged_note_moves_no_terminal(store_at: Make, root: Path) -> None:
    with store_at().exclusive(FREE):
        (root / ".git" / LOCK).write_text('{"mode":"a\\u001b[2Jb","pid":3,"since":"x"}')
        assert "\x1b" not in str(lock.holder(root / ".git"))


@pytest.mark.attack(37)
def test_a_forged_note_is_one_line_that_hides_nothing(store_at: Make, root: Path) -> None:
    with store_at().exclusive(FREE):
        (root / ".git" / LOCK).write_text('{"mode":"a\\u202e\\nok: all\\u2028done","pid":3,"since":"x\\r\\n::y"}')
        assert str(lock.holder(root / ".git")) == "a a ok: all done loop (process 3, since x ::y)"


@pytest.mark.usefixtures("nfs")
@pytest.mark.parametrize("kind", STRANGE)
def test_where_the_note_alone_counts_it_is_for_a_person_to_look_at(store_at: Make, root: Path, kind: str) -> None:
    strange(root, kind)
    with pytest.raises(OSError, match=re.escape(str(root / ".git" / LOCK))), store_at().exclusive(FREE):
        pass
    assert os.path.lexists(root / ".git" / LOCK)


def test_whoever_asks_at_that_moment_holds_no_loop_up(store_at: Make, root: Path) -> None:
    asking = os.open(root / ".git", os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    threading.Timer(lock.GLANCE / 4, os.close, (asking,)).start()
    begun(store_at())


def test_a_loop_of_the_version_before_is_seen_and_none_runs_beside_it(store_at: Make, root: Path) -> None:
    (root / ".git" / FORMER).write_text("")
    begun(store_at())
    with open(root / ".git" / FORMER, "w") as older:
        fcntl.flock(older, fcntl.LOCK_EX)
        assert lock.holder(root / ".git") == lock.Holder()
        with pytest.raises(UserError, match="another loop works in this checkout"), store_at().exclusive(FREE):
            pass
    assert lock.holder(root / ".git") is None


def test_a_folder_in_the_place_of_the_signal_ends_no_run(store_at: Make, root: Path) -> None:
    with (store := store_at()).exclusive(FREE):
        store.open(FREE, NOON)
        (root / ".ralph/loop/signal").mkdir()
    inbox.clear(root / ".ralph")
    begun(store_at())
    inbox.write(root / ".ralph", "stop")
    assert inbox.read(root / ".ralph") == "stop"


def test_a_checkout_that_is_not_ready_gives_the_lock_back(store_at: Make, root: Path) -> None:
    def refuse(spec: RunSpec) -> None:
        raise UserError("dirty", "clean it")

    store = FileRunStore(root, root / ".git", lambda: STANDING, lambda: NOON, ready=refuse)
    with pytest.raises(UserError, match="dirty"), store.exclusive(FREE):
        pass
    begun(store_at())


@pytest.mark.parametrize("name", ["", LOCK, FORMER])
def test_what_is_held_is_a_loop_that_runs(root: Path, name: str) -> None:
    place = root / ".git" / name
    if name:
        place.touch()
    assert not lock.is_held(root / ".git") and not lock.is_held(root / "none")
    descriptor = os.open(place, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert lock.is_held(root / ".git")
    os.close(descriptor)
