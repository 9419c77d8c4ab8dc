"""Who one is, who may what, how many requests are left."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.nouns import Account
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.basics import public, user

LEGACY = {"maintain": "write", "triage": "read"}
FLAGS = {"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage", "pull": "read"}
NEVER = "nobody:write"  # a permission that no installation has


@route("GET", "/user", needs=NEVER)
def me(call: Call) -> dict[str, Any]:
    private = dict.fromkeys(
        ("private_gists", "total_private_repos", "owned_private_repos", "disk_usage", "collaborators"), 0
    )
    return public(call.world, call.actor) | private | {"two_factor_authentication": True}


@route("GET", REPO + "/collaborators/{login}/permission", role="read")
def permission(call: Call) -> dict[str, Any]:
    assert call.token
    if call.token.kind == "pat" and not call.actor.at_least("write"):
        raise Refusal(403, "Must have push access to view collaborator permission.")
    found = call.world.accounts.get(call.parts["login"].lower())
    if found is None or found.is_bot:
        raise Refusal(404, f"{call.parts['login']} is not a user")
    role = rights(call, found)
    flags = {name: level in _held(role) for name, level in FLAGS.items()}
    who = user(call.world, found) | {"permissions": flags, "role_name": role}
    return {"permission": LEGACY.get(role, role), "role_name": role, "user": who}


def rights(call: Call, account: Account) -> str:
    """The level somebody really has: everyone may read what is public."""
    return "read" if account.level == "none" and not call.world.private else account.level


def _held(role: str) -> tuple[str, ...]:
    levels = ("read", "triage", "write", "maintain", "admin")
    return levels[: levels.index(role) + 1] if role in levels else ()
