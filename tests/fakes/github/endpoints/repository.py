"""The repository, its branches, refs and files; being told to wake up."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.github.endpoints.accounts import rights
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import Dispatch
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.commits import commit
from tests.fakes.github.shapes.repository import full

READ, WRITE = "contents:read", "contents:write"
MOST_KEYS, MOST_LETTERS, LONGEST_TYPE = 10, 65_535, 100


@route("GET", REPO, role="read")
def get_repository(call: Call) -> dict[str, Any]:
    assert call.token
    installation = call.token.kind == "installation"
    level = "write" if call.token.permissions.get("contents") == "write" else "read"
    return full(call.world, call.actor, level if installation else rights(call, call.actor))


# --- branches and refs


@route("GET", REPO + "/branches/{branch:path}", needs=READ, role="read")
def get_branch(call: Call) -> dict[str, Any]:
    name = _branch(call)
    here = f"{call.world.here}/branches/{name}"
    rules = call.world.protections.get(name)
    checks = list(rules.required_checks) if rules else []
    level = "off" if rules is None else "everyone" if rules.enforce_admins else "non_admins"
    required = {
        "enforcement_level": level,
        "contexts": checks,
        "checks": [{"context": check, "app_id": None} for check in checks],
    }
    return {
        "name": name,
        "commit": commit(call.world, call.world.bare.branch(name)),
        "_links": {"self": here, "html": f"{call.world.page}/tree/{name}"},
        "protected": bool(call.world.rules_of(name)),  # by a ruleset too, of which the rest here knows nothing
        "protection": {"enabled": rules is not None, "required_status_checks": required},
        "protection_url": f"{here}/protection",
    }


def _branch(call: Call) -> str:
    name = call.parts["branch"]
    if not call.world.bare.branch(name):
        raise Refusal(404, "Branch not found")
    return name


# --- files


# --- waking up


@route("POST", REPO + "/dispatches", needs=WRITE, role="write", body=("event_type", "client_payload"))
def dispatch(call: Call) -> Response:
    event, payload = call.text("event_type") or "", call.body.get("client_payload", {})
    if not 0 < len(event) <= LONGEST_TYPE:
        raise Refusal(422, f"Invalid request.\n\n{event!r} is not within 1 and {LONGEST_TYPE} characters.")
    if not isinstance(payload, dict):
        raise Refusal(422, f"Invalid request.\n\nFor 'properties/client_payload', {payload!r} is not an object.")
    if len(payload) > MOST_KEYS:
        what = f"No more than {MOST_KEYS} properties are allowed; {len(payload)} were supplied."
        raise Refusal(422, f"Invalid request.\n\n{what}")
    if len(json.dumps(payload)) > MOST_LETTERS:
        raise Refusal(422, "client_payload is too large.")
    call.world.dispatches.append(Dispatch(event, payload, call.world.clock.tick(), call.actor.login))
    return Response(204)
