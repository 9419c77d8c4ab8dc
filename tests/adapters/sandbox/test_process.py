"""Whatever executes foreign code sees nothing of ours, is bounded, and is gone afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

from ralph_mission.adapters.sandbox import inside, process
from ralph_mission.adapters.sandbox.process import ENDED_BY_US, FinishedProcess, own_tool, run_foreign
from ralph_mission.safety.secrets import redact
from tests.cli.loop_world import until
from tests.helpers import time_out_at


@pytest.fixture
def run(tmp_path: Path):
    def call(command, **options) -> FinishedProcess:
        arguments = {"cwd": tmp_path, "home": tmp_path / "home", "timeout": 300} | options
        return run_foreign(command, **arguments)

    return call


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    return time_out_at(tmp_path / "begun", monkeypatch)


def environment(finished: FinishedProcess) -> dict[str, str]:
    return dict(line.split("=", 1) for line in finished.stdout.decode().splitlines())


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")


def test_a_program_gives_its_output_and_exit_code(run):
    finished = run("echo out; echo err >&2; exit 3")
    assert (finished.code, finished.stdout, finished.stderr) == (3, b"out\n", b"err\n")
    assert not finished.timed_out and not finished.truncated


def test_a_command_that_runs_on_gives_signs_of_life_with_its_last_line(run, monkeypatch):
    monkeypatch.setattr(process, "SIGN", 0.05)
    heard: list[str] = []
    note = process.tell_running("setting up", "yarn install --frozen-lockfile --ignore-scripts", heard.append)

    def stopped() -> bool:
        return any("Fetching" in line for line in heard)

    run(r"printf '[1/4] Resolving\n[2/4] 1%%\r[2/4] Fetching\n\n' >&2; exec sleep 20", running=note, stopped=stopped)
    assert re.fullmatch(r"setting up, \d+ s: yarn install --frozen-lockfile…: \[2/4\] Fetching", heard[-1])
    assert not run("echo done", running=note).stopped and len(heard) < 50


@pytest.mark.parametrize("line", ["{} " + "0" * 765, "0" * 182 + " {}", "0" * 382 + " {}", "go"])
def test_no_sign_of_life_quotes_a_part_of_a_line_in_which_a_secret_could_no_longer_be_seen(run, monkeypatch, line):
    monkeypatch.setattr(process, "SIGN", 0.05)
    token, heard = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", list[str]()
    named = f"npm ci --registry https://{token}@npm.example"
    note = process.tell_running("setting up", named, lambda text: heard.append(redact(text)))
    said = f"printf '{line.format(token)}\\n{'' if '0' in line else token[:30]}'; exec sleep 20"
    run(said, running=note, stopped=lambda: len(heard) > 1)
    assert heard and not [told for told in heard if token[:5] in told or token[-6:] in told]
    assert heard[-1].endswith(": go") == (line == "go")


def test_a_sequence_is_never_given_to_a_shell(run):
    assert run(["printf", "%s", "$(id) ; `id`"]).stdout == b"$(id) ; `id`"


@pytest.mark.attack(42, 43)
@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "ANTHROPIC_API_KEY",
        "SSH_AUTH_SOCK",
        "GIT_DIR",
        "GIT_CONFIG_COUNT",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "DATABASE_URL",
        "NPM_TOKEN",
        "PYTHONPATH",
        "LD_PRELOAD_X",
        "RALPH_PAUSED",
    ],
)
def test_the_environment_holds_nothing_of_ours(run, monkeypatch, name):
    monkeypatch.setenv(name, "secret-value")
    seen = run(["env"])
    assert name not in environment(seen) and b"secret-value" not in seen.stdout


@pytest.mark.attack(42, 43)
def test_the_environment_is_an_allow_list(run, monkeypatch):
    monkeypatch.setenv("LANG", "C.UTF-8")
    known = {
        "PATH",
        "LANG",
        "LC_ALL",
        "TERM",
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    }  # the last four are the shell's own
    seen = environment(run(["env"]))
    assert set(seen) <= known and seen["TERM"] == "dumb"


def test_a_variable_that_is_allowed_is_passed_on(run, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "k")
    assert environment(run(["env"], allow=["MODEL_KEY", "NOT_SET"]))["MODEL_KEY"] == "k"
    assert "NOT_SET" not in environment(run(["env"], allow=["MODEL_KEY", "NOT_SET"]))


def test_home_and_temporary_files_are_those_of_the_run(run, tmp_path):
    seen = environment(run(["env"], extra_env={"HOME": "/elsewhere", "RALPH_HAT": "coder"}))
    home = str((tmp_path / "home").resolve())
    assert seen["HOME"] == home and seen["RALPH_HAT"] == "coder"
    assert seen["TMPDIR"].startswith(home + "/") and seen["XDG_CONFIG_HOME"].startswith(home + "/")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_temporary_files_are_removed(run, tmp_path):
    run('touch "$TMPDIR/left"; touch "$HOME/kept"')
    assert sorted(place.name for place in (tmp_path / "home").iterdir()) == ["kept"]


def test_input_comes_by_a_pipe_which_every_client_reads(run):
    assert run("test -p /dev/stdin && cat", stdin=b"a prompt").stdout == b"a prompt"


def test_standard_input_is_empty_unless_given(run):
    assert run(["cat"]).stdout == b""
    assert run(["cat"], stdin=b"x" * 500_000).stdout == b"x" * 500_000


def test_input_that_nobody_reads_holds_nothing_up(run):
    assert run(["true"], stdin=b"x" * 5_000_000).code == 0


@needs_proc
def test_no_open_file_is_inherited(run, tmp_path):
    secret = (tmp_path / "secret").open("w")
    os.set_inheritable(secret.fileno(), True)
    listed = run(
        [
            sys.executable,
            "-c",
            "import os; print(*[os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)],"
            "*[n for n in os.listdir('/proc/self/fd') if int(n) > 2])",
        ]
    )
    assert b"/dev/null" in listed.stdout
    assert len(listed.stdout.split()) == 4  # the three streams and the folder that is being listed


def test_a_missing_program_is_code_127(run):
    assert run(["no-such-program-anywhere"]).code == 127
    assert run("no-such-program-anywhere").code == 127


def test_a_file_that_is_no_program_is_code_126(run, tmp_path):
    assert run([str(tmp_path)]).code == 126


def test_the_time_out_ends_the_run(run, late):
    finished = run("echo before; touch begun; sleep 60", timeout=late)
    assert (finished.code, finished.timed_out, finished.stdout) == (ENDED_BY_US, True, b"before\n")


def test_a_program_that_answers_the_time_out_with_success_has_not_succeeded(run, late):
    finished = run("trap 'exit 0' TERM; touch begun; while :; do sleep 0.1; done", timeout=late)
    assert finished.code == ENDED_BY_US


@needs_proc
def test_the_time_out_ends_the_whole_group_even_if_it_ignores_term(run, late):
    finished = run("trap '' TERM; sleep 60 & echo $!; touch begun; while :; do sleep 1; done", timeout=late, grace=0.1)
    assert finished.timed_out and not alive(int(finished.stdout))


def test_an_endless_stream_is_cut_and_ended(run):
    finished = run("yes", output_cap=100_000)
    assert finished.truncated and finished.code == ENDED_BY_US and len(finished.stdout) == 100_000


def test_the_cap_holds_for_both_streams_together(run):
    finished = run("yes & yes >&2", output_cap=50_000)
    assert finished.truncated and len(finished.stdout) + len(finished.stderr) == 50_000


def test_output_of_exactly_the_cap_is_whole(run):
    finished = run(["printf", "%s", "x" * 1000], output_cap=1000)
    assert not finished.truncated and finished.code == 0 and len(finished.stdout) == 1000


def test_both_streams_are_read_at_once(run):
    finished = run("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero")
    assert (len(finished.stdout), len(finished.stderr), finished.code) == (300_000, 300_000, 0)


@needs_proc
@pytest.mark.parametrize(
    "how",
    ["sleep 60 & echo $!", "sleep 60 >/dev/null 2>&1 & echo $!", "nohup setsid sleep 60 >/dev/null 2>&1 & echo $!"],
)
def test_children_left_behind_are_ended(run, how):
    finished = run(how)
    assert finished.code == 0 and not alive(int(finished.stdout))


@needs_proc
@pytest.mark.parametrize("missing", [("/environ", "/cmdline"), ("/environ",)])
def test_a_child_that_is_just_becoming_another_program_is_not_overlooked(run, monkeypatch, missing):
    """In the middle of `execve` the kernel shows neither its arguments nor its environment, which may end between
    the reads of the two."""
    looked: Counter[str] = Counter()

    def early(path: str, *how: object, **more: object) -> IO[bytes]:
        looked[path] += 1
        at_once = path.endswith(missing) and looked[path] == 1
        return open("/dev/null" if at_once else path, *how, **more)

    monkeypatch.setattr(process, "open", early, raising=False)
    finished = run("setsid sleep 60 >/dev/null 2>&1 & echo $!")
    assert not alive(int(finished.stdout)) and any("sleep 60" in left for left in finished.left)


HOPPER = """
import os, sys, time
os.open(sys.argv[1], os.O_WRONLY)
for number in range(3):
    os.close(number)
