"""An issue or pull request as a Markdown file that a person can read and edit. Text in, text out.

The front matter holds the fields, type-checked: an error names its line. Then come the opening text
and, under a heading line each, the comments and reviews. A heading starts with the file's boundary, a row of `=` longer
than any at the start of a text's line, so every text survives unchanged: `parse(render(t)) == t`.

Access to the file system is the authority: a login is a label, not a proof. There is one bot with a reserved id, and
people with ids derived from their logins.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, fields
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, StrictStr, TypeAdapter, ValidationError

from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Actor, LabelEvent, Review, ThreadComment
from ralph_mission.safety.front_matter import FENCE, YamlError, parse_front_matter, render_front_matter
from ralph_mission.values import compile_regex, dataclass

BOT = Actor(1, "ralph[bot]", is_bot=True)
FIRST_PERSON = 1000  # ids below are reserved for our accounts
LOGIN = compile_regex(r"\w[\w.@+-]{0,63}")


def person(login: str) -> Actor:
    """The person called `login`, with a stable numeric id. Raises UserError for the bot's login and for invalid
    ones."""
    if login.casefold().endswith("[bot]"):
        raise UserError(f"{login} is a bot's name", "name a person with --as LOGIN", usage=True)
    if not LOGIN.fullmatch(login):
        raise UserError(f"{login!r} is not a login", "use letters, digits and . _ - @ + with --as LOGIN", usage=True)
    digest = hashlib.sha256(login.encode()).digest()
    return Actor(FIRST_PERSON + int.from_bytes(digest[:6], "big"), login)


def at_keyboard() -> Actor:
    """The operating system's user."""
    import pwd

    try:
        return person(pwd.getpwuid(os.getuid()).pw_name)
    except (KeyError, UserError):
        return Actor(FIRST_PERSON, "someone")


def actor(number: int, login: str) -> Actor:
    """An actor from a file."""
    return Actor(number, login, is_bot=number == BOT.id or login.casefold().endswith("[bot]"))


WORDS = {
    "unexpected_keyword_argument": "is not a name known here",
    "missing": "is missing",
    "string_type": "must be a text (put it in quotes)",
    "literal_error": "must be one of open, closed, merged",
    "int_type": "must be a number",
    "greater_than_equal": "must be a number",
    "tuple_type": "must be a list",
}
"""Pydantic's errors in words for people who edit the file."""


class Mangled(ValueError):
    """The text is damaged. `line` is 1-based, 0 for the whole file."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def moment(text: str) -> datetime:
    """An ISO 8601 time, by default in UTC. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _parse_moment(value: object) -> datetime:
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
    return LabelEvent(value[verb], _person(value, "by"), _parse_moment(value.get("at")), verb == "added")


def _as_list(value: object) -> object:
    return () if value is None else value


Person = Annotated[Actor, PlainValidator(_person)]
Moment = Annotated[datetime, PlainValidator(_parse_moment)]
Texts = Annotated[tuple[StrictStr, ...], BeforeValidator(_as_list)]
Events = Annotated[tuple[Annotated[LabelEvent, PlainValidator(_event)], ...], BeforeValidator(_as_list)]


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """The front matter's fields, in this order. A pull request has a `head`.

    `head_sha`: the head at the opening, and the final one after closing; `merging`: the commit of a merge in progress.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    _: KW_ONLY
    number: Annotated[int, Field(strict=True, ge=1)]
    title: StrictStr
    state: Literal["open", "closed", "merged"] = "open"
    state_reason: StrictStr = ""
    author: Person
    labels: Texts = ()
    assignees: Texts = ()
    created_at: Moment
    updated_at: Moment
    closed_at: Moment | None = None
    closed_by: Person | None = None
    events: Events = ()
    head: StrictStr = ""
    base: StrictStr = ""
    head_sha: StrictStr = ""
    merging: StrictStr = ""
    merged_sha: StrictStr = ""
    merged_by: Person | None = None

    @property
    def kind(self) -> str:
        """The word for people, and (with an s) its folder."""
        return "pull" if self.head else "issue"


@dataclass(frozen=True, slots=True)
class LocalThread(ThreadFacts):
    """A file: an issue or a pull request, with all its texts."""

    _: KW_ONLY
    body: str
    remarks: tuple[ThreadComment, ...] = ()
    reviews: tuple[Review, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadFrontMatter(ThreadFacts):
    """The same with the headings' boundary."""

    _: KW_ONLY
    state: Literal["open", "closed", "merged"]
    boundary: StrictStr


