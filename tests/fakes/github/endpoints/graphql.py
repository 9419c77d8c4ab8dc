"""The sliver of GraphQL that tells an installation who it is."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.github.refusal import Unknown
from tests.fakes.github.routing import Call, route

VIEWER = re.compile(
    r"\s*(?:query\s*\w*\s*)?\{\s*viewer\s*\{((?:\s*,?\s*(?:login|databaseId|__typename))+)\s*\}\s*\}\s*"
)


@route("POST", "/graphql", body=("query", "variables", "operationName"))
def graphql(call: Call) -> dict[str, Any]:
    query = call.text("query") or ""
    asked = VIEWER.fullmatch(query)
    if asked is None or call.body.get("variables"):
        raise Unknown(f"GraphQL: {query}")
    kind = "Bot" if call.actor.is_bot else "User"
    known = {"login": call.actor.login, "databaseId": call.actor.id, "__typename": kind}
    return {"data": {"viewer": {name: known[name] for name in re.findall(r"\w+", asked[1])}}}
