"""One case of the enumeration: a stage, a kind of fault, a call. It is struck, goes on to its end, and is compared."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any

from ralph_mission.errors import Lost, UserError
from tests.crash import recoveries, setups
from tests.crash.calls import Call, calls, moves
from tests.crash.dying import dying
from tests.crash.ends import answers, differences, lost, portrait, posts
from tests.crash.fault_kinds import ELSEWHERE, KILLS, KINDS, TIMEOUT
from tests.crash.faults import LATE, patience
from tests.crash.history import Audit, audit
from tests.crash.limit_checks import beyond
from tests.crash.recoveries import Log
from tests.crash.runners import two_wake
from tests.crash.sameness import digest
from tests.crash.snapshots import Snapshot
from tests.crash.stages import EVERY, Rest, Stage, come_to_rest, staged
from tests.crash.witness import Witness, duplicates, watched
from tests.integration.hub import Hub

SEED = int(os.environ.get("CRASH_SEED", "0"))
"""Chooses what stands for what is like it."""
ALL = {**KINDS, **KILLS}
LEFT_TO_A_PERSON = frozenset(
    "threads comments labels missions active completed open default measured counted posts".split()
)


@dataclass(frozen=True)
class Case:
    """`at` is the number of a call of the stage, undisturbed."""

    stage: str
    kind: str
    at: int

    @property
    def command(self) -> str:
        """What replays it alone."""
        return f'.venv/bin/python -m tests.crash --stage "{self.stage}" --kind {self.kind} --at {self.at}'


@dataclass
class End:
    """What a world came to, and what was seen and heard on the way."""

    rest: Rest
    found: dict[str, Any]
    twice: list[str]
    wrong: list[str]
    breaches: list[str]
    log: Log


@dataclass
class Scene:
    """A stage that was played undisturbed once: its calls and its end; `ends` are those that were seen, by world."""

    hub: Hub
    name: str
    start: Snapshot
    calls: list[Call]
    expected: dict[str, Any]
    ends: dict[str, End] = field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        return EVERY[self.name]

    def cases(self, kinds: Iterable[str]) -> list[Case]:
        """All of these kinds. Where one runner waits for another, nobody can tell that from no answer, and each has a
        machine of its own already."""
        fitting = [k for k in kinds if ALL[k].of not in (TIMEOUT, ELSEWHERE) or self.stage.act is not two_wake]
        return [Case(self.name, kind, call.at) for kind in fitting for call in self.calls if ALL[kind].at(call)]

    def representatives(self, kinds: Iterable[str], draw: Random) -> list[Case]:
        """One for each of these kinds, sort of call and phase of the transaction: which is left to chance."""
        cases, chosen = self.cases(kinds), dict[tuple[str, ...], Case]()
        for case in draw.sample(cases, len(cases)):
            chosen.setdefault((case.kind, *self.calls[case.at - 1].sort), case)
        return list(chosen.values())


@contextmanager
def scene(folder: Path, name: str) -> Iterator[Scene]:
    """Play it undisturbed, and see that it comes to what was wanted of it."""
    with staged(folder, name) as hub, patience(LATE):
        start, stage = Snapshot.of(hub, "start"), EVERY[name]
        with watched(hub) as witness, dying(hub) as life, moves(hub, lambda: len(life.requests)) as moved:
            attempt(partial(stage.act, hub))
        rest = brought_to_rest(hub, stage)
        assert (*seen(hub, stage, witness), rest.doubts, at_rest(stage, rest)) == ([], [], (), True), rest
        stage.expect(hub)
        yield Scene(hub, name, start, calls(life.requests, moved), portrait(hub))


def attempt(act: Callable[[], object]) -> object:
    """What comes of it; None where it gave up. Anything but a report or one line fails the test."""
    try:
        return act()
    except Lost:
        return None
    except UserError as problem:
        assert "\n" not in problem.what and problem.next_step
        return None


def brought_to_rest(hub: Hub, stage: Stage) -> Rest:
    stage.meanwhile(hub)
    return come_to_rest(hub, stage.meanwhile, **stage.request)


def at_rest(stage: Stage, rest: Rest) -> bool:
    """Whether nothing goes on any more; where memory is damaged, because it refuses to."""
    return rest.halted if stage.halts else rest.converged


def seen(hub: Hub, stage: Stage, witness: Witness) -> tuple[list[str], list[str]]:
    """What should not have been, and which caps were passed: by its requests, all of its memory, and what stands there.

    Memory that others took away or damaged, for which a stage halts, has no history to go by.
    """
    memory = Audit() if stage.halts else audit(hub.fake.bare)
    return [*witness.wrong, *memory.wrong], [*witness.breaches, *memory.breaches, *beyond(hub)]


@dataclass(frozen=True)
class Struck:
    """A case, what it came to, and what of that is not as it should be."""

    case: Case
    call: Call
    scene: Scene
    hit: bool
    end: End
    again: bool

    @cached_property
    def absent(self) -> set[str]:
        """What is not there, and no doubt of which a person was asked."""
        return set(lost(self.scene.expected, self.end.found, (*self.end.rest.doubts, *self.end.rest.posts)))

    @property
    def missing(self) -> list[str]:
        """What of that nobody was told by its own key."""
        return sorted(self.absent - self._told)

    @property
    def left(self) -> list[str]:
        """What of that is a person's: each was said to have been refused, or to be in doubt."""
        return sorted(self.absent & self._told)

    @property
    def _told(self) -> set[str]:
        """What a person was told of: what was refused, and what could only have followed it, which is to announce a
        merge, and to answer her who closes the pull."""
        log, expected, threads = self.end.log, self.scene.expected, self.end.found["threads"]
        merged = any(merged for *_, merged in threads.values())
        opened = any(name.startswith("pull-") for name in threads)
        closed = self.scene.stage.meanwhile is setups.closes_pulls
        announced = posts(expected) if log.never("merge_pull") and not merged else set()
        answered = answers(expected) if log.never("open_pull") and closed and not opened else set()
        return log.refused | announced | answered

    @property
    def converged(self) -> bool:
        return at_rest(self.scene.stage, self.end.rest)

    @cached_property
    def wrong(self) -> list[str]:
        """Everything, in words."""
        end, differ = self.end, []
        for line in differences(self.scene.expected, end.found, end.rest.doubts, late=self._late):
            differ += [line] if line.partition(":")[0] not in self._left_out else []
        found = {
            "it was not struck": not self.hit,
            f"it did not come to rest: {end.rest}": not self.converged,
            f"nobody was told of {end.rest.untold}": end.rest.untold,
            f"in doubt, and nobody died: {end.rest.doubts}": self.case.kind.startswith("late") and end.rest.doubts,
            f"twice: {end.twice}": end.twice,
            f"lost: {self.missing}": self.missing,
            f"beyond a cap: {end.breaches}": end.breaches,
            f"seen to be wrong: {end.wrong}": end.wrong,
            f"it ended otherwise: {differ}": differ,
        }
        return [words for words, so in found.items() if so]

    @property
    def _late(self) -> bool:
        """Whether cycles may have other numbers: what comes after a report does, and what a person does in between.

        So does what comes after a claim that was made to pay for sessions.
        """
        dies, stage = self.case.kind.startswith(("crash", "kill", "late", "elsewhere")), self.scene.stage
        return not dies or stage.meanwhile is not setups.nothing or stage.sessions

    @property
    def _left_out(self) -> frozenset[str]:
        """What may differ for good: a refused label of a pull, a post that was refused or is in doubt (of those a
        person was told), and what a refusal for want of rights leaves to a person."""
        kind, request = self.case.kind, self.call.request
        if kind == "post-403" or self.end.rest.posts:
            return frozenset({"posts", "comments", "completed"})
        if kind == "cas-stranger":
            return LEFT_TO_A_PERSON | {"branches", "failures"}
        if self.scene.stage.meanwhile is setups.closes_pulls:
            return self._refused | {"threads", "labels"}  # she may have closed it before it had its label
        if self.scene.stage.act is two_wake:
            return self._refused | {"branches"}  # what the other machine owed is lost with it: a branch that is over
        if request.below.endswith("/labels"):
            # the label of a pull is no action of its own, that of a text that was published is one
            action = self._refused if self.scene.stage.networks else frozenset()
            return action | (frozenset({"threads", "labels"}) if self._late else frozenset())
        return self._refused

    @property
    def _refused(self) -> frozenset[str]:
        """What a refusal for want of rights leaves to a person, who has to be told."""
        kind, request = self.case.kind, self.call.request
        if not self.end.log.told:
            return frozenset()
        if kind in ("401", "403") and request.transport in ("rest", "graphql"):
            # the branch of a pull request that could not be opened waits for it, that of one that could not be merged
            kept = any(self.end.log.never(effect) for effect in ("open_pull", "merge_pull"))
            return LEFT_TO_A_PERSON | ({"branches"} if kept else frozenset())
        told = kind.removeprefix("read-")  # a push begins with a read
        if told in ("401", "403", "404", "rate-primary", "rate-secondary") and request.transport == "git":
            return LEFT_TO_A_PERSON | {"branches"}  # git tells 403, which GitHub says of what a token may not do
        return frozenset()

    @property
    def figures(self) -> dict[str, int]:
        """As they are counted."""
        doubts = set(self.end.rest.doubts)
        return {
            "cases": 1,
            "duplicates": len(self.end.twice),
            "lost": len(self.missing),
            "left_to_a_person": len(self.left),
            "cap_breaches": len(self.end.breaches),
            "not_converged": int(not self.converged),
            "unknown": len(doubts),
            "same_world": int(self.again),
        }


