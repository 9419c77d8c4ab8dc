"""Our markers on the forge, read back: what was done, for which mission, about which findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ralph_mission.mission.belonging import facts_in
from ralph_mission.mission.effects import MARKER, Receipt
from ralph_mission.mission.kinds import lookup
from ralph_mission.mission.model import Action, Actor, Issue, Pull, Tier
from ralph_mission.mission.ports import Forge


@dataclass(frozen=True, slots=True)
class Trace:
    """One of our markers on the forge: the key, its facts, and what carries it."""

    key: str
    facts: Mapping[str, str]
    thing: Issue | Pull
    remark: int = 0

    @property
    def mission(self) -> int:
        """The mission it belongs to, 0 for none."""
        number = self.facts.get("mission", "")
        return int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0

    @property
    def members(self) -> tuple[str, ...]:
        """The findings it is about."""
        return tuple(part for part in self.facts.get("finding", "").split(",") if re.fullmatch("[0-9a-f]{8,64}", part))

    @property
    def kind(self) -> str:
        """The finding kind, "" when the marker does not say."""
        return self.facts.get("kind", "")

    @property
    def action(self) -> Action:
        """What was done with it."""
        if not self.mission:
            return Action.MONITOR
        return Action.OPEN_FIX if lookup(self.kind).tier is Tier.LOW else Action.OPEN_PROPOSAL

    @property
    def receipt(self) -> Receipt:
        """What the effect that made it would have been told."""
        sha = self.thing.head_sha if isinstance(self.thing, Pull) else ""
        return Receipt(self.key, "adopted", self.remark or self.thing.number, self.thing.url, sha)


def traces_on(forge: Forge) -> tuple[Trace, ...]:
    """Every marker of our own account on the forge, closed things included."""
    us = forge.identity()
    issues = [forge.issue(issue.number) for issue in forge.issues("all")]
    pulls = [forge.pull(pull.number) for pull in forge.pulls("all")]
    things: list[Issue | Pull] = [*issues, *pulls]
    return tuple(trace for thing in things for trace in _marked(thing, us))


def _marked(thing: Issue | Pull, us: Actor) -> Iterable[Trace]:
    texts = [(thing.author, 0, thing.body), *((remark.author, remark.id, remark.body) for remark in thing.remarks)]
    for author, remark, body in texts:
        # Our marker is the last line; one further up may be a quotation.
        found = MARKER.fullmatch(body.rstrip().rpartition("\n")[2].strip())
        if found and author.id == us.id:
            yield Trace(found[1], facts_in(found[0]), thing, remark)
