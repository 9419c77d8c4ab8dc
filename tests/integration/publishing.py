"""A repository whose numbers move, three scripted networks, and an owner's words for what is seen."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from ralph_mission.app.cycle import App
from ralph_mission.errors import UserError
from ralph_mission.mission.model.effects import Publish, Receipt
from ralph_mission.mission.model.forge import Measured, Post, Wording
from ralph_mission.mission.model.ledger import OpenState
from ralph_mission.mission.model.mission import Finding, Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from tests.helpers import make_repo, with_parts
from tests.integration.world import CALM, TYPOS, World
from tests.mission.build import make_failure

NETWORKS = ("twitter", "telegram", "discord")


def spike(day: str = "2026-05-04", kind: str = "anomaly", name: str = "Osmosis") -> Signal:
    """A watched value that moved."""
    title = f"{name}: TVL +45% in a week"
    return Signal("numbers", kind, title, ("tvl", name), day, facts=(("name", name), ("change", 45.0)))


@dataclass
class Numbers:
    """Sees what it is told to, and what networks told of our posts."""

    signals: tuple[Signal, ...] = (spike(),)
    measured: tuple[Measured, ...] = ()
    complete: bool = True
    name: str = "numbers"

    def observe(self, context: ObservationContext) -> Observation:
        return Observation(self.name, "ok", self.signals, complete=self.complete, measured=self.measured)


@dataclass
class Networks:
    """A press whose networks keep what was delivered. `answers`, in order for each network: a receipt's status and
    detail before anything is delivered, or an error after it was; anything nobody worded is refused."""

    kinds: frozenset[str] = frozenset({"anomaly", "completed"})
    networks: tuple[str, ...] = NETWORKS
    delivered: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in NETWORKS})
    answers: dict[str, deque[tuple[str, str] | Exception]] = field(
        default_factory=lambda: {name: deque() for name in NETWORKS}
    )

    wait: float = 0.0  # seconds that they ask for when they fail

    def fails(self, network: str, *answers: tuple[str, str] | Exception) -> None:
        self.answers[network].extend(answers)

    def word(self, finding: Finding) -> Wording | None:
        if finding.kind not in self.kinds:
            return None
        told = ", ".join(f"{name} {value}" for name, value in finding.signal.facts)
        posts = tuple(self.measure(name, (f"{finding.kind}: {told}",)) for name in self.networks)
        return Wording(finding.fingerprint, finding.signal.occurrence, posts, ready=True)

    def measure(self, network: str, parts: tuple[str, ...]) -> Post:
        lengths = tuple(map(len, parts))
        if network not in self.networks or max(lengths) > 280:
            raise UserError(f"{network} takes no such post", "shorten it")
        return Post(network, tuple(parts), lengths, 280)

    def find(self, effect: Publish) -> Receipt | None:
        return None

    def stage(self, effect: Publish) -> Receipt:
        return Receipt(effect.key, "staged", url=f"staged/{effect.network}.md")

    def publish(self, effect: Publish) -> Receipt:
        assert effect.post == self.measure(effect.network, effect.post.parts), "nobody worded this"
        answer = self.answers[effect.network].popleft() if self.answers[effect.network] else None
        if isinstance(answer, tuple):
            return replace(make_failure(effect.key, answer[1]), status=answer[0], wait=self.wait)  # type: ignore[arg-type]  # a status
        self.delivered[effect.network].append(effect.post.parts[0])
        if answer:
            raise answer
        number = len(self.delivered[effect.network])
        return Receipt(effect.key, "done", url=f"https://{effect.network}.test/{number}", detail=f"id={number}")


@dataclass
class Publishing(World):
    """The world with networks, and an owner who wants merged spelling fixes announced."""

    publisher: Networks = field(default_factory=Networks)
    numbers: Numbers = field(default_factory=Numbers)
    announce: tuple[str, ...] = ()
    quiet: bool = False
    pause: timedelta = timedelta(0)
    per_day: int = 10

    def house(self, staged: bool = False) -> App:
        made = super().house(staged)
        observers = (self.numbers, *(o for o in made.ports.observers if self.announce))
        limits = replace(made.settings.limits, posts_per_day=self.per_day)
        settings = replace(made.settings, announce=self.announce, post_pause=self.pause, limits=limits)
        return with_parts(
            made, settings=settings, ports=replace(made.ports, publisher=self.publisher, observers=observers)
        )

    @property
    def state(self) -> OpenState:
        past = self.house().store.recall()
        assert past is not None
        return past.state

    @property
    def counts(self) -> dict[str, int]:
        """How much each network was told."""
        return {name: len(told) for name, told in self.publisher.delivered.items()}


def publishing(path: Path, now: datetime | None = None, **changes: object) -> Publishing:
    """A new one; misspellings only where merged fixes are to be announced."""
    files: dict[str, str | bytes] = dict(TYPOS) if changes.get("announce") else {"README.md": "# Harbour\n"}
    made = Publishing(make_repo(path, {**files, "ralph.yml": CALM}), **changes)  # type: ignore[arg-type]  # its own fields
    made.now = now or made.now
    return made
