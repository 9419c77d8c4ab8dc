"""Commits, files, checks."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.bare import CommitInfo, Signature
from tests.fakes.github.nouns import START, Account, CheckRun, CommitStatus
from tests.fakes.github.shapes.basics import maybe, node, stamp, user
from tests.fakes.github.shapes.repository import minimal
from tests.fakes.github.state import World


def commit(world: World, sha: str) -> dict[str, Any]:
    """As it is listed."""
    found = world.bare.commit(sha)
    here = f"{world.here}/commits/{sha}"
    return {
        "sha": sha,
        "node_id": node("C", sha),
        "commit": _inner(world, found),
        "url": here,
        "html_url": f"{world.page}/commit/{sha}",
        "comments_url": f"{here}/comments",
        "author": maybe(world, _account(world, found.author)),
        "committer": maybe(world, _account(world, found.committer)),
        "parents": [
            {"sha": parent, "url": f"{world.here}/commits/{parent}", "html_url": f"{world.page}/commit/{parent}"}
            for parent in found.parents
        ],
    }


def _inner(world: World, found: CommitInfo) -> dict[str, Any]:
    unsigned = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
    return {
        "author": _signature(found.author),
        "committer": _signature(found.committer),
        "message": found.message,
        "tree": {"sha": found.tree, "url": f"{world.here}/git/trees/{found.tree}"},
        "url": f"{world.here}/git/commits/{found.sha}",
        "comment_count": 0,
        "verification": unsigned,
    }


def _signature(found: Signature) -> dict[str, Any]:
    return {"name": found.name, "email": found.email, "date": stamp(found.at)}


def _account(world: World, found: Signature) -> Account | None:
    """Whose address it is: only those that GitHub hands out are known."""
    number, _, rest = found.email.partition("+")
    if not number.isdigit() or not rest.endswith("@users.noreply.github.com"):
        return None
    return next((account for account in world.accounts.values() if account.id == int(number)), None)


def check_run(world: World, found: CheckRun) -> dict[str, Any]:
    """A check run, made by GitHub Actions or another app."""
    here = f"{world.here}/check-runs/{found.id}"
    of_job = found.suite in world.runs and not found.by_api
    page = f"{world.page}/{f'actions/runs/{found.suite}/job' if of_job else 'runs'}/{found.id}"
    output = {
        "title": found.title,
        "summary": found.summary,
        "text": None,
        "annotations_count": 0,
        "annotations_url": f"{here}/annotations",
    }
    return {
        "id": found.id,
        "name": found.name,
        "node_id": node("CR", found.id),
        "head_sha": found.sha,
        "external_id": "",
        "url": here,
        "html_url": page,
        "details_url": page,
        "status": "completed" if found.conclusion else "in_progress",
        "conclusion": found.conclusion,
        "started_at": stamp(found.at),
        "completed_at": stamp(found.at) if found.conclusion else None,
        "output": output,
        "check_suite": {"id": found.suite},
        "app": app(world) | {"slug": found.app},
        "pull_requests": [],
    }


def app(world: World) -> dict[str, Any]:
    """GitHub Actions, which is an app."""
    return {
        "id": 15368,
        "slug": "github-actions",
        "node_id": node("A", 15368),
        "owner": user(world, world.account("github")),
        "name": "GitHub Actions",
        "description": "Automate your workflow from idea to production",
        "external_url": "https://help.github.com/en/actions",
        "html_url": f"{world.url}/apps/github-actions",
        "created_at": stamp(START),
        "updated_at": stamp(START),
        "permissions": {"contents": "write", "metadata": "read"},
        "events": ["push"],
    }


def status(world: World, found: CommitStatus) -> dict[str, Any]:
    """One commit status."""
    return {
        "url": f"{world.here}/statuses/{found.sha}",
        "avatar_url": f"{world.url}/avatars/0",
        "id": found.id,
        "node_id": node("SC", found.id),
        "state": found.state,
        "description": None,
        "target_url": None,
        "context": found.context,
        "created_at": stamp(found.at),
        "updated_at": stamp(found.at),
    }


def combined(world: World, sha: str, found: list[CommitStatus]) -> dict[str, Any]:
    """All statuses of a commit as one."""
    newest = {status.context: status for status in found}
    states = {status.state for status in newest.values()}
    state = "failure" if states & {"failure", "error"} else "success" if states == {"success"} else "pending"
    here = f"{world.here}/commits/{sha}"
    return {
        "state": state,
        "statuses": [status(world, one) for one in newest.values()],
        "sha": sha,
        "total_count": len(newest),
        "repository": minimal(world),
        "commit_url": here,
        "url": f"{here}/status",
    }
