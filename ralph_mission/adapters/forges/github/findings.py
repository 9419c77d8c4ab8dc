"""What GitHub itself finds: runs of GitHub Actions, their failures and test reports, and security alerts.

Runs are identified by branch, and a fork's branch may have the same name: only runs of this repository count. Logs and
archives are stored elsewhere and are downloaded without the token, up to a size.

Alerts are those of Dependabot, code scanning and secret scanning, each if the token may read them. Kinds that are
unreadable or switched off are requested again a day later: that is the owner's choice, not a fault. Secrets are
requested without their values.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlencode

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent, Forbidden
from ralph_mission.adapters.forges.github.reading import Home, PullWire, Stamp, WireModel, at, read
from ralph_mission.adapters.sandbox.excerpt import failing_lines
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import (
    ACTION_REQUIRED,
    FAILED,
    WELL,
    AlertKind,
    FailedJob,
    SecurityAlert,
    WorkflowRun,
    is_own,
)
from ralph_mission.safety.text import truncate
from ralph_mission.values import compile_regex

PAGE = 100  # runs in one answer, of about 1.5 KB each
ACTIONS = "github-actions"  # the app that makes the check runs of workflows
SUMMARY = 2_000  # characters of what a check says of itself
LOG = 16_000_000  # bytes of a job's log
ARCHIVE, REPORT, REPORTS = 10_000_000, 4_000_000, 20
"""Bytes of an archive and of a report, and the number of reports read per run."""
REPORT_NAME = compile_regex(r"junit|xunit|surefire|test|report|result|rspec|pytest|jest", re.IGNORECASE)
OVER = (
    "GitHub shows no runs of workflows: actions are disabled or the token may not see them",
    "give the job `permissions: actions: read`",
)


Listed = TypeVar("Listed", bound=WireModel)


class RunWire(WireModel):
    """A run, as listed."""

    id: int
    workflow_id: int
    name: str | None = None
    path: str = ""
    event: str
    head_sha: str
    head_branch: str | None = None
    status: str | None = None
    conclusion: str | None = None
    run_attempt: int | None = None
    run_started_at: Stamp | None = None
    created_at: Stamp
    updated_at: Stamp | None = None
    html_url: str
    repository: Home | None = None
    head_repository: Home | None = None
    check_suite_id: int | None = None

    @property
    def own(self) -> bool:
        """Whether it belongs to a workflow of Ralph's own."""
        return is_own(self.path)


class StepWire(WireModel):
    """A step of a job."""

    name: str
    conclusion: str | None = None


class JobWire(WireModel):
    """A job of a run's attempt."""

    id: int
    name: str
    conclusion: str | None = None
    html_url: str | None = None
    steps: tuple[StepWire, ...] | None = None


class StatusWire(WireModel):
    """A service's newest status under a name."""

    context: str
    state: str
    target_url: str | None = None


class CheckWire(WireModel):
    """A check run of a commit: with the app that made it, and what it says of itself."""

    id: int
    name: str
    conclusion: str | None = None
    html_url: str | None = None
    app: str | None = at(None, "app", "slug")
    suite: int | None = at(None, "check_suite", "id")
    title: str | None = at(None, "output", "title")
    summary: str | None = at(None, "output", "summary")


