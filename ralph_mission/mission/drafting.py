"""From thoughts to proposals: what exactly would be done about each, fully worded.

A thought may name only known findings; whatever else it says is dropped here, so a thinker
cannot invent. Small fixes are grouped into the largest set of files that stays under the
limit; what is too big for that, or may not be changed unasked, becomes a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ralph_mission.mission import announced, findings, succession, wording
from ralph_mission.mission.effects import EditComment, Effect, OpenIssue, OpenPull, PushBranch, Ref
from ralph_mission.mission.kinds import RESEARCH, Route, lookup
from ralph_mission.mission.ledger import MonitorRecord, Record, key_of, monitor_key
from ralph_mission.mission.model import Action, Branch, Finding, Limits, Mission, Pull, Status
from ralph_mission.mission.overlap import touched_by, untouched
from ralph_mission.mission.ports import Thought
from ralph_mission.mission.proposal import Proposal
from ralph_mission.safety.edits import deltas
from ralph_mission.safety.objections import MAX_BYTES, MAX_FILES, Objection, inspect, verdict
from ralph_mission.safety.patch import Patch, measure, patch_ids

PATCH_LINES = 2_000  # a proposal shows its patch; nobody reads more than this on a forge
KEPT_LINES = 100  # of a monitoring issue


@dataclass(frozen=True, slots=True)
class Desk:
    """What drafting needs to know besides the thought."""

    default: Branch
    cycle: int
    now: datetime
    next_mission: int
    limits: Limits
    free_slot: bool
    records: Mapping[str, Record]
    recent_lines: Mapping[str, int]
    unverified: frozenset[str] = frozenset()  # action keys whose verification failed on this commit
    pulls: tuple[Pull, ...] = ()  # open ones of other people


def draft_all(thoughts: Sequence[Thought], present: Sequence[Finding], desk: Desk) -> tuple[Proposal, ...]:
    """A proposal for each thought that leads to one, in the thinker's order; no deed is proposed twice."""
    by_fingerprint = {finding.fingerprint: finding for finding in present}
    drafts: list[Proposal] = []
    for thought in thoughts:
        taken = {key for draft in drafts for key in _keys(draft)}
        drafts += [draft for draft in _draft(thought, by_fingerprint, desk) if not taken & _keys(draft)]
    return tuple(drafts)


def _keys(draft: Proposal) -> set[str]:
    return {draft.key, *(effect.key for effect in draft.effects)}


def _draft(thought: Thought, present: Mapping[str, Finding], desk: Desk) -> Iterable[Proposal]:
    members = [present[fp] for fp in dict.fromkeys(thought.members) if fp in present]
    members = [member for member in members if member.kind == thought.kind]
    if not members:
        return ()
    draw = {Route.FIX: _fixes, Route.MONITOR: _monitoring, Route.PROPOSE: _questions}
    return draw[lookup(thought.kind).route](thought, untouched(members, desk.pulls), desk)


# --- fixes ----------------------------------------------------------------------------


def _fixes(thought: Thought, members: Sequence[Finding], desk: Desk) -> Iterable[Proposal]:
    ready = [member for member in members if member.signal.patch and member.signal.patch.base == desk.default.sha]
    if not ready:
        return () if desk.free_slot else (_waiting(thought, members),)
    unasked = ready if desk.limits.auto_prs_per_cycle else []  # none allowed: always ask
    fitting = _largest_set([member for member in unasked if not _objections(member, desk)], desk)
    if fitting and (proposal := _not_refused(thought, fitting, desk)):
        return (proposal,)
    askable = [m for m in ready if m not in fitting and verdict(_objections(m, desk)) != "deny"]
    return tuple(_question(thought, member, desk, member.signal.patch) for member in askable[:1])


def _not_refused(thought: Thought, members: Sequence[Finding], desk: Desk) -> Proposal | None:
    """The fix of all; where the repository's own checks refuse it, of a half: one file must not hold up the rest."""
    proposal = _fix(thought, members, desk)
    if proposal.key not in desk.unverified:
        return proposal
    if len(members) == 1:
        return None
    half = len(members) // 2
    return _not_refused(thought, members[:half], desk) or _not_refused(thought, members[half:], desk)


