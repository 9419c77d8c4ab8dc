"""The only gateway for executing code of a repository or an agent.

That code gets a program path, its own home and nothing of ours: no token, no agent socket, no git or runner variable,
no open file. When the call returns, none of its processes runs any more.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ralph_mission.adapters.sandbox.inside import still
from ralph_mission.adapters.sandbox.isolation import OPEN, Inside, Sandbox, enter_sandbox
from ralph_mission.safety.secrets import redact
from ralph_mission.values import dataclass

NOTHING: Mapping[str, str] = MappingProxyType({})
PASSED_ON = ("PATH", "LANG", "LC_ALL")
ENDED_BY_US = 124  # as timeout(1) of GNU coreutils
GRACE = 2.0  # seconds between TERM and KILL
TICK = 0.05
EXECVE = 0.5  # seconds that a process may take to exec another program
MEMORY = 20  # `vsize` among the fields of /proc/PID/stat behind the name: proc(5)
ASKED_EVERY = 0.2  # seconds between two polls of the stop condition
SIGN, SIGN_LATER = 5.0, 15.0  # seconds between two signs of life, in the first minute and later
NAMED = 32  # characters of a running command in such a sign, so that a row has room for the line
LINE = 400  # bytes of the longest line that a sign of life quotes: what is cut could not be redacted any more
WINDOW = 4096  # bytes of the output in which that line is looked for
PROC = Path("/proc")
FILE_BLOCKS = 8 * 1024 * 1024  # of 512 bytes, POSIX's unit for `ulimit -f`: 4 GiB
# A shell sets limits instead of a fork of ourselves, which is unsafe with threads.
# The same shell returns 127 for a missing program and 126 for one that cannot run.
STOPPED: ContextVar[Callable[[], bool] | None] = ContextVar("STOPPED", default=None)
"""The default stop condition: a thread cannot be interrupted, but its processes can."""
LIMITED = ("/bin/sh", "-c", f'ulimit -c 0; ulimit -f {FILE_BLOCKS} 2>/dev/null; exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """A foreign command's result; `seconds` of wall time, `code` 124 if we ended it, for any reason.

    `left`: the command lines of processes it left running when it ended by itself: they were ended too.
    """

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool
    truncated: bool
    stopped: bool = False
    left: tuple[str, ...] = ()


def run_foreign(
    command: Sequence[str] | str,
    *,
    cwd: Path,
    home: Path,
    timeout: float,
    output_cap: int = 4_000_000,
    stdin: bytes = b"",
    allow: Sequence[str] = (),
    extra_env: Mapping[str, str] = NOTHING,
    stopped: Callable[[], bool] | None = None,
    grace: float = GRACE,
    live: Callable[[bytes], None] | None = None,
    running: Callable[[float, str], None] | None = None,
    sandbox: Sandbox = OPEN,
) -> FinishedProcess:
    """Run a program (a string: by `/bin/sh -c`) until the last of its children has ended.

    `home` is made 0700 and holds HOME, XDG folders and a TMPDIR that is removed afterwards;
    `allow` names our variables it may see. `timeout` in seconds; `output_cap` in bytes over
    both streams: reaching either ends the whole process group, and so does `stopped`, polled five times
    a second. An ended process has `grace` seconds between TERM and KILL. `live` receives standard output
    as it comes; `running` gets the seconds since the start and the last whole line printed so far (untrusted, up to
    `LINE` bytes, "" if it is longer), every `SIGN` seconds. A missing program gives code 127. `sandbox` isolates it
    further, or raises UserError.
    """
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    with (
        _home(home) as scratch,
        _source(stdin) as source,
        enter_sandbox(sandbox, arguments, cwd, home, scratch, {**_passed_on(allow), **extra_env}["PATH"]) as inside,
        _signals_held() as let_go,
    ):
        environment = {**_passed_on(allow), **extra_env, **_places(home, scratch)}
        started = time.monotonic()
        process = subprocess.Popen(
            [*LIMITED, *inside.argv],
            cwd=cwd,
            env=environment,
            start_new_session=True,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inside.passed_on,
        )
        remaining, over = tuple[str, ...](), False
        with process, _Capture(process, output_cap, live) as capture:
            try:
                let_go()
                ended = capture.until(
                    started + timeout, _stop_condition(started, capture, stopped or STOPPED.get(), running)
                )
                if not ended and not capture.full:
                    remaining, over = _find_remaining(process, scratch, inside)
            finally:
                if over:
                    kill_group(process)
                else:
                    _end(process, scratch, grace)
            capture.rest()
        code = ENDED_BY_US if ended or capture.full else process.returncode
        seconds = time.monotonic() - started
        return FinishedProcess(
            code, capture.stdout, capture.stderr, seconds, ended == "late", capture.full, ended == "stopped", remaining
        )  # fmt: skip  # one value


def tell_running(doing: str, command: str, note: Callable[[str], None]) -> Callable[[float, str], None]:
    """For `run_foreign`: notes such as `setting up, 45 s: yarn install: [2/4] Fetching packages...`."""

    def tell(seconds: float, line: str) -> None:
        space, named = NAMED if line else 2 * NAMED, redact(command)
        named = named if len(named) <= space else f"{named[: space - 1].rstrip()}…"
        note(f"{doing}, {seconds:.0f} s: {named}{f': {line}' if line else ''}")

    return tell


def end_orphans(variable: str) -> int:
    """End all processes of this user with `variable` ("NAME=value") in their environment; returns their number.

    For processes left running by our killed processes. Finds none without /proc.
    """
    mark, ended = os.fsencode(variable), set[int]()
    patience = time.monotonic() + GRACE
    while (remaining := _find_running(-1, mark)) and time.monotonic() < patience:
        for process in remaining:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
                ended.add(process)
        time.sleep(TICK / 5)
    return len(ended)


def own_tool(name: str) -> str:
    """A program of our own virtualenv by its full path; just `name` if it is not installed there."""
    folders = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))
    return next((found for folder in folders if (found := shutil.which(name, path=folder))), name)


def _stop_condition(
    started: float,
    capture: _Capture,
    stopped: Callable[[], bool] | None,
    running: Callable[[float, str], None] | None,
) -> Callable[[], bool] | None:
    """The stop condition, which also gives signs of life when it is polled."""
    if running is None:
        return stopped
    due = SIGN

    def is_stopped() -> bool:
        nonlocal due
        seconds = time.monotonic() - started
        if seconds >= due:
            due = seconds + (SIGN if seconds < 60 else SIGN_LATER)
            running(seconds, capture.last_line())
        return bool(stopped and stopped())

    return is_stopped


class _Capture:
    """Reads both streams at once, so that neither blocks, and keeps at most `cap` bytes."""

    def __init__(self, process: subprocess.Popen[bytes], cap: int, live: Callable[[bytes], None] | None = None) -> None:
        assert process.stdout and process.stderr
        self._process, self._room, self._live = process, cap, live
        self._buffers = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._selector = selectors.DefaultSelector()
        self._latest = process.stdout.fileno()
        self.full = False
        for stream in self._buffers:
            os.set_blocking(stream, False)
            self._selector.register(stream, selectors.EVENT_READ)

    def __enter__(self) -> _Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    @property
    def stdout(self) -> bytes:
        return bytes(next(iter(self._buffers.values())))

    @property
    def stderr(self) -> bytes:
        return bytes(list(self._buffers.values())[1])

    def last_line(self) -> str:
        """The last line that ended and is not empty, of the stream that was written to last; never a part of one."""
        lines = self._buffers[self._latest]
        whole = lines[-WINDOW:].replace(b"\r", b"\n").split(b"\n")[len(lines) > WINDOW : -1]
        last = next((line for line in reversed(whole) if line.strip()), b"")
        return last.decode("utf-8", "replace").strip() if len(last) <= LINE else ""

    def until(self, deadline: float, stopped: Callable[[], bool] | None) -> Literal["", "late", "stopped"]:
        """Read until the process is over or the cap is hit; returns which came first."""
        ask = 0.0
        while self._process.poll() is None and not self.full:
            now = time.monotonic()
            if now > deadline:
                return "late"
            if stopped and now >= ask:
                ask = now + ASKED_EVERY
                if stopped():
                    return "stopped"
            self._wait()
        return ""

    def _wait(self) -> None:
        if self._selector.get_map():
            self._read(TICK)
        else:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(TICK)

    def rest(self) -> None:
        """Read the rest of the pipes, without waiting for a writer."""
        while not self.full and self._selector.get_map() and self._read(0):
            pass

    def _read(self, wait: float) -> bool:
        ready = self._selector.select(wait)
        for key, _ in ready:
            try:
                chunk = os.read(key.fd, 65536)
            except BlockingIOError:  # the program was faster: it can read its own pipe, as /proc/self/fd/1
                continue
            self._take(key.fd, chunk)
        return bool(ready)

    def _take(self, stream: int, chunk: bytes) -> None:
        if chunk:
            self._latest = stream
        else:
            self._selector.unregister(stream)
        self._buffers[stream] += chunk[: self._room]
        if self._live and chunk and stream == next(iter(self._buffers)):
            self._live(chunk[: self._room])
        self.full = self.full or len(chunk) > self._room
        self._room -= min(self._room, len(chunk))


@contextmanager
def _home(home: Path) -> Iterator[Path]:
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=home.resolve()))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _source(content: bytes) -> Iterator[int]:
    # A pipe, not a file: Claude Code 2.1.197 ignores a file. Its thread, not us, waits for who never reads.
    if not content:
        yield subprocess.DEVNULL
        return
    reading, writing = os.pipe()
    threading.Thread(target=_feed, args=(writing, content), daemon=True).start()
    try:
        yield reading
    finally:
        os.close(reading)  # ends the thread


def _feed(writing: int, content: bytes) -> None:
    with suppress(BrokenPipeError), open(writing, "wb") as pipe:
        pipe.write(content)


@contextmanager
def _signals_held() -> Iterator[Callable[[], None]]:
    """Delays Ctrl-C and TERM until the yielded function is called, so that no started process is forgotten.

    A handler instead of a mask, which the child would inherit. Only the main thread gets signals.
    """
    pending: list[int] = []
    handlers: dict[int, Any] = {}

    def let_go() -> None:
        while handlers:
            signal.signal(*handlers.popitem())
        while pending:
            signal.raise_signal(pending.pop())

    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    handlers[number] = signal.signal(number, lambda got, _: pending.append(got))
        yield let_go
    finally:
        let_go()


def _passed_on(allow: Sequence[str]) -> dict[str, str]:
    ours = {name: os.environ[name] for name in (*PASSED_ON, *allow) if name in os.environ}
    return {"PATH": os.defpath, "TERM": "dumb", **ours}


def _places(home: Path, scratch: Path) -> dict[str, str]:
    at = home.resolve()
    xdg = {f"XDG_{kind.upper()}_HOME": str(at / f".{kind}") for kind in ("config", "cache", "data", "state")}
    return {"HOME": str(at), "TMPDIR": str(scratch), **xdg}


def _find_remaining(process: subprocess.Popen[bytes], scratch: Path, inside: Inside) -> tuple[tuple[str, ...], bool]:
    """Processes still running after the command and a grace period; whether there is nothing to end."""
    processes = still(lambda: sorted({*_left_running(process, scratch)}))
    return (*processes, *(inside.report.heard() if inside.report else ())), not processes


def _end(process: subprocess.Popen[bytes], scratch: Path, grace: float) -> None:
    """TERM, then KILL after the grace (or at once, for a second Ctrl-C), for the group and processes that left it."""
    try:
        if _signal(process, scratch, signal.SIGTERM):
            _await(process, scratch, grace)
    finally:
        killed = _signal(process, scratch, signal.SIGKILL)
        process.wait()
        if killed:
            _await(process, scratch, GRACE)  # the kernel handles a kill asynchronously


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """A process that keeps forking is in no list, but cannot escape a signal to the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _await(process: subprocess.Popen[bytes], scratch: Path, seconds: float) -> None:
    """Wait until none of them runs any more, up to a time limit."""
    patience = time.monotonic() + seconds
    while _left_running(process, scratch) and time.monotonic() < patience:
        time.sleep(TICK / 5)