class ArtifactWire(WireModel):
    """A run's artifact."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool


def workflow_runs(api: Api, branch: str, workflow: int, event: str, ended: str, most: int) -> tuple[WorkflowRun, ...]:
    """As in the port. Raises UserError."""
    below = f"/actions/workflows/{workflow}/runs" if workflow else "/actions/runs"
    query = {"branch": branch, "exclude_pull_requests": "true", "per_page": str(min(most, PAGE))}
    query |= {"event": event} if event else {}
    query |= {"status": ended} if ended else {}
    found: list[WorkflowRun] = []
    total = 0
    try:
        for page in api.pages(f"{below}?{urlencode(query)}", key="workflow_runs"):
            found += own_runs(page, branch)
            total += len(page)
            if total >= most:
                break
    except Absent:
        raise UserError(*OVER) from None
    return tuple(found)


def own_runs(page: list[Any], branch: str) -> Iterator[WorkflowRun]:
    """The runs of a page that belong to a branch of this repository. Raises UserError."""
    return (_run(wire) for wire in read(tuple[RunWire, ...], page) if _is_ours(wire, branch))


def _is_ours(wire: RunWire, branch: str) -> bool:
    return wire.head_branch == branch and wire.head_repository is not None and wire.head_repository == wire.repository


def _run(wire: RunWire) -> WorkflowRun:
    return WorkflowRun(
        wire.id,
        wire.workflow_id,
        wire.name or wire.path,
        wire.path.partition("@")[0],
        wire.event,
        wire.head_sha,
        (wire.conclusion or "") if wire.status == "completed" else "",
        wire.created_at,
        wire.run_started_at or wire.created_at,
        wire.html_url,
        wire.run_attempt or 1,
        wire.updated_at if wire.status == "completed" else None,
    )


def is_of_head(run: RunWire, pull: PullWire) -> bool:
    """Whether a run is of a pull request's head, and not of a fork or another branch with the same commit, which
    anybody may have. That of a deployment names no branch."""
    if run.head_repository != pull.head.repo:
        return False
    return run.head_branch in (None, "", pull.head.ref) or str(run.head_branch).startswith(f"refs/pull/{pull.number}/")


def ran_last(run: RunWire | CheckWire) -> tuple[bool, int]:
    """Order of runs, by which a run that was skipped, because of an unrelated label, replaces none."""
    return run.conclusion != "skipped", run.id


def runs_at(api: Api, pull: PullWire) -> tuple[WorkflowRun, ...]:
    """The newest run of each workflow at the head of a pull request, except our own; skipped ones replace none.

    Raises Absent, UserError.
    """
    pages = api.pages(f"/actions/runs?head_sha={pull.head.sha}&per_page=100", key="workflow_runs")
    listed = [one for page in pages for one in page]
    wires = sorted(read(tuple[RunWire, ...], listed), key=ran_last)
    ours = (wire for wire in wires if is_of_head(wire, pull))
    newest = {(wire.workflow_id, wire.event): wire for wire in ours if not wire.own}
    return tuple(_run(wire) for wire in newest.values())


def failed_at(api: Api, sha: str, runs: Iterable[WorkflowRun]) -> tuple[FailedJob, ...]:
    """The failed jobs of a commit's runs, with the log lines that say why. Raises UserError.

    They are cached.
    """
    failed = [run for run in runs if run.failed]
    if not failed:
        return ()
    name, ids = f"failed {sha}", [[run.id, run.attempt] for run in failed]
    entry = api.read_cache.get(name)
    if not isinstance(entry, dict) or entry.get("runs") != ids:
        jobs = [job for run in failed for job in failed_jobs(api, run, log=True) or [FailedJob(run.name, "", run.url)]]
        entry = {"runs": ids, "jobs": [[job.name, job.step, job.url, failing_lines(job.log)] for job in jobs]}
        api.read_cache.put(name, entry)
    return tuple(FailedJob(*map(str, job)) for job in entry["jobs"])


def services_at(api: Api, sha: str) -> tuple[tuple[FailedJob, ...], tuple[bool, ...], bool]:
    """What failed at a commit of services other than GitHub Actions, of each whether it passed, and whether all showed.

    They use statuses, or check runs as apps. None of those that the token may not see. Raises UserError.
    """
    statuses = list_at(api, f"/commits/{sha}/status?per_page=100", "statuses", StatusWire)
    checks = list_at(api, f"/commits/{sha}/check-runs?per_page=100", "check_runs", CheckWire)
    states, every = statuses or (), sorted(checks or (), key=lambda wire: wire.id)
    failed = [FailedJob(one.context, "", one.target_url or "") for one in states if one.state in ("failure", "error")]
    apps = {(one.app, one.name): one for one in every if one.app != ACTIONS}.values()
    failed += (_failed_check(one) for one in apps if one.conclusion in (*FAILED, ACTION_REQUIRED))
    passed = [one.state == "success" for one in states] + [one.conclusion in WELL for one in apps]
    return tuple(failed), tuple(passed), statuses is not None and checks is not None


def list_at(api: Api, path: str, key: str, kind: type[Listed], fresh: bool = False) -> tuple[Listed, ...] | None:
    """Every page of a list; None if the token may not see it. Raises UserError."""
    try:
        listed = [one for page in api.pages(path, fresh, key) for one in page]
        return read(tuple[kind, ...], listed)  # type: ignore[valid-type]  # pydantic reads it
    except (Absent, Forbidden):  # the token may not see them
        return None


def _failed_check(wire: CheckWire) -> FailedJob:
    """A check of an app, with what it says of itself in place of a log."""
    words = f"{wire.conclusion}: {wire.title or ''}\n{wire.summary or ''}"
    return FailedJob(wire.name, "", wire.html_url or "", truncate(words.strip(" :\n"), SUMMARY))


def failed_jobs(api: Api, run: WorkflowRun, log: bool) -> tuple[FailedJob, ...]:
    """As in the port; none if GitHub deleted them. Raises UserError."""
    try:
        pages = api.pages(f"/actions/runs/{run.id}/attempts/{run.attempt}/jobs?per_page=100", key="jobs")
        wires = [wire for page in pages for wire in read(tuple[JobWire, ...], page)]
    except Absent:
        return ()
    failed = [wire for wire in wires if wire.conclusion in FAILED]
    return tuple(_job(wire, _log(api, wire) if log and not place else "") for place, wire in enumerate(failed))


def _job(wire: JobWire, log: str) -> FailedJob:
    step = next((step.name for step in wire.steps or () if step.conclusion in FAILED), "")
    return FailedJob(wire.name, step, wire.html_url or "", log)


def _log(api: Api, wire: JobWire) -> str:
    """A job's log; "" if deleted, too long or unreachable: the rest is useful without it."""
    try:
        return api.download(f"/actions/jobs/{wire.id}/logs", LOG).decode("utf-8", "replace")
    except (Absent, UserError):
        return ""