end = time.monotonic() + 300
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
os.write(3, b"alive")
"""


@needs_proc
def test_a_child_that_is_another_process_at_every_moment_is_ended(run, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "hopper.py").write_text(HOPPER)
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    assert run(f"{sys.executable} -S hopper.py fifo & while [ -e /proc/$!/fd/0 ]; do :; done").code == 0
    os.set_blocking(reading, True)
    assert os.read(reading, 10) == b""
    os.close(reading)


@needs_proc
def test_an_interruption_ends_the_group(tmp_path):
    script = (
        "import sys; from pathlib import Path; from ralph_mission.adapters.sandbox.process import run_foreign\n"
        "here = Path(sys.argv[1])\n"
        "try: run_foreign('echo $$ > pid; sleep 60', cwd=here, home=here / 'home', timeout=60)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    ours = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    pid = wait_for(tmp_path / "pid")
    ours.send_signal(2)
    assert ours.communicate(timeout=300)[0] == b"interrupted\n" and not alive(pid)


def wait_for(place: Path) -> int:
    for _ in range(6000):
        if place.exists() and place.read_text().strip():
            return int(place.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{place.name} was never written")


def test_a_program_cannot_signal_ours_through_its_group(run):
    assert run("kill -TERM 0; sleep 5").code != 0  # its group is its own: we are still here to say so


def test_several_runs_in_one_home_do_not_end_each_other(tmp_path):
    codes: list[int] = []

    def one(command: str) -> None:
        codes.append(run_foreign(command, cwd=tmp_path, home=tmp_path / "home", timeout=300).code)

    beside = threading.Thread(target=one, args=("touch begun; until [ -e over ]; do sleep 0.02; done",))
    beside.start()
    until((tmp_path / "begun").exists)
    one("true")
    (tmp_path / "over").touch()
    beside.join()
    assert codes == [0, 0]


def test_a_program_may_take_its_own_words_back(run, tmp_path, monkeypatch):
    read, taken = os.read, []

    def read_later(place: int, size: int) -> bytes:
        if taken or os.get_blocking(place):
            return read(place, size)
        taken.append(read(place, size))  # as a program does that opens /proc/self/fd/1
        try:
            return read(place, size)
        finally:
            (tmp_path / "taken").touch()

    monkeypatch.setattr(os, "read", read_later)
    finished = run(["sh", "-c", "echo one; until [ -e taken ]; do :; done; echo two"])
    assert (taken, finished.code, finished.stdout) == ([b"one\n"], 0, b"two\n")


def test_what_fails_while_a_line_is_shown_is_not_taken_for_a_pipe_without_words(run):
    def full(_: bytes) -> None:
        raise BlockingIOError("the terminal takes no more")

    with pytest.raises(BlockingIOError, match="takes no more"):
        run("echo one", live=full)


def test_no_core_file_is_written_and_files_are_bounded(run):
    core, size = run("ulimit -c; ulimit -f").stdout.split()
    assert core == b"0" and size != b"unlimited"


def test_our_own_tools_are_found_beside_our_interpreter():
    assert Path(own_tool("ruff")).is_file()
    assert own_tool("no-such-tool-of-ours") == "no-such-tool-of-ours"


@needs_proc
def test_what_a_command_leaves_running_is_told_and_ended(run):
    finished = run("sleep 61 >/dev/null 2>&1 & setsid sleep 62 >/dev/null 2>&1 & echo $!; exit 3")
    assert finished.code == 3 and {"sleep 61", "sleep 62"} <= {*finished.left}
    assert not alive(int(finished.stdout))


@needs_proc
def test_what_ends_in_a_moment_was_not_left(run, monkeypatch):
    monkeypatch.setattr(inside, "MOMENT", 300.0)
    assert run("sleep 0.05 & echo done").left == ()


@needs_proc
def test_what_we_end_ourselves_has_left_nothing(run, late):
    assert run("sleep 61 & touch begun; wait", timeout=late).left == ()
