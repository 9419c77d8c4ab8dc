"""From thoughts to proposals: what exactly would be done about each, fully worded.

A thought may name only known findings; whatever else it says is dropped here, so a thinker
cannot invent. What becomes of a kind is its route's: a fix, a line of a list, a question, a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ralph_mission.mission import posting
from ralph_mission.mission.draft_fixes import fixes
from ralph_mission.mission.draft_lists import lists
from ralph_mission.mission.draft_parts import DraftContext
from ralph_mission.mission.draft_questions import questions
from ralph_mission.mission.draft_texts import is_partly_posted, not_posted_yet, words_of
from ralph_mission.mission.kinds import Route, lookup
from ralph_mission.mission.model import Finding
from ralph_mission.mission.overlap import drop_touched
from ralph_mission.mission.ports import RankedFinding
from ralph_mission.mission.proposal import Proposal


def draft_all(
    thoughts: Sequence[RankedFinding], present: Sequence[Finding], desk: DraftContext
) -> tuple[Proposal, ...]:
    """A proposal for each thought that leads to one, in the thinker's order; no deed is proposed twice."""
    by_fingerprint = {finding.fingerprint: finding for finding in present}
    drafts: list[Proposal] = []
    for thought in thoughts:
        taken = {key for draft in drafts for key in _keys(draft)}
        drafts += [draft for draft in _draft(thought, by_fingerprint, desk) if not taken & _keys(draft)]
    return tuple(drafts)


def _keys(draft: Proposal) -> set[str]:
    return {draft.key, *(effect.key for effect in draft.effects)}


def _draft(thought: RankedFinding, present: Mapping[str, Finding], desk: DraftContext) -> Iterable[Proposal]:
    members = [present[fp] for fp in dict.fromkeys(thought.members) if fp in present]
    members = [member for member in members if member.kind == thought.kind]
    if not members:
        return ()
    ready = {member: words for member in members if (words := words_of(member, desk))}
    sayable = {
        member: words for member, words in ready.items() if not thought.ask or is_partly_posted(member, words, desk)
    }
    for member, words in sayable.items():
        if effects := not_posted_yet(member, words, desk):
            return (posting.data_post(thought, member, effects),)
    others = [member for member in members if member not in sayable]
    watch = questions if thought.ask else lists
    say = questions if ready.keys() - sayable.keys() else _nothing
    draw = {Route.FIX: fixes, Route.MONITOR: watch, Route.PROPOSE: questions, Route.SAY: say}
    return draw[lookup(thought.kind).route](thought, drop_touched(others, desk.pulls), desk) if others else ()


def _nothing(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Iterable[Proposal]:
    """Without words of the owner's there is nothing to do about it."""
    return ()