@cache
def _front_matter_type() -> TypeAdapter[ThreadFrontMatter]:
    return TypeAdapter(ThreadFrontMatter)


def _read_front_matter(value: object, lines: Mapping[str, int]) -> ThreadFrontMatter:
    """A front matter's fields; `lines`: each key's line. Raises Mangled."""
    if not isinstance(value, dict):
        raise Mangled("the front matter must be 'name: value' lines", 2)
    try:
        return _front_matter_type().validate_python(value)
    except ValidationError as error:
        # A mistyped key comes first: it is often the cause of a missing one.
        first = min(error.errors(), key=lambda one: one["type"] != "unexpected_keyword_argument")
        raise Mangled(_describe_error(first), lines.get(str(first["loc"][0]), 1)) from None


def _describe_error(error: Any) -> str:
    key, *within = error["loc"]
    if within and error["type"] == "string_type":
        return f"{key} must be a list of texts"
    return f"{key} {WORDS.get(error['type'], error['msg'].removeprefix('Value error, '))}"


SHORTEST = "====="
REVIEWS = ("approved", "changes_requested", "commented", "dismissed")
ROW = compile_regex(r"^=+", re.MULTILINE)
COMMENT = compile_regex(r"comment (\d+) by (.+) \((\d+)\) at (\S+?)(?:, edited (\S+))?")
REVIEW = compile_regex(r"review ([a-z_]+) by (.+) \((\d+)\) at (\S+) of ([0-9a-f]*)")
CLOSED = compile_regex(r"^state: (closed|merged)\s*$", re.MULTILINE)
CLOSED_AT = compile_regex(r"^closed_at: (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)$", re.MULTILINE)


def render(thread: LocalThread) -> str:
    """The file's text. Raises ValueError for a login with a line break."""
    entries: list[ThreadComment | Review] = list(
        heapq.merge(list[ThreadComment | Review](thread.remarks), thread.reviews, key=_written_at)
    )
    boundary = _boundary([thread.body, *(entry.body for entry in entries)])
    parts = [f"{thread.body}\n", *(f"{boundary} {_render_heading(entry)}\n{entry.body}\n" for entry in entries)]
    return render_front_matter(_front_matter(thread) | {"boundary": boundary}, "".join(parts), _export_yaml)


def parse(text: str) -> LocalThread:
    """The issue or pull request in `text`. Raises Mangled with the line."""
    text = text.removeprefix("\ufeff")
    if text.startswith(f"{FENCE}\r\n"):  # saved by an editor with such line ends; we never write them
        text = text.replace("\r\n", "\n")
    try:
        front = parse_front_matter(text)
    except YamlError as error:
        raise Mangled(error.what, error.line or 1) from None
    read = _read_front_matter(front.value, front.lines)
    lines = front.body.removesuffix("\n").split("\n")
    opening, entries = _sections(lines, front.body_line, read.boundary)
    remarks = tuple(entry for entry in entries if isinstance(entry, ThreadComment))
    reviews = tuple(entry for entry in entries if isinstance(entry, Review))
    if reviews and not read.head:
        raise Mangled("an issue has no reviews", 1)
    facts = {field.name: getattr(read, field.name) for field in fields(ThreadFacts)}
    return LocalThread(body=opening, remarks=remarks, reviews=reviews, **facts)


def surely_not_open(text: str) -> bool:
    """Whether the front matter is closed or merged, without parsing all of it."""
    found = CLOSED.search(text)
    return bool(found and found.start() < text.find(f"\n{FENCE}\n", 1))


