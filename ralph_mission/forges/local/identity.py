"""Who is who here: one bot with a reserved id, and people whose id derives from their login.

Authority is access to the file system: a login is a name tag, not a proof.
"""

from __future__ import annotations

import hashlib
import re

from ralph_mission.mission.threads import Actor
from ralph_mission.trouble import UserError

BOT = Actor(1, "ralph[bot]", is_bot=True)
FIRST_PERSON = 1000  # ids below are reserved for accounts of ours
LOGIN = re.compile(r"\w[\w.@+-]{0,63}")


def person(login: str) -> Actor:
    """The person called `login`; always the same numeric id. Raises Trouble for the bot's and for odd names."""
    if login.casefold().endswith("[bot]"):
        raise UserError(f"{login} is a bot's name", "name a person with --as LOGIN", usage=True)
    if not LOGIN.fullmatch(login):
        raise UserError(f"{login!r} is not a login", "use letters, digits and . _ - @ + with --as LOGIN", usage=True)
    digest = hashlib.sha256(login.encode()).digest()
    return Actor(FIRST_PERSON + int.from_bytes(digest[:6], "big"), login)


def actor(number: int, login: str) -> Actor:
    """Somebody read from a file."""
    return Actor(number, login, is_bot=number == BOT.id or login.casefold().endswith("[bot]"))
