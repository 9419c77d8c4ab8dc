"""People, runners and accidents in any order, on a (fake) GitHub: after each step the promises are looked at.

A rule is one thing that somebody does. What makes no sense at the moment (there is no pull to be approved) is not
tried. What was done stands in the list of steps that a failure is told with, shrunk to those it takes. Which rules
fired and what became of their cycles is counted: lives in which nothing happens would break no promise either.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import wraps
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ralph_mission.flows import control
from ralph_mission.mission.cycle import Request, run_cycle
from ralph_mission.trouble import Trouble
from tests.crash.dying import dying, dying_after
from tests.crash.past import Snapshot
from tests.crash.witness import Witness, watched
from tests.figures import Table
from tests.helpers import git
from tests.integration.hub import Hub
from tests.stateful.promises import Promises, deeds

MEMORY = "refs/heads/ralph-memory"
FAULTS = ("500", "502_applied", "502_not_applied", "reset_applied", "reset_not_applied", "rate_secondary", "422")
CALLS = (("POST", "/issues"), ("POST", "/pulls"), ("POST", "/issues/*/comments"), ("PUT", "/pulls/*/merge"))
UNHEARD = ("POST /issues", "POST /pulls", "PUT /pulls", "PATCH /issues", "POST /git-receive-pack")
OTHERS = ("two", "thief")
QUIET = ("not_due", "paused", "lost")
HOURS = st.sampled_from([0, 1, 7, 25, 50])
OUTSIDER, MARA = "passer-by", "mara"
PATIENCE = 3  # steps until the schedule brings a cycle, whatever people do
SCHEDULE = "the schedule"
RULES: list[str] = []
"""By name, all of them."""


def does(**drawn: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule that counts how often it fired."""

    def made(function: Callable[..., None]) -> Any:
        RULES.append(function.__name__)

        @wraps(function)
        def counted(self: Life, *given: Any, **named: Any) -> None:
            self.doing = function.__name__
            self.table.count(self.doing, fired=1)
            function(self, *given, **named)

        return rule(**drawn)(counted)

    return made


class Life(RuleBasedStateMachine):
    """One repository's life. The `harbour` is that of the whole search, and every example begins at one of `starts`."""

    harbour: Hub
    starts: Mapping[str, Snapshot]
    table: Table

    def __init__(self) -> None:
        super().__init__()
        self.harbour.fake.list_lag, self.harbour.skew = 0, timedelta(0)
        self.count, self.quiet, self.acted, self.doing = 0, 0, False, ""
        self.seen = ""  # the head of memory that a runner left behind
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
    def a_heartbeat(self) -> None:
        """The schedule brings a cycle; a claim that only another machine can know to be dead brings that one back."""
        self.quiet += 1
        if self.quiet > PATIENCE:
            self.doing = SCHEDULE
            if self.run(timedelta(hours=7), force=True) != "done":
                self.other_runner()
                self.run(timedelta(hours=1), force=True)

    @invariant()
    def every_promise_holds(self) -> None:
        self.table.count("lives", steps=1)
        broken = [*self.promises.broken(self.refs()), *self.witness.wrong, *self.witness.breaches]
        assert broken == [], broken

    # --- runners

    @does(after=HOURS)
    def a_cycle(self, after: int) -> None:
        self.run(timedelta(hours=after), force=True)

    @does(after=HOURS)
    def a_cycle_if_it_is_due(self, after: int) -> None:
        self.run(timedelta(hours=after), force=False)

    @precondition(lambda self: self.acted)
    @does()
    def a_staged_cycle(self) -> None:
        before = self.refs()
        self.run(timedelta(0), force=True, staged=True)
        assert self.refs() == before, "a staged cycle moved a branch"

    @does(at=st.integers(1, 60), kind=st.sampled_from(["before", "after"]))
    def a_cycle_that_dies(self, at: int, kind: str) -> None:
        with dying(self.harbour, at, kind) as life:
            self.run(timedelta(hours=7), force=True)
        self.table.count(self.doing, died=int(life.over))

    @does(what=st.sampled_from(UNHEARD))
    def a_cycle_that_hears_no_answer(self, what: str) -> None:
        """And dies of it: something is done, and nobody knows."""
        with dying_after(self.harbour, what, surely=False) as life:
            self.run(timedelta(hours=7), force=True)
        self.table.count(self.doing, died=int(life.over))

    @does()
    def the_next_runner(self) -> None:
        """Another machine with a clone of its own."""
        self.other_runner()

    def other_runner(self) -> None:
        self.harbour.runner = "two" if self.harbour.runner == self.home else self.home

    @does(hours=st.sampled_from([-48, -1, 0, 1, 48]))
    def clocks_are_wrong(self, hours: int) -> None:
        self.harbour.skew = timedelta(hours=hours)

    @does(kind=st.sampled_from(FAULTS), call=st.sampled_from(CALLS))
    def something_will_fail(self, kind: str, call: tuple[str, str]) -> None:
        self.harbour.fake.fail(kind, call)

    @does(lag=st.integers(0, 3))
    def lists_are_late(self, lag: int) -> None:
        self.harbour.fake.list_lag = lag

    def run(self, after: timedelta, force: bool, staged: bool = False, idle: bool = False) -> str:
        """A cycle, and its outcome. Where it is `idle`, or left at once, it has not done anything."""
        self.quiet, self.acted = 0, not (idle or staged)
        self.harbour.now += after
        self.harbour.fake.journal.clear()
        self.witness.begins()
        self.table.count(self.doing, cycles=1)
        outcome = self._outcome(Request(force=force, staged=staged))
        done = deeds(self.harbour.fake.journal)
        if outcome == "done" and not staged:
            self.seen = git(self.harbour.fake.bare, "rev-parse", MEMORY)
        acted = any("git-receive-pack" not in deed for deed in done)
        self.table.count(self.doing, acted=int(acted), **{outcome.replace(" ", "_"): 1})
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

    @precondition(lambda self: self.acted)
    @does()
    def a_cycle_after_the_kill_switch(self) -> None:
        with mock.patch.dict(os.environ, {"RALPH_PAUSED": "1"}):
            self.run(timedelta(hours=7), force=True, idle=True)

    @precondition(lambda self: self.acted and self.has_memory)
    @does()
    def a_cycle_while_memory_says_paused(self) -> None:
        control.pause(self.harbour.house().store)
        self.run(timedelta(hours=7), force=True, idle=True)
        control.resume(self.harbour.house().store)

    @precondition(lambda self: self.has_memory)
    @does()
    def a_person_writes_into_memory(self) -> None:
        self.count += 1
        words, memory = f"- the harbour spells it as it likes, {self.count}", self.harbour.memory()
        text = memory.replace("## Do Not Repeat", f"## Do Not Repeat\n\n{words}", 1)
        self.harbour.fake.push("ralph-memory", {"memory/ralph-log.md": f"{text}\n".encode()})
        self.promises.words.append(words)

    @property
    def has_memory(self) -> bool:
        return bool(self.harbour.fake.branch("ralph-memory"))

    @precondition(lambda self: self.acted and self.has_memory)
    @does(how=st.sampled_from(["deleted", "garbage", "foreign", "rolled back"]))
    def a_cycle_after_memory_came_to_harm(self, how: str) -> None:
        """It stops before it does anything; then somebody restores what was there."""
        bare = self.harbour.fake.bare
        head = git(bare, "rev-parse", MEMORY)
        if how == "rolled back" and head != self.seen:
            return  # nobody can miss what no runner has seen
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
