"""People, runners and accidents in any order, on a (fake) GitHub: after each step the promises are looked at.

A rule is one thing that somebody does. What makes no sense at the moment (there is no pull to be approved) is not
tried. What was done stands in the list of steps that a failure is told with, shrunk to those it takes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ralph_mission.flows import control
from ralph_mission.mission.cycle import Request, run_cycle
from ralph_mission.trouble import Trouble
from tests.crash.dying import dying
from tests.crash.past import Snapshot
from tests.crash.witness import Witness, watched
from tests.helpers import git
from tests.integration.hub import Hub
from tests.stateful.promises import Promises, deeds
from tests.trust.table import Table

MEMORY = "refs/heads/ralph-memory"
FAULTS = ("500", "502_applied", "502_not_applied", "reset_applied", "reset_not_applied", "rate_secondary", "422")
CALLS = (("POST", "/issues"), ("POST", "/pulls"), ("POST", "/issues/*/comments"), ("PUT", "/pulls/*/merge"))
OTHERS = ("two", "thief")
QUIET = ("not_due", "paused", "lost")
HOURS = st.sampled_from([0, 1, 7, 25, 50])
OUTSIDER, MARA = "passer-by", "mara"


class Life(RuleBasedStateMachine):
    """One repository's life. The `harbour` is that of the whole search, and every example begins at one of `starts`."""

    harbour: Hub
    starts: Mapping[str, Snapshot]
    table: Table

    def __init__(self) -> None:
        super().__init__()
        self.harbour.fake.list_lag, self.harbour.skew = 0, timedelta(0)
        self.count = 0
        self.home = self.harbour.runner
        self.promises = Promises(self.harbour)
        self.open = ExitStack()
        self.witness: Witness = self.open.enter_context(watched(self.harbour))
        self.open.callback(self.harbour.fake.before(self.promises.merging))

    def teardown(self) -> None:
        self.open.close()
        self.table.count("lives", examples=1)

    @initialize(place=st.sampled_from([1, 2, 0]))
    def begins(self, place: int) -> None:
        """A change was made, a person was asked about one, or nothing has happened yet."""
        start = list(self.starts.values())[place]
        start.restore(self.harbour)
        for other in OTHERS:  # what another life's runners remember is none of this one
            shutil.rmtree(self.harbour.folder / other, ignore_errors=True)
        self.home = start.runner

    @invariant()
    def every_promise_holds(self) -> None:
        self.table.count("lives", steps=1)
        broken = [*self.promises.broken(self.refs()), *self.witness.wrong, *self.witness.breaches]
        assert broken == [], broken

    # --- runners

    @rule(after=HOURS)
    def a_cycle(self, after: int) -> None:
        self.run(timedelta(hours=after), force=True)

    @rule(after=HOURS)
    def a_cycle_if_it_is_due(self, after: int) -> None:
        self.run(timedelta(hours=after), force=False)

    @rule()
    def a_staged_cycle(self) -> None:
        before = self.refs()
        self.run(timedelta(0), force=True, staged=True)
        assert self.refs() == before, "a staged cycle moved a branch"

    @rule(at=st.integers(1, 60), kind=st.sampled_from(["before", "after"]))
    def a_cycle_that_dies(self, at: int, kind: str) -> None:
        with dying(self.harbour, at, kind) as life:
            self.run(timedelta(hours=7), force=True)
        self.table.count("lives", deaths=int(life.over))

    @rule()
    def the_next_runner(self) -> None:
        """Another machine with a clone of its own."""
        self.harbour.runner = "two" if self.harbour.runner == self.home else self.home

    @rule(hours=st.sampled_from([-48, -1, 0, 1, 48]))
    def clocks_are_wrong(self, hours: int) -> None:
        self.harbour.skew = timedelta(hours=hours)

    @rule(kind=st.sampled_from(FAULTS), call=st.sampled_from(CALLS))
    def something_will_fail(self, kind: str, call: tuple[str, str]) -> None:
        self.harbour.fake.fail(kind, call)

    @rule(lag=st.integers(0, 3))
    def lists_are_late(self, lag: int) -> None:
        self.harbour.fake.list_lag = lag

    def run(self, after: timedelta, force: bool, staged: bool = False, idle: bool = False) -> str:
        """A cycle, and its outcome. Where it is `idle`, or left at once, it has not done anything."""
        self.harbour.now += after
        self.harbour.fake.journal.clear()
        self.witness.begins()
        outcome = self._outcome(Request(force=force, staged=staged))
        self.table.count("lives", cycles=1, **{outcome: 1})
        done = deeds(self.harbour.fake.journal)
        assert not (idle or staged or outcome in QUIET) or done == [], (outcome, done)
        return outcome

    def _outcome(self, request: Request) -> str:
        try:
            house = self.harbour.house(staged=request.staged)
            return run_cycle(house.ports, house.charter, request, house.secrets)[0].outcome
        except Trouble:
            return "trouble"

    def refs(self) -> str:
        return git(self.harbour.fake.bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")

    # --- the owners' hand on the wheel

    @rule()
    def a_cycle_after_the_kill_switch(self) -> None:
        with mock.patch.dict(os.environ, {"RALPH_PAUSED": "1"}):
            self.run(timedelta(hours=7), force=True, idle=True)

    @precondition(lambda self: self.has_memory)
    @rule()
    def a_cycle_while_memory_says_paused(self) -> None:
        control.pause(self.harbour.house().store)
        self.run(timedelta(hours=7), force=True, idle=True)
        control.resume(self.harbour.house().store)

    @precondition(lambda self: self.has_memory)
    @rule()
    def a_person_writes_into_memory(self) -> None:
        self.count += 1
        words, memory = f"- the harbour spells it as it likes, {self.count}", self.harbour.memory()
        text = memory.replace("## Do Not Repeat", f"## Do Not Repeat\n\n{words}", 1)
        self.harbour.fake.push("ralph-memory", {"memory/ralph-log.md": f"{text}\n".encode()})
        self.promises.words.append(words)

    @property
    def has_memory(self) -> bool:
        return bool(self.harbour.fake.branch("ralph-memory"))

    @precondition(lambda self: self.has_memory)
    @rule(how=st.sampled_from(["deleted", "garbage", "foreign", "rolled back"]))
    def a_cycle_after_memory_came_to_harm(self, how: str) -> None:
        """It stops before it does anything; then somebody restores what was there."""
        bare = self.harbour.fake.bare
        head = git(bare, "rev-parse", MEMORY)
        HARM[how](self.harbour)
        if git(bare, "for-each-ref", "--format=%(objectname)", MEMORY) != head:
            assert self.run(timedelta(hours=7), force=True, idle=True) in ("trouble", "lost"), how
        git(bare, "update-ref", MEMORY, head)


def _deleted(harbour: Hub) -> None:
    git(harbour.fake.bare, "update-ref", "-d", MEMORY)


def _garbage(harbour: Hub) -> None:
    harbour.fake.push("ralph-memory", {"memory/ralph-log.md": b"---\nschema: [\n"})


def _foreign(harbour: Hub) -> None:
    """More than a person's sections."""
    path = "memory/open.json"
    text = git(harbour.fake.bare, "show", f"ralph-memory:{path}")
    harbour.fake.push("ralph-memory", {path: text.replace('"next_mission": ', '"next_mission": 9', 1).encode()})


def _rolled_back(harbour: Hub) -> None:
    """To the commit before; where there is none, nothing happens."""
    older = git(harbour.fake.bare, "rev-list", "--max-count=2", MEMORY).split()[1:]
    for oid in older:
        git(harbour.fake.bare, "update-ref", MEMORY, oid)


HARM: dict[str, Callable[[Hub], Any]] = {
    "deleted": _deleted,
    "garbage": _garbage,
    "foreign": _foreign,
    "rolled back": _rolled_back,
}
