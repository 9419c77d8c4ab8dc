"""What GitHub Actions has to tell: workflows and their runs."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Run
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes import actions as shapes

ACTIONS = REPO + "/actions"
READ = "actions:read"


@route("GET", ACTIONS + "/runs/{id:int}", needs=READ, role="read")
def get_run(call: Call) -> dict[str, Any]:
    return shapes.run(call.world, _run(call))


FILTERS = ("branch", "event", "status", "head_sha", "exclude_pull_requests", "created")


@route("GET", ACTIONS + "/runs", needs=READ, role="read", query=FILTERS, paged=True)
def list_runs(call: Call) -> Response:
    return call.page(_chosen(call, list(call.world.runs.values())), shapes.run, wrap="workflow_runs")


@route("GET", ACTIONS + "/workflows/{id}/runs", needs=READ, role="read", query=FILTERS, paged=True)
def list_runs_of_workflow(call: Call) -> Response:
    """By the number of the workflow, or the name of its file."""
    names = {name: flow for flow in call.world.workflows.values() for name in (str(flow.id), flow.path.split("/")[-1])}
    flow = names.get(call.parts["id"])
    if flow is None:
        raise Refusal(404, "Not Found")
    found = [run for run in call.world.runs.values() if run.path == flow.path]
    return call.page(_chosen(call, found), shapes.run, wrap="workflow_runs")


def _chosen(call: Call, runs: list[Run]) -> list[Run]:
    """Newest first. `status` is a status or a conclusion."""
    if call.query.get("exclude_pull_requests", "true") not in ("true", "false"):
        raise Unknown("exclude_pull_requests is true or false")
    wanted = {key: call.query[key] for key in FILTERS[:4] if key in call.query}
    first, dots, last = call.query.get("created", "0001-01-01..9999-12-31").partition("..")
    if not dots:
        raise Unknown("created is FIRST..LAST")
    found = [
        run
        for run in runs
        if first <= f"{run.created_at:%Y-%m-%d}" <= last
        and wanted.get("branch") in (None, run.head_branch)
        and wanted.get("event") in (None, run.event)
        and wanted.get("status") in (None, run.status, run.conclusion)
        and wanted.get("head_sha") in (None, run.head_sha)
    ]
    return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)


@route("GET", ACTIONS + "/runs/{id:int}/attempts/{attempt:int}/jobs", needs=READ, role="read", paged=True)
def list_jobs(call: Call) -> Response:
    run, attempt = _run(call), int(call.parts["attempt"])
    if not 1 <= attempt <= run.attempt:
        raise Refusal(404, "Not Found")
    return call.page([(run, attempt, job) for job in run.jobs.get(attempt, [])], shapes.job, wrap="jobs")


@route("GET", ACTIONS + "/jobs/{id:int}/logs", needs=READ, role="read")
def job_log(call: Call) -> Response:
    every = (job for run in call.world.runs.values() for jobs in run.jobs.values() for job in jobs)
    job = next((job for job in every if job.id == int(call.parts["id"])), None)
    if job is None or job.log is None:
        raise Refusal(404 if job is None else 410, "Not Found" if job is None else "Gone")
    return _kept(call, f"log-{job.id}.txt", job.log)


@route("GET", ACTIONS + "/runs/{id:int}/artifacts", needs=READ, role="read", paged=True)
def list_artifacts(call: Call) -> Response:
    run = _run(call)
    return call.page([(run, one) for one in run.artifacts], shapes.artifact, wrap="artifacts")


@route("GET", ACTIONS + "/artifacts/{id:int}/zip", needs=READ, role="read")
def artifact_archive(call: Call) -> Response:
    every = (one for run in call.world.runs.values() for one in run.artifacts)
    found = next((one for one in every if one.id == int(call.parts["id"])), None)
    if found is None or found.expired:
        raise Refusal(404 if found is None else 410, "Not Found" if found is None else "Artifact has expired")
    return _kept(call, f"artifact-{found.id}.zip", found.content)


def _run(call: Call) -> Run:
    found = call.world.runs.get(int(call.parts["id"]))
    if found is None or not call.token or found.repository != call.token.repository:
        raise Refusal(404, "Not Found")
    return found


def _kept(call: Call, name: str, content: bytes) -> Response:
    """Led to another place, by an address that is good for a while."""
    call.world.stored[name] = content
    return Response(302, {"Location": f"{call.world.url}/_stored/{name}?sig=a%2Fb%3D&se=2026-05-04T12%3A10%3A00Z"})


@route("GET", ACTIONS + "/workflows", needs=READ, role="read", paged=True)
def list_workflows(call: Call) -> Response:
    return call.page(list(call.world.workflows.values()), shapes.workflow, wrap="workflows")
