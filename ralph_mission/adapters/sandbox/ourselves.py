"""Ourselves as processes, several at a time: one that crashes, hangs or is killed takes no other one with it."""

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

LAST_WORDS = 30.0  # seconds that whoever is asked to end has for it
LOOK = 0.05  # seconds between two looks at who is over
CAP = 4_000_000  # bytes of what one said


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """Ourselves with `arguments`, and `env` on top of our environment. After `seconds` it is ended."""

    name: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    seconds: float


TellEnd = Callable[[OwnProcess, int, bytes, float], None]


def run_side_by_side(every: Iterable[OwnProcess], at_once: int, tell_end: TellEnd) -> None:
    """Run each to its end, so many at a time and in this order. `tell_end` is given its exit code (-1: it was ended
    after its time), what it said on standard output, and how many seconds it took. Whatever is raised here ends all."""
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
    """One of them while it runs."""

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
        """Waits for its end."""
        try:
            self.process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with self.output:
            self.output.seek(0)
            return -1 if self.late else self.process.returncode, self.output.read(CAP)
