"""What GitHub Actions has to tell: workflows and their runs."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.faults import Response
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes import actions as shapes

ACTIONS = REPO + "/actions"
READ = "actions:read"


@route("GET", ACTIONS + "/runs/{id:int}", needs=READ, role="read")
def get_run(call: Call) -> dict[str, Any]:
    found = call.world.runs.get(int(call.parts["id"]))
    if found is None:
        raise Refusal(404, "Not Found")
    return shapes.run(call.world, found)


@route("GET", ACTIONS + "/runs", needs=READ, role="read", query=("head_sha",), paged=True)
def list_runs(call: Call) -> Response:
    wanted = call.query.get("head_sha")
    found = [run for run in call.world.runs.values() if wanted in (None, run.head_sha)]
    found.sort(key=lambda run: (run.created_at, run.id), reverse=True)
    return call.page(found, shapes.run, wrap="workflow_runs")


@route("GET", ACTIONS + "/workflows", needs=READ, role="read", paged=True)
def list_workflows(call: Call) -> Response:
    return call.page(list(call.world.workflows.values()), shapes.workflow, wrap="workflows")