def strike(scene: Scene, case: Case) -> Struck:
    """Play it with that fault, go on undisturbed to the end, look."""
    hub, stage, call, kind = scene.hub, scene.stage, scene.calls[case.at - 1], ALL[case.kind]
    scene.start.restore(hub)
    with recoveries.kept(hub) as log, watched(hub) as witness:
        with kind.strike(hub, call) as found:
            if not kind.instead:
                attempt(partial(stage.act, hub))
        world = digest(hub)
        known = scene.ends.get(world)
        rest = known.rest if known else brought_to_rest(hub, stage)
    hub.fake.list_lag = 0
    log.taken.update({recoveries.SETTLED: len(rest.doubts)} if rest.doubts and not known else {})
    if known:
        over = [*witness.breaches, *beyond(hub), *known.breaches]  # of requests, no two worlds keep the same
        end = End(rest, known.found, known.twice, [*witness.wrong, *known.wrong], over, merged(log, known.log))
    else:
        end = End(rest, portrait(hub), duplicates(hub), *seen(hub, stage, witness), log)
        scene.ends[world] = end
    return Struck(case, call, scene, found.hit, end, known is not None)


def merged(log: Log, known: Log) -> Log:
    """What was heard until the world was one that was known, and what was heard from then on. Counted once only."""
    return Log(Counter(log.taken), [*log.reports, *known.reports], [*log.problems, *known.problems])
