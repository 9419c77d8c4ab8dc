"""Our frozen dataclasses as readable JSON with small differences between commits.

Reading is strict: an unknown type or field is an error. pydantic's reader is built once per type, on first use;
writing needs none. JSON has no lone surrogates (undecodable
bytes of a path) and ours no NUL: each such character is written as NUL and its four hex digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ralph_mission.errors import UserError
from ralph_mission.mission.model.mission import MISSION_PARTS, FailureReason
from ralph_mission.values import compile_regex

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_UNFIT = compile_regex("[\0\ud800-\udfff]")
_FITTED = compile_regex("\0([0-9a-f]{4})")


class UnreadableDocument(Exception):
    """The document is not ours. One line."""


def dump(value: object) -> bytes:
    """A value of our dataclasses, or containers of them."""
    return (json.dumps(_plain(value), indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def load(kind: Any, data: bytes) -> Any:
    """The inverse of `dump`, a value of `kind`. Raises UnreadableDocument."""
    from pydantic import ValidationError

    try:
        value = _adapter(kind).validate_json(_upgrade(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableDocument(f"{place}: {first['msg']}" if place else str(first["msg"])) from None
    if value is None:
        raise UnreadableDocument("empty")
    return _map_texts(value, _restore) if b"\\u0000" in data else value


def dump_any(value: object) -> bytes:
    """A value with its type's name, for `load_any`."""
    return (json.dumps(_pack(value), sort_keys=True, ensure_ascii=False) + "\n").encode()  # not for people to read


def load_any(data: bytes) -> object:
    """The inverse of `dump_any`. Raises UnreadableDocument."""
    try:
        return _unpack(json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableDocument("not a recorded answer") from None


def _pack(value: object) -> dict[str, object]:
    if _classes().get(type(value).__name__) is type(value):
        return {"type": type(value).__name__, "value": _plain(value)}
    if isinstance(value, tuple | list):
        return {"type": "tuple", "value": [_pack(item) for item in value]}
    if isinstance(value, dict):
        return {"type": "dict", "value": [[_pack(key), _pack(item)] for key, item in value.items()]}
    if value is None or type(value) in (bool, int, float, str):
        return {"type": "plain", "value": _map_texts(value, _fit)}
    raise TypeError(f"cannot record a {type(value).__name__}")


def _unpack(packed: dict[str, Any]) -> object:
    name, value = packed["type"], packed["value"]
    if name == "tuple":
        return tuple(_unpack(item) for item in value)
    if name == "dict":
        return {_unpack(key): _unpack(item) for key, item in value}
    if name == "plain":
        return _map_texts(value, _restore)
    return load(_classes()[name], json.dumps(_rename_fields(value)).encode())


_RENAMED = {
    "charter": "settings",
    "sightings": "observations",
    "thoughts": "ranked_findings",
    "trouble": "problem",
    "wished": "requested",
    "wishes": "orders",
}
"""Earlier names of fields in recorded values."""


def _rename_fields(value: Any) -> Any:
    return _map_objects(value, lambda found: {_RENAMED.get(name, name): item for name, item in found.items()})


def _map_objects(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """JSON with every object mapped, inner ones first."""
    if isinstance(value, list | tuple):
        return [_map_objects(item, change) for item in value]
    if isinstance(value, dict):
        return change({name: _map_objects(item, change) for name, item in value.items()})
    return value


@cache
def _classes() -> dict[str, type]:
    from ralph_mission.mission.model import agent_job, cycle, effects, forge, ledger, memory, mission, proposal

    modules = (agent_job, cycle, effects, forge, ledger, memory, mission, proposal)
    return {
        name: thing
        for module in modules
        for name, thing in vars(module).items()
        if isinstance(thing, type) and "__dataclass_fields__" in vars(thing)  # `is_dataclass` would describe them all
    }


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(strict=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")
    return TypeAdapter(kind | None, config=config)  # a bare dataclass would not take the configuration


def _plain(value: object) -> Any:
    from pydantic_core import to_jsonable_python

    return _map_objects(to_jsonable_python(_map_texts(value, _fit), bytes_mode="base64"), _flatten_mission)


_REASONS = {f"{reason}: ": reason for reason in FailureReason}
_FAILURES = (("sha", "detail", "reason"), ("failures", "failure", "failure_reason"))
"""Of a receipt and of a mission: what only they have, the text of a failure, and the field of its reason."""


def _upgrade(data: bytes) -> bytes:
    """A document upgraded to the present fields: missions in parts, and a failure's reason.

    Missions are stored flat; an earlier version wrote the reason before the failure's text.
    """
    has_missions = b'"started_cycle"' in data
    if not has_missions and not any(reason.encode() in data for reason in _REASONS):
        return data
    try:
        return json.dumps(_map_objects(json.loads(data), lambda found: _group_mission(_split_failure(found)))).encode()
    except (ValueError, RecursionError):
        return data  # its validation reports errors


_PARTS = {part: {field.name for field in fields(kind)} for part, kind in MISSION_PARTS.items()}


def _group_mission(value: dict[str, Any]) -> dict[str, Any]:
    """A stored mission's fields, grouped into its parts."""
    if {"started_cycle", "changed_at"} <= value.keys() and not _PARTS.keys() & value.keys():  # else it is not ours
        for part, names in _PARTS.items():
            value[part] = {name: value.pop(name) for name in names & set(value)}
    return value


def _flatten_mission(value: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    if _PARTS.keys() <= value.keys():
        for part in _PARTS:
            value |= value.pop(part)
    return value


def _split_failure(value: dict[str, Any]) -> dict[str, Any]:
    for own, text, name in _FAILURES:
        message = value.get(text)
        if own in value and name not in value and isinstance(message, str):
            prefix = next((prefix for prefix in _REASONS if message.startswith(prefix)), "")
            value |= {text: message.removeprefix(prefix), name: _REASONS.get(prefix)}
    return value


def _fit(text: str) -> str:
    return _UNFIT.sub(lambda match: f"\0{ord(match[0]):04x}", text) if _UNFIT.search(text) else text


def _restore(text: str) -> str:
    return _FITTED.sub(lambda match: chr(int(match[1], 16)), text)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with every text mapped."""
    if type(value) is str:
        return change(value)
    if isinstance(value, tuple | list | frozenset):
        return type(value)(_map_texts(item, change) for item in value)
    if isinstance(value, dict):
        return {_map_texts(key, change): _map_texts(item, change) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _map_texts(getattr(value, field.name), change) for field in fields(value)}
        return replace(value, **changed)
    return value


def unreadable(path: str, error: UnreadableDocument) -> UserError:
    """The error for a file on the memory branch that is not ours."""
    from ralph_mission.mission.memory.text import refuse

    return refuse(f"{path} on the memory branch cannot be read: {error}")
