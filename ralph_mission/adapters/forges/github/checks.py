"""How the checks of a commit stand: its check runs, its statuses, and workflow runs that have no check run yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ralph_mission.adapters.forges.effects import ForgeRefused
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import PullWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import dataclass

PASSED = ("success", "neutral", "skipped")
PENDING, HELD, MISSING, UNSEEN = "pending", "action_required", "missing", "unseen"
RESULTS = {
    MISSING: "has not run",
    PENDING: "has not finished",
    UNSEEN: "has not passed (to see how it stands, give the job checks: read and statuses: read)",
    "timed_out": "ran out of time",
    "startup_failure": "could not be started",
}
SHOWN = 5
"""Checks that one message names."""


@dataclass(frozen=True, slots=True)
class CheckState:
    """One check of a commit. `result` is GitHub's conclusion, or one of the constants above."""

    name: str
    result: str
    url: str = ""

    def __str__(self) -> str:
        return f"{self.name} {RESULTS.get(self.result, f'ended with {self.result}')}"


def read_checks(threads: Threads, sha: str) -> tuple[CheckState, ...] | None:
    """The newest result of each check run and status of a commit; None when the token may see neither."""
    runs = dig(ask(threads, f"/commits/{sha}/check-runs?per_page=100"), "check_runs")
    statuses = dig(ask(threads, f"/commits/{sha}/status?per_page=100"), "statuses")
    if runs is None and statuses is None:
        return None
    newest = sorted(dicts(runs), key=lambda run: (str(run.get("started_at") or ""), _number(run)))
    found = [
        CheckState(str(run.get("name")), str(run.get("conclusion") or PENDING), str(run.get("html_url") or ""))
        for run in newest
    ]
    found += [
        CheckState(str(one.get("context")), str(one.get("state") or PENDING), str(one.get("target_url") or ""))
        for one in dicts(statuses)
    ]
    return tuple({check.name: check for check in found}.values())


def require_green(threads: Threads, wire: PullWire) -> None:
    """Raise ForgeRefused, naming each check of the head that has not ended well. What may still pass is waited for.

    No check at all is no objection. What the token may not see is believed as far as GitHub sums it up: `clean`.
    """
    checks = (*(read_checks(threads, wire.head.sha) or ()), *_workflow_runs(threads, wire.head.sha))
    bad = [check for check in checks if check.result not in PASSED]
    if held := [check for check in bad if check.result == HELD]:
        what = f"its checks wait for a click on “Approve workflows to run”: {_links(held)}"
        raise ForgeRefused(what, reason=FailureReason.NOT_ATTEMPTED)
    if bad:
        bad.sort(key=lambda check: check.result == PENDING)
        raise ForgeRefused(f"not green: {_list(bad)}", reason=FailureReason.NOT_ATTEMPTED)
    if wire.mergeable_state == "unstable":
        raise ForgeRefused(f"not green: a check {RESULTS[UNSEEN]}", reason=FailureReason.NOT_ATTEMPTED)


def _workflow_runs(threads: Threads, sha: str) -> Iterator[CheckState]:
    """The newest run of each workflow on a commit that no check run tells of: held, waiting, or never begun."""
    runs = dicts(dig(ask(threads, f"/actions/runs?head_sha={sha}&per_page=100"), "workflow_runs"))
    newest = {(run.get("workflow_id"), run.get("event")): run for run in sorted(runs, key=_number)}
    for run in newest.values():
        result = str(run.get("conclusion") or PENDING)
        if result in (PENDING, HELD, "startup_failure"):
            yield CheckState(str(run.get("name")), result, str(run.get("html_url") or ""))


def _list(checks: list[CheckState]) -> str:
    more = f"; and {len(checks) - SHOWN} more" if len(checks) > SHOWN else ""
    return "; ".join(f"{check} ({check.url})" if check.url else str(check) for check in checks[:SHOWN]) + more


def _links(checks: list[CheckState]) -> str:
    return ", ".join(check.url or check.name for check in checks[:SHOWN])


def missing_checks(threads: Threads, wire: PullWire, required_by_rulesets: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The result of each required check that has not passed, and how that is told.

    `required_by_rulesets` gives the setting behind each check that a ruleset asks for.
    """
    required = dict.fromkeys(_classic_checks(threads, wire.base.ref), "") | required_by_rulesets
    found = read_checks(threads, wire.head.sha) if required else None
    results = {check.name: check for check in found or ()}
    for name, where in required.items():
        check = results.get(name, CheckState(name, UNSEEN if found is None else MISSING))
        if check.result not in PASSED:
            yield check.result, f"the required check {check}{f': {where}' if where else ''}"


def _classic_checks(threads: Threads, branch: str) -> list[str]:
    """The checks that classic protection requires."""
    body = ask(threads, f"/branches/{quote(branch, safe='')}")
    checks = dig(body, "protection", "required_status_checks", "contexts")
    return [name for name in checks if isinstance(name, str)] if isinstance(checks, list) else []


def ask(threads: Threads, path: str) -> Any:
    """What helps to explain, and is done without where the token may not see it."""
    try:
        return threads.api.get(path, fresh=True)
    except (Absent, UserError):
        return None


def dig(value: Any, *keys: str) -> Any:
    """What is at the end of these keys of nested objects, None where one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(run: dict[str, Any]) -> int:
    number = run.get("id")
    return number if isinstance(number, int) else 0
