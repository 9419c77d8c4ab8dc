"""Issues that ask: about a change, about a text, about anything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ralph_mission.mission import announced, content_text, posting, wording
from ralph_mission.mission.approval import about
from ralph_mission.mission.draft_parts import DraftContext, carrying, facts_of, mission_of, showable, subject_of
from ralph_mission.mission.draft_texts import to_read
from ralph_mission.mission.effects import Effect, OpenIssue, Ref
from ralph_mission.mission.kinds import CONTENT, RESEARCH, lookup
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.model import Action, Finding, Mission
from ralph_mission.mission.ports import RankedFinding
from ralph_mission.mission.posts import Post
from ralph_mission.mission.proposal import Proposal
from ralph_mission.safety.patch import Patch


def questions(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Iterable[Proposal]:
    """An issue about the first of them: one question at a time."""
    return tuple(question(thought, member, desk, None) for member in members[:1])


def question(thought: RankedFinding, finding: Finding, desk: DraftContext, patch: Patch | None) -> Proposal:
    """An issue that asks; with a patch, the effects that a yes releases are planned with it."""
    subject = subject_of("ask", thought.kind, (finding,))
    if posts := to_read(thought, finding, desk):
        return _content(thought, finding, desk, subject, posts)
    title = wording.proposal_title(finding)
    shown = patch if patch and showable(patch) else None
    issue = key_of(subject, "open_issue")
    planned = carrying(subject, thought.kind, title, (finding,), shown, desk, Ref(issue), thought.why) if shown else ()
    named = announced.announcement_line(planned, asked=True)
    body = wording.proposal_body(finding, thought.why, shown, named, thought.sections)
    mission = mission_of(subject, title, Action.OPEN_PROPOSAL, thought.kind, (finding,), desk)
    asked = _question_proposal(
        thought, finding, mission, body, subject, lookup(thought.kind).labels or RESEARCH, planned
    )
    return replace(asked, patch=shown)


def _question_proposal(
    thought: RankedFinding,
    finding: Finding,
    mission: Mission,
    body: str,
    subject: str,
    labels: Iterable[str],
    planned: tuple[Effect, ...],
) -> Proposal:
    """The issue that asks, sealed with the hash that a yes is bound to."""
    issue = key_of(subject, "open_issue")
    sealed, _ = wording.seal_proposal(mission.title, body, issue, facts_of(thought.kind, (finding,), mission.id))
    mission = replace(about(mission, mission.title, body), pending=tuple(effect.key for effect in planned))
    return Proposal(
        subject,
        Action.OPEN_PROPOSAL,
        thought.kind,
        mission.title,
        (OpenIssue(issue, mission.title, sealed, ("ralph:mission", *labels)),),
        (finding,),
        interim=mission,
        after=mission,
        planned=planned,
        why=thought.why,
        score=thought.score,
    )


def _content(
    thought: RankedFinding, finding: Finding, desk: DraftContext, subject: str, posts: tuple[Post, ...]
) -> Proposal:
    """An issue that shows what would be published; the posts are kept for their charts, their texts are the issue's."""
    title = wording.proposal_title(finding)
    mission = mission_of(subject, title, Action.PUBLISH, thought.kind, (finding,), desk)
    planned = posting.publishing(mission.key, posts)
    return _question_proposal(
        thought,
        finding,
        mission,
        content_text.content_issue_body(finding, thought.why, posts),
        subject,
        CONTENT,
        planned,
    )