def _waiting(thought: Thought, members: Sequence[Finding]) -> Proposal:
    """What waits for a slot has a title and no effects: it is judged, held, and drafted anew when its turn comes."""
    title = wording.fix_title(thought.kind, members)
    key = _subject("fix", thought.kind, members)
    return Proposal(
        key, Action.OPEN_FIX, thought.kind, title, members=tuple(members), why=thought.why, score=thought.score
    )


def _objections(member: Finding, desk: Desk) -> tuple[Objection, ...]:
    """What speaks against a member's change even if it were the only one."""
    assert member.signal.patch is not None
    return inspect(member.signal.patch, max_lines=desk.limits.auto_pr_lines, recent=desk.recent_lines)


def _largest_set(members: Sequence[Finding], desk: Desk) -> tuple[Finding, ...]:
    """Smallest first gives the most files under every limit of size; one change per path."""
    sizes = [(measure(member.signal.patch), member) for member in members if member.signal.patch]
    room = (desk.limits.auto_pr_lines, MAX_BYTES, MAX_FILES)
    chosen: dict[str, Finding] = {}
    for size, member in sorted(sizes, key=lambda row: (row[0].lines, row[0].bytes, row[1].signal.path)):
        left = (room[0] - size.lines, room[1] - size.bytes, room[2] - len(size.files))
        if member.signal.path not in chosen and min(left) >= 0:
            chosen[member.signal.path], room = member, left
    return tuple(chosen[path] for path in sorted(chosen))


def combine(members: Sequence[Finding], base: str) -> Patch:
    """The members' changes as one patch."""
    changes = (change for m in members if m.signal.patch for change in m.signal.patch.changes)
    return Patch(base, tuple(sorted(changes, key=lambda change: change.path)))


def _fix(thought: Thought, members: Sequence[Finding], desk: Desk) -> Proposal:
    subject = _subject("fix", thought.kind, members)
    title = wording.fix_title(thought.kind, members)
    patch = combine(members, desk.default.sha)
    issue = key_of(subject, "open_issue")
    facts = _facts(thought.kind, members, desk.next_mission)
    branch = carrying(subject, thought.kind, title, members, patch, desk, Ref(issue), thought.why)
    named = announced.line(branch, asked=False)
    opened = OpenIssue(
        issue,
        title,
        wording.fix_issue(thought.kind, members, thought.why, patch, issue, facts, named),
        ("ralph:mission",),
    )
    mission = _mission(subject, title, Action.OPEN_FIX, thought.kind, members, desk)
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


def carrying(
    subject: str,
    kind: str,
    title: str,
    members: Sequence[Finding],
    patch: Patch,
    desk: Desk,
    issue: Ref,
    why: str,
) -> tuple[PushBranch, OpenPull]:
    """The branch and the pull that carry a patch."""
    branch = f"ralph/{kind}-{subject[:8]}"
    push = PushBranch(
        key_of(subject, "push_branch"),
        branch,
        patch.base,
        wording.commit_message(title, kind, members, issue),
        desk.now,
        deltas(patch),
        issue=issue,
    )
    key = key_of(subject, "open_pull")
    body = wording.fix_pull(kind, members, why, issue, key, _facts(kind, members, desk.next_mission))
    same = tuple(sorted(patch_ids(patch)))
    labels = ("ralph:auto-fix",)
    return push, OpenPull(key, title, body, branch, desk.default.name, issue, labels, same, touched_by(patch))


# --- questions ------------------------------------------------------------------------


def _questions(thought: Thought, members: Sequence[Finding], desk: Desk) -> Iterable[Proposal]:
    return tuple(_question(thought, member, desk, None) for member in members[:1])


def _question(thought: Thought, finding: Finding, desk: Desk, patch: Patch | None) -> Proposal:
    """An issue that asks; with a patch, the effects that a yes releases are planned with it."""
    subject = _subject("ask", thought.kind, (finding,))
    title = wording.proposal_title(finding)
    shown = patch if patch and _showable(patch) else None
    issue = key_of(subject, "open_issue")
    planned = carrying(subject, thought.kind, title, (finding,), shown, desk, Ref(issue), thought.why) if shown else ()
    named = announced.line(planned, asked=True)
    body, digest = wording.sealed(
        title,
        wording.proposal_body(finding, thought.why, shown, named),
        issue,
        _facts(thought.kind, (finding,), desk.next_mission),
    )
    labels = ("ralph:mission", *(lookup(thought.kind).labels or RESEARCH))
    mission = _mission(subject, title, Action.OPEN_PROPOSAL, thought.kind, (finding,), desk)
    mission = replace(mission, proposal_hash=digest, pending=tuple(effect.key for effect in planned))
    return Proposal(
        subject,
        Action.OPEN_PROPOSAL,
        thought.kind,
        title,
        (OpenIssue(issue, title, body, labels),),
        (finding,),
        shown,
        interim=mission,
        after=mission,
        planned=planned,
        why=thought.why,
        score=thought.score,
    )


