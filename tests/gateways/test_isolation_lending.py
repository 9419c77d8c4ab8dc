"""Folders are a run's own while it lasts, and afterwards as they were: owners, modes, and nothing behind a link."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ralph_mission.gateways import isolation_lending as lending
from ralph_mission.gateways import isolation_uid as users
from ralph_mission.gateways.isolation import Cage
from ralph_mission.gateways.process import run_foreign
from ralph_mission.trouble import Trouble
from tests.integration.isolation_attacks import Place, place

PYTHON = shlex.quote(shutil.which("python3", path=os.defpath) or sys.executable)
"""One that another user may start too: ours can lie in a home."""
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")


CHAIN = """
import os
while True:  # each lives for a moment only, in a group of its own, and has a child before it goes
    with open("beats", "a") as file: file.write(".")
    if os.fork(): os._exit(0)
    os.setsid()
"""


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as made:
        yield made


def run(here: Place, script: str, **more: object) -> bytes:
    """What a script gives that is run as another user."""
    cage = Cage("uid", (here.work,), **more)  # type: ignore[arg-type]  # as the test has them
    done = run_foreign(script, cwd=here.work, home=here.home, timeout=60, cage=cage)
    assert done.code == 0, done
    return done.stdout


def owner(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid


@root
def test_owners_come_back_as_they_were_and_what_is_new_is_its_folders(here: Place) -> None:
    (here.work / "theirs").mkdir()
    for name in ("old", "kept"):
        (here.work / "theirs" / name).touch()
    for name in ("theirs", "theirs/old", "theirs/kept"):
        os.chown(here.work / name, 1234, 1235)
    (here.work / "gone").touch()
    run(here, "rm gone; touch theirs/new new; ln -s /etc/passwd link; mkdir -p a/b; mv theirs/old a/b/moved")
    assert {owner(here.work / name) for name in ("", "new", "link", "a", "a/b", "a/b/moved")} == {(0, 0)}
    assert {owner(here.work / name) for name in ("theirs", "theirs/kept", "theirs/new")} == {(1234, 1235)}
    assert owner(Path("/etc/passwd")) == (0, 0) and owner(here.home) == (0, 0)


@root
def test_what_a_link_names_is_not_lent(here: Place) -> None:
    (here.root / "other").touch()
    (here.work / "link").symlink_to(here.root / "other")
    (here.work / "out").symlink_to(here.root)
    assert run(here, f"stat -c %u {here.root}/other {here.root}") == b"0\n0\n"


@root
def test_a_file_with_a_second_name_elsewhere_is_read_but_not_written(here: Place) -> None:
    (here.root / "cache").write_text("kept")
    os.link(here.root / "cache", here.work / "file")
    assert run(here, "cat file; echo harm > file || true") == b"kept"
    assert (here.root / "cache").read_text() == "kept"


@root
def test_a_file_that_would_act_as_its_owner_does_not_become_ours(here: Place) -> None:
    run(here, "cp /bin/true mine && chmod 4755 mine")
    assert owner(here.work / "mine") == (0, 0) and not (here.work / "mine").stat().st_mode & stat.S_ISUID


@root
def test_folders_that_are_too_deep_to_be_named_come_back_too(here: Place) -> None:
    source = f"import os\nfor _ in range(60): os.mkdir('{'d' * 100}'); os.chdir('{'d' * 100}')\nopen('end', 'w')"
    run(here, f'{PYTHON} -I -c "{source}"')
    found = subprocess.run(["find", str(here.work), "-not", "-uid", "0"], capture_output=True, check=True)
    assert found.stdout == b""


@root
def test_what_a_killed_run_left_is_taken_back_by_the_next(here: Place) -> None:
    with here.started("uid", ["/bin/sh", "-c", "touch left; echo $$ > pid; sleep 600"]) as process:
        while not (here.work / "pid").exists() or not (here.work / "pid").read_text():
            assert process.poll() is None
        uid = owner(here.work)[0]
        process.send_signal(signal.SIGKILL)
    assert uid in users.OURS and owner(here.work / "left")[0] == uid
    assert run(here, "cat pid; stat -c %u left") != b""
    assert {owner(here.work / name) for name in ("", "left", "pid")} == {(0, 0)}
    assert users.running(uid) == []  # its `sleep` went when the number was taken anew


@root
def test_two_runs_do_not_share_a_folder(here: Place) -> None:
    (here.ours / "inner").mkdir()
    with users.own() as one, lending.lent([here.ours / "inner"], [], one), users.own() as other:
        with pytest.raises(Trouble, match="another run works in"), lending.lent([here.ours], [], other):
            pass
        assert (owner(here.ours)[0], owner(here.ours / "inner")[0]) == (0, one)
    assert owner(here.ours / "inner")[0] == 0


@root
def test_runs_at_the_same_time_are_different_users() -> None:
    with users.own() as one, users.own() as other:
        assert one != other and users.in_use(one) and users.in_use(other)
    assert not users.in_use(one)


@root
def test_a_folder_that_another_user_cannot_enter_is_told_before_anything_starts(here: Place) -> None:
    here.root.chmod(0o700)
    with pytest.raises(Trouble) as told:
        run(here, "touch ran")
    assert "only its owner may enter" in told.value.what and "chmod o+x" in told.value.next_step
    assert not (here.work / "ran").exists()


@root
def test_a_work_tree_in_a_hidden_folder_is_told(here: Place) -> None:
    with pytest.raises(Trouble, match="hidden from agents"):
        run(here, "touch ran", hidden=(here.root,))


def test_only_the_user_of_a_run_is_ever_ended() -> None:
    with subprocess.Popen(["sleep", "600"]) as ours:
        try:
            for uid in (0, os.geteuid(), 1000, users.OURS.stop):
                with pytest.raises(ValueError, match="no user of a run"):
                    users.end_all(uid)
            assert ours.poll() is None
        finally:
            ours.kill()


@root
def test_processes_of_root_and_of_other_runs_go_on_when_a_run_is_ended() -> None:
    with users.own() as one, users.own() as other:
        sleep = ["sleep", "600"]
        with subprocess.Popen(sleep) as ours, subprocess.Popen([*users.becoming(other), *sleep]) as theirs:
            try:
                subprocess.Popen([*users.becoming(one), *sleep])
                users.end_all(one)
                assert users.running(one) == [] and ours.poll() is None and theirs.poll() is None
            finally:
                ours.kill()
                theirs.kill()


@root
@pytest.mark.parametrize("_", range(5))
def test_processes_that_go_on_forking_are_ended(here: Place, _: int) -> None:
    (here.work / "chain.py").write_text(CHAIN)
    uid = int(run(here, f"{PYTHON} -I -S chain.py & sleep 0.3; id -u"))
    beats = (here.work / "beats").stat().st_size
    assert beats > 0 and _chained(uid) == []
    time.sleep(0.1)
    assert (here.work / "beats").stat().st_size == beats


def _chained(uid: int) -> list[int]:
    """Which of a user's processes go on forking: another run may have been lent the user since."""
    found = []
    for pid in users.running(uid):
        with suppress(OSError):
            found += [pid] if b"chain.py" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def test_what_is_closed_opens_when_the_last_of_several_runs_is_over(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    entered, leave = threading.Barrier(2), threading.Event()

    def first() -> None:
        with lending.closed([shared, tmp_path / "missing"]):
            entered.wait(10)
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(10)
    with lending.closed([shared]):
        leave.set()
        thread.join(10)
        assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_what_is_closed_opens_under_another_name_too(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    with lending.closed([tmp_path / "shared"]):
        (tmp_path / "shared").rename(tmp_path / "moved")
    assert stat.S_IMODE((tmp_path / "moved").stat().st_mode) == 0o755


def test_folders_in_others_are_walked_once() -> None:
    one, inner, other = Path("/a"), Path("/a/b/c"), Path("/ab")
    assert lending.outermost([inner, other, one, one]) == [one, other]
