"""Texts that wait for a person, on both forges: real flow, memory and forge; networks of the test's, which keep what
they were told and refuse what they do not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from ralph_mission.app.cycle import App
from ralph_mission.errors import UserError
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleReport, CycleSummary
from ralph_mission.mission.model.effects import Publish, Receipt
from ralph_mission.mission.model.forge import Post, Wording
from ralph_mission.mission.model.mission import Finding, Observation, Signal
from ralph_mission.mission.model.proposal import ObservationContext
from ralph_mission.mission.publishing.publish_now import PublishReport, PublishSetup, publish_once
from ralph_mission.mission.transaction import TransactionContext
from tests.helpers import with_parts
from tests.integration.at_work import Place
from tests.integration.world import begun_once
from tests.mission.build import make_failure

LIMITS = {"twitter": 280, "telegram": 4096, "outbox": 10_000}
TEXT = "The tide table holds 12 harbours now."


@dataclass
class Networks:
    """`Press`: what was said, by network; `faults`: what the next deliveries come to (after, or a receipt's words)."""

    texts: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"twitter": (TEXT,), "telegram": (TEXT,)})
    said: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(self.texts)

    def word(self, finding: Finding) -> Wording | None:
        if finding.kind != "content":
            return None
        posts = tuple(self.measure(network, parts) for network, parts in self.texts.items())
        return Wording(finding.fingerprint, finding.signal.occurrence, posts)

    def measure(self, network: str, parts: Sequence[str]) -> Post:
        limit, lengths = LIMITS[network], tuple(map(len, parts))
        if max(lengths) > limit:
            raise UserError(f"{max(lengths)} of {limit} is too long", "shorten it")
        return Post(network, tuple(parts), lengths, limit)

    def find(self, effect: Publish) -> Receipt | None:
        return None

    def stage(self, effect: Publish) -> Receipt:
        return Receipt(effect.key, "staged")

    def publish(self, effect: Publish) -> Receipt:
        assert effect.network in self.texts, effect
        fault = self.faults.get(effect.network, [])
        next_ = fault.pop(0) if fault else ""
        if next_.startswith(("failed ", "unknown ")):
            status, _, detail = next_.partition(" ")
            return replace(make_failure(effect.key, detail), status=status)  # type: ignore[arg-type]  # one of its states
        self.said.append((effect.network, effect.post.parts))
        if next_ == "after":
            raise TimeoutError("no answer")
        return Receipt(effect.key, "done", url=f"https://{effect.network}.example.org/{len(self.said)}")

    def got(self, network: str) -> list[tuple[str, ...]]:
        """What a network was told."""
        return [parts for name, parts in self.said if name == network]


class News:
    """An observer that has seen one piece of content."""

    name = "news"

    def observe(self, context: ObservationContext) -> Observation:
        return Observation("news", "ok", (Signal("news", "content", "A longer tide table", ("tide",), confidence=1.0),))


def with_networks(
    place: Place, networks: Networks, settings: Callable[[Any], Any] = lambda settings: settings
) -> Place:
    """The place, with these networks and that observer."""
    plain = place.house

    def house() -> App:
        made = plain()
        return with_parts(
            made, settings=settings(made.settings), ports=replace(made.ports, publisher=networks, observers=(News(),))
        )

    return replace(place, house=house)


def cycle(place: Place, hours: float = 7) -> tuple[CycleReport, CycleSummary]:
    """One cycle, some time later."""
    later(place, hours)
    house = place.house()
    return run_cycle(house.ports, house.settings, CycleRequest(force=True), house.secrets)


def later(place: Place, hours: float) -> None:
    clock: Any = place.hub or place.local
    clock.now += timedelta(hours=hours)


def publish(place: Place, number: int = 1) -> PublishReport:
    """`ralph publish --issue NUMBER`."""

    def opened() -> TransactionContext:
        house = place.house()
        return TransactionContext(house.ports, house.settings, house.secrets)

    later(place, 0.1)
    return publish_once(PublishSetup(opened, place.slept.append, place.said.append), number)


def edit(place: Place, old: str, new: str, number: int = 1) -> None:
    """A person with write access changes the issue's text."""
    later(place, 0.1)
    if place.hub:
        body = place.issue(number).body
        assert old in body
        place.person().edit_issue(number, body=body.replace(old, new))
        return
    assert place.local is not None
    file = place.local.repo / f".ralph/forge/issues/{number:04}.md"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def find_proposal(place: Place) -> int:
    """The number of the issue that the first cycle opens."""
    begun_once(place.local, "asked", lambda: cycle(place))
    (issue,) = [one for one in place.house().forge.issues("open") if "content:review" in one.labels]
    return issue.number


def status(place: Place, number: int = 1) -> str:
    """Where its mission stands; "" once it is over."""
    return next((str(one.status) for one in place.state().missions if one.issue == number), "")


def blocks(body: str) -> list[str]:
    """The fenced blocks of a body, naively."""
    return re.findall(r"^```text\n(.*?)\n```$", body, re.MULTILINE | re.DOTALL)
