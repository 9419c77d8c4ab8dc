"""Issues, comments, labels, history."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.fakes.github.nouns import Comment, Event, Label, Thread
from tests.fakes.github.shapes.basics import association, maybe, node, stamp, user
from tests.fakes.github.state import World

REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def label(world: World, found: Label) -> dict[str, Any]:
    return {
        "id": found.id,
        "node_id": node("LA", found.id),
        "url": f"{world.here}/labels/{quote(found.name, safe='')}",
        "name": found.name,
        "color": found.color,
        "default": False,
        "description": found.description,
        "archived_at": None,
        "archived_by": None,
    }


def labels(world: World, thread: Thread) -> list[dict[str, Any]]:
    return [label(world, world.label(name)) for name in thread.labels]


def place(world: World, thread: Thread) -> str:
    """Where people look at it."""
    return f"{world.page}/{'pull' if thread.pull else 'issues'}/{thread.number}"


def issue(world: World, thread: Thread) -> dict[str, Any]:
    """An issue, or a pull seen as one: as it is listed."""
    here = f"{world.here}/issues/{thread.number}"
    assignees = [user(world, account) for account in thread.assignees]
    shown = {
        "url": here,
        "repository_url": world.here,
        "labels_url": f"{here}/labels{{/name}}",
        "comments_url": f"{here}/comments",
        "events_url": f"{here}/events",
        "timeline_url": f"{here}/timeline",
        "html_url": place(world, thread),
        "id": thread.id,
        "node_id": node("I", thread.id),
        "number": thread.number,
        "title": thread.title,
        "user": user(world, thread.author),
        "labels": labels(world, thread),
        "state": thread.state,
        "locked": False,
        "active_lock_reason": None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "comments": len(world.of(thread.number)),
        "created_at": stamp(thread.created_at),
        "updated_at": stamp(thread.updated_at),
        "closed_at": stamp(thread.closed_at),
        "author_association": association(world, thread.author),
        "body": thread.body,
        "reactions": reactions(f"{here}/reactions"),
        "performed_via_github_app": None,
        "state_reason": thread.state_reason,
    }
    return shown | (_as_pull(world, thread) if thread.pull else {})


def issue_alone(world: World, thread: Thread) -> dict[str, Any]:
    """An issue asked for by number, which also says who closed it."""
    return issue(world, thread) | {"closed_by": maybe(world, thread.closed_by)}


def _as_pull(world: World, thread: Thread) -> dict[str, Any]:
    assert thread.pull
    page = place(world, thread)
    links = {
        "url": f"{world.here}/pulls/{thread.number}",
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": stamp(thread.pull.merged_at),
    }
    return {"draft": thread.pull.draft, "pull_request": links}


def reactions(url: str) -> dict[str, Any]:
    return {"url": url, "total_count": 0, **dict.fromkeys(REACTIONS, 0)}


def comment(world: World, found: Comment) -> dict[str, Any]:
    here = f"{world.here}/issues/comments/{found.id}"
    return {
        "url": here,
        "html_url": f"{place(world, world.threads[found.number])}#issuecomment-{found.id}",
        "issue_url": f"{world.here}/issues/{found.number}",
        "id": found.id,
        "node_id": node("IC", found.id),
        "user": user(world, found.author),
        "created_at": stamp(found.created_at),
        "updated_at": stamp(found.updated_at),
        "author_association": association(world, found.author),
        "body": found.body,
        "reactions": reactions(f"{here}/reactions"),
        "performed_via_github_app": None,
    }


def event(world: World, found: Event) -> dict[str, Any]:
    """A line of history, as `/events` and the timeline have it."""
    shown = {
        "id": found.id,
        "node_id": node("EV", found.id),
        "url": f"{world.here}/issues/events/{found.id}",
        "actor": user(world, found.actor),
        "event": found.name,
        "commit_id": found.commit_id,
        "commit_url": f"{world.here}/commits/{found.commit_id}" if found.commit_id else None,
        "created_at": stamp(found.created_at),
        **found.extra,
        "performed_via_github_app": None,
    }
    if found.label:
        kept = world.label(found.label)
        shown["label"] = {"name": kept.name, "color": kept.color}
    if found.assignee:
        shown |= {"assignee": user(world, found.assignee), "assigner": user(world, found.actor)}
    return shown
