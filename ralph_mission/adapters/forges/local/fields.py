"""Who is who here: one bot with a reserved id, and people whose id derives from their login.

Authority is access to the file system: a login is a name tag, not a proof.

The front matter of an issue or pull, read with care: each value has its type, or its line is named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, StrictStr, ValidationError

from ralph_mission.adapters.forges.local.threads import LocalThread, PullChange
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Actor, LabelEvent, Review, ThreadComment

BOT = Actor(1, "ralph[bot]", is_bot=True)
FIRST_PERSON = 1000  # ids below are reserved for accounts of ours
LOGIN = re.compile(r"\w[\w.@+-]{0,63}")


def person(login: str) -> Actor:
    """The person called `login`; always the same numeric id. Raises UserError for the bot's and for odd names."""
    if login.casefold().endswith("[bot]"):
        raise UserError(f"{login} is a bot's name", "name a person with --as LOGIN", usage=True)
    if not LOGIN.fullmatch(login):
        raise UserError(f"{login!r} is not a login", "use letters, digits and . _ - @ + with --as LOGIN", usage=True)
    digest = hashlib.sha256(login.encode()).digest()
    return Actor(FIRST_PERSON + int.from_bytes(digest[:6], "big"), login)


def actor(number: int, login: str) -> Actor:
    """Somebody read from a file."""
    return Actor(number, login, is_bot=number == BOT.id or login.casefold().endswith("[bot]"))


PULL_TEXTS = ("head", "base", "head_sha", "merging", "merged_sha")
WORDS = {
    "extra_forbidden": "is not a name known here",
    "missing": "is missing",
    "string_type": "must be a text (put it in quotes)",
    "literal_error": "must be one of open, closed, merged",
    "int_type": "must be a number",
    "greater_than_equal": "must be a number",
    "tuple_type": "must be a list",
}
"""Pydantic's errors in the words of who edits the file."""


class Mangled(ValueError):
    """The text is not one of ours any more. `line` is 1-based, 0 when it concerns the whole file."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def moment(text: str) -> datetime:
    """An ISO 8601 moment, UTC unless it says otherwise. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _moment(value: object) -> datetime:
    try:
        return moment(value.isoformat() if isinstance(value, datetime) else str(value))
    except ValueError:
        raise ValueError("must hold a time like 2026-01-31T12:00:00Z") from None


def _person(value: object, name: str = "login") -> Actor:
    if isinstance(value, dict) and isinstance(value.get("id"), int) and isinstance(value.get(name), str):
        return actor(value["id"], value[name])
    raise ValueError("must name who: {id: ID, login: LOGIN}")


def _event(value: object) -> LabelEvent:
    verb = "added" if isinstance(value, dict) and "added" in value else "removed"
    if not isinstance(value, dict) or not isinstance(value.get(verb), str):
        raise ValueError("must each be {added: LABEL, by: LOGIN, id: ID, at: TIME}")
    return LabelEvent(value[verb], _person(value, "by"), _moment(value.get("at")), verb == "added")


def _listed(value: object) -> object:
    return () if value is None else value


Person = Annotated[Actor, PlainValidator(_person)]
Moment = Annotated[datetime, PlainValidator(_moment)]
Texts = Annotated[tuple[StrictStr, ...], BeforeValidator(_listed)]
Events = Annotated[tuple[Annotated[LabelEvent, PlainValidator(_event)], ...], BeforeValidator(_listed)]


class ThreadFields(BaseModel):
    """What stands in the front matter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: Annotated[int, Field(strict=True, ge=1)]
    title: StrictStr
    state: Literal["open", "closed", "merged"]
    state_reason: StrictStr = ""
    author: Person
    labels: Texts = ()
    assignees: Texts = ()
    created_at: Moment
    updated_at: Moment
    closed_at: Moment | None = None
    closed_by: Person | None = None
    events: Events = ()
    head: StrictStr | None = None
    base: StrictStr = ""
    head_sha: StrictStr = ""
    merging: StrictStr = ""
    merged_sha: StrictStr = ""
    merged_by: Person | None = None
    boundary: StrictStr

    def thread(self, opening: str, remarks: tuple[ThreadComment, ...], reviews: tuple[Review, ...]) -> LocalThread:
        """All of it together. Raises Mangled."""
        if reviews and self.head is None:
            raise Mangled("an issue has no reviews", 1)
        change = None
        if self.head is not None:
            change = PullChange(
                reviews=reviews, merged_by=self.merged_by, **{name: getattr(self, name) for name in PULL_TEXTS}
            )
        facts = {name: getattr(self, name) for name in type(self).model_fields}
        own = {name: value for name, value in facts.items() if name not in (*PULL_TEXTS, "merged_by", "boundary")}
        return LocalThread(body=opening, remarks=remarks, change=change, **own)


def read_fields(value: object, lines: Mapping[str, int]) -> ThreadFields:
    """The fields of a front matter; `lines` says where each key stands. Raises Mangled."""
    if not isinstance(value, dict):
        raise Mangled("the front matter must be 'name: value' lines", 2)
    try:
        return ThreadFields.model_validate(value)
    except ValidationError as error:
        # A mistyped key comes first: it is often why another one is missing.
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        raise Mangled(_complaint(first), lines.get(str(first["loc"][0]), 1)) from None


def _complaint(error: Any) -> str:
    key, *within = error["loc"]
    if within and error["type"] == "string_type":
        return f"{key} must be a list of texts"
    return f"{key} {WORDS.get(error['type'], error['msg'].removeprefix('Value error, '))}"
