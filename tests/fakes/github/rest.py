"""From a request to the API to its reply: who asks, for what, may they, has it changed since."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tests.fakes.github import endpoints, routing, validation
from tests.fakes.github.actions import refs
from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import LEVELS, Request, Token
from tests.fakes.github.refusal import DOCS, Refusal, Unknown
from tests.fakes.github.routing import Call, Route
from tests.fakes.github.state import World

MEDIA = {"", "*/*", "application/json", "application/vnd.github+json", "application/vnd.github.v3+json"}
PREVIEW = re.compile(r"application/vnd\.github\.[a-z-]+-preview(\+json)?")  # of old; GitHub takes no notice
VERSIONS = {"", "2022-11-28"}
RAW = {"application/vnd.github.raw", "application/vnd.github.raw+json", "application/vnd.github.v3.raw"}
WRITES = {"POST", "PUT", "PATCH", "DELETE"}


def credential(headers: Mapping[str, str]) -> str | None:
    """The token in an Authorization header, whatever its scheme; None when there is none."""
    scheme, _, value = (headers.get("Authorization") or "").partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            return base64.b64decode(value).decode().partition(":")[2]
        return ""
    return value.strip() if scheme.lower() in ("bearer", "token") else None


def reply(world: World, request: Request, headers: Mapping[str, str], root: str, validate: bool) -> Response:
    """The reply, with everything that GitHub puts around it. Raises Unknown for what is not known."""
    token = world.tokens.get(credential(headers) or "")
    try:
        token = token or endpoints.apps.signed_in(world, credential(headers) or "")
        _authenticate(world, request, headers, token)
        response = _dispatch(world, request, headers, token, root, validate)
    except Refusal as refusal:
        response = Response(refusal.status, {}, refusal.payload)
        if validate:
            validation.check_error(refusal.status, response.payload)
    return _finish(world, request, response, token, headers)


def _authenticate(world: World, request: Request, headers: Mapping[str, str], token: Token | None) -> None:
    if token is None and credential(headers) is not None:
        raise Refusal(401, "Bad credentials")
    if token is None:
        return
    hour = int(world.clock.present().timestamp()) // 3600
    token.used = token.used + 1 if hour == token.hour else 1
    token.hour = hour
    if token.used > token.limit:
        whom = "installation" if token.kind == "installation" else "user"
        raise Refusal(403, f"API rate limit exceeded for {whom} ID {token.account.id}.")


ELSEWHERE = ("/repos/{owner}/{repo}/actions/runs/{id:int}",)
"""What there is to see of another repository: a workflow of its own may look after this one."""


def _dispatch(
    world: World, request: Request, headers: Mapping[str, str], token: Token | None, root: str, validate: bool
) -> Response:
    assert endpoints.ALL
    route, parts = routing.find(request)
    accept = _understood(route, request, headers)
    if token is None:
        raise Refusal(401, "Requires authentication")
    home = (token.repository or world.full_name).lower()
    if "owner" in parts and f"{parts['owner']}/{parts['repo']}".lower() != home:
        raise Refusal(404, "Not Found")
    if token.repository and route.template not in ELSEWHERE:
        raise Refusal(404, "Not Found")
    if world.settings.disabled and "repo" in parts:
        raise Refusal(403, "Repository access blocked")
    _authorise(world, route, token)
    call = Call(world, request, token, route, parts, root, accept)
    refs.follow(world, world.account(world.owner))
    if route.method in WRITES and "repo" in parts and world.settings.archived:
        raise Refusal(403, "Repository was archived so is read-only.")
    result = route.handler(call)
    response = result if isinstance(result, Response) else Response(200, {}, result)
    if validate and response.content is None:
        validation.check(route.method, route.template, response.status, response.payload)
    return response


def _understood(route: Route, request: Request, headers: Mapping[str, str]) -> str:
    """The media type asked for. Raises Unknown for a key, type or version that the fake does not know."""
    accept = (headers.get("Accept") or "").partition(",")[0].partition(";")[0].strip()
    version = headers.get("X-GitHub-Api-Version") or ""
    body = request.body or {}
    if unknown := set(request.query) - route.query:
        raise Unknown(f"{route.method} {route.template}: query {', '.join(sorted(unknown))}")
    if isinstance(body, list) and route.body != {"labels"}:  # labels alone may come as a mere list
        raise Refusal(400, "Body should be a JSON object")
    if unknown := set(body if isinstance(body, dict) else ()) - route.body:
        raise Unknown(f"{route.method} {route.template}: body {', '.join(sorted(unknown))}")
    known = accept in MEDIA or PREVIEW.fullmatch(accept)
    if not known and not (accept in RAW and "/contents" in route.template):
        raise Unknown(f"{route.method} {route.template}: media type {accept}")
    if version not in VERSIONS:
        raise Unknown(f"API version {version}")
    _characters(body, f"{route.method} {route.template}")
    return accept


def _characters(value: Any, where: str) -> None:
    """What GitHub does with NUL and lone surrogates is not known, so nothing may depend on it."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _characters(inner, where)
    elif isinstance(value, str) and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
        raise Unknown(f"{where}: NUL or a lone surrogate in a text")


