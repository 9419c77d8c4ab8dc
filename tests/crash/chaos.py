"""A repository in bad times: people do things, and runners with wrong clocks die, are struck and meet each other.

Everything is drawn by a seed, so that a bad time can be had again. What must hold is looked at after each cycle:

    python -m tests.crash.chaos SEED CYCLES
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.storage.memory.recordings import Recordings
from ralph_mission.errors import UserError
from ralph_mission.mission.model.cycle import Situation
from ralph_mission.mission.model.effects import OpenPull
from ralph_mission.mission.operations import control
from tests.crash.dying import dying
from tests.crash.failing_writes import FailingHub
from tests.crash.interleaving import a_cycle, race
from tests.crash.limit_checks import beyond
from tests.crash.stages import settle
from tests.crash.witness import duplicates, open_state, watched
from tests.fakes.github.faults import KINDS
from tests.fakes.github.refusal import Refusal
from tests.integration.hub import open_hub
from tests.integration.test_life import MISSPELT

CONFIG = """\
owners: [mara, ona]
limits: {dispatches_per_day: 6}
observers:
  commands:
    - {name: check, run: cat bugs.txt, kind: bug, parse: {regex: '^(?P<path>[^:]+):(?P<line>[0-9]+): (?P<message>.+)$'}}
hands: {fixers: [typos]}
"""
WAKES = 6  # as there
FILES = {"README.md": "# Harbour\n\nTides are seperate from waves.\n", "bugs.txt": "src/a.py:1: division by zero\n"}
AT_ONCE = tuple(kind for kind in KINDS if not kind.startswith("timeout"))  # nobody waits here
MACHINES = ("one", "two", "three")
PAUSES = (timedelta(minutes=10), timedelta(hours=1), timedelta(hours=7), timedelta(hours=26))
SKEWS = (timedelta(0),) * 6 + tuple(timedelta(hours=hours) for hours in (-48, -3, 3, 48))


@dataclass
class Chaos:
    """One repository in bad times."""

    hub: FailingHub
    draw: random.Random
    told: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    first_day: int = 0
    pulls: set[OpenPull] = field(default_factory=set)  # whose labels may come in any later cycle

    def live(self, cycles: int) -> None:
        """So many cycles, and what comes between them."""
        self.first_day = self.hub.now.toordinal()
        while self.counted["cycles"] < cycles and not self.wrong:
            self.told.append(f"cycle {self.counted['cycles']}: " + "; ".join(self._day()))
            self._look()

    def _day(self) -> Iterator[str]:
        """Time passes, people do things, and then a cycle has a mishap or none."""
        self.hub.now += self.draw.choice(PAUSES)
        for _ in range(self.draw.randrange(3)):
            yield self._somebody()
        self.hub.runner, self.hub.skew = self.draw.choice(MACHINES), self.draw.choice(SKEWS)
        mishap = self.draw.choices(list(MISHAPS), [weight for _, weight in MISHAPS.values()])[0]
        yield f"{self.hub.runner}, {self.hub.skew}, {mishap}"
        self.counted[mishap] += 1
        self.counted["wrong clocks"] += bool(self.hub.skew)
        with self._run_under_way(), watched(self.hub) as witness:
            witness.pulls = self.pulls
            yield MISHAPS[mishap][0](self)
        self.wrong += witness.wrong

    def _somebody(self) -> str:
        action = self.draw.choice(ACTIONS)
        with suppress(Refusal):  # GitHub lets nobody do that now
            done = action(self)
            self.counted["actions of people"] += done
            return action.__name__ if done else "nobody"
        return f"{action.__name__} is refused"

    @contextmanager
    def _run_under_way(self) -> Iterator[None]:
        """The workflow run of one cycle."""
        number, fake = 100_000 + self.counted["cycles"], self.hub.fake
        fake.workflow_run(number, "in_progress")
        name = {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": str(number), "RUNNER_NAME": self.hub.runner}
        self.hub.actions = {**name, "GITHUB_RUN_ATTEMPT": "1"}
        yield
        fake.workflow_run(number, "completed", "success")

    # --- a cycle

    def cycle(self, mishap: bool = True) -> str:
        """One cycle; who gives up says why in one line, and only where something went wrong."""
        self.counted["cycles"] += 1
        try:
            report, _ = super(FailingHub, self.hub).cycle(timedelta(0), force=self.draw.random() < 0.7)
        except UserError as problem:
            assert mishap and "\n" not in problem.what and problem.next_step, (problem, self.told[-3:])
            self.counted["gave up"] += 1
            return f"gives up: {problem.what}"
        self.counted[report.outcome] += 1
        self.counted["effects"] += len(report.effects)
        if report.outcome == "done":
            self.wrong += self._decided_otherwise(report.cycle_id)
        return f"{report.outcome}, {', '.join(effect.kind for effect in report.effects) or 'no effects'}"

    def _decided_otherwise(self, cycle_id: str) -> tuple[str, ...]:
        """How the same situation is decided now, where that differs."""
        recorded = dict(Recordings(Git.open(self.hub.clone)).load(cycle_id))
        situation, decisions = recorded["situation"], recorded["decisions"]
        assert isinstance(situation, Situation) and isinstance(decisions, tuple)
        self.counted["replayed"] += 1
        return control.differences(situation, decisions, (self.hub.token,))

    def dies(self) -> str:
        """It ends at one of its requests."""
        at, kind = self.draw.randint(1, 50), self.draw.choice(["before", "after"])
        with dying(self.hub, at, kind) as life:
            return self.cycle()
        self.counted["deaths"] += life.over
        return f"died {kind} request {at}"

    def is_struck(self) -> str:
        """One or two of its writes go wrong."""
        self.hub.written.clear()
        self.hub.blows = {self.draw.randint(1, 9): self.draw.choice(AT_ONCE) for _ in range(self.draw.randint(1, 2))}
        told = str(self.hub.blows)
        with self.hub.struck():
            told += f": {self.cycle()}"
        self.hub.blows, self.hub.fake.faults[:] = {}, []
        return told

    def sees_late_lists(self) -> str:
        """What is made is not listed for a while."""
        self.hub.fake.list_lag = self.draw.randint(1, 4)
        said = self.cycle()
        self.hub.fake.list_lag = 0
        return said

    def is_not_alone(self) -> str:
        """Another runner or two are at it as well, and one may be killed."""
        letters, deaths = self.draw.choice(["AB", "ABC"]), self.draw.randrange(2)
        play = partial(a_cycle, force=self.draw.random() < 0.7)
        ran = race(self.hub, letters, self.draw.choice, deaths, play=play)
        self.counted["cycles"] += len(letters)
        self.counted["deaths"] += ran.killed
        return f"{ran.schedule}: {ran.ends}"

    # --- what must hold

    def _look(self) -> None:
        self.wrong += [*duplicates(self.hub), *beyond(self.hub, 2 * WAKES)]
        days = self.hub.now.toordinal() - self.first_day + 3  # clocks are two days fast at most
        if len(self.hub.fake.dispatches) > WAKES * days:
            self.wrong.append(f"{len(self.hub.fake.dispatches)} wakes in {days} days")
        self.hub.fake.journal.clear()
        for key in open_state(self.hub).unknown:
            if self.draw.random() < 0.5:  # a person looks, and says what she saw
                self.counted["settled by people"] += 1
                settle(self.hub, key)


MISHAPS: dict[str, tuple[Callable[[Chaos], str], int]] = {
    "calm cycles": (lambda chaos: chaos.cycle(mishap=False), 6),
    "cycles that may die": (Chaos.dies, 4),
    "cycles with faults": (Chaos.is_struck, 4),
    "cycles with late lists": (Chaos.sees_late_lists, 2),
    "races": (Chaos.is_not_alone, 2),
}


# --- what people do: each says whether there was anything to do it to --------------------------


def _open_pull(chaos: Chaos) -> int:
    found = [t.number for t in chaos.hub.pulls if t.state == "open"]
    return chaos.draw.choice(found) if found else 0


def _issue(chaos: Chaos, state: str = "open") -> int:
    found = [t.number for t in chaos.hub.issues if t.state == state and t.author.is_bot]
    return chaos.draw.choice(found) if found else 0


def approve(chaos: Chaos) -> bool:
    number = _open_pull(chaos)
    return bool(number and chaos.hub.person().review(number, "approved"))


def ask_for_changes(chaos: Chaos) -> bool:
    number = _open_pull(chaos)
    return bool(number and chaos.hub.person("ona").review(number, "changes_requested", "say it otherwise"))


def dismiss(chaos: Chaos) -> bool:
    said = [one for one in chaos.hub.fake.world.reviews.values() if one.state == "CHANGES_REQUESTED"]
    return bool(said and chaos.hub.person().dismiss(said[-1].number, said[-1].id))


def merge(chaos: Chaos) -> bool:
    number = _open_pull(chaos)
    return bool(number and chaos.hub.person().merge(number))


def close_pull(chaos: Chaos) -> bool:
    number = _open_pull(chaos)
    return bool(number and chaos.hub.person().close_pull(number))


def push_to_pull(chaos: Chaos) -> bool:
    number = _open_pull(chaos)
    files = {"src/more.py": f"x = {chaos.draw.random()}\n".encode()}
    return bool(number and chaos.hub.person().push(chaos.hub.head_name(number), files))


def close_issue(chaos: Chaos) -> bool:
    number = _issue(chaos)
    return bool(number and chaos.hub.person().close_issue(number, chaos.draw.choice(["completed", "not_planned"])))


def tidy_up(chaos: Chaos) -> bool:
    """Every slot is free again: only then is it the cap of one new mission in a cycle that cuts."""
    found = [t.number for t in chaos.hub.issues if t.state == "open" and t.author.is_bot]
    for number in found:
        chaos.hub.person().close_issue(number, "completed")
    return bool(found)


def reopen(chaos: Chaos) -> bool:
    closed = [t.number for t in chaos.hub.threads if t.state == "closed" and t.author.is_bot]
    return bool(closed and chaos.hub.person().reopen(chaos.draw.choice(closed)))


def agree(chaos: Chaos) -> bool:
    number = _issue(chaos)
    return bool(number and chaos.hub.person().label(number, ("ralph:approved",)))


def say(chaos: Chaos) -> bool:
    number = _issue(chaos)
    said = chaos.draw.choice(["/ralph approve", "/ralph reject not now", "what is this?"])
    return bool(number and chaos.hub.person().comment(number, said))


def take_labels_off(chaos: Chaos) -> bool:
    number = _issue(chaos)
    labels = chaos.draw.choice([("ralph:escalated",), ("ralph:approved",), ("ralph:parked",)])
    return bool(number and chaos.hub.person().unlabel(number, labels))


def edit_issue(chaos: Chaos) -> bool:
    number = _issue(chaos)
    body = chaos.hub.fake.issue(number).body if number else ""
    return bool(number and chaos.hub.person().edit_issue(number, body=(body or "").replace("e", "E", 1)))


def misspell(chaos: Chaos) -> bool:
    name, word = f"docs/page{chaos.draw.randrange(10_000)}.md", chaos.draw.choice(MISSPELT)
    return bool(chaos.hub.person().push("main", {name: f"# Page\n\nThe {word} of {name}.\n".encode()}))


def break_several_things(chaos: Chaos) -> bool:
    """More than one cycle may ask about: whoever is cut by that cap wakes a successor at once."""
    numbers = [chaos.draw.randrange(10_000) for _ in range(4)]
    lines = "".join(f"src/b{number}.py:{number}: no such thing as {number}\n" for number in numbers)
    return bool(chaos.hub.person().push("main", {"bugs.txt": lines.encode()}))


def mark(chaos: Chaos) -> bool:
    number = chaos.draw.randrange(10_000)
    text = f"# TODO: look at {number}\nx = {number}\n"
    return bool(chaos.hub.person().push("main", {f"src/c{number}.py": text.encode()}))


def teach(chaos: Chaos) -> bool:
    before = len(chaos.hub.learned)
    chaos.hub.learn(f"- Lesson {before}: {chaos.draw.random()}.")
    return len(chaos.hub.learned) > before


ACTIONS = (
    approve, approve, ask_for_changes, dismiss, merge, close_pull, push_to_pull, close_issue, tidy_up, tidy_up, reopen,
    agree, say, take_labels_off, edit_issue, misspell, misspell, break_several_things, break_several_things, mark,
    teach,
)  # fmt: skip  # a list to read


@contextmanager
def bad_times(folder: Path, seed: int) -> Iterator[Chaos]:
    """A repository in which nothing has happened yet."""
    with open_hub(folder, dict(FILES), CONFIG) as hub:
        hub.fake.validate = False
        yield Chaos(FailingHub.of(hub, {}), random.Random(seed))


def main(seed: str, cycles: str) -> None:
    """Show bad times day by day."""
    with tempfile.TemporaryDirectory() as folder, bad_times(Path(folder), int(seed)) as chaos:
        try:
            chaos.live(int(cycles))
        finally:
            print(*chaos.told, dict(chaos.counted), *chaos.wrong, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
