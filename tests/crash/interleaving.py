"""Several runners at once, one step at a time: a schedule says who goes next, so that any race can be had again.

A step is what a runner does up to its next effect: a write to the forge, a push, or what is said to a network. A
schedule is a word: in `ABbA` runner A goes on, then B, then B is killed before its next effect, then A goes on. Each
runner is a workflow run with a clone of its own; what it does is a cycle, and for the letter P `ralph publish`. To see
a race again, step by step:

    python -m tests.crash.interleaving 'an approved pull is merged' AABBAA
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

from ralph_mission.adapters.forges.github.limits import GitHubRequester
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.http.client import HttpSession
from ralph_mission.adapters.publishers import networks
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.publishing import publish_now
from ralph_mission.mission.transaction import TransactionContext
from tests.crash import expected, setups
from tests.crash.dying import WAYS_OUT, Died
from tests.crash.stages import ASKED, EVERY, THREE, Stage, staged
from tests.crash.witness import open_state
from tests.integration.dying import is_local_git
from tests.integration.hub import Hub

AT_WORK = threading.local()  # the runner whose thread this is
NUMBERS = count(100)  # of workflow runs
Pick = Callable[[list[str]], str]  # one of what is offered, never of nothing
Play = Callable[["Runner"], tuple[str, int]]  # what one does: its outcome, and how many effects it had


@dataclass
class Runner:
    """One workflow run in a thread of its own, which waits before each effect until it is told to go on.

    `every`: before each request of its main thread, reading ones too.
    """

    letter: str
    hub: Hub
    play: Play
    every: bool = False
    started: bool = False
    over: bool = False
    killed: bool = False
    asleep: bool = False
    outcome: str = ""
    effects: int = 0
    next: str = "its beginning"
    raised: list[BaseException] = field(default_factory=list)
    told: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    held: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def begins(self) -> None:
        """In its own thread: from now on it is held. What came before was reading."""
        AT_WORK.runner = self

    def go_on(self) -> None:
        """Let it do what it waits for and all that follows, up to its next effect or its end."""
        if not self.started:
            self.started = True
            threading.Thread(target=self._run, name=f"runner {self.letter}", daemon=True).start()
        else:
            self.told.release()
        self.held.acquire()
        for error in self.raised:
            raise error

    def kill(self) -> None:
        """End it where it is, and tell the forge that its run is over."""
        self.killed = True
        self.go_on()
        self.hub.fake.workflow_run(int(self.hub.actions["GITHUB_RUN_ID"]), "completed", "failure")

    def sleep(self, seconds: float) -> None:
        """In its own thread: it was kept waiting, and looks again later."""
        self.asleep = True
        self.coming("another look", effect=True)
        self.asleep = False

    def coming(self, what: str, effect: bool) -> None:
        """In its own thread: something is about to leave this machine."""
        if not self.killed and (effect or self.every):
            self.next = what
            self.held.release()
            self.told.acquire()
        if self.killed:
            raise Died

    def _run(self) -> None:
        try:
            with suppress(Died):
                self.outcome, self.effects = self.play(self)
        except BaseException as error:
            self.raised.append(error)
        self.over = True
        self.held.release()


def a_cycle(runner: Runner, force: bool = False) -> tuple[str, int]:
    """One cycle: its outcome, and how many effects it had."""
    house = runner.hub.house()
    runner.begins()
    report, _ = run_cycle(house.ports, house.settings, CycleRequest(force=force), house.secrets)
    return report.outcome, len(report.effects)


PUBLISHER = "P"  # the letter of a runner that does no cycle


def a_publishing(runner: Runner) -> tuple[str, int]:
    """`ralph publish` of the first issue there is: its outcome, and how many networks answered."""
    number = runner.hub.issues[0].number

    def opened() -> TransactionContext:
        AT_WORK.runner = None  # as before a cycle: it only reads, with the environment in its hands
        house = runner.hub.house()
        runner.begins()
        return TransactionContext(house.ports, house.settings, house.secrets)

    report = publish_now.publish_once(publish_now.PublishSetup(opened, runner.sleep, _unheard), number)
    return report.outcome, len(report.receipts)


def _unheard(text: str) -> None:
    """What a person at that machine would read."""


def by_letter(runner: Runner) -> tuple[str, int]:
    """What its letter stands for."""
    return a_publishing(runner) if runner.letter == PUBLISHER else a_cycle(runner)


@contextmanager
def scheduled() -> Iterator[None]:
    """What leaves a runner's machine passes its scheduler while this lasts."""
    with ExitStack() as stack:
        for owner, name in WAYS_OUT:
            stack.enter_context(mock.patch.object(owner, name, _asking(owner, name)))
        stack.enter_context(mock.patch.object(networks, "HttpSession", PostingSession))
        yield