def surely_closed_by(text: str, since: datetime) -> bool:
    """Whether the front matter is closed or merged, at that time or earlier, likewise."""
    found = CLOSED_AT.search(text) if surely_not_open(text) else None
    with suppress(ValueError):  # not a time: parsing all of it reports that
        return bool(found and found.start() < text.find(f"\n{FENCE}\n", 1) and moment(found[1]) <= since)
    return False


def _export_yaml(metadata: Mapping[str, object]) -> str:
    return yaml.dump(
        dict(metadata),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=1 << 20,
    )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _plain(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # YAML has no lone surrogates; texts below the front matter keep theirs. Unquoted, odd line ends would be folded.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text.encode("utf-8", "replace").decode(), style)


_Dumper.add_representer(str, _plain)
_Dumper.add_representer(datetime, lambda dumper, at: dumper.represent_scalar("tag:yaml.org,2002:timestamp", _iso(at)))


def _iso(at: datetime) -> str:
    precision = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _written_at(entry: ThreadComment | Review) -> datetime:
    return entry.created_at if isinstance(entry, ThreadComment) else entry.at


def _boundary(texts: list[str]) -> str:
    longest = max((len(row) for text in texts for row in ROW.findall(text)), default=0)
    return "=" * max(len(SHORTEST), longest + 1)


def _render_heading(entry: ThreadComment | Review) -> str:
    if "\n" in entry.author.login:
        raise ValueError("a login stands on one line")
    who = f"by {entry.author.login} ({entry.author.id}) at {_iso(_written_at(entry))}"
    if isinstance(entry, Review):
        return f"review {entry.state} {who} of {entry.sha}"
    edited = f", edited {_iso(entry.updated_at)}" if entry.updated_at != entry.created_at else ""
    return f"comment {entry.id} {who}{edited}"


def _front_matter(thread: LocalThread) -> dict[str, object]:
    values = {field.name: _export(getattr(thread, field.name)) for field in fields(ThreadFacts)}
    always = ("title", "labels", "assignees")
    return {key: value for key, value in values.items() if key in always or value not in (None, "", [])}


def _export(value: object) -> object:
    """A field's value for YAML."""
    if isinstance(value, tuple):
        return [_export(item) for item in value]
    if isinstance(value, Actor):
        return {"id": value.id, "login": value.login}
    if isinstance(value, LabelEvent):
        verb = "added" if value.added else "removed"
        return {verb: value.label, "by": value.actor.login, "id": value.actor.id, "at": _iso(value.at)}
    return value


def _sections(lines: list[str], first: int, boundary: str) -> tuple[str, list[ThreadComment | Review]]:
    """The opening text, and the sections below headings; `first`: the 1-based number of the first of `lines`."""
    prefix = boundary + " "
    if not boundary or boundary.strip("="):
        raise Mangled("boundary must be a row of =", 1)
    heads = [at for at, line in enumerate(lines) if line.startswith(prefix)]
    opening = "\n".join(lines[: heads[0] if heads else len(lines)])
    parts = pairwise([*heads, len(lines)])
    return opening, [_entry(lines[a].removeprefix(prefix), "\n".join(lines[a + 1 : b]), first + a) for a, b in parts]


def _entry(heading: str, body: str, line: int) -> ThreadComment | Review:
    try:
        if found := COMMENT.fullmatch(heading):
            number, login, who, at, edited = found.groups()
            return ThreadComment(int(number), actor(int(who), login), body, moment(at), moment(edited or at))
        if (found := REVIEW.fullmatch(heading)) and found[1] in REVIEWS:
            state, login, who, at, sha = found.groups()
            return Review(actor(int(who), login), state, body, sha, moment(at))
    except ValueError as error:
        raise Mangled(str(error), line) from None
    raise Mangled("begins like a heading and is none: write 'comment N by LOGIN (ID) at TIME', or indent it", line)
