"""GitHub Actions runs on the default branch, their failures, and their test reports.

Runs are identified by branch, and a fork's branch may have the same name: only runs of this repository count. Logs and
archives are stored elsewhere and are downloaded without the token, up to a size.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlencode

from ralph_mission.adapters.forges.github.api import Api
from ralph_mission.adapters.forges.github.limits import Absent, Forbidden
from ralph_mission.adapters.forges.github.reading import Home, PullWire, Stamp, WireModel, read
from ralph_mission.adapters.sandbox.excerpt import failing_lines
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import FAILED, HELD, WELL, FailedJob, WorkflowRun, is_own
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


class AppWire(WireModel):
    """The app that made a check run."""

    slug: str | None = None


class OutputWire(WireModel):
    """What a check run says of itself."""

    title: str | None = None
    summary: str | None = None


class CheckWire(WireModel):
    """A check run of a commit."""

    id: int
    name: str
    conclusion: str | None = None
    html_url: str | None = None
    app: AppWire | None = None
    output: OutputWire = OutputWire()


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


def is_of_head(branch: str | None, repository: object, pull: PullWire) -> bool:
    """Whether a run with this branch and repository is of a pull request's head, and not of a fork or another branch
    with the same commit, which anybody may have. That of a deployment names no branch."""
    if repository != (pull.head.repo and pull.head.repo.id):
        return False
    return branch in (None, "", pull.head.ref) or str(branch).startswith(f"refs/pull/{pull.number}/")


def runs_at(api: Api, pull: PullWire) -> tuple[WorkflowRun, ...]:
    """The newest run of each workflow at the head of a pull request, except our own; skipped ones replace none.

    Raises Absent, UserError.
    """
    pages = api.pages(f"/actions/runs?head_sha={pull.head.sha}&per_page=100", key="workflow_runs")
    listed = [one for page in pages for one in page]
    wires = sorted(read(tuple[RunWire, ...], listed), key=lambda wire: (wire.conclusion != "skipped", wire.id))
    ours = (
        wire for wire in wires if is_of_head(wire.head_branch, wire.head_repository and wire.head_repository.id, pull)
    )
    newest = {(wire.workflow_id, wire.event): wire for wire in ours if not is_own(wire.path)}
    return tuple(_run(wire) for wire in newest.values())


def failed_at(api: Api, sha: str, runs: Iterable[WorkflowRun]) -> tuple[FailedJob, ...]:
    """The failed jobs of a commit's runs, with the log lines that say why. Raises UserError.

    They are cached.
    """
    failed = [run for run in runs if run.failed]
    if not failed:
        return ()
    name, ids = f"failed {sha}", [[run.id, run.attempt] for run in failed]
    entry = api.kept.get(name)
    if not isinstance(entry, dict) or entry.get("runs") != ids:
        jobs = [job for run in failed for job in failed_jobs(api, run, log=True) or [_without_jobs(run)]]
        entry = {"runs": ids, "jobs": [[job.name, job.step, job.url, failing_lines(job.log)] for job in jobs]}
        api.kept.put(name, entry)
    return tuple(FailedJob(*map(str, job)) for job in entry["jobs"])


def _without_jobs(run: WorkflowRun) -> FailedJob:
    """What stands for a run that could not be started, or whose jobs GitHub deleted."""
    return FailedJob(run.name, "", run.url)


def services_at(api: Api, sha: str) -> tuple[tuple[FailedJob, ...], tuple[bool, ...], bool]:
    """What failed at a commit of services other than GitHub Actions, of each whether it passed, and whether all showed.

    They use statuses, or check runs as apps. None of those that the token may not see. Raises UserError.
    """
    statuses = _listed_at(api, f"/commits/{sha}/status?per_page=100", "statuses", StatusWire)
    checks = _listed_at(api, f"/commits/{sha}/check-runs?per_page=100", "check_runs", CheckWire)
    states, every = statuses or (), sorted(checks or (), key=_age)
    failed = [FailedJob(one.context, "", one.target_url or "") for one in states if one.state in ("failure", "error")]
    apps = {(_app(one), one.name): one for one in every if _app(one) != ACTIONS}.values()
    failed += (_failed_check(one) for one in apps if one.conclusion in (*FAILED, HELD))
    passed = [one.state == "success" for one in states] + [one.conclusion in WELL for one in apps]
    return tuple(failed), tuple(passed), statuses is not None and checks is not None


def _listed_at(api: Api, path: str, key: str, kind: type[Listed]) -> tuple[Listed, ...] | None:
    try:
        listed = [one for page in api.pages(path, key=key) for one in page]
        return read(tuple[kind, ...], listed)  # type: ignore[valid-type]  # pydantic reads it
    except (Absent, Forbidden):  # the token may not see them
        return None


def _app(wire: CheckWire) -> str:
    return (wire.app and wire.app.slug) or ""


def _age(wire: CheckWire) -> int:
    return wire.id


def _failed_check(wire: CheckWire) -> FailedJob:
    """A check of an app, with what it says of itself in place of a log."""
    words = f"{wire.conclusion}: {wire.output.title or ''}\n{wire.output.summary or ''}"
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
