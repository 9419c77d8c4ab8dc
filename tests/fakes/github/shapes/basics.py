"""Times, accounts, ids."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from tests.fakes.github.nouns import Account
from tests.fakes.github.state import World


def stamp(at: datetime | None) -> str | None:
    """Whole seconds in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def node(kind: str, number: int | str) -> str:
    """A node id; opaque to everyone."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()


def user(world: World, account: Account) -> dict[str, Any]:
    """A simple user."""
    here = f"{world.api}/users/{account.login.replace('[', '%5B').replace(']', '%5D')}"
    page = f"apps/{account.login.removesuffix('[bot]')}" if account.is_bot else account.login
    lists = {
        name: f"{here}/{name.removesuffix('_url')}" for name in ("followers_url", "subscriptions_url", "repos_url")
    }
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node("U", account.id),
        "avatar_url": f"{world.url}/avatars/{account.id}",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{world.url}/{page}",
        **lists,
        "following_url": f"{here}/following{{/other_user}}",
        "gists_url": f"{here}/gists{{/gist_id}}",
        "starred_url": f"{here}/starred{{/owner}}{{/repo}}",
        "organizations_url": f"{here}/orgs",
        "events_url": f"{here}/events{{/privacy}}",
        "received_events_url": f"{here}/received_events",
        "type": "Bot" if account.is_bot else "User",
        "user_view_type": "public",
        "site_admin": False,
    }


def maybe(world: World, account: Account | None) -> dict[str, Any] | None:
    """A simple user or nothing."""
    return user(world, account) if account else None


def public(world: World, account: Account) -> dict[str, Any]:
    """What anyone may know of a user."""
    return user(world, account) | {
        "name": None,
        "company": None,
        "blog": "",
        "location": None,
        "email": None,
        "hireable": None,
        "bio": None,
        "twitter_username": None,
        "public_repos": 1,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": stamp(account.created_at),
        "updated_at": stamp(account.created_at),
    }


def association(world: World, account: Account) -> str:
    """How somebody stands to the repository."""
    if account.login.lower() == world.owner.lower():
        return "OWNER"
    return "COLLABORATOR" if account.at_least("read") and not account.is_bot else "NONE"