def _asking(owner: type, name: str) -> Callable[..., Any]:
    original = getattr(owner, name)

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        runner = getattr(AT_WORK, "runner", None)  # observers read in threads of their own
        if runner and not is_local_git(self, arguments):
            what = " ".join(str(word) for word in arguments[:2] if isinstance(word, str))
            runner.coming(what, _is_effect(owner, arguments))
        return original(self, *arguments, **options)

    return call


class PostingSession(HttpSession):
    """A session for posts: its requests pass their runner's scheduler."""

    request = _asking(HttpSession, "request")


def _is_effect(owner: type, arguments: tuple[Any, ...]) -> bool:
    if owner is Git:
        return arguments[0] == "push"
    if owner is HttpSession:
        return arguments[0] != "GET"
    if owner is GitHubRequester and arguments[1].endswith("/graphql"):
        return "mutation" in str(arguments[2])
    return owner is GitHubRequester and arguments[0] != "GET"


# --- where races begin -------------------------------------------------------------------


def two_missions(hub: Hub) -> None:
    hub.cycle()
    hub.cycle()


LAST_SLOT = "one slot is left, and three are wanted"
TEXTS = "an approved text goes to two networks"
MORE = {
    LAST_SLOT: Stage("two runners waking together", expected.three_missions, two_missions, setups.FIVE, THREE),
    TEXTS: Stage(
        "content approved, two concurrency groups",
        expected.published_on_two,
        setups.content_approved,
        {"a.txt": "fine\n"},
        ASKED.replace(" telegram: {},", ""),
        networks=True,
        news=True,
    ),
}


@contextmanager
def begun(folder: Path, name: str) -> Iterator[Hub]:
    """As `staged`, with more stages."""
    with mock.patch.dict(EVERY, MORE), staged(folder, name) as hub:
        yield hub


# --- races -------------------------------------------------------------------------------


