"""What is wrong with a settings file, in one line: where, what, and the nearest thing that is right."""

from __future__ import annotations

import difflib
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ralph_mission.errors import UserError
from ralph_mission.safety.front_matter import Document
from ralph_mission.safety.front_matter import Path as KeyPath

DURATION = "a duration such as 15m, 6h or 14d"
WANTED = {
    "time_delta_parsing": DURATION,
    "time_delta_type": DURATION,
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "dict_type": "keys and values",
    "tuple_type": "a list, even of one",
    "list_type": "a list, even of one",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "a text",
}
"""Pydantic's error types whose own words speak of Python."""


def trouble(source: str, line: int, what: str, next_step: str) -> UserError:
    """A usage error at a line (0: the whole file)."""
    return UserError(f"{source}{f' line {line}' if line else ''}: {what}", next_step, usage=True)


def explain(error: ValidationError, document: Document, source: str, model: type[BaseModel]) -> UserError:
    """The first of pydantic's errors as a person would say it."""
    # A mistyped key comes first: it is often why another one is missing.
    first, *others = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = _place(first["loc"], document)
    what, next_step = _complaint(first, place, model)
    more = f" (and {len(others)} more)" if others else ""
    return trouble(source, document.lines[place], what + more, next_step)


def _place(location: KeyPath, document: Document) -> KeyPath:
    path: KeyPath = ()
    for part in location:  # a location also names a union's branch, which the document does not have
        if (*path, part) in document.lines:
            path = (*path, part)
    return path


def _complaint(error: ErrorDetails, place: KeyPath, model: type[BaseModel]) -> tuple[str, str]:
    name = _dotted_path(place)
    if error["type"] == "extra_forbidden":
        return f"unknown key {name}", _nearest(place, model)
    if error["type"] == "missing":
        lacking = error["loc"][-1]
        return f"{name} lacks the key {lacking}", f"add {lacking}: to it"
    ceiling = error.get("ctx", {}).get("le")
    if place[:1] == ("limits",) and ceiling is not None:
        return (
            f"{name} is {_shown_value(error['input'])}; the ceiling is {ceiling:g}",
            f"lower it to {ceiling:g} or less",
        )
    return f"{name} is {_shown_value(error['input'])}", _expected(error)


def _expected(error: ErrorDetails) -> str:
    if error["type"] in WANTED:
        return f"write {WANTED[error['type']]}"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    return f"it {said}" if said.startswith("should") else said


def _dotted_path(place: KeyPath) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return text if len(text) <= 100 and text.isprintable() else ascii(text)[:100]


def _shown_value(value: object) -> str:
    text = "empty" if value is None else str(value).lower() if isinstance(value, bool) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(place: KeyPath, model: type[BaseModel]) -> str:
    known = known_keys(place[:-1], model)
    close = difflib.get_close_matches(str(place[-1]), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"


def known_keys(parents: KeyPath, model: type[BaseModel]) -> list[str]:
    """The keys that may stand below `parents`; none when it takes any key, or none at all."""
    models = [model]
    for name in (part for part in parents if isinstance(part, str)):
        fields = [one.model_fields[name] for one in models if name in one.model_fields]
        models = [found for field in fields for found in _models(field.annotation)]
    return [field.alias or name for one in models for name, field in one.model_fields.items()]


def _models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models(argument)]
