"""Runs the repository's own checks on each allowed change before it is proposed."""

from __future__ import annotations

from dataclasses import replace

from ralph_mission.errors import UserError
from ralph_mission.mission.decide import decide as decide_now
from ralph_mission.mission.decide import drafts, with_held
from ralph_mission.mission.model.cycle import Situation
from ralph_mission.mission.model.ledger import HeldFix
from ralph_mission.mission.model.proposal import PatchVerification, Proposal
from ralph_mission.mission.ports import CyclePorts
from ralph_mission.safety.secrets import redact
from ralph_mission.safety.text import truncate

VERIFIED = 2  # changes that are checked in one cycle
WHY = 300  # characters of a reason
LATER = PatchVerification(False, "other changes failed their checks first; it is checked in the next cycle", ran=False)


def verify(ports: CyclePorts, situation: Situation, scratch: str, secrets: tuple[str, ...]) -> Situation:
    """Check each change that would be allowed. One that fails the repository's own checks is not proposed; where they
    cannot be run, none is.
    """
    tried = 0
    given_up: PatchVerification | None = None
    while (candidate := _to_verify(situation, secrets)) is not None:
        outcome = given_up or _try(ports, candidate, scratch)
        if outcome.red is not None and candidate.patch and candidate.patch.base == situation.world.default.sha:
            situation = replace(situation, red=outcome.red)
        if outcome.ok:
            return replace(situation, verified=candidate.key, standing=outcome.standing, green=outcome.green)
        tried += 1
        given_up = given_up or (LATER if tried == VERIFIED else None if outcome.ran else outcome)
        detail = redact(outcome.detail, secrets)
        failure = f"{candidate.title}: {detail}"
        ports.progress.note(f"not proposed: {failure}")
        why = truncate(detail.partition("\n")[0], WHY)
        members = tuple(member.fingerprint for member in candidate.members)
        whole = outcome.red_base or not outcome.ran
        fix = HeldFix(candidate.key, candidate.title, why, members, whole, outcome.ran)
        situation = replace(with_held(situation, fix), refused=(*situation.refused, failure))
    return situation


def _try(ports: CyclePorts, candidate: Proposal, scratch: str) -> PatchVerification:
    ports.progress.note(f"verifying: {candidate.title}")
    assert candidate.patch is not None
    try:
        return ports.hands.verify(candidate.patch, scratch)
    except Exception as error:  # what could not be checked is not proposed
        what = error.what if isinstance(error, UserError) else f"could not run ({type(error).__name__})"
        return PatchVerification(False, what, ran=False)


def _to_verify(situation: Situation, secrets: tuple[str, ...]) -> Proposal | None:
    if not any(proposal.automatic and proposal.patch for proposal in drafts(situation)):
        return None
    allowed = (decision.proposal for decision in decide_now(situation, secrets).allowed)
    return next((proposal for proposal in allowed if proposal.automatic and proposal.patch), None)
