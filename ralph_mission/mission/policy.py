"""Whether a proposal may be carried out. The model proposes; this disposes.

`RULES` has one row per rule: an id, a verdict, a small predicate over (proposal, context). `docs/rules.md` says why
each exists and what to do when it stops you. Others rely on the ids: never rename one. To
add a rule: CONTRIBUTING, "A rule".

Every rule is always evaluated, and every one that objects is named. What is allowed counts against the limits of what
follows, so no order of proposals gets around a cap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ralph_mission.mission.findings import identity
from ralph_mission.mission.findings.identity import (
    closed_issues,
    does_the_same,
    is_forbidden,
    recent_pulls,
    same_change,
    touches,
)
from ralph_mission.mission.model.effects import MARKER, Effect, OpenPull, PostReview, Publish, PushBranch
from ralph_mission.mission.model.forge import Issue
from ralph_mission.mission.model.mission import Action, Severity, Tier, Verdict
from ralph_mission.mission.model.proposal import BUMPS, BudgetUsed, Decision, PolicyContext, Proposal, lookup
from ralph_mission.safety import detect, objections, paths, secrets
from ralph_mission.safety.patch import sketch
from ralph_mission.values import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`breaks`: whether the proposal violates it. `lifted_by`: what a person waits for, or can do."""

    id: str
    verdict: Verdict
    breaks: Callable[[Proposal, PolicyContext], bool]
    lifted_by: str


ENOUGH = "the next cycle, as this one has begun enough"


# --- how much -------------------------------------------------------------------------


def _mission_cap(proposal: Proposal, context: PolicyContext) -> bool:
    return proposal.begins_work and context.spent.active >= context.limits.active_missions


def _new_mission_cap(proposal: Proposal, context: PolicyContext) -> bool:
    return proposal.new_mission and context.spent.new_missions >= context.limits.new_missions_per_cycle


def _action_cap(proposal: Proposal, context: PolicyContext) -> bool:
    return not proposal.monitor and context.spent.actions >= context.limits.actions_per_cycle


def _auto_pr_cap(proposal: Proposal, context: PolicyContext) -> bool:
    # What a person asked for counts too, as nobody has seen its change yet; it never waits for what nobody asked for.
    used_up = context.spent.auto_pulls >= context.limits.auto_prs_per_cycle
    return used_up and proposal.unasked and not proposal.requested


def _thread_cap(proposal: Proposal, context: PolicyContext) -> bool:
    # The week's last thread is reserved for serious findings, the one before it for fixes, which need less of a person.
    # A serious finding does not wait for answers to lesser ones.
    if not proposal.threads:
        return False
    most = context.limits.threads_per_week
    grave = any(member.signal.severity is Severity.HIGH for member in proposal.members)
    reserve, patience = (0, 2 * most) if grave else (1 if proposal.unasked or most <= 2 else 2, most)
    too_many = context.spent.threads_week + proposal.threads > most - reserve
    return too_many or (proposal.new_mission and context.spent.unanswered >= patience)


def _spend_cycle(proposal: Proposal, context: PolicyContext) -> bool:
    return proposal.cost_usd > 0 and context.spent.usd_cycle + proposal.cost_usd > context.limits.usd_per_cycle


def _spend_day(proposal: Proposal, context: PolicyContext) -> bool:
    return proposal.cost_usd > 0 and context.spent.usd_day + proposal.cost_usd > context.limits.usd_per_day


def _dispatch_day(proposal: Proposal, context: PolicyContext) -> bool:
    return proposal.dispatches > 0 and (
        context.spent.dispatches_day + proposal.dispatches > context.limits.dispatches_per_day
    )


def _posts_day(proposal: Proposal, context: PolicyContext) -> bool:
    posts = context.spent.posts_day
    return any(posts.get(network, 0) >= context.limits.posts_per_day for network in proposal.networks)


def _posts_pause(proposal: Proposal, context: PolicyContext) -> bool:
    return bool(context.post_pause) and any(context.spent.posts_lately.get(network) for network in proposal.networks)


def _quiet_hours(proposal: Proposal, context: PolicyContext) -> bool:
    if proposal.action is not Action.PUBLISH or context.quiet_hours is None:
        return False
    start, end = context.quiet_hours
    clock = context.now.time()
    return start <= clock < end if start <= end else clock >= start or clock < end


