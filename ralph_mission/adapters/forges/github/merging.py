"""Merging: everything is looked at once more, freshly, and then merged at exactly the commit that was approved."""

from __future__ import annotations

from collections.abc import Callable

from ralph_mission.adapters.forges.commits import ForgeRefused
from ralph_mission.adapters.forges.github import obstacles, reading
from ralph_mission.adapters.forges.github.limits import Violation
from ralph_mission.adapters.forges.github.reading import PullWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.mission.lifecycle.approval import merge_objection
from ralph_mission.mission.model.effects import MergePull
from ralph_mission.mission.model.forge import Actor
from ralph_mission.mission.model.mission import FailureReason

METHODS = ("squash", "merge")
PATIENCE = (1.0, 2.0, 4.0)  # seconds between looks while GitHub works out whether a pull can be merged


def merge(threads: Threads, effect: MergePull, may_approve: Callable[[Actor], bool]) -> str:
    """Merge, or Refused; the commit that came of it. Raises Refused, Doubt, UserError."""
    if effect.method not in METHODS:
        raise ForgeRefused(f"merge method {effect.method} is not supported", "use squash or merge")
    wire = _wait_mergeable(threads, effect.pull)
    require_unobjectionable(threads, wire, effect, may_approve)
    _require_mergeable(threads, wire)
    title, _, text = effect.message.partition("\n")
    order = {
        "sha": effect.head_sha,
        "merge_method": effect.method,
        "commit_title": title,
        "commit_message": text.strip("\n"),
    }
    try:
        answer = threads.api.send("PUT", f"/pulls/{effect.pull}/merge", order)
    except Violation as no:
        raise obstacles.violation(threads, wire.base.ref, no.what) from None
    return str(answer.get("sha") or "") if isinstance(answer, dict) else ""


def _wait_mergeable(threads: Threads, number: int) -> PullWire:
    """The pull, once GitHub knows whether it can be merged; it works that out when it is first asked."""
    wire = threads.pull(number, fresh=True)
    for seconds in PATIENCE:
        if wire.state != "open" or wire.mergeable_state not in ("", "unknown"):
            break
        threads.api.sleep(seconds)
        wire = threads.pull(number, fresh=True)
    return wire


def require_unobjectionable(
    threads: Threads, wire: PullWire, effect: MergePull, may_approve: Callable[[Actor], bool]
) -> None:
    """Raise where the pull as it now stands may not be merged."""
    if wire.state == "closed":
        raise ForgeRefused(f"pull #{wire.number} is {wire.status}")
    if not wire.ours:
        raise ForgeRefused(f"pull #{wire.number} is from a fork")
    reviews = reading.reviews(threads.reviews(wire.number, fresh=True)) if effect.approver else ()
    if rule := merge_objection(reading.pull(wire, reviews), effect, may_approve):
        raise ForgeRefused(rule)


def _require_mergeable(threads: Threads, wire: PullWire) -> None:
    match wire.mergeable_state:
        case "dirty":
            raise ForgeRefused(
                f"the merge has conflicts with {wire.base.ref}", "bring the branch up to date with its base"
            )
        case "behind":
            raise ForgeRefused(
                f"{wire.base.ref} has commits that the branch must have first", reason=FailureReason.BEHIND
            )
        case "draft":
            raise ForgeRefused(f"blocked: pull #{wire.number} is a draft")
        case "blocked":
            raise obstacles.obstacle(threads, wire)
        case "" | "unknown":
            raise ForgeRefused(
                f"GitHub has not worked out yet whether #{wire.number} can be merged",
                reason=FailureReason.NOT_ATTEMPTED,
            )
