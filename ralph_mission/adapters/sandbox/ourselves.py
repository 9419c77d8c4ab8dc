"""Runs ralph itself in several processes: a crash, hang or kill of one does not affect the others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import IO

from ralph_mission.values import dataclass

LAST_WORDS = 30.0  # seconds that a process has to end after a request
LOOK = 0.05  # seconds between two polls for ended ones
CAP = 4_000_000  # bytes of a process's output


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """A ralph process with `arguments`, and `env` on top of our environment. It is ended after `seconds`."""

    name: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    seconds: float


TellEnd = Callable[[OwnProcess, int, bytes, float], None]


def run_side_by_side(every: Iterable[OwnProcess], at_once: int, tell_end: TellEnd) -> None:
    """Run each to its end, so many at a time and in this order. `tell_end` gets its exit code (-1: ended after its
    time), its standard output, and its duration in seconds. An exception here ends all."""
    waiting, running = deque(every), list[_Running]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_Running.start(waiting.popleft()))
            for one in [one for one in running if one.is_over()]:
                running.remove(one)
                tell_end(one.job, *one.result(), time.monotonic() - one.started)
            time.sleep(LOOK)
    finally:
        for one in running:
            one.process.terminate()  # it leaves as on Ctrl-C
        for one in running:
            one.result()


class _Running:
    """A running process."""

    def __init__(self, job: OwnProcess, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self.job, self.process, self.output = job, process, output
        self.started, self.late = time.monotonic(), False
        self.until = self.started + job.seconds

    @staticmethod
    def start(job: OwnProcess) -> _Running:
        output = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as it runs
        process = subprocess.Popen(
            [sys.executable, "-m", "ralph_mission", *job.arguments], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.DEVNULL, env={**os.environ, **job.env}, cwd=os.path.sep,
        )  # fmt: skip  # one call
        return _Running(job, process, output)

    def is_over(self) -> bool:
        if time.monotonic() >= self.until + LAST_WORDS * self.late:
            (self.process.kill if self.late else self.process.terminate)()
            self.until, self.late = time.monotonic(), True
        return self.process.poll() is not None

    def result(self) -> tuple[int, bytes]:
        """Wait for its end."""
        try:
            self.process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with self.output:
            self.output.seek(0)
            return -1 if self.late else self.process.returncode, self.output.read(CAP)