@dataclass
class Race:
    """Runners, the schedule that they took, and what could have been chosen at each of its places."""

    runners: dict[str, Runner]
    schedule: str = ""
    offered: list[list[str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    @property
    def ends(self) -> list[tuple[str, int]]:
        """Outcome and number of effects of each that lived."""
        return [(runner.outcome, runner.effects) for runner in self.runners.values() if runner.over and runner.outcome]

    @property
    def killed(self) -> bool:
        """Whether somebody was."""
        return any(runner.killed for runner in self.runners.values())

    def interrupted(self, at: int, letter: str) -> int:
        """How often somebody who could go on was kept waiting, if at that place it had been this letter's turn."""
        turns = zip(self.schedule[:at], self.schedule[1:at] + letter, self.offered[1:], strict=False)
        return sum(before != after.upper() and before in offered for before, after, offered in turns)

    def commutes(self, at: int, letter: str) -> bool:
        """Whether this letter's turn at that place would have changed nothing: a lost push, before a call to the forge.

        It was pushed later, was too late there, and was the last that its runner did.
        """
        if self.killed or letter not in self.runners or self.runners[letter].outcome != "lost":
            return False
        last = self.schedule.rindex(letter)
        pushes = " push" in self.steps[last] and letter not in self.schedule[at:last]
        return pushes and not any(word in self.steps[at] for word in (" push", "its beginning"))

    def choices(self, deaths: int) -> list[str]:
        """Who may go on, or be killed. Cycles that have not begun are all alike, so only the first may."""
        alive = [runner for runner in self.runners.values() if not runner.over]
        waiting = [runner.letter for runner in self._awake(alive) if runner.started]
        fresh = [runner.letter for runner in alive if not runner.started and runner.letter != PUBLISHER][:1]
        fresh += [runner.letter for runner in alive if not runner.started and runner.letter == PUBLISHER]
        dead = sum(letter.islower() for letter in self.schedule)
        return [*waiting, *fresh, *(letter.lower() for letter in waiting if dead < deaths)]

    def _awake(self, alive: list[Runner]) -> list[Runner]:
        """Those whose next step may change anything: a look at memory that another one holds puts it to sleep again."""
        awake = [runner for runner in alive if not runner.asleep]
        held = awake and not self.killed and len(awake) < len(alive) and open_state(awake[0].hub).claim
        return awake if held else alive

    def take(self, letter: str) -> None:
        """One step."""
        runner = self.runners[letter.upper()]
        self.steps.append(f"{letter}: {'killed before ' if letter.islower() else ''}{runner.next}")
        self.schedule += letter
        runner.kill() if letter.islower() else runner.go_on()


def race(hub: Hub, letters: str, pick: Pick, deaths: int = 0, every: bool = False, play: Play = by_letter) -> Race:
    """Run it to its end."""
    running = Race({letter: Runner(letter, as_run(hub, letter), play, every) for letter in letters})
    with scheduled():
        while choices := running.choices(deaths):
            running.offered.append(choices)
            running.take(pick(choices))
    for runner in running.runners.values():
        shutil.rmtree(runner.hub.folder / runner.hub.runner)
    return running


def as_run(hub: Hub, letter: str) -> Hub:
    """Another machine, with a workflow run of its own under way."""
    number = next(NUMBERS)
    hub.fake.workflow_run(number, "in_progress")
    run = {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": str(number), "GITHUB_RUN_ATTEMPT": "1"}
    told = hub.actions | run | {"RUNNER_NAME": f"runner-{letter}"}
    other = replace(hub, runner=f"{letter}-{number}", actions=told)
    assert other.clone.exists()
    return other


def following(schedule: str) -> Pick:
    """Take the schedule letter by letter; after it everyone goes on as far as it can."""
    letters, last = iter(schedule), ""

    def pick(choices: list[str]) -> str:
        nonlocal last
        last = next(letters, last if last in choices else choices[0])
        assert last in choices, f"{last} cannot go on in {schedule}, only {choices}"
        return last

    return pick


def every_schedule(run: Callable[[Pick], Race], interruptions: float = math.inf) -> Iterator[Race]:
    """All that differ, depth first: each is run from the beginning, for nothing can be undone.

    Of orders that differ only in when a runner whose push is too late finds that out, one is run: between two pushes
    of memory that push meets the same branch. `interruptions`: how often, at most, a runner that could go on is kept
    waiting by another one.
    """
    beginnings = [""]
    while beginnings:
        beginning = beginnings.pop()
        taken = run(following(beginning))
        yield taken
        for at in range(len(beginning), len(taken.schedule)):
            others = (one for one in taken.offered[at] if one != taken.schedule[at] and not taken.commutes(at, one))
            few = (other for other in others if taken.interrupted(at, other) <= interruptions)
            beginnings += [taken.schedule[:at] + other for other in few]


def replay(name: str, schedule: str, every: bool = False) -> str:
    """The command that shows a race again."""
    return f".venv/bin/python -m tests.crash.interleaving '{name}' {schedule}{' every-request' if every else ''}"


def main(name: str, schedule: str, step: str = "") -> None:
    """Show a race of a stage step by step."""
    with tempfile.TemporaryDirectory() as folder, begun(Path(folder), name) as hub:
        letters = "".join(sorted({letter.upper() for letter in schedule}))
        shown = race(hub, letters, following(schedule), deaths=len(schedule), every=bool(step))
        print(*shown.steps, *(f"{outcome}, {effects} effects" for outcome, effects in shown.ends), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
