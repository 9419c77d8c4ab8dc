"""From ranked findings to proposals: exactly what would be done about each, with final texts.

A ranked finding may only name known findings; anything else is dropped, so a thinker cannot invent any. The route of a
kind decides: a fix, a line on a list, a question, a post.

A fix is a pull request with the largest set of files within the limits, and a question about the rest. A listed kind is
a list on the dashboard, with a line for each finding. Texts from the owner's templates and from a person's issue are
sent as they are, or were read by a person before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from ralph_mission.mission.findings.identity import drop_touched, is_near, touched_by
from ralph_mission.mission.findings.ranking import wherever
from ralph_mission.mission.lifecycle import ownership
from ralph_mission.mission.lifecycle.approval import about
from ralph_mission.mission.lifecycle.waiting import CLOSED_BY_PEOPLE, CLOSES_BY_ITSELF
from ralph_mission.mission.model.effects import (
    CloseIssue,
    Comment,
    Effect,
    Number,
    OpenIssue,
    OpenPull,
    Publish,
    PushBranch,
    Receipt,
    Ref,
    fact,
    marker,
)
from ralph_mission.mission.model.forge import Branch, Issue, Post, Pull, Wording
from ralph_mission.mission.model.ledger import EffectRecord, MonitorRecord, Record, key_of, monitor_key
from ralph_mission.mission.model.mission import (
    BRIEFS,
    Action,
    FailureReason,
    Finding,
    Limits,
    Mission,
    Status,
    Tier,
    update_mission,
)
from ralph_mission.mission.model.proposal import BUMPS, CONTENT, RESEARCH, Proposal, RankedFinding, Route, lookup
from ralph_mission.mission.proposals import wording
from ralph_mission.mission.publishing import content, posting
from ralph_mission.safety.bumps import counted_patch
from ralph_mission.safety.objections import MAX_BYTES, MAX_FILES, Objection, inspect, verdict
from ralph_mission.safety.patch import Patch, deltas, measure, patch_ids
from ralph_mission.values import dataclass

TRIES = 3  # failures to open a pull request before an issue says so
PATCH_LINES = 2_000  # a proposal shows its patch; nobody reads more than this on a forge


@dataclass(frozen=True, slots=True)
class DraftContext:
    """What drafting needs besides the ranked finding."""

    default: Branch
    cycle: int
    now: datetime
    next_mission: int
    limits: Limits
    records: Mapping[str, Record]
    recent_lines: Mapping[str, int]
    unverified: frozenset[str] = frozenset()  # keys whose verification failed on this commit
    whole_keys: frozenset[str] = frozenset()  # those of them whose parts would fail as well
    pulls: tuple[Pull, ...] = ()  # other people's open ones
    under_way: frozenset[str] = frozenset()  # kinds with a fix under way
    wordings: Mapping[tuple[str, str], Wording] = field(default_factory=dict)  # by fingerprint and occurrence
    page: str = ""  # the repository's address on the forge, for links
    hushed: bool = False  # memory was recovered: what was posted already is unknown
    threadless: frozenset[str] = frozenset()  # fingerprints that get no thread
    agent: str = ""  # the agent that makes a change after approval if no patch is ready; "": none
    verified: str = ""  # the key of the proposal whose change passed its checks
    standing: tuple[str, ...] = ()  # but for these, which fail without that change as they do with it
    green: tuple[str, ...] = ()  # these passed with it
    ours: tuple[Pull, ...] = ()  # our open pull requests


def subject_of(what: str, kind: str, members: Sequence[Finding]) -> str:
    """A key over a proposal's members and their occurrences, never a time or an attempt."""
    return key_of(what, kind, *sorted(f"{m.fingerprint} {m.signal.occurrence}".strip() for m in members))


def facts_of(kind: str, members: Sequence[Finding], mission: int) -> dict[str, str]:
    """The facts that `memory recover` needs to find on the forge."""
    listed = ",".join(member.fingerprint for member in members)
    return {"mission": str(mission), "kind": fact(kind), "finding": listed}


