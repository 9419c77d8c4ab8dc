"""Commits, what lies between them, and what checks say of them."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.faults import Response
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.commits import check_run, combined

COMMIT = REPO + "/commits/{ref:path}"
MOST_COMMITS, MOST_FILES = 250, 300


@route(
    "GET",
    COMMIT + "/check-runs",
    needs="checks:read",
    role="read",
    query=("check_name", "status", "filter"),
    paged=True,
)
def list_checks(call: Call) -> Response:
    sha = _resolve(call, call.parts["ref"])
    found = [check for check in call.world.checks if check.sha == sha]
    if call.choice("filter", ("latest", "all"), "latest") == "latest":
        found = list({(check.suite, check.name): check for check in found}.values())
    if name := call.query.get("check_name"):
        found = [check for check in found if check.name == name]
    if wanted := call.choice("status", ("", "in_progress", "completed"), ""):
        found = [check for check in found if ("completed" if check.conclusion else "in_progress") == wanted]
    return call.page(found, check_run, wrap="check_runs")


@route("GET", COMMIT + "/status", needs="statuses:read", role="read", paged=True)
def get_combined_status(call: Call) -> dict[str, Any]:
    sha = _resolve(call, call.parts["ref"])
    return combined(call.world, sha, [one for one in call.world.statuses if one.sha == sha])


def _resolve(call: Call, name: str, missing: int = 422) -> str:
    sha = call.world.bare.branch(name) or call.world.bare.resolve(name)
    if not sha:
        raise Refusal(missing, "Not Found" if missing == 404 else f"No commit found for SHA: {name}")
    return sha
