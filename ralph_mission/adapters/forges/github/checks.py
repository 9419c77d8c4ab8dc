"""The checks of a commit: its check runs, its statuses, and workflow runs without a check run so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ralph_mission.adapters.forges import ForgeRefused
from ralph_mission.adapters.forges.github.findings import (
    ACTIONS,
    CheckWire,
    Listed,
    RunWire,
    StatusWire,
    is_of_head,
    list_at,
    ran_last,
)
from ralph_mission.adapters.forges.github.limits import Absent
from ralph_mission.adapters.forges.github.reading import PullWire
from ralph_mission.adapters.forges.github.threads import Threads
from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.waiting import HELD_CHECKS
from ralph_mission.mission.model.forge import ACTION_REQUIRED, WELL
from ralph_mission.mission.model.mission import FailureReason
from ralph_mission.values import dataclass

PENDING, MISSING, UNSEEN, ASKS = "pending", "missing", "unseen", "asks"
RESULTS = {
    MISSING: "has not run",
    PENDING: "has not finished",
    UNSEEN: "has not passed (to see how it stands, give the job checks: read and statuses: read)",
    ASKS: "asks a person to act: look at its page",
    "cancelled": "was cancelled",
    "timed_out": "ran out of time",
    "startup_failure": "could not be started",
}
SHOWN = 5
"""Checks that a message names."""


@dataclass(frozen=True, slots=True)
class CheckState:
    """One check of a commit. `result` is GitHub's conclusion, or one of the constants above."""

    name: str
    result: str
    url: str = ""

    def __str__(self) -> str:
        return f"{self.name} {RESULTS.get(self.result, f'ended with {self.result}')}"


def require_green(threads: Threads, wire: PullWire) -> None:
    """Raise ForgeRefused that names each check of the head that has not passed. Pending ones are waited for.

    Having no checks is fine, if the runs of workflows can be seen: a held one has no check. For checks that the token
    may not see, only GitHub's summary `clean` counts. Its `unstable` does only if every check could be seen, and a run
    that does not count, of ours or of a fork, has not passed.
    """
    started = _runs_at_head(threads, wire)
    runs = started.runs
    found, everything = read_checks(threads, wire.head.sha, started)
    results = [*found, *_told_by_run(runs, (PENDING, ACTION_REQUIRED, "startup_failure"))]
    bad = [check for check in results if check.result not in WELL] or [*_told_by_run(runs)]
    _require_started(bad)
    if bad:
        bad.sort(key=lambda check: check.result == PENDING)
        raise ForgeRefused(f"not green: {_list(bad)}", reason=FailureReason.NOT_ATTEMPTED)
    explained = everything and any(_result(run) not in WELL for run in started.uncounted)
    clean = everything or wire.mergeable_state in ("clean", "has_hooks")
    if not clean or (wire.mergeable_state == "unstable" and not explained):
        what = "GitHub calls it unstable, though each check that it lists has passed: look at its page"
        what = what if everything else f"a check {RESULTS[UNSEEN]}"
        raise ForgeRefused(f"not green: {what}", reason=FailureReason.NOT_ATTEMPTED)
    if not (started.visible or found):
        what = "whether its checks have begun cannot be seen: give the job actions: read"
        raise ForgeRefused(f"not green: {what}", reason=FailureReason.NOT_ATTEMPTED)


@dataclass(frozen=True, slots=True)
class HeadRuns:
    """The workflow runs of a pull request's head: of its branch alone, as anybody may have a fork with its commit.

    `elsewhere`: the others at that commit. `visible`: whether the token may see runs.
    """

    runs: list[RunWire]
    elsewhere: list[RunWire]
    visible: bool

    @property
    def uncounted(self) -> list[RunWire]:
        """Runs that say nothing of the head: those from elsewhere, and those of Ralph's own workflows."""
        return [*self.elsewhere, *(run for run in self.runs if run.own)]


def _runs_at_head(threads: Threads, wire: PullWire) -> HeadRuns:
    every = _listed(threads, f"/actions/runs?head_sha={wire.head.sha}&per_page=100", "workflow_runs", RunWire)
    ours = {True: list[RunWire](), False: list[RunWire]()}
    for run in every or ():
        ours[is_of_head(run, wire)].append(run)
    return HeadRuns(ours[True], ours[False], every is not None)


