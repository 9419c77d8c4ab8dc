"""Command lines that need no real parser: the calls agents make, read in a few microseconds.

Everything unusual (help, abbreviations, mistakes, `--`) is left to click, which knows the same commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ralph_mission.cli import chores
from ralph_mission.loop import tasks as lifecycle

PRIORITIES = frozenset(map(str, lifecycle.PRIORITIES))
"""The only numbers that any of these commands takes."""


NONE: Mapping[str, Any] = MappingProxyType({})


class Form(NamedTuple):
    """One command: its deed, its words in order (the first `required` must be there), its options and flags.

    `values` are options with one value -> (name, default), `many` may be repeated, `flags` have none.
    """

    deed: Callable[..., chores.Said]
    words: tuple[str, ...] = ()
    required: int = 0
    values: Mapping[str, tuple[str, str | int]] = NONE
    many: Mapping[str, str] = NONE
    flags: Mapping[str, str] = NONE


FORMS = {
    ("task", "add"): Form(
        chores.task_add, ("title",), 1,
        {"--priority": ("priority", 3), "--description": ("description", ""), "--id": ("id", "")}, {"--needs": "needs"},
    ),
    ("task", "list"): Form(chores.task_list, values={"--status": ("status", "")}),
    ("task", "ready"): Form(chores.task_ready),
    ("task", "claim"): Form(chores.task_claim, ("id",), 0, {"--owner": ("owner", "")}),
    ("task", "done"): Form(chores.task_done, ("id",), 1),
    ("task", "fail"): Form(chores.task_fail, ("id",), 1, {"--why": ("why", "")}),
    ("task", "show"): Form(chores.task_show, ("id",), 1),
    ("emit",): Form(chores.emit, ("topic", "payload"), 1, flags={"--json-payload": "json_payload"}),
    ("guidance",): Form(chores.guidance, ("text",), 1),
}  # fmt: skip  # a table


def answered(arguments: list[str]) -> int | None:
    """The exit code, once done; None when a real parser has to look. Raises Trouble."""
    for length in (2, 1):
        form = FORMS.get(tuple(arguments[:length]))
        if form:
            asked = _asked(form, arguments[length:])
            return None if asked is None else chores.do(form.deed, **asked)
    return None


def _asked(form: Form, rest: list[str]) -> dict[str, Any] | None:
    asked: dict[str, Any] = {"repo": None, "as_json": False} | dict(form.values.values())
    asked |= dict.fromkeys(form.many.values(), ()) | dict.fromkeys(form.flags.values(), False)
    words, rest = [], list(rest)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            words.append(word)
        elif not _option(form, asked, word, rest):
            return None
    if not form.required <= len(words) <= len(form.words) or asked.get("status", "") not in ("", *chores.STATUSES):
        return None
    return asked | dict.fromkeys(form.words, "") | dict(zip(form.words, words, strict=False))


def _option(form: Form, asked: dict[str, Any], word: str, rest: list[str]) -> bool:
    """Take one option and its value; False for one that is not plain."""
    if word == "--json":
        asked["as_json"] = True
    elif word in form.flags:
        asked[form.flags[word]] = True
    elif not rest:
        return False
    elif word == "--repo":
        asked["repo"] = rest.pop(0)
    elif word in form.many:
        asked[form.many[word]] += (rest.pop(0),)
    elif word in form.values:
        name, default = form.values[word]
        value = rest.pop(0)
        if isinstance(default, int) and value not in PRIORITIES:
            return False
        asked[name] = int(value) if isinstance(default, int) else value
    else:
        return False
    return True
