"""Runs the repository's own checks on each allowed change before it is proposed."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.errors import UserError
from ralph_mission.mission.decide import decide as decide_now
from ralph_mission.mission.decide import drafts, with_unverified
from ralph_mission.mission.model.cycle import Situation
from ralph_mission.mission.model.proposal import PatchVerification, Proposal
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.safety.secrets import redact

VERIFIED = 2  # changes that are checked in one cycle


def verify(ports: CyclePorts, situation: Situation, scratch: str, secrets: tuple[str, ...]) -> Situation:
    """Check each change that would be allowed. One that fails the repository's own checks is not proposed."""
    tried = 0
    while (candidate := _to_verify(situation, secrets)) is not None:
        if tried == VERIFIED:
            ports.progress.note(f"put off, enough was tried: {candidate.title}")
            situation = _put_off(situation, candidate.kind)
            continue
        outcome = _try(ports, candidate, scratch)
        if outcome.ok:
            break
        tried += 1
        failure = f"{candidate.title}: {redact(outcome.detail, secrets)}"
        ports.progress.note(f"not proposed: {failure}")
        situation = replace(with_unverified(situation, candidate.key), refused=(*situation.refused, failure))
    return situation


def _put_off(situation: Situation, kind: str) -> Situation:
    """The situation without ranked findings of a kind: they are not checked in this cycle, so not proposed."""
    ranked_findings = tuple(ranked for ranked in situation.plan.ranked_findings if ranked.kind != kind)
    return replace(situation, plan=replace(situation.plan, ranked_findings=ranked_findings))


def _try(ports: CyclePorts, candidate: Proposal, scratch: str) -> PatchVerification:
    ports.progress.note(f"verifying: {candidate.title}")
    assert candidate.patch is not None
    try:
        return ports.hands.verify(candidate.patch, scratch)
    except Exception as error:  # what could not be checked is not proposed
        return PatchVerification(
            False, error.what if isinstance(error, UserError) else f"could not run ({type(error).__name__})"
        )


def _to_verify(situation: Situation, secrets: tuple[str, ...]) -> Proposal | None:
    if not any(proposal.automatic and proposal.patch for proposal in drafts(situation)):
        return None
    allowed = (decision.proposal for decision in decide_now(situation, secrets).allowed)
    return next((proposal for proposal in allowed if proposal.automatic and proposal.patch), None)