def _signal(process: subprocess.Popen[bytes], scratch: Path, number: int) -> bool:
    """Send a signal; returns whether any process got it."""
    others = _left_running(process, scratch)
    for target in (-process.pid, *others):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(target, number)
    return bool(others)


def _left_running(process: subprocess.Popen[bytes], scratch: Path) -> list[int]:
    """The processes to signal: on Linux the ids of all still running, elsewhere the whole group.

    A bubblewrap view's first process is in the group, and only ends after everything inside.
    """
    process.poll()
    if PROC.is_dir():
        return _find_running(process.pid, os.fsencode(f"TMPDIR={scratch}"))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 0)
        return [-process.pid]
    return []


def _find_running(group: int, mark: bytes) -> list[int]:
    folders = os.listdir(PROC) if PROC.is_dir() else []
    return [int(name) for name in folders if name.isdigit() and _belongs_to_us(f"{PROC}/{name}", group, mark)]


def _belongs_to_us(folder: str, group: int, mark: bytes) -> bool:
    # A child may leave the group (`setsid`), but it keeps its TMPDIR.
    # One that also empties its environment needs a stronger level of isolation.
    with suppress(OSError):
        state, _, its_group, *_ = _content(f"{folder}/stat").rpartition(b")")[2].split()
        if state == b"Z":  # dead, but not reaped by its parent
            return False
        return int(its_group) == group or mark in _environment(folder).split(b"\0")
    return False


def _environment(folder: str) -> bytes:
    """A process's environment. During `execve` it has neither arguments nor an environment: a process that leaves the
    group at that time (`setsid sleep`) would be missed, so this waits for them."""
    patience = time.monotonic() + EXECVE
    while not (environment := _content(f"{folder}/environ")):
        has_arguments = bool(_content(f"{folder}/cmdline"))
        if not int(_content(f"{folder}/stat").rpartition(b")")[2].split()[MEMORY]) or time.monotonic() > patience:
            break  # a kernel thread, which never has any
        time.sleep(TICK / 50)
        if has_arguments:  # it may have been given both between the two reads
            return _content(f"{folder}/environ")
    return environment


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()