def _showable(patch: Patch) -> bool:
    """Whether a person can read it whole, and it has a form in which it can be kept until the yes."""
    size = measure(patch)
    text = size.lines <= PATCH_LINES and not any(file.binary for file in size.files)
    return text and len(wording.diff(patch)) <= wording.DIFF


# --- monitoring -----------------------------------------------------------------------


def _monitoring(thought: Thought, members: Sequence[Finding], desk: Desk) -> Iterable[Proposal]:
    record = desk.records.get(monitor_key(thought.kind))
    before = record if isinstance(record, MonitorRecord) else None
    fresh = [line for line in map(wording.monitor_line, members) if not before or line not in before.lines]
    lines = (*fresh, *(before.lines if before else ()))[:KEPT_LINES]
    total = max((before.total if before else 0) + len(fresh), len(lines))
    effect = _monitor_effect(thought.kind, lines, total, members, before.issue if before else 0, desk.records)
    after = MonitorRecord(monitor_key(thought.kind), thought.kind, before.issue if before else 0, lines, total)
    title = f"{wording.monitor_title(thought.kind)}: {len(members)} new"
    return (
        Proposal(
            _subject("monitor", thought.kind, members),
            Action.MONITOR,
            thought.kind,
            title,
            (effect,),
            tuple(members),
            monitor=after,
            why=thought.why,
            score=thought.score,
        ),
    )


def _monitor_effect(
    kind: str, lines: Sequence[str], total: int, members: Sequence[Finding], issue: int, records: Mapping[str, Record]
) -> Effect:
    line = succession.of_list(kind)
    opened = succession.latest(line, records) if issue else succession.upcoming(line, records)
    body = wording.monitor_body(kind, lines, total, members, opened)
    if not issue:
        return OpenIssue(opened, wording.monitor_title(kind), body, ())
    slot = key_of(*sorted(f"{m.fingerprint} {m.signal.occurrence}" for m in members))
    return EditComment(key_of(monitor_key(kind), "edit_comment", slot), issue, 0, body)


# --- pieces ---------------------------------------------------------------------------


def _subject(what: str, kind: str, members: Sequence[Finding]) -> str:
    """A key over what a proposal is about: its members and their occurrences, never a time or an attempt."""
    return key_of(what, kind, *sorted(f"{m.fingerprint} {m.signal.occurrence}".strip() for m in members))


def _facts(kind: str, members: Sequence[Finding], mission: int) -> dict[str, str]:
    """What `memory recover` needs to find in the forge alone."""
    listed = ",".join(member.fingerprint for member in members)
    return {"mission": str(mission), "kind": re.sub(r"[\s<>]", "", kind), "finding": listed}


def _mission(subject: str, title: str, action: Action, kind: str, members: Sequence[Finding], desk: Desk) -> Mission:
    return Mission(
        id=desk.next_mission,
        key=key_of("mission", subject),
        title=title,
        kind=kind,
        action=action,
        tier=lookup(kind).tier,
        status=Status.DISCOVERED,
        started_cycle=desk.cycle,
        started_at=desk.now,
        changed_at=desk.now,
        members=tuple(m.fingerprint for m in members),
        last_action=_OPENED[action][0],
        next_step=_OPENED[action][1],
    )


_OPENED = {
    Action.OPEN_FIX: ("opened a pull with the correction", "A person reviews the pull."),
    Action.OPEN_PROPOSAL: ("asked in an issue", "A person says yes or no to the proposal."),
}


def undone(present: Iterable[Finding], records: Mapping[str, Record]) -> tuple[Finding, ...]:
    """The findings that nothing was done about yet."""
    return tuple(finding for finding in present if not findings.known(finding, records))
