"""Small builders for the nouns, with defaults that say nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ralph_mission.mission.findings.identity import identify
from ralph_mission.mission.model.agent_job import AgentResult, job_outcome
from ralph_mission.mission.model.effects import Comment, Effect, PushBranch, Receipt
from ralph_mission.mission.model.forge import Actor, Issue, LabelEvent, Pull, Review, ThreadComment
from ralph_mission.mission.model.mission import (
    Action,
    FailureReason,
    Finding,
    Limits,
    Mission,
    Signal,
    Status,
    Tier,
    Usage,
    update_mission,
)
from ralph_mission.mission.model.proposal import BudgetUsed, PolicyContext, Proposal
from ralph_mission.safety.patch import REGULAR, FileChange, Patch, deltas

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
BASE = "b" * 40
HEAD = "c" * 40
BOT = Actor(1, "ralph[bot]", is_bot=True)
MARA = Actor(7, "mara")
OUTSIDER = Actor(9, "passer-by")
DAY = timedelta(days=1)


def signal(**changes: Any) -> Signal:
    kind = changes.get("kind", "spelling")
    return replace(
        Signal("codespell", kind, "a title", ("essence",), path="docs/guide.md", detail="teh -> the"), **changes
    )


def finding(**changes: Any) -> Finding:
    return identify([signal(**changes)])[0]


def patch(path: str = "docs/guide.md", lines: int = 1) -> Patch:
    """A change of `lines` lines, which measures twice that."""
    old = "".join(f"line {n} teh\n" for n in range(60)).encode()
    new = old.replace(b"teh", b"the", lines)
    return Patch(BASE, (FileChange(path, REGULAR, REGULAR, old, new),))


def issue(**changes: Any) -> Issue:
    return replace(Issue(3, "a title", "a body", "open", BOT, NOW, NOW, "issues/3"), **changes)


def pull(**changes: Any) -> Pull:
    made = Pull(4, "a title", "a body", "open", BOT, "ralph/spelling-1", HEAD, "main", NOW, NOW, "pulls/4")
    return replace(made, **changes)


def review(state: str = "approved", by: Actor = MARA, sha: str = HEAD, at: datetime = NOW, body: str = "") -> Review:
    return Review(by, state, body, sha, at)


def remark(body: str, by: Actor = MARA, at: datetime = NOW, number: int = 11) -> ThreadComment:
    return ThreadComment(number, by, body, at, at)


def labelled(label: str, by: Actor = MARA, at: datetime = NOW, added: bool = True) -> LabelEvent:
    return LabelEvent(label, by, at, added)


def mission(**changes: Any) -> Mission:
    made = Mission(
        1,
        "m1",
        "a title",
        "spelling",
        Action.OPEN_FIX,
        Tier.LOW,
        Status.IN_REVIEW,
        1,
        NOW,
        NOW,
        members=("f1",),
        issue=3,
        pull=4,
        branch="ralph/spelling-1",
        head_sha=HEAD,
    )
    return update_mission(made, **changes)


def policy_context(**changes: Any) -> PolicyContext:
    made = PolicyContext(Limits(), BudgetUsed(), "main", "ralph-memory", BOT.id, NOW, owners=("mara",))
    return replace(made, **changes)


def comment(body: str, key: str = "k1") -> Comment:
    return Comment(key, 3, body)


def push(made: Patch, branch: str = "ralph/spelling-1") -> PushBranch:
    return PushBranch("kp", branch, made.base, "Correct 1 misspelling", NOW, deltas(made))


def make_failure(key: str, explanation: str) -> Receipt:
    """The receipt of a failure, by what it tells people: "later: 429"."""
    said, _, detail = explanation.partition(": ")
    reason = FailureReason(said) if said in [*FailureReason] else None
    return Receipt(key, "failed", detail=detail if reason else explanation, reason=reason)


def fix(made: Patch | None = None, **changes: Any) -> Proposal:
    """A small fix as it would be proposed automatically."""
    made = made or patch()
    member = finding(patch=made, path=made.changes[0].path)
    proposal = Proposal("p1", Action.OPEN_FIX, "spelling", "Correct 1 misspelling", (push(made),), (member,), made)
    return replace(proposal, **changes)


def ask(key: str = "p2", **changes: Any) -> Proposal:
    """A question to a person."""
    member = finding(kind="bug", essence=(key,))
    return replace(Proposal(key, Action.OPEN_PROPOSAL, "bug", f"bug {key}", (), (member,)), **changes)


def writing(*effects: Effect, **changes: Any) -> Proposal:
    """Something that only writes."""
    return replace(Proposal("p3", Action.ANSWER, "spelling", "a title", effects), **changes)


def loop_result(
    code: int, reason: str = "", patch: Patch | None = None, words: str = "", sessions: int = 0, usd: float = 0.0,
    **more: Any,
) -> AgentResult:  # fmt: skip  # as one reads it
    """What an agent's loop came to, by its exit code."""
    usage = more.pop("usage", Usage(sessions, cost_usd=usd))
    return AgentResult(1, job_outcome(code), reason, patch, words, sessions=sessions, usage=usage, code=code, **more)