def test_reports(api: Api, run: WorkflowRun) -> tuple[bytes, ...]:
    """As in the port; none if no artifact looks like one. Raises UserError."""
    try:
        pages = api.pages(f"/actions/runs/{run.id}/artifacts?per_page=100", key="artifacts")
        wires = read(tuple[ArtifactWire, ...], next(pages, []))
    except Absent:
        return ()
    chosen = [one for one in wires if not one.expired and one.size_in_bytes <= ARCHIVE and REPORT_NAME.search(one.name)]
    found: list[bytes] = []
    for one in chosen[:3]:
        try:
            found += _xml_files(api.download(f"/actions/artifacts/{one.id}/zip", ARCHIVE))
        except (Absent, UserError):
            continue
    return tuple(found[:REPORTS])


def _xml_files(archive: bytes) -> Iterator[bytes]:
    """The XML files in an archive, each up to a size; none if it is not an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            names = [one for one in opened.infolist() if one.filename.endswith(".xml") and one.file_size <= REPORT]
            for one in names[:REPORTS]:
                with opened.open(one) as file:
                    yield file.read(REPORT)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        return


PATHS: Mapping[AlertKind, str] = {
    "dependency": "/dependabot/alerts?per_page=100",
    "code": "/code-scanning/alerts?per_page=100",
    "secret": "/secret-scanning/alerts?hide_secret=true&per_page=100",
}
MOST = 300  # alerts of one kind
PAST = 2_000  # the same, with those that are closed
NOT_FIXED = ("false_positive", "wont_fix", "used_in_tests")  # resolutions of a secret
REFUSED = timedelta(days=1)
SEVERITIES = ("low", "medium", "high", "critical")


class AlertWire(WireModel):
    """An alert of any kind, as listed; without a field for a secret's value."""

    number: int
    html_url: str = ""
    ecosystem: str = at("", "dependency", "package", "ecosystem")
    package: str = at("", "dependency", "package", "name")
    manifest_path: str = at("", "dependency", "manifest_path")
    ghsa_id: str = at("", "security_advisory", "ghsa_id")
    cve_id: str | None = at(None, "security_advisory", "cve_id")
    summary: str = at("", "security_advisory", "summary")
    severity: str = at("", "security_advisory", "severity")
    affected: str = at("", "security_vulnerability", "vulnerable_version_range")
    fixed: str = at("", "security_vulnerability", "first_patched_version", "identifier")
    rule_id: str | None = at(None, "rule", "id")
    rule_description: str = at("", "rule", "description")
    rule_severity: str | None = at(None, "rule", "severity")
    security_severity_level: str | None = at(None, "rule", "security_severity_level")
    secret_type_display_name: str | None = None
    secret_type: str | None = None
    created_at: datetime | None = None
    fixed_at: datetime | None = None
    dismissed_at: datetime | None = None
    resolved_at: datetime | None = None
    resolution: str | None = None


