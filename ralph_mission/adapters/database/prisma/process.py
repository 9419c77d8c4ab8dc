"""The process that holds the Prisma client: a line of JSON each way, within a time and a size."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ralph_mission.adapters.database.address import MENDS, Address
from ralph_mission.adapters.database.prisma import worker as prisma_worker
from ralph_mission.adapters.database.prisma.questions import ClientCall, prisma_url
from ralph_mission.adapters.database.prisma.tools import Tools
from ralph_mission.adapters.database.sessions import Caps
from ralph_mission.adapters.sandbox.process import ASKED_EVERY, STOPPED
from ralph_mission.errors import UserError
from ralph_mission.values import dataclass

START = 40.0  # seconds for the engine to come up
LATE = 5.0  # seconds more than the server's own limit
GRACE = 2.0  # seconds to say goodbye to the server
PRISMAS = {"P2021": "42P01", "P2022": "42703", "P1000": "28", "P1003": "3D000", "P1010": "42501", "P1017": "08"}
"""Prisma's codes by the SQLSTATE that means the same."""
UNREAD = "P2023"


@contextmanager
def connect_worker(tools: Tools, address: Address, caps: Caps, encrypted: bool = False) -> Iterator[PrismaWorker]:
    """A client, ended with all that belongs to it. Raises UserError when its engine does not come up.

    `encrypted`: whether libpq came to speak TLS where its address leaves that open.
    """
    url = prisma_url(address, caps, tools.native is not None, encrypted)
    key = secrets.token_hex(16)
    process = subprocess.Popen(
        (sys.executable, "-I", prisma_worker.__file__, str(tools.client)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tools.client,
        start_new_session=True,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(tools.client),
            "DATABASE_URL": url,
            "PRISMA_QUERY_ENGINE_BINARY": str(tools.engine),
            "RALPH_ENGINE_KEY": key,
            "RALPH_LARGEST_ANSWER": str(caps.bytes),
        },
    )
    try:
        worker = PrismaWorker(process, caps)
        worker.start()
        yield worker
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """The engine is in the same group, and goes with it. Once is enough."""
    if process.returncode is not None:
        return
    if process.stdin:
        with suppress(OSError, ValueError):
            process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


@dataclass(frozen=True, slots=True)
class PrismaWorker:
    """A client that is connected. One question at a time."""

    process: subprocess.Popen[bytes]
    caps: Caps

    def start(self) -> None:
        """Raises UserError when the engine does not come up."""
        self._line({}, START, "the engine")

    def ask(self, call: ClientCall, what: str) -> Any:
        """Raises UserError; `what` says in our words what was asked."""
        asked = {"model": call.model, "method": call.method, "arguments": call.arguments, "select": call.select}
        said = self._line(asked, self.caps.seconds + self.caps.lock_seconds + LATE, what)
        if "error" in said:
            raise _refusal(said["error"], what, self.caps)
        return said["result"]

    def _line(self, asked: Mapping[str, Any], seconds: float, what: str) -> dict[str, Any]:
        """Whoever is not done with one question is asked no other: its answer would be taken for the next one's."""
        try:
            said: dict[str, Any] = json.loads(self._exchanged(json.dumps(asked), time.monotonic() + seconds, what))
            return said
        except (OSError, ValueError):
            _end(self.process, 0)
            raise UserError("the engine of Prisma ended", "ralph doctor tells more", "network") from None
        except UserError:
            _end(self.process, 0)
            raise

    def _exchanged(self, line: str, deadline: float, what: str) -> bytes:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                _await(selector, deadline, what)
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                answer += chunk
                if not chunk:
                    raise ValueError("it ended")
                if len(answer) > 4 * self.caps.bytes:  # a letter has up to four bytes
                    raise _too_large(what, self.caps)
        return bytes(answer)


def _await(selector: selectors.BaseSelector, deadline: float, what: str) -> None:
    """Until there is something to read. Raises UserError when it takes too long, or when nobody wants it any more."""
    stopped = STOPPED.get() or (lambda: False)
    while not selector.select(min(ASKED_EVERY, max(0.0, deadline - time.monotonic()))):
        if stopped():
            raise UserError(f"nobody waits any more for {what}", "ask again", "network")
        if time.monotonic() >= deadline:
            raise UserError(f"the engine of Prisma took too long over {what}", "an index would help", "network")


def _refusal(error: Mapping[str, str], what: str, caps: Caps) -> UserError:
    """By the server's own code, or Prisma's."""
    code, state = error.get("code", ""), error.get("state", "")
    if code == "TOO_LARGE":
        return _too_large(what, caps)
    for known in (state, state[:2], PRISMAS.get(code, "")):
        if known and known in MENDS:
            reason, mend, who = MENDS[known]
            return UserError(reason.format(what=what), mend, who)
    if code == UNREAD:
        return UserError(f"{what} holds a value that Prisma cannot read, such as NaN", "take the backend sqlalchemy")
    said = " ".join(filter(None, (error.get("type"), code, state)))
    mend = "look at the watch and the database's log; the backend sqlalchemy tells more"
    return UserError(f"the engine of Prisma failed over {what} ({said})", mend, "network")


def _too_large(what: str, caps: Caps) -> UserError:
    return UserError(f"{what} answered with more than {caps.bytes // 1_000_000} MB", "tell fewer or shorter fields")
