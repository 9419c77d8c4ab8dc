"""A GitHub App as itself: by a JWT that its key signed it finds its installation and is given tokens for it."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fakes.github.faults import Response
from tests.fakes.github.nouns import App, Token
from tests.fakes.github.refusal import Refusal
from tests.fakes.github.routing import REPO, Call, route
from tests.fakes.github.shapes.basics import stamp, user
from tests.fakes.github.state import World

AS_APP = "app"
"""What only an app itself may ask for."""
LONGEST = 600  # seconds that a JWT may hold


def signed_in(world: World, shown: str) -> Token | None:
    """The app whose JWT this is, by the clock of this machine; None for anything else. Raises Refusal."""
    if shown.count(".") != 2:
        return None
    import jwt

    try:
        app = world.apps.get(str(jwt.decode(shown, options={"verify_signature": False}).get("iss")))
        if app is None:
            raise Refusal(401, "Integration not found")
        claims = jwt.decode(shown, app.public_key, algorithms=["RS256"], options={"require": ["iat", "exp"]})
    except jwt.ExpiredSignatureError:
        raise Refusal(
            401, "'Expiration time' claim ('exp') must be a numeric value representing the future time"
        ) from None
    except jwt.PyJWTError:
        raise Refusal(401, "A JSON web token could not be decoded") from None
    if claims["exp"] - claims["iat"] > LONGEST + 60:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")
    return Token(shown, app.account, AS_APP, {}, ())


@route("GET", REPO + "/installation", needs=AS_APP)
def installation(call: Call) -> dict[str, Any]:
    app = _app(call)
    if not app.installed:
        raise Refusal(404, "Not Found")
    here, at = f"{call.world.api}/app/installations/{app.installation}", stamp(call.world.clock.present())
    return {
        "id": app.installation,
        "account": user(call.world, call.world.account(call.world.owner)),
        "repository_selection": "selected",
        "access_tokens_url": f"{here}/access_tokens",
        "repositories_url": f"{call.world.api}/installation/repositories",
        "html_url": f"{call.world.url}/settings/installations/{app.installation}",
        "app_id": int(app.id),
        "target_id": 1,
        "target_type": "User",
        "permissions": app.permissions,
        "events": [],
        "created_at": at,
        "updated_at": at,
        "single_file_name": None,
        "app_slug": app.account.login.removesuffix("[bot]"),
        "suspended_by": None,
        "suspended_at": None,
    }


@route("POST", "/app/installations/{id:int}/access_tokens", needs=AS_APP, body=("permissions",))
def access_token(call: Call) -> Response:
    app = _app(call)
    if not app.installed or int(call.parts["id"]) != app.installation:
        raise Refusal(404, "Not Found")
    if app.suspended:
        raise Refusal(403, "This installation has been suspended")
    asked = call.body.get("permissions") or app.permissions
    if any(app.permissions.get(name) not in (level, "write") for name, level in asked.items()):
        raise Refusal(422, "The permissions requested are not granted to this installation.")
    for old in [value for value, token in call.world.tokens.items() if token.account is app.account]:
        if app.lives <= timedelta(seconds=20):  # by now it is over
            del call.world.tokens[old]
    value = f"ghs_{secrets.token_hex(18)}"
    call.world.tokens[value] = Token(value, app.account, "installation", dict(asked), ())
    until = stamp(datetime.now(UTC) + app.lives)
    told = {"token": value, "expires_at": until, "permissions": asked, "repository_selection": "selected"}
    return Response(201, {}, told)


def _app(call: Call) -> App:
    return next(app for app in call.world.apps.values() if app.account is call.actor)
