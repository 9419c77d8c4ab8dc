"""The memory file's front matter: `Header` to YAML and back, and older schemas to ours.

Strings are escaped (`escape`) and then quoted, so that every text fits one line of YAML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ralph_mission.errors import UserError
from ralph_mission.mission.model.memory import SCHEMA, Header
from ralph_mission.mission.model.mission import Urgency
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from ralph_mission.safety.front_matter import FrontMatter

NEWER = "install a newer ralph; if no one here uses one, somebody else wrote it: ralph memory recover"
RECOVER = "look with `ralph memory verify`, then rebuild with `ralph memory recover`"

# Line breaks as any reader sees them, other control characters, what UTF-8 or YAML cannot carry.
_AWKWARD = compile_regex("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|^ | $")
_ESCAPED = compile_regex(r"\\(\\|n|r|t|x[0-9a-f]{2}|u[0-9a-f]{4})")
_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NAMES = {written[1:]: character for character, written in _NAMED.items()}

Front = dict[str, Any]


def memory_error(what: str, line: int = 0) -> UserError:
    """The error of an unreadable memory file; `line` is 1-based, 0 for the whole file."""
    where = f"line {line} of the memory file: " if line else "the memory file "
    return UserError(f"{where}{what}", RECOVER)


def escape(text: str) -> str:
    """`text` on one readable line, with nothing an editor would strip; `unescape` is its inverse."""
    return _AWKWARD.sub(lambda match: _escape_character(match[0]), text)


def unescape(text: str) -> str:
    """The inverse of `escape`; any other backslash stands for itself."""
    return _ESCAPED.sub(lambda match: _NAMES.get(match[1]) or chr(int(match[1][1:], 16)), text)


def join(header: Header, body: str) -> str:
    """The memory file: the header between its fences, and the body."""
    from ralph_mission.safety.front_matter import render_front_matter

    return render_front_matter({name: getattr(header, name) for name in (*_FIELDS, "cursors")}, body, _exported)


def split(text: str) -> FrontMatter:
    """The two parts of a memory file. Raises UserError."""
    from ralph_mission.safety.front_matter import YamlError, parse_front_matter

    try:
        return parse_front_matter(text)
    except YamlError as error:
        raise memory_error(error.what, error.line) from None


def read(found: FrontMatter) -> Header:
    """The header of a front matter, migrated to our schema. Raises UserError."""
    if not isinstance(found.value, dict):
        raise memory_error("has no settings in its front matter", 2)
    front = migrate(found.value)
    try:
        return _header(front)
    except (ValueError, TypeError, OverflowError) as error:
        name = str(error)
        raise memory_error(f"{name} is missing or cannot be read", found.lines.get(name, 1)) from None


def _exported(front: Mapping[str, Any]) -> str:
    lines = [f"{name}: {_scalar(value)}\n" for name, value in front.items() if name != "cursors"]
    pairs = [f"  - {{observer: {_scalar(name)}, cursor: {_scalar(at)}}}\n" for name, at in front["cursors"]]
    return "".join([*lines, "cursors:\n" if pairs else "cursors: []\n", *pairs])


def migrate(front: Front) -> Front:
    """Migrate front matter to our schema, one step at a time. Raises UserError if it is newer."""
    schema = front.get("schema")
    if type(schema) is not int or schema < 0:
        raise memory_error("names no schema in its front matter")
    if schema > SCHEMA:
        raise UserError(f"the memory file has schema {schema}, this ralph knows {SCHEMA}", NEWER)
    for version in range(schema, SCHEMA):
        front = MIGRATIONS[version](front)
    return front


def _from_0(front: Front) -> Front:
    """Schema 0 kept cursors as a mapping and neither a high streak nor drift."""
    cursors = front.get("cursors") or {}
    pairs = [{"observer": name, "cursor": at} for name, at in cursors.items()] if isinstance(cursors, dict) else cursors
    added = {"high_streak": 0, "high_cause": "", "drift_seconds": 0}
    return added | front | {"schema": 1, "cursors": pairs}


LATER: Front = {"wake": True}
"""Fields that the first files of our schema lacked."""

MIGRATIONS: Mapping[int, Callable[[Front], Front]] = {0: _from_0}
"""Schema number -> what turns its front matter into the next schema's."""


def _escape_character(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def _scalar(value: object) -> str:
    if isinstance(value, Urgency):
        return value.value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return json.dumps(escape(value), ensure_ascii=False) if isinstance(value, str) else repr(value)


def _header(front: Front) -> Header:
    unknown = set(front) - set(_FIELDS) - {"cursors"}
    if unknown:
        raise ValueError(min(unknown))
    values = {name: _field(name, reader, LATER | front) for name, reader in _FIELDS.items()}
    return Header(**values, cursors=_field("cursors", _cursors, front))


def _field(name: str, reader: Callable[[Any], Any], front: Front) -> Any:
    try:
        return reader(front[name])
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        raise ValueError(name) from None


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _money(value: Any) -> float:
    amount = float(value)  # YAML 1.1 reads 1e-07 as a text
    if type(value) is bool or amount != amount:
        raise TypeError
    return amount


def _text(value: Any) -> str:
    return value.isoformat() if type(value) is date else unescape(value)


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    when = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)


def _cursors(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list) or any(set(pair) != {"observer", "cursor"} for pair in value):
        raise TypeError
    return tuple((_text(pair["observer"]), _text(pair["cursor"])) for pair in value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": _integer,
    "bool": _boolean,
    "float": _money,
    "str": _text,
    "datetime | None": _moment,
    "Urgency": Urgency,
}
_FIELDS = {field.name: _READERS[str(field.type)] for field in fields(Header) if field.name != "cursors"}