def read_checks(threads: Threads, sha: str, started: HeadRuns) -> tuple[tuple[CheckState, ...], bool]:
    """The newest result of each check run and status of a commit, and whether the token may see all of them.

    A repeated check counts with its last result, also in a new run of its workflow; checks of two workflows, and a
    status, may share a name. A check that is skipped the second time, because of an unrelated label, has not run again.
    Of two jobs with the same name in a run, GitHub lists only the last. Jobs of runs that do not count are left out,
    but not what test reporters made, which GitHub puts in any suite of the commit.
    """
    flows = {run.check_suite_id: (run.workflow_id, run.event) for run in started.runs}
    uncounted = {run.check_suite_id: f"/actions/runs/{run.id}/job/" for run in started.uncounted}
    checks = _listed(threads, f"/commits/{sha}/check-runs?per_page=100", "check_runs", CheckWire)
    statuses = _listed(threads, f"/commits/{sha}/status?per_page=100", "statuses", StatusWire)
    newest: dict[Any, CheckState] = {}
    for run in sorted(checks or (), key=ran_last):
        url = run.html_url or ""
        if run.suite not in uncounted or uncounted[run.suite] not in url:
            asks = run.conclusion == ACTION_REQUIRED and run.app != ACTIONS  # no run of a workflow to start
            newest[flows.get(run.suite, run.suite), run.name] = CheckState(
                run.name, ASKS if asks else _result(run), url
            )
    for one in statuses or ():
        newest["status", one.context] = CheckState(one.context, one.state or PENDING, one.target_url or "")
    return tuple(newest.values()), checks is not None and statuses is not None


def _result(run: RunWire | CheckWire) -> str:
    return run.conclusion or PENDING


def _newest(runs: list[RunWire]) -> list[RunWire]:
    """The newest run of each workflow and event that was not skipped, if there is one."""
    return [*{(run.workflow_id, run.event): run for run in sorted(runs, key=ran_last)}.values()]


def _told_by_run(runs: list[RunWire], results: tuple[str, ...] = ()) -> Iterator[CheckState]:
    """The newest runs with one of these results, which may lack a check run; without results, all that did not pass.

    A run also covers a job that GitHub does not list because another job has its name.
    """
    for run in _newest(runs):
        result = _result(run)
        if (result in results if results else result not in WELL) and not run.own:
            yield CheckState(run.name or run.path, result, run.html_url)


def _require_started(checks: list[CheckState]) -> None:
    """Raise ForgeRefused that links the runs among these that wait for a click."""
    if waiting := [check for check in checks if check.result == ACTION_REQUIRED]:
        raise ForgeRefused(f"{HELD_CHECKS}: {_links(waiting)}", reason=FailureReason.NOT_ATTEMPTED)


def _list(checks: list[CheckState]) -> str:
    more = f"; and {len(checks) - SHOWN} more" if len(checks) > SHOWN else ""
    return "; ".join(f"{check} ({check.url})" if check.url else str(check) for check in checks[:SHOWN]) + more


def _links(checks: list[CheckState]) -> str:
    return ", ".join(check.url or check.name for check in checks[:SHOWN])


def missing_checks(threads: Threads, wire: PullWire, required_by_rulesets: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The result of each required check that has not passed, and its wording.

    `required_by_rulesets`: the setting behind each check that a ruleset requires. One that has not run may belong to a
    run that has not begun: it is waited for, and raises ForgeRefused where the run waits for a click.
    """
    required = dict.fromkeys(_classic_checks(threads, wire.base.ref), "") | required_by_rulesets
    if not required:
        return
    started = _runs_at_head(threads, wire)
    found, everything = read_checks(threads, wire.head.sha, started)
    coming = [*_told_by_run(started.runs, (PENDING, ACTION_REQUIRED))]
    unknown = PENDING if coming else MISSING if everything else UNSEEN
    results = {check.name: check for check in sorted(found, key=lambda check: check.result not in WELL)}
    for name, where in required.items():
        check = results.get(name, CheckState(name, unknown))
        if name not in results:
            _require_started(coming)
        if check.result not in WELL:
            yield check.result, f"the required check {check}{f': {where}' if where else ''}"


def _classic_checks(threads: Threads, branch: str) -> list[str]:
    """The checks that classic branch protection requires."""
    body = ask(threads, f"/branches/{quote(branch, safe='')}")
    checks = dig(body, "protection", "required_status_checks", "contexts")
    return [name for name in checks if isinstance(name, str)] if isinstance(checks, list) else []


def ask(threads: Threads, path: str) -> Any:
    """Optional details for an explanation, if the token may see them."""
    try:
        return threads.api.get(path, fresh=True)
    except (Absent, UserError):
        return None


def _listed(threads: Threads, path: str, key: str, kind: type[Listed]) -> tuple[Listed, ...] | None:
    """Every page of a list; None if the token may not see it. Raises ForgeRefused if it cannot be read."""
    try:
        return list_at(threads.api, path, key, kind, fresh=True)
    except UserError as problem:
        what = f"GitHub does not say now how its checks stand: {problem.what}"
        raise ForgeRefused(what, reason=FailureReason.NOT_ATTEMPTED) from None


def dig(value: Any, *keys: str) -> Any:
    """The value at these keys of nested objects, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
