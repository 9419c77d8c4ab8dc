"""Security alerts: of a kind that a test switched on, newest first."""

from __future__ import annotations

from typing import Any

from tests.fakes.github.faults import Response
from tests.fakes.github.refusal import Refusal, Unknown
from tests.fakes.github.routing import REPO, Call, route

HIDES = True  # whether values are left out where that is asked for
OFF = {
    "dependabot": (403, "Dependabot alerts are disabled for this repository."),
    "code-scanning": (404, "no analysis found"),
    "secret-scanning": (404, "Secret scanning is disabled on this repository."),
}


@route(
    "GET", REPO + "/dependabot/alerts", needs="vulnerability_alerts:read", role="write", query=("state",), paged=True
)
def list_dependabot_alerts(call: Call) -> Response:
    return _list(call, "dependabot")


@route("GET", REPO + "/code-scanning/alerts", needs="security_events:read", role="write", query=("state",), paged=True)
def list_code_scanning_alerts(call: Call) -> Response:
    return _list(call, "code-scanning")


@route(
    "GET",
    REPO + "/secret-scanning/alerts",
    needs="secret_scanning_alerts:read",
    role="write",
    query=("state", "hide_secret"),
    paged=True,
)
def list_secret_scanning_alerts(call: Call) -> Response:
    return _list(call, "secret-scanning")


def _list(call: Call, kind: str) -> Response:
    if kind not in call.world.alerts:
        raise Refusal(*OFF[kind])
    wanted = call.query.get("state")
    if wanted not in (None, "open"):
        raise Unknown("only open alerts are asked for, or all")
    found = call.world.alerts[kind]
    listed = found if wanted is None else [one for one in found if one.get("state", "open") == "open"]
    return call.page(listed, lambda world, found: _shown(call, found))


def _shown(call: Call, found: dict[str, Any]) -> dict[str, Any]:
    """With its secret, unless it was asked for without."""
    hidden = HIDES and call.query.get("hide_secret") == "true"
    return {key: value for key, value in found.items() if not (hidden and key == "secret")}