def security_alerts(api: Api, kind: AlertKind, now: datetime) -> tuple[SecurityAlert, ...] | None:
    """Open alerts, newest first; None if unreadable. Raises UserError if GitHub does not answer."""
    refused = f"no {kind} alerts"
    with suppress(TypeError, ValueError):
        if timedelta(0) <= now - datetime.fromisoformat(api.read_cache.get(refused)) < REFUSED:
            return None
    found: list[Any] = []
    try:
        for page in api.pages(f"{PATHS[kind]}&state=open"):
            found += page
            if len(found) >= MOST:
                break
    except (Absent, UserError) as error:
        _raise_unless_refused(error)
        api.read_cache.put(refused, now.isoformat())
        return None
    return tuple(_alert(kind, wire) for wire in read(tuple[AlertWire, ...], found[:MOST]))


def past_alerts(api: Api, kind: AlertKind) -> tuple[SecurityAlert, ...] | None:
    """Every alert of a kind, also closed ones, newest first; None if unreadable. Raises UserError as above."""
    try:
        pages = list(islice(api.pages(PATHS[kind]), PAST // 100))
    except (Absent, UserError) as error:
        _raise_unless_refused(error)
        return None
    return tuple(_alert(kind, wire) for page in pages for wire in read(tuple[AlertWire, ...], page))


def _raise_unless_refused(error: Absent | UserError) -> None:
    if isinstance(error, UserError) and error.who != "you":
        raise error


def _alert(kind: AlertKind, wire: AlertWire) -> SecurityAlert:
    if kind == "dependency":
        return SecurityAlert(
            kind, wire.number, wire.html_url, wire.summary, _severity(wire.severity),
            ecosystem=wire.ecosystem, package=wire.package, path=wire.manifest_path, affected=wire.affected,
            fixed=wire.fixed, advisory=wire.ghsa_id, aliases=(wire.cve_id,) if wire.cve_id else (),
        )  # fmt: skip  # one value
    if kind == "code":
        level = {"error": "medium", "warning": "low"}.get(wire.rule_severity or "", "")
        severity = _severity(wire.security_severity_level or level)
        return SecurityAlert(
            kind, wire.number, wire.html_url, wire.rule_description, severity, wire.rule_id or "",
            created_at=wire.created_at, closed_at=wire.fixed_at or wire.dismissed_at,
            dismissed=wire.fixed_at is None and wire.dismissed_at is not None,
        )  # fmt: skip  # one value
    name = wire.secret_type_display_name or wire.secret_type or "a secret"
    return SecurityAlert(
        kind, wire.number, wire.html_url, name, "critical",
        created_at=wire.created_at, closed_at=wire.resolved_at, dismissed=wire.resolution in NOT_FIXED,
    )  # fmt: skip  # one value


def _severity(level: str) -> str:
    return level if level in SEVERITIES else ""
