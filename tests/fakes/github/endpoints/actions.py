"""What GitHub Actions has to tell: workflows, runs, what tokens may do, runners, environments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.fakes.github.endpoints.accounts import NEVER
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Run, Workflow
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes import actions as shapes

ACTIONS = REPO + "/actions"
READ = "actions:read"
FILTERS = ("status", "event", "branch", "actor", "created", "head_sha")
STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")


@route("GET", ACTIONS + "/runs", needs=READ, role="read", query=FILTERS, paged=True)
def list_runs(call: Call) -> Response:
    return call.page(_runs(call), shapes.run, wrap="workflow_runs")


@route("GET", ACTIONS + "/workflows/{workflow}/runs", needs=READ, role="read", query=FILTERS, paged=True)
def list_runs_of(call: Call) -> Response:
    path = _workflow(call).path
    return call.page([run for run in _runs(call) if run.path == path], shapes.run, wrap="workflow_runs")


def _runs(call: Call) -> list[Run]:
    """Newest first."""
    found = [run for run in call.world.runs.values() if _wanted(call, run)]
    return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)


def _wanted(call: Call, run: Run) -> bool:
    query = call.query
    status = query.get("status", run.status)
    return (
        (run.status if status in STATUSES else run.conclusion) == status
        and query.get("event", run.event) == run.event
        and query.get("branch", run.head_branch) == run.head_branch
        and query.get("actor", run.actor.login).lower() == run.actor.login.lower()
        and query.get("head_sha", run.head_sha) == run.head_sha
        and _created(query.get("created", ""), run)
    )


def _created(wanted: str, run: Run) -> bool:
    if not wanted:
        return True
    if not wanted.startswith(">=") or "T" not in wanted:
        raise Unknown(f"query created={wanted}")
    return run.created_at >= datetime.fromisoformat(wanted[2:])


@route("GET", ACTIONS + "/runs/{id:int}", needs=READ, role="read")
def get_run(call: Call) -> dict[str, Any]:
    found = call.world.runs.get(int(call.parts["id"]))
    if found is None:
        raise Refusal(404, "Not Found")
    return shapes.run(call.world, found)


@route("GET", ACTIONS + "/workflows", needs=READ, role="read", paged=True)
def list_workflows(call: Call) -> Response:
    return call.page(list(call.world.workflows.values()), shapes.workflow, wrap="workflows")


@route("GET", ACTIONS + "/workflows/{workflow}", needs=READ, role="read")
def get_workflow(call: Call) -> dict[str, Any]:
    return shapes.workflow(call.world, _workflow(call))


def _workflow(call: Call) -> Workflow:
    """By number or by file name."""
    name = call.parts["workflow"]
    for found in call.world.workflows.values():
        if name in (str(found.id), found.path.rpartition("/")[2]):
            return found
    raise Refusal(404, "Not Found")


@route("GET", ACTIONS + "/permissions/workflow", needs=NEVER, role="admin")
def get_workflow_permissions(call: Call) -> dict[str, Any]:
    settings = call.world.settings
    return {
        "default_workflow_permissions": settings.default_workflow_permissions,
        "can_approve_pull_request_reviews": settings.actions_can_create_pulls,
    }


@route("GET", ACTIONS + "/runners", needs=NEVER, role="admin", paged=True)
def list_runners(call: Call) -> Response:
    return call.page(call.world.runners, shapes.runner, wrap="runners")


@route("GET", REPO + "/environments/{name}", needs=READ, role="read")
def get_environment(call: Call) -> dict[str, Any]:
    found = call.world.environments.get(call.parts["name"])
    if found is None:
        raise Refusal(404, "Not Found")
    return shapes.environment(call.world, found)
