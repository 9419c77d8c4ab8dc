"""What drafts are made of: what drafting needs to know, and the pieces that fixes and questions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from ralph_mission.mission.findings.exclusions import touched_by
from ralph_mission.mission.model.effects import OpenPull, PushBranch, Ref, fact
from ralph_mission.mission.model.forge import Branch, Pull, Wording
from ralph_mission.mission.model.ledger import Record, key_of
from ralph_mission.mission.model.mission import Action, Finding, Limits, Mission, Status
from ralph_mission.mission.model.proposal import lookup
from ralph_mission.mission.proposals import wording
from ralph_mission.safety.patch import Patch, deltas, measure, patch_ids
from ralph_mission.values import dataclass

PATCH_LINES = 2_000  # a proposal shows its patch; nobody reads more than this on a forge


@dataclass(frozen=True, slots=True)
class DraftContext:
    """What drafting needs to know besides the ranked finding."""

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


def subject_of(what: str, kind: str, members: Sequence[Finding]) -> str:
    """A key over what a proposal is about: its members and their occurrences, never a time or an attempt."""
    return key_of(what, kind, *sorted(f"{m.fingerprint} {m.signal.occurrence}".strip() for m in members))


def facts_of(kind: str, members: Sequence[Finding], mission: int) -> dict[str, str]:
    """What `memory recover` needs to find in the forge alone."""
    listed = ",".join(member.fingerprint for member in members)
    return {"mission": str(mission), "kind": fact(kind), "finding": listed}


def mission_of(
    subject: str, title: str, action: Action, kind: str, members: Sequence[Finding], context: DraftContext
) -> Mission:
    """The mission that begins with the proposal."""
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
    Action.OPEN_FIX: ("opened a pull with the correction", "A person reviews the pull."),
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
        context.now,
        deltas(patch),
        issue=issue,
    )
    key = key_of(subject, "open_pull")
    body = wording.fix_pull(kind, members, why, issue, key, facts_of(kind, members, context.next_mission))
    same = tuple(sorted(patch_ids(patch)))
    labels = ("ralph:auto-fix",)
    return push, OpenPull(key, title, body, branch, context.default.name, issue, labels, same, touched_by(patch))


def showable(patch: Patch) -> bool:
    """Whether a person can read it whole, and it has a form in which it can be kept until the yes."""
    size = measure(patch)
    text = size.lines <= PATCH_LINES and not any(file.binary for file in size.files)
    return text and len(wording.diff(patch)) <= wording.DIFF
