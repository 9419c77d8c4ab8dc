"""Has a thinker rank the findings and word posts about them. Its output is untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

from ralph_mission.mission.findings import identity, ranking
from ralph_mission.mission.model.cycle import Situation
from ralph_mission.mission.model.ledger import MemorySnapshot
from ralph_mission.mission.model.mission import Finding
from ralph_mission.mission.model.proposal import Brief, Plan
from ralph_mission.mission.ports import CyclePorts, PaidThinker
from ralph_mission.mission.proposals import analysis
from ralph_mission.mission.publishing import posting
from ralph_mission.safety import text
from ralph_mission.safety.secrets import redact

WORDED = 50  # findings that get a text in one cycle


def may_cost(ports: CyclePorts, situation: Situation) -> float:
    """The most that ranking would spend on a model now, in USD."""
    return ports.thinker.may_cost(_brief(situation)) if isinstance(ports.thinker, PaidThinker) else 0.0


def rank_findings(ports: CyclePorts, situation: Situation, secrets: tuple[str, ...]) -> Situation:
    """Rank the findings that still need handling. A thinker's text is as untrusted as any other."""
    ports.progress.phase("think", f"{len(situation.fresh)} new or waiting")
    plan = screen_plan(ports.thinker.think(_brief(situation)), situation.fresh, secrets)
    if plan.ranked_findings:
        first = plan.ranked_findings[0]
        titles = [finding.signal.title for finding in situation.fresh if finding.fingerprint in first.members]
        ports.progress.note(f"first: {': '.join([*titles[:1], first.why])}")
    return replace(situation, plan=plan)


def _brief(situation: Situation) -> Brief:
    return Brief(
        situation.fresh,
        situation.missions,
        ranking.with_priors(dict(situation.state.acceptance), situation.settings.priors),
        situation.settings.limits,
        situation.memory,
        situation.now,
        ranking.engagement_factors(situation.state.posted),
    )


def screen_plan(plan: Plan, known: Iterable[Finding], secrets: tuple[str, ...]) -> Plan:
    """The plan, reduced to findings that exist. Everything else in it is dropped and not recorded."""
    kinds = {finding.fingerprint: finding.kind for finding in known}
    ranked_findings = (
        replace(
            t,
            members=tuple(member for member in t.members if member in kinds),
            why=text.inline_words(redact(t.why, secrets)),
            sections=tuple(
                (name, text.inline_words(redact(words, secrets)))
                for name, words in t.sections
                if name in analysis.WRITABLE
            ),
        )
        for t in plan.ranked_findings
        if isfinite(t.score) and t.kind in kinds.values()
    )
    remark, cursor = text.inline_words(redact(plan.remark, secrets)), redact(plan.cursor, secrets)
    return replace(plan, ranked_findings=tuple(ranked_findings), remark=remark, cursor=cursor)


def write_wordings(ports: CyclePorts, situation: Situation, past: MemorySnapshot | None = None) -> Situation:
    """Word the plan's findings for the public, before anything is judged."""
    ranked = {member for ranked in situation.plan.ranked_findings for member in ranked.members}
    news = {finding.fingerprint for finding in identity.finished_findings(situation.state.finished)}
    about = [finding for finding in situation.fresh if finding.fingerprint in ranked | news]
    findings = sorted(about, key=lambda finding: finding.fingerprint not in news)[:WORDED]
    worded = [(finding, wording) for finding in findings if (wording := ports.publisher.word(finding))]
    for problem in dict.fromkeys(wording.problem for _, wording in worded if wording.problem):
        ports.progress.note(problem)
    keys = {effect.key for pair in worded for effect in posting.effects_of(*pair)}
    records = {**situation.records, **ports.store.records(keys, past)} if keys else situation.records
    return replace(situation, wordings=tuple(wording for _, wording in worded), records=records)
