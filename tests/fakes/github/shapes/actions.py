"""Workflows, their runs, environments, runners."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.nouns import REPOSITORY_ID, Artifact, Job, Run, Workflow
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
        "head_repository": minimal(world) | ({"id": REPOSITORY_ID + 1} if found.from_fork else {}),
    }


def job(world: World, pair: tuple[Run, int, Job]) -> dict[str, Any]:
    owner, attempt, found = pair
    here, at = f"{world.here}/actions/jobs/{found.id}", stamp(owner.run_started_at)
    return {
        "id": found.id,
        "run_id": owner.id,
        "run_url": f"{world.here}/actions/runs/{owner.id}",
        "run_attempt": attempt,
        "node_id": node("CR", found.id),
        "head_sha": owner.head_sha,
        "head_branch": owner.head_branch,
        "workflow_name": world.workflows[owner.path].name,
        "url": here,
        "html_url": f"{world.page}/actions/runs/{owner.id}/job/{found.id}",
        "status": "completed",
        "conclusion": found.conclusion,
        "created_at": at,
        "started_at": at,
        "completed_at": stamp(owner.updated_at),
        "name": found.name,
        "steps": [
            {
                "name": name,
                "status": "completed",
                "conclusion": conclusion,
                "number": number,
                "started_at": at,
                "completed_at": at,
            }
            for number, (name, conclusion) in enumerate(found.steps, 1)
        ],
        "check_run_url": f"{world.here}/check-runs/{found.id}",
        "labels": ["ubuntu-latest"],
        "runner_id": 1,
        "runner_name": "GitHub Actions 1",
        "runner_group_id": 0,
        "runner_group_name": "GitHub Actions",
    }


def artifact(world: World, pair: tuple[Run, Artifact]) -> dict[str, Any]:
    owner, found = pair
    here, at = f"{world.here}/actions/artifacts/{found.id}", stamp(owner.updated_at)
    return {
        "id": found.id,
        "node_id": node("MDg6QXJ0aWZhY3Q", found.id),
        "name": found.name,
        "size_in_bytes": len(found.content),
        "url": here,
        "archive_download_url": f"{here}/zip",
        "expired": found.expired,
        "created_at": at,
        "expires_at": at,
        "updated_at": at,
        "workflow_run": {"id": owner.id, "head_branch": owner.head_branch, "head_sha": owner.head_sha},
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
