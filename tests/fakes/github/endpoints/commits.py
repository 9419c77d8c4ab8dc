"""Commits, what lies between them, and what checks say of them."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.diffs import changes
from tests.fakes.github.faults import Response
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.commits import check_run, combined, commit, commit_alone, file_change, status

COMMIT = REPO + "/commits/{ref:path}"
READ = "contents:read"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
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
        found = list({check.name: check for check in found}.values())
    if name := call.query.get("check_name"):
        found = [check for check in found if check.name == name]
    if wanted := call.choice("status", ("", "in_progress", "completed"), ""):
        found = [check for check in found if ("completed" if check.conclusion else "in_progress") == wanted]
    return call.page(found, check_run, wrap="check_runs")


@route("GET", COMMIT + "/status", needs="statuses:read", role="read", paged=True)
def get_combined_status(call: Call) -> dict[str, Any]:
    sha = _resolve(call, call.parts["ref"])
    return combined(call.world, sha, [one for one in call.world.statuses if one.sha == sha])


@route("GET", COMMIT + "/statuses", needs="statuses:read", role="read", paged=True)
def list_statuses(call: Call) -> Response:
    sha = _resolve(call, call.parts["ref"])
    return call.page([one for one in reversed(call.world.statuses) if one.sha == sha], status)


@route("GET", COMMIT, needs=READ, role="read")
def get_commit(call: Call) -> dict[str, Any]:
    sha = _resolve(call, call.parts["ref"])
    parents = call.world.bare.commit(sha).parents
    return commit_alone(call.world, sha, changes(call.world.bare, parents[0] if parents else EMPTY_TREE, sha))


@route("GET", REPO + "/compare/{basehead:path}", needs=READ, role="read", paged=True)
def compare(call: Call) -> dict[str, Any]:
    names = call.parts["basehead"].split("...")
    if len(names) != 2:
        raise Refusal(404, "Not Found")
    world = call.world
    base, head = (_resolve(call, name, missing=404) for name in names)
    start = world.bare.merge_base(base, head)
    if not start:
        raise Refusal(404, f"No common ancestor between {names[0]} and {names[1]}.")
    ahead, behind = world.bare.between(base, head), world.bare.between(head, base)
    kind = {(False, False): "identical", (True, False): "ahead", (False, True): "behind", (True, True): "diverged"}
    page = f"{world.page}/compare/{call.parts['basehead']}"
    return {
        "url": f"{world.here}/compare/{call.parts['basehead']}",
        "html_url": page,
        "permalink_url": f"{world.page}/compare/{base}...{head}",
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": commit(world, base),
        "merge_base_commit": commit(world, start),
        "status": kind[bool(ahead), bool(behind)],
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [commit(world, sha) for sha in ahead[:MOST_COMMITS]],
        "files": [file_change(world, found, head) for found in changes(world.bare, start, head)[:MOST_FILES]],
    }


def _resolve(call: Call, name: str, missing: int = 422) -> str:
    sha = call.world.bare.branch(name) or call.world.bare.resolve(name)
    if not sha:
        raise Refusal(missing, "Not Found" if missing == 404 else f"No commit found for SHA: {name}")
    return sha
