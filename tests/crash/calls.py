"""The calls of a stage, to GitHub (by HTTP or git) and to networks, and which of them a fault may be about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.crash.dying import describe_request, writes
from tests.crash.witness import MEMORY, heads
from tests.fakes.github.nouns import Request
from tests.integration.hub import Hub

NAMES = re.compile(r"\d+|(?<=/labels/).+|(?<=/compare/).+|(?<=/commits/)\w+|(?<=/branches/)[^/]+")
"""What differs in paths of requests of one kind."""


@dataclass(frozen=True)
class Call:
    """A call of a stage, undisturbed: its number (from 1), how many like it came before, and what a push moved."""

    at: int
    request: Request
    before: int
    phase: str = ""  # of the transaction: before memory moved first, after it moved last, or in between
    ref: str = ""
    made: bool = False  # whether the branch was not there before

    def __str__(self) -> str:
        return f"call {self.at}, {describe_request(self.request)}"

    @property
    def sort(self) -> tuple[str, str]:
        """What it is, whatever the numbers and names in it, and at which phase: where both are one, so is the code."""
        branch = "memory" if self.ref == MEMORY else "a branch" if self.ref else ""
        return f"{NAMES.sub('*', describe_request(self.request))} {branch}".rstrip(), self.phase

    @property
    def network(self) -> str:
        return self.request.below.removeprefix("/") if self.request.transport == "network" else ""


def calls(requests: list[Request], moved: Mapping[int, tuple[str, bool]]) -> list[Call]:
    """The calls of a stage, from what was asked, and which push moved what."""
    seen: Counter[str] = Counter()
    memory = [at for at, (ref, _) in moved.items() if ref == MEMORY]
    found = []
    for at, request in enumerate(requests, 1):
        counted = f"{request.method} {request.below}" if request.transport != "network" or writes(request) else ""
        phase = "look" if not memory or at <= min(memory) else "act" if at <= max(memory) else "after"
        found.append(Call(at, request, seen[counted], phase, *moved.get(at, ())))
        seen[counted] += 1
    return found


def targets(requests: list[Request]) -> Iterator[tuple[Request, int]]:
    """Each write, and how many like it came before."""
    return ((call.request, call.before) for call in calls(requests, {}) if write(call))


@contextmanager
def moves(hub: Hub, at: Callable[[], int]) -> Iterator[dict[int, tuple[str, bool]]]:
    """What each push moves, by the number of its call; and whether that branch is new."""
    found: dict[int, tuple[str, bool]] = {}
    known = heads(hub)

    def look(request: Request, response: object) -> None:
        if request.below == "/git-receive-pack":
            now = heads(hub)
            for ref in now.keys() | known.keys():
                if now.get(ref) != known.get(ref):
                    found[at()] = (ref, ref not in known)
            known.clear()
            known.update(now)

    undo = hub.fake.after(look)
    try:
        yield found
    finally:
        undo()


# --- which calls --------------------------------------------------------------------------


def anything(call: Call) -> bool:
    return True


def write(call: Call) -> bool:
    return writes(call.request)


def on_github(call: Call) -> bool:
    return writes(call.request) and not call.network


def on_network(call: Call) -> bool:
    return writes(call.request) and bool(call.network)


def read(call: Call) -> bool:
    return not writes(call.request) and not call.network


def making(call: Call) -> bool:
    """What makes something that lists show."""
    return call.request.method == "POST" and call.request.below.endswith(("/issues", "/pulls", "/comments"))


def conditional(call: Call) -> bool:
    """What is done only where the server stands as it stood."""
    return call.request.method == "PUT" and call.request.below.endswith("/merge")


def memory_moves(call: Call) -> bool:
    return call.ref == MEMORY and not call.made


def first_move(call: Call) -> bool:
    return call.ref == MEMORY and call.before == 0


def new_branch(call: Call) -> bool:
    return call.made and call.ref not in ("", MEMORY)
