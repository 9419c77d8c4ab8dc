"""Merging: everything is looked at once more, freshly, and then merged at exactly the commit that was approved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from ralph_mission.forges.github import reading
from ralph_mission.forges.github.limits import Absent
from ralph_mission.forges.github.reading import PullWire
from ralph_mission.forges.github.threads import Threads
from ralph_mission.forges.refusal import Refused
from ralph_mission.mission.approval import merge_objection
from ralph_mission.mission.effects import MergePull
from ralph_mission.mission.ledger import BEHIND, NOT_ATTEMPTED
from ralph_mission.mission.model import Actor
from ralph_mission.mission.trouble import Trouble

METHODS = ("squash", "merge")
PATIENCE = (1.0, 2.0, 4.0)  # seconds between looks while GitHub works out whether a pull can be merged
PASSED = ("success", "neutral", "skipped")
SAID = {
    "missing": "has not run",
    "pending": "has not finished",
    "unseen": "has not passed (to see how it stands, give the job checks: read and statuses: read)",
}


def merge(threads: Threads, effect: MergePull, may_approve: Callable[[Actor], bool]) -> str:
    """Merge, or Refused; the commit that came of it. Raises Refused, Doubt, Trouble."""
    if effect.method not in METHODS:
        raise Refused(f"merge method {effect.method} is not supported", "use squash or merge")
    wire = _settled(threads, effect.pull)
    _require_unobjectionable(threads, wire, effect, may_approve)
    _require_mergeable(threads, wire)
    title, _, text = effect.message.partition("\n")
    order = {"sha": effect.head_sha, "merge_method": effect.method, "commit_title": title,
             "commit_message": text.strip("\n")}  # fmt: skip
    answer = threads.api.send("PUT", f"/pulls/{effect.pull}/merge", order)
    return str(answer.get("sha") or "") if isinstance(answer, dict) else ""


def _settled(threads: Threads, number: int) -> PullWire:
    """The pull, once GitHub knows whether it can be merged; it works that out when it is first asked."""
    wire = threads.pull(number, fresh=True)
    for seconds in PATIENCE:
        if wire.state != "open" or wire.mergeable_state not in ("", "unknown"):
            break
        threads.api.sleep(seconds)
        wire = threads.pull(number, fresh=True)
    return wire


def _require_unobjectionable(
    threads: Threads, wire: PullWire, effect: MergePull, may_approve: Callable[[Actor], bool]
) -> None:
    if wire.state == "closed":
        raise Refused(f"pull #{wire.number} is {wire.status}")
    if not wire.ours:
        raise Refused(f"pull #{wire.number} is from a fork")
    reviews = reading.reviews(threads.reviews(wire.number, fresh=True)) if effect.approver else ()
    if rule := merge_objection(reading.pull(wire, reviews), effect, may_approve):
        raise Refused(rule)


def _require_mergeable(threads: Threads, wire: PullWire) -> None:
    match wire.mergeable_state:
        case "dirty":
            raise Refused(f"the merge has conflicts with {wire.base.ref}", "bring the branch up to date with its base")
        case "behind":
            raise Refused(f"{BEHIND}{wire.base.ref} has commits that the branch must have first")
        case "draft":
            raise Refused(f"blocked: pull #{wire.number} is a draft")
        case "blocked":
            raise Refused(_obstacle(threads, wire))
        case "" | "unknown":
            raise Refused(f"{NOT_ATTEMPTED}GitHub has not worked out yet whether #{wire.number} can be merged")


def _obstacle(threads: Threads, wire: PullWire) -> str:
    """What protection still asks for, as far as the token may see it. What only takes time is no failure."""
    missing = dict(_missing_checks(threads, wire))
    if not missing:
        return f"blocked: a review or check that the protection of {wire.base.ref} requires is missing"
    waits = all(result == "pending" for result in missing.values())
    said = "; ".join(f"the required check {name} {SAID.get(it, f'ended with {it}')}" for name, it in missing.items())
    return f"{NOT_ATTEMPTED if waits else 'blocked: '}{said}"


def _missing_checks(threads: Threads, wire: PullWire) -> Iterator[tuple[str, str]]:
    results = _results(threads, wire.head.sha)
    for name in _required(threads, wire.base.ref):
        result = "unseen" if results is None else results.get(name, "missing")
        if result not in PASSED:
            yield name, result


def _required(threads: Threads, branch: str) -> list[str]:
    body = _ask(threads, f"/branches/{quote(branch, safe='')}")
    checks = _dig(body, "protection", "required_status_checks", "contexts")
    return [name for name in checks if isinstance(name, str)] if isinstance(checks, list) else []


def _results(threads: Threads, sha: str) -> dict[str, str] | None:
    """The newest result of each check run and status of a commit; "pending" for one that is not over.

    None when the token may see neither.
    """
    runs = _dig(_ask(threads, f"/commits/{sha}/check-runs?per_page=100"), "check_runs")
    statuses = _dig(_ask(threads, f"/commits/{sha}/status?per_page=100"), "statuses")
    if runs is None and statuses is None:
        return None
    found = [(run.get("name"), run.get("conclusion") or "pending") for run in _dicts(runs)]
    found += [(status.get("context"), status.get("state") or "pending") for status in _dicts(statuses)]
    return {str(name): str(result) for name, result in found}


def _ask(threads: Threads, path: str) -> Any:
    """What helps to explain, and is done without where the token may not see it."""
    try:
        return threads.api.get(path, fresh=True)
    except (Absent, Trouble):
        return None


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
