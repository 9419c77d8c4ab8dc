"""From thoughts to proposals: what exactly would be done about each, fully worded.

A thought may name only known findings; whatever else it says is dropped here, so a thinker
cannot invent. Small fixes are grouped into the largest set of files that stays under the
limit; what is too big for that, or may not be changed unasked, becomes a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ralph_mission.mission import announced, content, content_text, findings, posting, succession, wording
from ralph_mission.mission.approval import about
from ralph_mission.mission.effects import EditComment, Effect, OpenIssue, OpenPull, Publish, PushBranch, Ref, fact
from ralph_mission.mission.kinds import BUMPS, CONTENT, RESEARCH, Route, lookup
from ralph_mission.mission.ledger import MonitorRecord, Record, key_of, monitor_key
from ralph_mission.mission.model import Action, Branch, Finding, Limits, Mission, Pull, Status
from ralph_mission.mission.overlap import touched_by, untouched
from ralph_mission.mission.ports import Thought
from ralph_mission.mission.posts import Post, Wording
from ralph_mission.mission.proposal import Proposal
from ralph_mission.safety.bumps import counted
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
    under_way: frozenset[str] = frozenset()  # kinds of which a fix is being carried out
    wordings: Mapping[tuple[str, str], Wording] = field(default_factory=dict)  # by fingerprint and occurrence
    hushed: bool = False  # memory was recovered: nobody knows any more what was said already


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
    ready = {member: words for member in members if (words := _ready(member, desk))}
    sayable = {member: words for member, words in ready.items() if not thought.ask or _begun(member, words, desk)}
    for member, words in sayable.items():
        if effects := _unsaid(member, words, desk):
            return (posting.data_post(thought, member, effects),)
    others = [member for member in members if member not in sayable]
    watch = _questions if thought.ask else _monitoring
    say = _questions if ready.keys() - sayable.keys() else _nothing
    draw = {Route.FIX: _fixes, Route.MONITOR: watch, Route.PROPOSE: _questions, Route.SAY: say}
    return draw[lookup(thought.kind).route](thought, untouched(others, desk.pulls), desk) if others else ()


def _ready(member: Finding, desk: Desk) -> Wording | None:
    """What a template of the owner's says of it; None where there is none."""
    words = desk.wordings.get((member.fingerprint, member.signal.occurrence))
    return words if words and words.ready and words.posts else None


def _begun(member: Finding, words: Wording, desk: Desk) -> bool:
    """Whether one network was told already: what another is to be told is no question any more."""
    return any(effect.key in desk.records for effect in posting.effects_of(member, words))


def _unsaid(member: Finding, words: Wording, desk: Desk) -> tuple[Publish, ...]:
    effects = posting.effects_of(member, words)
    over = desk.hushed or posting.is_old(member, effects, desk.records, desk.now)
    return () if over else posting.left(effects, desk.records, desk.now)


def _nothing(thought: Thought, members: Sequence[Finding], desk: Desk) -> Iterable[Proposal]:
    """Without words of the owner's there is nothing to do about it."""
    return ()


# --- fixes ----------------------------------------------------------------------------


def _fixes(thought: Thought, members: Sequence[Finding], desk: Desk) -> Iterable[Proposal]:
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


def _asks(thought: Thought, desk: Desk) -> bool:
    """Whether a person is asked about a fix however small it is: the thinker wants it, or none is allowed unasked."""
    return thought.ask or not desk.limits.auto_prs_per_cycle


def _waiting(thought: Thought, members: Sequence[Finding], desk: Desk) -> Proposal:
    """What waits for a slot has a title and no effects: it is judged, held, and drafted anew when its turn comes."""
    what, action, title = "fix", Action.OPEN_FIX, wording.fix_title(thought.kind, members)
    if _asks(thought, desk):  # one at a time
        members = members[:1]
        what, action, title = "ask", Action.OPEN_PROPOSAL, wording.proposal_title(members[0])
    key = _subject(what, thought.kind, members)
    return Proposal(key, action, thought.kind, title, members=tuple(members), why=thought.why, score=thought.score)