def mission_of(
    subject: str, title: str, action: Action, kind: str, members: Sequence[Finding], context: DraftContext
) -> Mission:
    """The mission that the proposal starts."""
    return Mission(
        id=context.next_mission,
        key=key_of("mission", subject),
        title=title,
        kind=kind,
        action=action,
        tier=lookup(kind).tier,
        status=Status.DISCOVERED,
        started_cycle=context.cycle,
        started_at=context.now,
        changed_at=context.now,
        members=tuple(m.fingerprint for m in members),
        last_action=_OPENED[action][0],
        next_step=_OPENED[action][1],
    )


_OPENED = {
    Action.OPEN_FIX: wording.FIX_OPENED,
    Action.OPEN_PROPOSAL: ("asked in an issue", "A person approves or rejects the proposal."),
    Action.PUBLISH: ("showed what would be published", "A person approves or rejects the texts."),
}


def carrying(
    subject: str,
    kind: str,
    title: str,
    members: Sequence[Finding],
    patch: Patch,
    context: DraftContext,
    issue: Number,
    why: str,
) -> tuple[PushBranch, OpenPull]:
    """The branch and pull request of a patch; without an issue (0) the pull request is the mission's thread."""
    same = tuple(sorted(patch_ids(patch)))
    branch = f"ralph/{kind}-{key_of(subject, patch.base, *same)[:8]}"  # another change has another key
    push = PushBranch(
        key_of(subject, "push_branch", patch.base, *same),
        branch,
        patch.base,
        wording.commit_message(title, kind, members, issue),
        context.now,
        deltas(patch),
        issue=issue,
    )
    key = key_of(subject, "open_pull")
    listed = ",".join(member.fingerprint for member in members)
    facts = facts_of(kind, members, context.next_mission) if issue else ownership.facts_of_pull(kind, listed)
    checks = (context.green, context.standing) if subject == context.verified else None
    body = wording.fix_pull(kind, members, why, issue, key, facts, context.page, checks)
    labels = ("ralph:auto-fix",) if issue else ("ralph:mission", "ralph:auto-fix")
    return push, OpenPull(key, title, body, branch, context.default.name, issue, labels, same, touched_by(patch))


def showable(patch: Patch) -> bool:
    """Whether a person can read all of it, and it can be stored until approval."""
    size = measure(patch)
    text = size.lines <= PATCH_LINES and not any(file.binary for file in size.files)
    return text and len(wording.diff(patch)) <= wording.DIFF


def words_of(member: Finding, context: DraftContext) -> Wording | None:
    """The text of the owner's template for it, or None."""
    words = context.wordings.get((member.fingerprint, member.signal.occurrence))
    return words if words and words.ready and words.posts else None


def is_partly_posted(member: Finding, words: Wording, context: DraftContext) -> bool:
    """Whether it is on one network already: then the rest needs no question."""
    return any(effect.key in context.records for effect in posting.effects_of(member, words))


def is_unsayable(member: Finding, context: DraftContext) -> bool:
    """Whether no network takes the text: the report says why, and there is nothing to approve."""
    words = context.wordings.get((member.fingerprint, member.signal.occurrence))
    return words is not None and bool(words.problem and not words.posts) and lookup(member.kind).labels == CONTENT


def not_posted_yet(member: Finding, words: Wording, context: DraftContext) -> tuple[Publish, ...]:
    """Its posts that are left to send; none if it is old, or may have been posted before."""
    effects = posting.effects_of(member, words)
    over = context.hushed or posting.is_old(member, effects, context.records, context.now)
    return () if over else posting.sendable_effects(effects, context.records, context.now)


def to_read(ranked: RankedFinding, finding: Finding, context: DraftContext) -> tuple[Post, ...]:
    """The texts a person reads before they are published: of content, or of a post to ask about."""
    words = context.wordings.get((finding.fingerprint, finding.signal.occurrence))
    if words is None or not (words.ready or lookup(ranked.kind).labels == CONTENT):
        return ()
    return content.prepare_posts(words.posts)


