"""Pulls with a correction: the largest set of files that stays under the limits, and a question about the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ralph_mission.mission import announced, wording
from ralph_mission.mission.draft_parts import DraftContext, carrying, facts_of, mission_of, subject_of
from ralph_mission.mission.draft_questions import question
from ralph_mission.mission.effects import OpenIssue, Ref
from ralph_mission.mission.kinds import BUMPS
from ralph_mission.mission.ledger import key_of
from ralph_mission.mission.model import Action, Finding, Status
from ralph_mission.mission.ports import RankedFinding
from ralph_mission.mission.proposal import Proposal
from ralph_mission.safety.bumps import counted_patch
from ralph_mission.safety.objections import MAX_BYTES, MAX_FILES, Objection, inspect, verdict
from ralph_mission.safety.patch import Patch, measure


def fixes(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Iterable[Proposal]:
    """The pull that corrects most of them; where there is none, a question about the first that may be asked."""
    if thought.kind == BUMPS and BUMPS in desk.under_way:  # the same lines, and no pull yet that the observer could see
        return ()
    ready = [member for member in members if member.signal.patch and member.signal.patch.base == desk.default.sha]
    if not ready:
        return () if desk.free_slot else (_waiting(thought, members, desk),)
    unasked = [] if _asks(thought, desk) else ready
    fitting = _largest_set([member for member in unasked if not _objections(member, desk)], desk)
    if fitting and (proposal := _not_refused(thought, fitting, desk)):
        return (proposal,)
    askable = [m for m in ready if m not in fitting and verdict(_objections(m, desk)) != "deny"]
    return tuple(question(thought, member, desk, member.signal.patch) for member in askable[:1])


def _not_refused(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Proposal | None:
    """The fix of all; where the repository's own checks refuse it, of a half: one file must not hold up the rest."""
    proposal = _fix(thought, members, desk)
    if proposal.key not in desk.unverified:
        return proposal
    if len(members) == 1:
        return None
    half = len(members) // 2
    return _not_refused(thought, members[:half], desk) or _not_refused(thought, members[half:], desk)


def _asks(thought: RankedFinding, desk: DraftContext) -> bool:
    """Whether a person is asked about a fix however small it is: the thinker wants it, or none is allowed unasked."""
    return thought.ask or not desk.limits.auto_prs_per_cycle


def _waiting(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Proposal:
    """What waits for a slot has a title and no effects: it is judged, held, and drafted anew when its turn comes."""
    what, action, title = "fix", Action.OPEN_FIX, wording.fix_title(thought.kind, members)
    if _asks(thought, desk):  # one at a time
        members = members[:1]
        what, action, title = "ask", Action.OPEN_PROPOSAL, wording.proposal_title(members[0])
    key = subject_of(what, thought.kind, members)
    return Proposal(key, action, thought.kind, title, members=tuple(members), why=thought.why, score=thought.score)


def _objections(member: Finding, desk: DraftContext) -> tuple[Objection, ...]:
    """What speaks against a member's change even if it were the only one."""
    assert member.signal.patch is not None
    most, bumps = desk.limits.auto_pr_lines, member.kind == BUMPS
    return inspect(member.signal.patch, max_lines=most, recent=desk.recent_lines, bumps=bumps, by_fixer=True)


def _largest_set(members: Sequence[Finding], desk: DraftContext) -> tuple[Finding, ...]:
    """Smallest first gives the most files under every limit of size; one change per path."""
    sizes = [(measure(_counted_patch(member)), member) for member in members if member.signal.patch]
    room = (desk.limits.auto_pr_lines, MAX_BYTES, MAX_FILES)
    chosen: dict[str, Finding] = {}
    for size, member in sorted(sizes, key=lambda row: (row[0].lines, row[0].bytes, row[1].signal.path)):
        left = (room[0] - size.lines, room[1] - size.bytes, room[2] - len(size.files))
        if member.signal.path not in chosen and min(left) >= 0:
            chosen[member.signal.path], room = member, left
    return tuple(chosen[path] for path in sorted(chosen))


def _counted_patch(member: Finding) -> Patch:
    """What counts of a member's change: of bumps, all but what follows from them."""
    assert member.signal.patch is not None
    return counted_patch(member.signal.patch) if member.kind == BUMPS else member.signal.patch


def _fix(thought: RankedFinding, members: Sequence[Finding], desk: DraftContext) -> Proposal:
    subject = subject_of("fix", thought.kind, members)
    title = wording.fix_title(thought.kind, members)
    patch = _combine_patches(members, desk.default.sha)
    issue = key_of(subject, "open_issue")
    facts = facts_of(thought.kind, members, desk.next_mission)
    branch = carrying(subject, thought.kind, title, members, patch, desk, Ref(issue), thought.why)
    named = announced.announcement_line(branch, asked=False)
    opened = OpenIssue(
        issue,
        title,
        wording.fix_issue(thought.kind, members, thought.why, patch, issue, facts, named),
        ("ralph:mission",),
    )
    mission = mission_of(subject, title, Action.OPEN_FIX, thought.kind, members, desk)
    interim = replace(mission, status=Status.EXECUTING, pending=tuple(effect.key for effect in branch))
    return Proposal(
        subject,
        Action.OPEN_FIX,
        thought.kind,
        title,
        (opened, *branch),
        tuple(members),
        patch,
        interim=interim,
        after=replace(interim, status=Status.IN_REVIEW, pending=(), waiting_since=desk.now),
        why=thought.why,
        score=thought.score,
    )


def _combine_patches(members: Sequence[Finding], base: str) -> Patch:
    """The members' changes as one patch."""
    changes = (change for m in members if m.signal.patch for change in m.signal.patch.changes)
    return Patch(base, tuple(sorted(changes, key=lambda change: change.path)))
