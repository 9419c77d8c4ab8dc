"""Workflows, their runs, environments, runners."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.nouns import Run, Workflow
from tests.fakes.github.shapes.basics import node, stamp, user
from tests.fakes.github.shapes.repository import minimal
from tests.fakes.github.state import World


def workflow(world: World, found: Workflow) -> dict[str, Any]:
    return {
        "id": found.id,
        "node_id": node("W", found.id),
        "name": found.name,
        "path": found.path,
        "state": found.state,
        "created_at": stamp(found.at),
        "updated_at": stamp(found.at),
        "url": f"{world.here}/actions/workflows/{found.id}",
        "html_url": f"{world.page}/blob/{world.default_branch}/{found.path}",
        "badge_url": f"{world.page}/workflows/{found.name}/badge.svg",
    }


def run(world: World, found: Run) -> dict[str, Any]:
    flow, here = world.workflows[found.path], f"{world.here}/actions/runs/{found.id}"
    actor = user(world, found.actor)
    return {
        "id": found.id,
        "name": flow.name,
        "node_id": node("WFR", found.id),
        "head_branch": found.head_branch,
        "head_sha": found.head_sha,
        "path": found.path,
        "display_title": flow.name,
        "run_number": found.number,
        "run_attempt": found.attempt,
        "event": found.event,
        "status": found.status,
        "conclusion": found.conclusion,
        "workflow_id": flow.id,
        "check_suite_id": found.id,
        "check_suite_node_id": node("CS", found.id),
        "url": here,
        "html_url": f"{world.page}/actions/runs/{found.id}",
        "pull_requests": [],
        "created_at": stamp(found.created_at),
        "updated_at": stamp(found.updated_at),
        "run_started_at": stamp(found.run_started_at),
        "actor": actor,
        "triggering_actor": actor,
        "referenced_workflows": [],
        "previous_attempt_url": None,
        **{f"{name}_url": f"{here}/{name}" for name in ("jobs", "logs", "artifacts", "cancel", "rerun")},
        "check_suite_url": f"{world.here}/check-suites/{found.id}",
        "workflow_url": f"{world.here}/actions/workflows/{flow.id}",
        "head_commit": _head(world, found.head_sha),
        "repository": minimal(world),
        "head_repository": minimal(world),
    }


def _head(world: World, sha: str) -> dict[str, Any] | None:
    if not world.bare.resolve(sha):
        return None
    found = world.bare.commit(sha)
    people = {
        role: {"name": who.name, "email": who.email}
        for role, who in (("author", found.author), ("committer", found.committer))
    }
    return {
        "id": sha,
        "tree_id": found.tree,
        "message": found.message,
        "timestamp": stamp(found.committer.at),
        **people,
    }