def _authorise(world: World, route: Route, token: Token) -> None:
    as_app = endpoints.apps.AS_APP
    if (route.needs == as_app) != (token.kind == as_app):
        raise Refusal(401 if route.needs == as_app else 403, "A JSON web token could not be decoded")
    if token.kind == as_app:
        return
    if token.kind == "installation":
        _authorise_installation(route, token)
        return
    private_or_writing = world.private or route.method in WRITES
    if "{repo}" not in route.template:
        return
    if (private_or_writing and "repo" not in token.scopes) or (world.private and not token.account.at_least("read")):
        raise Refusal(404, "Not Found")
    held = token.account.level if world.private or token.account.at_least("read") else "read"
    if LEVELS.index(held) < LEVELS.index(route.role):
        raise Refusal(403, "Must have admin rights to Repository.")


def _authorise_installation(route: Route, token: Token) -> None:
    if not route.needs:
        return
    for one in route.needs.split("|"):
        if token.allows(*one.split(":")):
            return
    raise Refusal(403, "Resource not accessible by integration")


def _finish(
    world: World, request: Request, response: Response, token: Token | None, headers: Mapping[str, str]
) -> Response:
    if response.content is None and response.payload is not None:
        response.content = json.dumps(response.payload, ensure_ascii=False).encode()
        response.headers.setdefault("Content-Type", "application/json; charset=utf-8")
    response.headers |= {"X-GitHub-Media-Type": "github.v3; format=json", **standing(world, token)}
    if request.method == "GET" and response.status == 200:
        _condition(response, headers, token)
    return response


def _condition(response: Response, headers: Mapping[str, str], token: Token | None) -> None:
    """304 for what the client has already; it costs nothing. Weak comparison, as RFC 9110 has it."""
    tag = f'W/"{hashlib.sha256(response.content or b"").hexdigest()}"'
    response.headers |= {"ETag": tag, "Cache-Control": "private, max-age=60, s-maxage=60"}
    shown = {part.strip().removeprefix("W/") for part in (headers.get("If-None-Match") or "").split(",")}
    if tag.removeprefix("W/") in shown:
        response.status, response.content, response.payload = 304, b"", None
        response.headers.pop("Content-Type", None)
        if token:
            token.used -= 1
            response.headers |= standing_limits(token, int(response.headers["x-ratelimit-reset"]))


def standing(world: World, token: Token | None) -> dict[str, str]:
    """Headers that are on every reply."""
    reset = (int(world.clock.present().timestamp()) // 3600 + 1) * 3600
    return {
        "X-GitHub-Request-Id": f"FAKE:{next(world.ids):X}",
        "X-GitHub-Api-Version-Selected": "2022-11-28",
        **standing_limits(token, reset),
    }


def standing_limits(token: Token | None, reset: int) -> dict[str, str]:
    """How many requests are left in this hour."""
    limit, used = (token.limit, token.used) if token else (60, 1)
    figures = {"limit": limit, "remaining": max(0, limit - used), "used": used, "reset": reset}
    return {f"x-ratelimit-{name}": str(value) for name, value in figures.items()} | {"x-ratelimit-resource": "core"}


def unknown(what: str) -> Response:
    """The answer to what the fake does not know."""
    payload = {"message": f"the fake does not know this: {what}", "documentation_url": DOCS, "status": "501"}
    return Response(501, {"Content-Type": "application/json; charset=utf-8"}, payload)
