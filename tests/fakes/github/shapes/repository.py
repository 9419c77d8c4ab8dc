"""The repository itself."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.nouns import LEVELS, REPOSITORY_ID, START, Account
from tests.fakes.github.shapes.basics import node, stamp, user
from tests.fakes.github.state import World

LINKS = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "hooks": "/hooks",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
}


def minimal(world: World) -> dict[str, Any]:
    """As it stands inside runs and statuses."""
    return {
        "id": REPOSITORY_ID,
        "node_id": node("R", REPOSITORY_ID),
        "name": world.name,
        "full_name": world.full_name,
        "private": world.private,
        "owner": user(world, world.account(world.owner)),
        "html_url": world.page,
        "description": None,
        "fork": False,
        "url": world.here,
        **{f"{name}_url": world.here + place for name, place in LINKS.items()},
    }


def repository(world: World) -> dict[str, Any]:
    """As it stands inside pulls."""
    issues = sum(thread.state == "open" and not thread.deleted for thread in world.threads.values())
    settings = world.settings
    times = dict.fromkeys(("created_at", "updated_at"), stamp(START)) | {"pushed_at": stamp(world.pushed_at)}
    return minimal(world) | {
        "git_url": f"git:{world.page.partition(':')[2]}.git",
        "ssh_url": f"git@127.0.0.1:{world.full_name}.git",
        "clone_url": f"{world.page}.git",
        "svn_url": world.page,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "topics": [],
        "size": 1,
        "default_branch": world.default_branch,
        "visibility": "private" if world.private else "public",
        "archived": settings.archived,
        "disabled": settings.disabled,
        "has_issues": settings.has_issues,
        "has_projects": True,
        "has_wiki": True,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "is_template": False,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        **dict.fromkeys(("open_issues", "open_issues_count"), issues),
        **dict.fromkeys(("watchers", "watchers_count", "stargazers_count"), 0),
        **dict.fromkeys(("forks", "forks_count"), 0),
        **times,
    }


def full(world: World, account: Account | None, rights: str) -> dict[str, Any]:
    """As asked for by its own address. How it merges is told to those only who may push."""
    levels = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
    held = LEVELS.index(rights)
    shown = repository(world) | {"subscribers_count": 0, "network_count": 0, "temp_clone_token": None}
    if account is not None:
        shown["permissions"] = {name: held >= LEVELS.index(level) for name, level in levels.items()}
    return shown | (_merging(world) if held >= LEVELS.index("write") else {})


def _merging(world: World) -> dict[str, Any]:
    settings = world.settings
    return {
        "allow_squash_merge": settings.allow_squash_merge,
        "allow_merge_commit": settings.allow_merge_commit,
        "allow_rebase_merge": True,
        "delete_branch_on_merge": False,
        "allow_auto_merge": False,
        "allow_update_branch": False,
        "squash_merge_commit_message": "COMMIT_MESSAGES",
        "squash_merge_commit_title": "COMMIT_OR_PR_TITLE",
        "merge_commit_message": "PR_TITLE",
        "merge_commit_title": "MERGE_MESSAGE",
    }