# --- what is changed ------------------------------------------------------------------


def _patch(rule: str) -> Callable[[Proposal, PolicyContext], bool]:
    def breaks(proposal: Proposal, context: PolicyContext) -> bool:
        if proposal.action is Action.OPEN_PROPOSAL or not any(_branches(proposal)):
            return False
        return any(objection.rule == rule for objection in _inspect_patch(proposal, context))

    return breaks


def _inspect_patch(proposal: Proposal, context: PolicyContext) -> tuple[objections.Objection, ...]:
    if proposal.patch is None:
        if proposal.before is None:
            raise ValueError("a branch without a patch cannot be measured")
        # Memory grants nothing: what it kept is measured again before sending, unless a person saw exactly that.
        return () if proposal.approved else _inspect_kept(proposal, context)
    return objections.inspect(
        proposal.patch,
        max_lines=context.limits.auto_pr_lines,
        allowed_paths=frozenset(path for m in proposal.members for path in m.signal.paths) or None,
        recent=context.recent_lines,
        secrets=context.secrets,
        bumps=proposal.kind == BUMPS and proposal.before is None,  # an observer's, not an agent's
        by_fixer=proposal.before is None,
    )


def _inspect_kept(proposal: Proposal, context: PolicyContext) -> tuple[objections.Objection, ...]:
    found = (sketch(effect.files, effect.base_sha) for effect in _branches(proposal))
    most, known = context.limits.auto_pr_lines, context.secrets
    bumps = proposal.kind == BUMPS and not proposal.objections  # our issue announced exactly this change
    by_patch = (objections.inspect(one, max_lines=most, secrets=known, bumps=bumps, announced=True) for one in found)
    return tuple(objection for patch in by_patch for objection in patch)


def _kind_tier(proposal: Proposal, context: PolicyContext) -> bool:
    asks = lookup(proposal.kind).tier is Tier.HIGH and proposal.kind not in context.limits.auto_kinds
    return proposal.automatic and asks


def _branch_name(proposal: Proposal, context: PolicyContext) -> bool:
    others = [name for name in context.branches if name not in {e.branch for e in _branches(proposal)}]
    return any(not paths.branch_name_ok(effect.branch, others) for effect in _branches(proposal))


def _default_branch(proposal: Proposal, context: PolicyContext) -> bool:
    forbidden = {context.default_branch.casefold(), context.memory_branch.casefold()}
    pushed = {effect.branch.casefold() for effect in _branches(proposal)}
    heads = {effect.head.casefold() for effect in proposal.effects if isinstance(effect, OpenPull)}
    return bool(forbidden & (pushed | heads))


def _branches(proposal: Proposal) -> Iterator[PushBranch]:
    return (effect for effect in proposal.effects if isinstance(effect, PushBranch))


# --- earlier answers ------------------------------------------------------------------


def _known_finding(proposal: Proposal, context: PolicyContext) -> bool:
    return _is_new(proposal) and any(identity.is_known(member, context.records) for member in proposal.members)


def _rejected_before(proposal: Proposal, context: PolicyContext) -> bool:
    return _is_new(proposal) and any(
        identity.is_rejected(member, context.records)
        or any(is_forbidden(context.bans, path, member.kind, member.signal.reference) for path in member.signal.paths)
        for member in proposal.members
    )


def _is_new(proposal: Proposal) -> bool:
    return proposal.before is None and proposal.action is not Action.ANSWER


def _human_duplicate(proposal: Proposal, context: PolicyContext) -> bool:
    pulls = recent_pulls(context.pulls, context.bot)
    if proposal.before is not None:
        sent = [effect for effect in proposal.effects if isinstance(effect, PushBranch | OpenPull)]
        covers = (does_the_same(pull, effect) for pull in pulls for effect in sent)
        return any(covers) or any(sent and proposal.before.issue in closed_issues(pull) for pull in pulls)
    if not proposal.new_mission:
        return False
    about = {member.signal.reference for member in proposal.members} - {0}
    covered = any(touches(pull, member) for pull in pulls for member in proposal.members)
    has_pull = any(same_change(pull, proposal.patch) or about & closed_issues(pull) for pull in pulls)
    issues = [i for i in context.issues if i.author.id != context.bot and i.state == "open"]
    return covered or has_pull or any(_tells_of(issue, proposal) for issue in issues)


