"""How a call is struck: a runner dies, a server answers otherwise or not at all, or somebody else comes first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges import github
from ralph_mission.adapters.git import remote
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.publishers import networks
from tests.crash.calls import Call
from tests.crash.dying import dying
from tests.crash.runners import NOW, as_run, fresh
from tests.crash.snapshots import networks_of
from tests.fakes.github.faults import Crash
from tests.fakes.github.nouns import Request
from tests.fakes.networks.serving import Fault
from tests.integration.hub import Hub

SOON, LATE = 2.0, 120.0  # seconds until a client gives up: where no answer comes, and where one does
WORD = "- a person's own word about gulls\n"


@dataclass
class Strike:
    """Whether it came to pass."""

    hit: bool = False


Striking = Callable[[Hub, Call], AbstractContextManager[Strike]]


def death(when: str, lag: int = 0) -> Striking:
    """The runner dies; with a lag, lists do not show then what it has made."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        found = Strike()
        hub.fake.list_lag = lag
        with dying(hub, call.at, when) as life:
            yield found
        found.hit = life.over

    return strike


@contextmanager
def another_machine(hub: Hub, call: Call) -> Iterator[Strike]:
    """The runner dies, a workflow run that is over then; the next one is on another machine with a fresh clone."""
    as_run(hub, 1)
    with death("after")(hub, call) as found:
        yield found
    hub.fake.workflow_run(1, "completed", "failure")
    as_run(hub, 2)
    hub.runner = fresh(hub)


def late(lag: int) -> Striking:
    """Nobody dies, but lists are that late, also while it comes to rest."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        hub.fake.list_lag = lag
        yield Strike(hit=True)

    return strike


def answer(kind: str, times: int = 1) -> Striking:
    """What GitHub, or the way to it, says instead."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        found, where = Strike(), (call.request.method, call.request.below)
        fault = hub.fake.fail(kind, where, times=times, after=call.before)
        with patience(SOON if kind.startswith("timeout") else LATE):
            yield found
        found.hit = fault.used > 0
        hub.fake.faults.clear()

    return strike


def post(fault: Fault, wait: timedelta = NOW) -> Striking:
    """What a network does instead; time passes then for as long as it asks to wait."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        found, server = Strike(), networks_of(hub)[call.network]
        server.fail(*[None] * call.before, fault)
        with patience(SOON if fault.hang else LATE):
            yield found
        found.hit = not server.faults
        server.faults.clear()
        hub.now += wait

    return strike


def kill(when: str) -> Striking:
    """A real process is really killed, while the server holds its request or has carried it out."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        came = count(1)

        def coming(request: Request) -> None:
            if next(came) == call.at and when == "before":
                end()
                raise Crash

        def answered(request: Request, response: object) -> None:
            if process.poll() is None and when == "after" and next(copy(came)) == call.at + 1:
                end()

        def end() -> None:
            process.send_signal(signal.SIGKILL)
            process.wait()

        undo = [hub.fake.before(coming), hub.fake.after(answered)]
        process = hub.process("--force")
        _, said = process.communicate()
        for one in undo:
            one()
        yield Strike(process.returncode == -signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL, said.decode()

    return strike


def first(action: Callable[[Hub, Call], object]) -> Striking:
    """Somebody else does something while the call is under way."""

    @contextmanager
    def strike(hub: Hub, call: Call) -> Iterator[Strike]:
        found = Strike()
        with dying(hub) as life:

            def comes_between(request: Request) -> None:
                if len(life.requests) == call.at and not found.hit:
                    found.hit = True
                    action(hub, call)

            undo = hub.fake.before(comes_between)
            try:
                yield found
            finally:
                undo()

    return strike


def a_person_writes(hub: Hub, call: Call) -> None:
    """Under Do Not Repeat, which is the end of the file."""
    hub.fake.push("ralph-memory", {"memory/ralph-log.md": f"{hub.memory().rstrip()}\n\n{WORD}".encode()})


def a_runner_acts(hub: Hub, call: Call) -> None:
    replace(hub, runner=fresh(hub)).cycle(NOW)


def a_stranger_takes_the_name(hub: Hub, call: Call) -> None:
    hub.fake.push(call.ref.removeprefix("refs/heads/"), {"mine.txt": b"mine\n"})


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Nobody waits here long for an answer that does not come, and nobody takes a slow one for none."""
    plain, run, usual = networks.HttpLimits, Git.run, remote.PATIENCE

    def hurried(git: Git, *arguments: str, timeout: float | None = 600, **others: Any) -> bytes:
        return run(git, *arguments, timeout=seconds if timeout == usual else timeout, **others)

    with (
        mock.patch.dict(github.connect.__kwdefaults__, {"timeout": seconds}),
        mock.patch.object(Git, "run", hurried),
        mock.patch.object(networks, "HttpLimits", lambda whole, pause, size: plain(whole, seconds, size)),
    ):
        yield
