"""What the owner's templates and a person's issue say of a finding: said as it is, or read by a person before."""

from __future__ import annotations

from ralph_mission.mission import content, posting
from ralph_mission.mission.draft_parts import DraftContext
from ralph_mission.mission.effects import Publish
from ralph_mission.mission.kinds import CONTENT, lookup
from ralph_mission.mission.model import Finding
from ralph_mission.mission.ports import RankedFinding
from ralph_mission.mission.posts import Post, Wording


def words_of(member: Finding, desk: DraftContext) -> Wording | None:
    """What a template of the owner's says of it; None where there is none."""
    words = desk.wordings.get((member.fingerprint, member.signal.occurrence))
    return words if words and words.ready and words.posts else None


def is_partly_posted(member: Finding, words: Wording, desk: DraftContext) -> bool:
    """Whether one network was told already: what another is to be told is no question any more."""
    return any(effect.key in desk.records for effect in posting.effects_of(member, words))


def not_posted_yet(member: Finding, words: Wording, desk: DraftContext) -> tuple[Publish, ...]:
    """The posts of it that are left to be sent; none of what is old, or may have been said before."""
    effects = posting.effects_of(member, words)
    over = desk.hushed or posting.is_old(member, effects, desk.records, desk.now)
    return () if over else posting.sendable_effects(effects, desk.records, desk.now)


def to_read(thought: RankedFinding, finding: Finding, desk: DraftContext) -> tuple[Post, ...]:
    """The texts that a person reads before they are published, of content or of a post that is to be asked about."""
    words = desk.wordings.get((finding.fingerprint, finding.signal.occurrence))
    if words is None or not (words.ready or lookup(thought.kind).labels == CONTENT):
        return ()
    return content.prepare_posts(words.posts)