def _tells_of(issue: Issue, proposal: Proposal) -> bool:
    content = f"{issue.title}\n{issue.body}".casefold()
    same_title = issue.title.strip().casefold() == proposal.title.strip().casefold()
    places = {member.signal.path.casefold() for member in proposal.members if member.signal.path}
    words = lookup(proposal.kind).words
    named = bool(places and words) and all(p in content for p in places) and any(word in content for word in words)
    return same_title or named


# --- what is written ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    content: str
    markdown: bool


def _texts(effects: Iterable[Effect]) -> Iterator[_Text]:
    """Every text that would be sent. Bodies are markdown; titles, messages, labels and names are not."""
    for effect in effects:
        for name in ("title", "message", "branch", "head"):
            yield _Text(getattr(effect, name, ""), markdown=False)
        yield _Text(MARKER.sub("", getattr(effect, "body", "")), markdown=True)
        for line in effect.lines if isinstance(effect, PostReview) else ():
            yield _Text(line.body, markdown=True)
        yield from _said_in_public(effect)
        for label in (*getattr(effect, "labels", ()), *getattr(effect, "add", ())):
            yield _Text(label, markdown=False)


def _said_in_public(effect: Effect) -> Iterator[_Text]:
    if isinstance(effect, Publish):
        chart = effect.post.chart
        for part in (*effect.post.parts, *((chart.title, chart.unit, chart.alt) if chart else ())):
            yield _Text(part, markdown=False)


def _closing_keyword(proposal: Proposal, context: PolicyContext) -> bool:
    return any(detect.closing_keywords(t.content, markdown=t.markdown) for t in _texts(proposal.effects))


def _mention(proposal: Proposal, context: PolicyContext) -> bool:
    allowed = {name.casefold() for name in proposal.pings if name in context.owners}
    found = (m for t in _texts(proposal.effects) for m in detect.mentions(t.content, markdown=t.markdown))
    return any(mention.lstrip("@").casefold() not in allowed for mention in found)


def _workflow_command(proposal: Proposal, context: PolicyContext) -> bool:
    return any(detect.workflow_commands(t.content) for t in _texts(proposal.effects))


def _secret(proposal: Proposal, context: PolicyContext) -> bool:
    in_texts = any(secrets.find_secrets(t.content, context.secrets) for t in _texts(proposal.effects))
    return in_texts or _patch("secret")(proposal, context)


# --- who approved ---------------------------------------------------------------------


def _objection(rule: str) -> Callable[[Proposal, PolicyContext], bool]:
    return lambda proposal, context: rule in proposal.objections


def _is_paused(proposal: Proposal, context: PolicyContext) -> bool:
    return context.paused


