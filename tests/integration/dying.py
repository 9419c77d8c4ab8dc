"""A runner that dies at a chosen moment, as surely as by SIGKILL: nothing catches a `Killed`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.branch import BranchStore
from ralph_mission.adapters.storage.memory.provenance import Anchorage

TRANSFERS = ("ls-remote", "fetch", "push")
"""Commands of git that ask a server; of `Git.run` these alone are moments."""
PORTS = ((BranchStore, "commit"), (LocalForge, "perform"), (LocalForge, "show_dashboard"))
INSIDE = (*PORTS, (Anchorage, "write"), (Git, "move_ref"))


def is_local_git(owner: object, arguments: tuple[Any, ...]) -> bool:
    """Whether a call of `Git.run` asks no server: nothing leaves the machine."""
    return isinstance(owner, Git) and arguments[0] not in TRANSFERS


class Killed(BaseException):
    """The end of the process."""


@dataclass
class Death:
    """Comes before moment number `at` (from 1; 0 never); `moments` names those that passed."""

    at: int = 0
    moments: list[str] = field(default_factory=list)

    def pass_by(self, name: str) -> None:
        self.moments.append(name)
        if len(self.moments) == self.at:
            raise Killed(name)


@contextmanager
def dying(at: int = 0, calls: tuple[tuple[type, str], ...] = PORTS) -> Iterator[Death]:
    """Count the moments before and after the calls, and die at one of them."""
    death = Death(at)
    with ExitStack() as stack, suppress(Killed):
        for owner, name in calls:
            stack.enter_context(mock.patch.object(owner, name, _counted(owner, name, death)))
        yield death


def _counted(owner: type, name: str, death: Death):
    original = getattr(owner, name)

    def call(self, *arguments, **options):
        if name == "run" and is_local_git(self, arguments):
            return original(self, *arguments, **options)
        what = f"{owner.__name__}.{name}({type(arguments[0]).__name__})"
        death.pass_by(f"before {what}")
        answer = original(self, *arguments, **options)
        death.pass_by(f"after {what}")
        return answer

    return call
