"""What a model made of the findings, put on the rules' own ranking: it orders and explains, and may ask more often.

Whatever it says is about findings that are there, in the groups in which rules handle them. What it leaves out
keeps its place among the rest, so nothing is lost by not being mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ralph_mission.mission.ports import RankedFinding

Sections = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ModelRanking:
    """One finding, best first in a sequence. `ask`: a person is to be asked, whatever the rules would do at once.

    `sections` are texts for headings of its analysis; `why` and they are somebody else's words.
    """

    fingerprint: str
    why: str = ""
    ask: bool = False
    sections: Sections = ()


def apply_model_rankings(
    thoughts: Sequence[RankedFinding], opinions: Iterable[ModelRanking]
) -> tuple[RankedFinding, ...]:
    """The rules' thoughts in the order of the opinions; what is to be asked about stands alone."""
    given = {opinion.fingerprint: opinion for opinion in reversed(tuple(opinions))}
    order = {fingerprint: place for place, fingerprint in enumerate(reversed(given))}
    parts = [part for thought in thoughts for part in _split_group(thought, given)]
    told = [_explain_ranking(part, given, order) for part in parts]
    last = len(order)
    return tuple(sorted(told, key=lambda thought: min(order.get(member, last) for member in thought.members)))


def _split_group(thought: RankedFinding, given: Mapping[str, ModelRanking]) -> Iterable[RankedFinding]:
    """A group without those of its members that a person is to be asked about, and these one by one."""
    asked = [member for member in thought.members if member in given and given[member].ask]
    rest = tuple(member for member in thought.members if member not in asked)
    if rest:
        yield replace(thought, members=rest)
    for member in asked:
        yield replace(thought, members=(member,), ask=True)


def _explain_ranking(
    thought: RankedFinding, given: Mapping[str, ModelRanking], order: Mapping[str, int]
) -> RankedFinding:
    """With the words for its best member, and that member first; the rules' own reason stays."""
    members = tuple(sorted(thought.members, key=lambda member: order.get(member, len(order))))
    best = given.get(members[0])
    if best is None:
        return thought
    why = f"{thought.why}; a model put it at {order[best.fingerprint] + 1}" + (f": {best.why}" if best.why else "")
    return replace(thought, members=members, why=why, sections=best.sections if len(members) == 1 else ())
