"""Pulls and reviews."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.actions import pulls
from tests.fakes.github.nouns import Review, Thread
from tests.fakes.github.shapes.basics import association, maybe, node, stamp, user
from tests.fakes.github.shapes.issues import labels, place
from tests.fakes.github.shapes.repository import repository
from tests.fakes.github.state import World


def pull(world: World, thread: Thread) -> dict[str, Any]:
    """As it is listed."""
    part = thread.pull
    assert part
    here, page = f"{world.here}/pulls/{thread.number}", place(world, thread)
    assignees = [user(world, account) for account in thread.assignees]
    links = {
        "self": here,
        "html": page,
        "issue": f"{world.here}/issues/{thread.number}",
        "comments": f"{world.here}/issues/{thread.number}/comments",
        "review_comments": f"{here}/comments",
        "review_comment": f"{world.here}/pulls/comments{{/number}}",
        "commits": f"{here}/commits",
        "statuses": f"{world.here}/statuses/{part.head_sha}",
    }
    return {
        "url": here,
        "id": thread.id,
        "node_id": node("PR", thread.id),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": links["issue"],
        **{
            f"{name}_url": links[name]
            for name in ("commits", "review_comments", "review_comment", "comments", "statuses")
        },
        "number": thread.number,
        "state": thread.state,
        "locked": False,
        "active_lock_reason": None,
        "title": thread.title,
        "user": user(world, thread.author),
        "body": thread.body,
        "labels": labels(world, thread),
        "milestone": None,
        "created_at": stamp(thread.created_at),
        "updated_at": stamp(thread.updated_at),
        "closed_at": stamp(thread.closed_at),
        "merged_at": stamp(part.merged_at),
        "merge_commit_sha": pulls.test_merge(world, thread),
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _side(world, part.head, part.head_sha),
        "base": _side(world, part.base, part.base_sha),
        "_links": {name: {"href": link} for name, link in links.items()},
        "author_association": association(world, thread.author),
        "auto_merge": None,
        "draft": part.draft,
    }


def _side(world: World, ref: str, sha: str) -> dict[str, Any]:
    owner = user(world, world.account(world.owner))
    return {"label": f"{world.owner}:{ref}", "ref": ref, "sha": sha, "user": owner, "repo": repository(world)}


def pull_alone(world: World, thread: Thread) -> dict[str, Any]:
    """As asked for by number: with what has to be worked out."""
    part = thread.pull
    assert part
    return (
        pull(world, thread)
        | _mergeability(world, thread)
        | {
            "merged": bool(part.merged_at),
            "merged_by": maybe(world, part.merged_by),
            "rebaseable": None,
            "comments": len(world.of(thread.number)),
            "review_comments": 0,
            "maintainer_can_modify": False,
            **dict.fromkeys(("commits", "additions", "deletions", "changed_files"), 1),  # which nobody counts
        }
    )


def _mergeability(world: World, thread: Thread) -> dict[str, Any]:
    part = thread.pull
    assert part
    if part.lag > 0 and thread.state == "open":
        part.lag -= 1
        return {"mergeable": None, "mergeable_state": "unknown"}
    if thread.state == "closed":
        return {"mergeable": None, "mergeable_state": "unknown"}
    return {"mergeable": pulls.mergeable(world, thread), "mergeable_state": pulls.mergeable_state(world, thread)}


def review(world: World, found: Review) -> dict[str, Any]:
    here = f"{world.here}/pulls/{found.number}"
    page = f"{world.page}/pull/{found.number}#pullrequestreview-{found.id}"
    return {
        "id": found.id,
        "node_id": node("PRR", found.id),
        "user": user(world, found.author),
        "body": found.body,
        "state": found.state,
        "html_url": page,
        "pull_request_url": here,
        "author_association": association(world, found.author),
        "_links": {"html": {"href": page}, "pull_request": {"href": here}},
        "submitted_at": stamp(found.submitted_at),
        "commit_id": found.sha,
    }


def line_comment(world: World, found: Review, line: tuple[int, str, int, str]) -> dict[str, Any]:
    """A remark on a line, as part of a review."""
    number, path, place, words = line
    here = f"{world.here}/pulls/comments/{number}"
    pull = f"{world.here}/pulls/{found.number}"
    page = f"{world.page}/pull/{found.number}#discussion_r{number}"
    return {
        "url": here,
        "pull_request_review_id": found.id,
        "id": number,
        "node_id": node("PRRC", number),
        "diff_hunk": "@@ -0,0 +1 @@",
        "path": path,
        "line": place,
        "original_line": place,
        "side": "RIGHT",
        "commit_id": found.sha,
        "original_commit_id": found.sha,
        "user": user(world, found.author),
        "body": words,
        "created_at": stamp(found.submitted_at),
        "updated_at": stamp(found.edits[number][-1][1] if number in found.edits else found.submitted_at),
        "html_url": page,
        "pull_request_url": pull,
        "author_association": association(world, found.author),
        "_links": {"self": {"href": here}, "html": {"href": page}, "pull_request": {"href": pull}},
    }
