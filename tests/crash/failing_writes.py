"""A runner whose writes go wrong by number, however many cycles that takes; who dies or gives up is started again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from ralph_mission.errors import Lost, UserError
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from tests.crash.dying import Life, describe_request, dying, writes
from tests.crash.witness import is_ours_to_keep
from tests.fakes.github.nouns import Request
from tests.helpers import git
from tests.integration.hub import Hub

DEATH, LATE, EDIT = "death", "late", "edit"
ON_PUSHES = (DEATH, "502_applied", "500", EDIT)
ON_CALLS = (DEATH, "502_applied", "500", "rate_secondary")
ON_NEWS = (*ON_CALLS, LATE)  # calls that make what a list will show
LOG = "memory/ralph-log.md"
LAG = 12  # lists that do not show it: those of a cycle or two
MOST = 8  # times that a runner is started again within what should be one cycle


def kinds(what: str) -> tuple[str, ...]:
    """What is made to go wrong at a write, as `told` has it.

    `death`: it was carried out, and nobody heard of it. `late`: so it was, and no list shows it for a while. `edit`: a
    person changes memory right before, so that it is not where it was read.
    """
    if "git-receive-pack" in what:
        return ON_PUSHES
    return ON_NEWS if what in ("POST /issues", "POST /pulls") or what.endswith("/comments") else ON_CALLS


@dataclass
class FailingHub(Hub):
    """A hub where write number n (from 1, the dashboard's do not count) is struck by `blows[n]`."""

    blows: dict[int, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, hub: Hub, blows: Mapping[int, str]) -> FailingHub:
        """The same hub, from now on."""
        same = {one.name: getattr(hub, one.name) for one in fields(Hub)}
        return cls(**same, blows=dict(blows))

    def cycle(self, after: timedelta = timedelta(hours=7), **request: Any) -> tuple[CycleReport, CycleSummary]:
        """One cycle that comes to its end, whatever that takes."""
        for _ in range(MOST):
            with self.struck():
                try:
                    return super().cycle(after, **request)
                except Lost:
                    pass
                except UserError as problem:
                    assert "\n" not in problem.what and problem.next_step, problem
            after = timedelta(0)
        raise AssertionError(f"started {MOST} times, and none came to its end")

    @contextmanager
    def struck(self) -> Iterator[None]:
        """While this lasts its blows fall."""
        with dying(self, kind="after") as life:
            undo = self.fake.before(lambda request: self._coming(request, life))
            try:
                yield
            finally:
                undo()
                self.fake.list_lag = 0

    def _coming(self, request: Request, life: Life) -> None:
        if not writes(request) or life.over or is_ours_to_keep(request):
            return
        self.written.append(describe_request(request))
        blow = self.blows.pop(len(self.written), "")
        self.fake.list_lag = LAG if blow == LATE else 0
        if blow in (DEATH, LATE):
            life.at = len(life.requests)
        elif blow == EDIT:
            self.learn(f"- Lesson {len(self.written)}: rest.")
        elif blow:
            self.fake.fail(blow, (request.method, request.below))

    def learn(self, line: str) -> None:
        """A person writes a line under Learnings, on the server."""
        if not self.fake.branch("ralph-memory"):
            return
        text = git(self.fake.bare, "show", f"ralph-memory:{LOG}") + "\n"
        text = text.replace("## Learnings\n", f"## Learnings\n{line}\n", 1)
        self.fake.person("mara").push("ralph-memory", {LOG: text.encode()})
        self.learned.append(line)
