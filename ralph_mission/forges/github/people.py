"""Who the token's account is, and who may say yes here. Identity is a number; a login only finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ralph_mission.forges.github import reading
from ralph_mission.forges.github.api import Api
from ralph_mission.forges.github.limits import Absent, Forbidden
from ralph_mission.mission.threads import Actor

WRITERS = frozenset({"admin", "maintain", "write"})


@dataclass(slots=True)
class People:
    """Accounts, asked about once each."""

    api: Api
    _us: Actor | None = None
    _authority: dict[int, bool] = field(default_factory=dict)

    def us(self) -> Actor:
        """The account of the token. Raises Trouble."""
        if self._us is None:
            self._us = self._user() or self._viewer()
        return self._us

    def may_write(self, actor: Actor, fresh: bool = False) -> bool:
        """Whether the account with this very id may write. Never a bot, never ourselves. Raises Trouble."""
        if fresh or actor.id not in self._authority:
            self._authority[actor.id] = self._asked(actor, fresh)
        return self._authority[actor.id]

    def _asked(self, actor: Actor, fresh: bool) -> bool:
        if actor.is_bot or actor.id == self.us().id:
            return False
        try:
            told = self.api.get(f"/collaborators/{quote(actor.login, safe='')}/permission", fresh)
        except Absent:
            return False
        body = reading.read(dict[str, Any], told)
        if body.get("user") is None:  # an account that is gone
            return False
        user = reading.actor(reading.read(reading.UserWire, body["user"]))
        held = {str(body.get("permission")), str(body.get("role_name"))}
        # A login can be given up and taken by somebody else; the number stays with its person.
        return user.id == actor.id and not user.is_bot and bool(held & WRITERS)

    def _user(self) -> Actor | None:
        """The person a token belongs to; None for a token of an app, which belongs to none."""
        if self.api.place.token.startswith("ghs_"):
            return None
        try:
            return reading.actor(reading.read(reading.UserWire, self.api.get("//user")))
        except (Forbidden, Absent):
            return None

    def _viewer(self) -> Actor:
        """The bot of an app's token, as the REST API spells it: a list by another spelling is empty, and no error."""
        viewer = reading.read(dict[str, Any], self.api.ask("query { viewer { login databaseId } }").get("viewer"))
        login = str(viewer.get("login") or "").removesuffix("[bot]")
        return reading.actor(reading.read(reading.UserWire, {"id": viewer.get("databaseId"), "login": f"{login}[bot]"}))
