"""Whether a proposal may be carried out. The model proposes; this disposes.

All rules are asked, always, and every one that speaks against is named. What is allowed
counts against the limits of what follows, so no order of proposals gets around a cap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.model.proposal import BudgetUsed, Decision, PolicyContext, Proposal
from ralph_mission.mission.policy.rules import RULES, Rule

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
    """One proposal against every rule: denied if any denies, held if any holds, else allowed."""
    said = {rule.id: _ask(rule, proposal, context) for rule in rules}
    against = {rule: verdict for rule, verdict in said.items() if verdict is not Verdict.ALLOW}
    verdicts = against.values()
    verdict = next((v for v in (Verdict.DENY, Verdict.HOLD) if v in verdicts), Verdict.ALLOW)
    return Decision(proposal, verdict, tuple(against))


def spend(spent: BudgetUsed, proposal: Proposal) -> BudgetUsed:
    """What is used up once this proposal is carried out."""
    return replace(
        spent,
        actions=spent.actions + 1,
        active=spent.active + proposal.new_mission,
        new_missions=spent.new_missions + proposal.new_mission,
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
    except Exception:  # fail closed: what cannot be evaluated is not permitted, whatever went wrong
        return Verdict.DENY