def _rows() -> Iterable[Rule]:
    hold, deny = Verdict.HOLD, Verdict.DENY
    yield Rule("mission-cap", hold, _mission_cap, "a mission to end")
    yield Rule("new-mission-cap", hold, _new_mission_cap, ENOUGH)
    yield Rule("thread-cap", hold, _thread_cap, "answers, or for next week, as enough was opened this week")
    yield Rule("action-cap", hold, _action_cap, ENOUGH)
    yield Rule("auto-pr-cap", hold, _auto_pr_cap, ENOUGH)
    yield Rule("diff-size", hold, _patch("diff-size"), "a person's approval")
    yield Rule("protected-path", hold, _patch("protected-path"), "a person's approval")
    yield Rule("file-mode", hold, _patch("file-mode"), "a person's approval")
    yield Rule("kind-tier", hold, _kind_tier, "a person's approval")
    yield Rule("human-duplicate", hold, _human_duplicate, "the other pull request or issue to end")
    yield Rule("spend-cycle", hold, _spend_cycle, "the next cycle, as this one's money is spent")
    yield Rule("spend-day", hold, _spend_day, "tomorrow")
    yield Rule("dispatch-day", hold, _dispatch_day, "tomorrow")
    yield Rule("posts-day", hold, _posts_day, "tomorrow")
    yield Rule("posts-pause", hold, _posts_pause, "the end of the pause between two posts")
    yield Rule("quiet-hours", hold, _quiet_hours, "the end of the quiet hours")
    yield Rule("known-finding", deny, _known_finding, "a new occurrence")
    yield Rule("rejected-before", deny, _rejected_before, "an issue of your own about it")
    yield Rule("branch-name", deny, _branch_name, "a valid branch name below ralph/")
    yield Rule("default-branch", deny, _default_branch, "nothing: it moves through merges only")
    yield Rule("closing-keyword", deny, _closing_keyword, "a text without closing keywords")
    yield Rule("mention", deny, _mention, "a text that notifies no one")
    yield Rule("secret", deny, _secret, "a text or patch without the secret")
    yield Rule("workflow-command", deny, _workflow_command, "a text without runner commands")
    yield Rule("approval-author", deny, _objection("approval-author"), "someone with write access")
    yield Rule("approval-content", deny, _objection("approval-content"), "an approval of the present text")
    yield Rule("approval-head", deny, _objection("approval-head"), "a review of the present head")
    yield Rule("paused", deny, _is_paused, "`ralph resume`")
    yield Rule("scope", deny, _patch("scope"), "a patch inside what was proposed")
    yield Rule("foreign-commit", deny, _objection("foreign-commit"), "a person who decides about the other commit")


RULES: tuple[Rule, ...] = tuple(_rows())
LIFTED_BY = {rule.id: rule.lifted_by for rule in RULES}


def name_needs(rules: Iterable[str]) -> str:
    """What lifts these rules, in words: people read no rule ids unless they ask for details."""
    return " and ".join(dict.fromkeys(LIFTED_BY.get(rule, "a person") for rule in rules))


LIFTED_BY_APPROVAL = frozenset({"diff-size", "protected-path", "file-mode", "kind-tier"})


def judge_all(
    proposals: Sequence[Proposal], context: PolicyContext, rules: Sequence[Rule] = RULES
) -> tuple[Decision, ...]:
    """Every proposal in order."""
    decisions = []
    for proposal in proposals:
        decision = judge(proposal, context, rules)
        decisions.append(decision)
        if decision.verdict is Verdict.ALLOW:
            context = replace(context, spent=spend(context.spent, proposal))
    return tuple(decisions)


def judge(proposal: Proposal, context: PolicyContext, rules: Sequence[Rule] = RULES) -> Decision:
    """Judge one proposal by every rule: denied if any denies, held if any holds, else allowed."""
    by_rule = {rule.id: _ask(rule, proposal, context) for rule in rules}
    against = {rule: verdict for rule, verdict in by_rule.items() if verdict is not Verdict.ALLOW}
    verdicts = against.values()
    verdict = next((v for v in (Verdict.DENY, Verdict.HOLD) if v in verdicts), Verdict.ALLOW)
    return Decision(proposal, verdict, tuple(against))


def spend(spent: BudgetUsed, proposal: Proposal) -> BudgetUsed:
    """The budget used once this proposal is carried out."""
    return replace(
        spent,
        actions=spent.actions + (not proposal.monitor),  # a line on the dashboard is not a thread
        active=spent.active + proposal.begins_work,
        new_missions=spent.new_missions + proposal.new_mission,
        threads_week=spent.threads_week + proposal.threads,
        unanswered=spent.unanswered + proposal.new_mission,
        auto_pulls=spent.auto_pulls + proposal.unasked,
        usd_cycle=spent.usd_cycle + proposal.cost_usd,
        usd_day=spent.usd_day + proposal.cost_usd,
        posts_day=Counter(spent.posts_day) + Counter(proposal.networks),
        posts_lately=Counter(spent.posts_lately) + Counter(proposal.networks),
    )


def _ask(rule: Rule, proposal: Proposal, context: PolicyContext) -> Verdict:
    if proposal.approved and rule.id in LIFTED_BY_APPROVAL:
        return Verdict.ALLOW
    try:
        return rule.verdict if rule.breaks(proposal, context) else Verdict.ALLOW
    except Exception:  # fail closed: what cannot be evaluated is not permitted
        return Verdict.DENY