def questions(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Iterable[Proposal]:
    """An issue about the first of them, one question at a time; with its change, if one is ready, else with all that
    say the same elsewhere."""
    if not members:
        return ()
    patch, what = _askable_patch(members[0], context), wherever(members[0])
    alike = [] if patch or not what else [member for member in members[1:] if wherever(member) == what]
    return (question(ranked, (members[0], *alike[: ALIKE - 1]), context, patch),)


ALIKE = 20
"""Places of one issue at most."""


def _askable_patch(member: Finding, context: DraftContext) -> Patch | None:
    """A change against the current commit that a person may approve."""
    patch = member.signal.patch
    ready = patch is not None and patch.base == context.default.sha
    return patch if ready and verdict(_objections(member, context)) != "deny" else None


def question(
    ranked: RankedFinding, members: tuple[Finding, ...], context: DraftContext, patch: Patch | None
) -> Proposal:
    """An issue that asks. With a patch, possibly of several fixes, it includes what approval releases."""
    finding, subject = members[0], subject_of("ask", ranked.kind, members)
    if posts := to_read(ranked, finding, context):
        return _content(ranked, finding, context, subject, posts)
    visible = patch if patch and showable(patch) else None
    finding = finding if patch or not members[1:] else wording.together(members)
    title = wording.fix_title(ranked.kind, members) if patch and members[1:] else wording.proposal_title(finding)
    issue = key_of(subject, "open_issue")
    planned = (
        carrying(subject, ranked.kind, title, members, visible, context, Ref(issue), ranked.why) if visible else ()
    )
    named = ownership.announcement_line(planned, needs_approval=True)
    if visible and members[1:]:
        body = wording.fixes_question(ranked.kind, members, ranked.why, visible, named, context.page)
    else:
        body = wording.proposal_body(finding, ranked.why, visible, named, ranked.sections, context.agent, context.page)
    mission = mission_of(subject, title, Action.OPEN_PROPOSAL, ranked.kind, members, context)
    if not visible and not context.agent:
        then = CLOSED_BY_PEOPLE if finding.signal.observer == BRIEFS else CLOSES_BY_ITSELF
        mission = replace(mission, last_action="reported in an issue", next_step=then)
    proposal = _question_proposal(
        ranked, members, mission, body, subject, lookup(ranked.kind).labels or RESEARCH, planned
    )
    return replace(proposal, patch=visible)


def _question_proposal(
    ranked: RankedFinding,
    members: tuple[Finding, ...],
    mission: Mission,
    body: str,
    subject: str,
    labels: Iterable[str],
    planned: tuple[Effect, ...],
) -> Proposal:
    """The issue that asks, sealed with the hash that approval is bound to."""
    issue = key_of(subject, "open_issue")
    sealed, _ = wording.seal_proposal(mission.title, body, issue, facts_of(ranked.kind, members, mission.id))
    mission = replace(about(mission, mission.title, body), pending=tuple(effect.key for effect in planned))
    return Proposal(
        subject,
        Action.OPEN_PROPOSAL,
        ranked.kind,
        mission.title,
        (OpenIssue(issue, mission.title, sealed, ("ralph:mission", *labels)),),
        members,
        interim=mission,
        after=mission,
        planned=planned,
        why=ranked.why,
        score=ranked.score,
    )


def _content(
    ranked: RankedFinding, finding: Finding, context: DraftContext, subject: str, posts: tuple[Post, ...]
) -> Proposal:
    """An issue that shows what would be published. The posts are stored for their charts; their texts are the
    issue's."""
    title = wording.proposal_title(finding)
    mission = mission_of(subject, title, Action.PUBLISH, ranked.kind, (finding,), context)
    planned = posting.publishing(mission.key, posts)
    return _question_proposal(
        ranked,
        (finding,),
        mission,
        content.content_issue_body(finding, posts),
        subject,
        CONTENT,
        planned,
    )


def fixes(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Iterable[Proposal]:
    """The pull request that fixes most of them; if there is none, a question about the first possible one."""
    if ranked.kind == BUMPS and BUMPS in context.under_way:  # the same lines, in no pull request that can be seen yet
        return ()
    patches = [(member, member.signal.patch) for member in members if member.signal.patch]
    here = ((member, patch) for member, patch in patches if patch.base == context.default.sha)
    ready = [member for member, patch in here if not is_near(context.ours, patch)]  # others wait for their merge
    if not ready:
        return ()
    unasked = [] if _asks(ranked, context) else ready
    if lookup(ranked.kind).tier is Tier.HIGH:  # each changes behaviour: one at a time
        unasked = unasked[:1]
    fitting = _largest_set([member for member in unasked if not _objections(member, context)], context)
    if fitting and (proposal := _not_refused(ranked, fitting, context)):
        return (proposal,)
    askable = [m for m in ready if m not in fitting and verdict(_objections(m, context)) != "deny"]
    small = [m for m in askable if not _objections(m, context)] if lookup(ranked.kind).tier is Tier.LOW else []
    together = _largest_set(small, context) or tuple(askable[:1])
    return (question(ranked, together, context, _combine_patches(together, context.default.sha)),) if together else ()


def _not_refused(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Proposal | None:
    """The fix of all; if it fails the repository's own checks, of half: one file must not hold up the rest."""
    proposal = _fix(ranked, members, context)
    if proposal.key not in context.unverified:
        return proposal
    if len(members) == 1 or proposal.key in context.whole_keys:
        return None
    half = len(members) // 2
    return _not_refused(ranked, members[:half], context) or _not_refused(ranked, members[half:], context)


def _asks(ranked: RankedFinding, context: DraftContext) -> bool:
    """Whether to ask about a fix however small it is: the thinker wants it, its kind asks and the owner did not say
    otherwise, or nothing is allowed unasked."""
    asks = lookup(ranked.kind).tier is Tier.HIGH and ranked.kind not in context.limits.auto_kinds
    return ranked.ask or asks or not context.limits.auto_prs_per_cycle


def _objections(member: Finding, context: DraftContext) -> tuple[Objection, ...]:
    """The objections to a member's change even if it were the only one."""
    assert member.signal.patch is not None
    most, bumps = context.limits.auto_pr_lines, member.kind == BUMPS
    return inspect(member.signal.patch, max_lines=most, recent=context.recent_lines, bumps=bumps, by_fixer=True)


def _largest_set(members: Sequence[Finding], context: DraftContext) -> tuple[Finding, ...]:
    """Smallest first gives the most files within every limit; no file is changed by two of them."""
    sizes = [(measure(_counted_patch(member)), member) for member in members if member.signal.patch]
    budget = (context.limits.auto_pr_lines, MAX_BYTES, MAX_FILES)
    chosen: list[Finding] = []
    changed: set[str] = set()
    for size, member in sorted(sizes, key=lambda row: (row[0].lines, row[0].bytes, row[1].signal.path)):
        remaining = (budget[0] - size.lines, budget[1] - size.bytes, budget[2] - len(size.files))
        if min(remaining) >= 0 and changed.isdisjoint(paths := _changed_paths(member)):
            chosen.append(member)
            changed |= paths
            budget = remaining
    return tuple(sorted(chosen, key=lambda member: member.signal.path))


def _changed_paths(member: Finding) -> set[str]:
    assert member.signal.patch is not None
    return {change.path for change in member.signal.patch.changes}


def _counted_patch(member: Finding) -> Patch:
    """The part of a member's change that counts: for version bumps, everything except derived lock file lines."""
    assert member.signal.patch is not None
    return counted_patch(member.signal.patch) if member.kind == BUMPS else member.signal.patch


def _fix(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Proposal:
    """The pull request that is the mission's thread. If the forge refused it before, an issue that says why."""
    subject = subject_of("fix", ranked.kind, members)
    title = wording.fix_title(ranked.kind, members)
    patch = _combine_patches(members, context.default.sha)
    branch = carrying(subject, ranked.kind, title, members, patch, context, 0, ranked.why)
    mission = mission_of(subject, title, Action.OPEN_FIX, ranked.kind, members, context)
    interim = replace(
        mission,
        status=Status.EXECUTING,
        pending=tuple(effect.key for effect in branch),
        last_action="made the fix",
        next_step="Ralph opens its pull request.",
    )
    reviewed = replace(interim, last_action=mission.last_action, next_step=mission.next_step)
    proposal = Proposal(
        subject,
        Action.OPEN_FIX,
        ranked.kind,
        title,
        branch,
        tuple(members),
        patch,
        interim=interim,
        after=update_mission(reviewed, status=Status.IN_REVIEW, pending=(), waiting_since=context.now),
        why=ranked.why,
        score=ranked.score,
    )
    refused = _refusal(branch, context)
    return _told_in_issue(proposal, ranked, refused, context) if refused else proposal


def _told_in_issue(proposal: Proposal, ranked: RankedFinding, refusal: Receipt, context: DraftContext) -> Proposal:
    """The same fix once its pull request was refused: an issue carries it, and where only a person can lift the
    refusal, the fix waits for that."""
    assert proposal.patch is not None and proposal.interim is not None
    refused, for_good = refusal.detail or "it failed", refusal.reason is FailureReason.NEEDS_PERSON
    issue, members = key_of(proposal.key, "open_issue"), proposal.members
    branch = carrying(
        proposal.key, ranked.kind, proposal.title, members, proposal.patch, context, Ref(issue), ranked.why
    )
    facts = facts_of(ranked.kind, members, context.next_mission)
    named = ownership.announcement_line(branch, needs_approval=False)
    page = context.page if for_good else None
    body = wording.fix_issue(ranked.kind, members, ranked.why, proposal.patch, refused, issue, facts, named, page)
    if not for_good:
        opened = OpenIssue(issue, proposal.title, body, ("ralph:mission",))
        again = f"Its pull request could not be opened ({refused}); the next cycle tries again."
        interim = replace(proposal.interim, next_step=again)
        return replace(proposal, effects=(opened, *branch), interim=interim)
    opened = OpenIssue(issue, proposal.title, body, ("ralph:mission", "ralph:escalated"))
    stuck = update_mission(
        proposal.interim, status=Status.ESCALATED, failure=refused, failure_reason=FailureReason.NEEDS_PERSON
    )
    stuck = replace(stuck, last_action=f"escalated: {refused}", next_step=f"{wording.retry_after(refused)}.")
    return replace(proposal, effects=(opened,), planned=branch, interim=stuck, after=stuck)


def _refusal(effects: Sequence[Effect], context: DraftContext) -> Receipt | None:
    """Why a fix cannot become a pull request, by its record: a person must act, or it kept failing; None if it can."""
    known = (context.records.get(effect.key) for effect in effects)
    failed = (one for one in known if isinstance(one, EffectRecord) and one.state == "failed" and one.receipt)
    tried = ((one.tries, one.receipt) for one in failed if one.receipt and not one.receipt.not_attempted)
    refusals = (receipt for tries, receipt in tried if tries >= TRIES or receipt.reason is FailureReason.NEEDS_PERSON)
    return next(refusals, None)


def _combine_patches(members: Sequence[Finding], base: str) -> Patch:
    """The members' changes as one patch."""
    changes = (change for m in members if m.signal.patch for change in m.signal.patch.changes)
    return Patch(base, tuple(sorted(changes, key=lambda change: change.path)))


KEPT_LINES = 40  # of a list on the dashboard


def lists(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Iterable[Proposal]:
    """The list of their kind on the dashboard, with its new lines."""
    record = context.records.get(monitor_key(ranked.kind))
    before = record if isinstance(record, MonitorRecord) else None
    drafted = [wording.monitor_line(member, context.page) for member in members]
    fresh = [line for line in drafted if not before or line not in before.lines]
    lines = (*fresh, *(before.lines if before else ()))[:KEPT_LINES]
    total = max((before.total if before else 0) + len(fresh), len(lines))
    return (
        Proposal(
            subject_of("monitor", ranked.kind, members),
            Action.MONITOR,
            ranked.kind,
            f"{wording.monitor_title(ranked.kind)}: {len(members)} new",
            (),
            tuple(members),
            monitor=MonitorRecord(monitor_key(ranked.kind), ranked.kind, 0, lines, total),
            why=ranked.why,
            score=ranked.score,
        ),
    )


def close_lists(issues: Iterable[Issue], us: int) -> Iterable[Proposal]:
    """Close lists that an earlier version kept as issues; they are on the dashboard now."""
    for issue in issues:
        if kind := ownership.listed_kind(issue, us):
            comment = key_of(monitor_key(kind), "moved", str(issue.number))
            effects = (
                Comment(comment, issue.number, f"This list is part of the dashboard now.\n\n{marker(comment)}"),
                CloseIssue(key_of(comment, "close"), issue.number, "completed"),
            )
            yield Proposal(key_of(comment, "action"), Action.MONITOR, kind, wording.plain(issue.title), effects, ())


def leave_reopened(pulls: Iterable[Pull]) -> Iterable[Proposal]:
    """Say once on each rejected pull request that is open again that it is left to people."""
    for pull in pulls:
        key = ownership.key_of_leaving(pull)
        comment = Comment(key, pull.number, wording.left_to_people(key))
        yield Proposal(key_of(key, "action"), Action.ANSWER, "human", wording.plain(pull.title), (comment,), ())


def draft_all(
    ranked_findings: Sequence[RankedFinding], present: Sequence[Finding], context: DraftContext
) -> tuple[Proposal, ...]:
    """A proposal for each ranked finding that leads to one, in the thinker's order, each effect only once."""
    by_fingerprint = {finding.fingerprint: finding for finding in present}
    drafts: list[Proposal] = []
    for ranked in ranked_findings:
        keys = {key for draft in drafts for key in _keys(draft)}
        drafts += [draft for draft in _draft(ranked, by_fingerprint, context) if not keys & _keys(draft)]
    return tuple(drafts)


def _keys(draft: Proposal) -> set[str]:
    listed = [draft.monitor.key] if draft.monitor else []
    return {draft.key, *listed, *(effect.key for effect in draft.effects)}


def _draft(ranked: RankedFinding, present: Mapping[str, Finding], context: DraftContext) -> Iterable[Proposal]:
    members = [present[fp] for fp in dict.fromkeys(ranked.members) if fp in present]
    members = [member for member in members if member.kind == ranked.kind]
    if not members:
        return ()
    ready = {member: words for member in members if (words := words_of(member, context))}
    sayable = {
        member: words for member, words in ready.items() if not ranked.ask or is_partly_posted(member, words, context)
    }
    for member, words in sayable.items():
        if effects := not_posted_yet(member, words, context):
            return (posting.data_post(ranked, member, effects),)
    unposted = (member for member in members if member not in sayable and member.fingerprint not in context.threadless)
    others = [member for member in unposted if not is_unsayable(member, context)]
    watch = questions if ranked.ask else lists
    say = questions if ready.keys() - sayable.keys() else _nothing
    draw = {Route.FIX: fixes, Route.MONITOR: watch, Route.PROPOSE: questions, Route.SAY: say}
    return draw[lookup(ranked.kind).route](ranked, drop_touched(others, context.pulls), context) if others else ()


def _nothing(ranked: RankedFinding, members: Sequence[Finding], context: DraftContext) -> Iterable[Proposal]:
    """Without a template of the owner's there is nothing to do."""
    return ()