def _objections(member: Finding, desk: Desk) -> tuple[Objection, ...]:
    """What speaks against a member's change even if it were the only one."""
    assert member.signal.patch is not None
    most, bumps = desk.limits.auto_pr_lines, member.kind == BUMPS
    return inspect(member.signal.patch, max_lines=most, recent=desk.recent_lines, bumps=bumps)


def _largest_set(members: Sequence[Finding], desk: Desk) -> tuple[Finding, ...]:
    """Smallest first gives the most files under every limit of size; one change per path."""
    sizes = [(measure(_weighed(member)), member) for member in members if member.signal.patch]
    room = (desk.limits.auto_pr_lines, MAX_BYTES, MAX_FILES)
    chosen: dict[str, Finding] = {}
    for size, member in sorted(sizes, key=lambda row: (row[0].lines, row[0].bytes, row[1].signal.path)):
        left = (room[0] - size.lines, room[1] - size.bytes, room[2] - len(size.files))
        if member.signal.path not in chosen and min(left) >= 0:
            chosen[member.signal.path], room = member, left
    return tuple(chosen[path] for path in sorted(chosen))


def _weighed(member: Finding) -> Patch:
    """What counts of a member's change: of bumps, all but what follows from them."""
    assert member.signal.patch is not None
    return counted(member.signal.patch) if member.kind == BUMPS else member.signal.patch


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
    if posts := _to_read(thought, finding, desk):
        return _content(thought, finding, desk, subject, posts)
    title = wording.proposal_title(finding)
    shown = patch if patch and showable(patch) else None
    issue = key_of(subject, "open_issue")
    planned = carrying(subject, thought.kind, title, (finding,), shown, desk, Ref(issue), thought.why) if shown else ()
    named = announced.line(planned, asked=True)
    body = wording.proposal_body(finding, thought.why, shown, named, thought.sections)
    mission = _mission(subject, title, Action.OPEN_PROPOSAL, thought.kind, (finding,), desk)
    asked = _asked(thought, finding, mission, body, subject, lookup(thought.kind).labels or RESEARCH, planned)
    return replace(asked, patch=shown)


def _asked(
    thought: Thought,
    finding: Finding,
    mission: Mission,
    body: str,
    subject: str,
    labels: Iterable[str],
    planned: tuple[Effect, ...],
) -> Proposal:
    """The issue that asks, sealed with the hash that a yes is bound to."""
    issue = key_of(subject, "open_issue")
    sealed, _ = wording.sealed(mission.title, body, issue, _facts(thought.kind, (finding,), mission.id))
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


def _content(thought: Thought, finding: Finding, desk: Desk, subject: str, posts: tuple[Post, ...]) -> Proposal:
    """An issue that shows what would be published; the posts are kept for their charts, their texts are the issue's."""
    title = wording.proposal_title(finding)
    mission = _mission(subject, title, Action.PUBLISH, thought.kind, (finding,), desk)
    planned = posting.publishing(mission.key, posts)
    return _asked(thought, finding, mission, content_text.body(finding, thought.why, posts), subject, CONTENT, planned)


def _to_read(thought: Thought, finding: Finding, desk: Desk) -> tuple[Post, ...]:
    """The texts that a person reads before they are published, of content or of a post that is to be asked about."""
    words = desk.wordings.get((finding.fingerprint, finding.signal.occurrence))
    if words is None or not (words.ready or lookup(thought.kind).labels == CONTENT):
        return ()
    return content.prepared(words.posts)


def showable(patch: Patch) -> bool:
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
    return {"mission": str(mission), "kind": fact(kind), "finding": listed}


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
    Action.PUBLISH: ("showed what would be published", "A person says yes or no to the texts."),
}


def undone(present: Iterable[Finding], records: Mapping[str, Record]) -> tuple[Finding, ...]:
    """The findings that nothing was done about yet."""
    return tuple(finding for finding in present if not findings.known(finding, records))
