"""Hats from what people write: the hat file (TOML, seed 001) and `hats:` of `ralph.yml`; and what is wrong with a set.

    [hat]      name, model, max_tokens; besides: description, triggers, publishes, default_publishes, instructions
    [context]  load
    [tools]    denied; besides: commands
    [files]    write_allowed, write_denied
    [exit]     emit_event, payload

The further keys are ours. A tool written as `Bash(git push:*)`, or with a space in it, is a command.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from ralph_mission.errors import UserError
from ralph_mission.loop.hats.patterns import HATS
from ralph_mission.loop.model.items import LoopEvent
from ralph_mission.loop.model.state import CONVERGED, RESUME, START, VERIFICATION_FAILED, Hat
from ralph_mission.loop.rules.routing import ALIASES, find_hat

Found = tuple[Hat, tuple[str, ...]]
"""A hat, and warnings about keys that mean nothing."""
NAME = re.compile(r"[\w][\w .-]{0,59}")
COMMAND = re.compile(r"Bash\((.+?)(?::\*)?\)")


def parse_hats(text: str, where: str) -> Found:
    """The hat in a hat file's text, and warnings. Raises UserError that names the file and the key."""
    try:
        return from_toml(tomllib.loads(text), where)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{where} is not TOML: {error}", "mend that line", usage=True) from None


def from_toml(value: Mapping[str, Any], where: str) -> Found:
    """A hat file as tomllib reads it. What it does not say comes from the built-in hat of its name."""
    flat = {f"{section}.{key}": item for section, keys in value.items()
            for key, item in (keys.items() if isinstance(keys, dict) else ())}  # fmt: skip  # one table
    loose = tuple(key for key, item in value.items() if not isinstance(item, dict))
    fields = _fields(flat, TOML, where)
    if "name" not in fields:
        raise _wrong(where, "hat.name", "a name")
    emitted = fields.pop("emit_event", "")
    if emitted:
        fields["publishes"] = tuple(dict.fromkeys((*fields.get("publishes", ()), emitted)))
    return _make_hat(fields), _unknown((*flat, *loose), TOML, where)


def from_yaml(name: str, value: Mapping[str, Any], where: str = "ralph.yml") -> Found:
    """One entry of `hats:` in ralph.yml; `name` is its key. ralph-orchestrator's schema, and our keys of a hat file."""
    at = f"{where}: hats.{name}"
    fields = _fields(value, YAML, at)
    label = fields.pop("label", "")
    more = fields.pop("extra_instructions", ())
    fields["instructions"] = "\n\n".join(filter(None, (fields.get("instructions", ""), *more)))
    fields["description"] = fields.get("description") or label
    return _make_hat({**fields, "name": name}), _unknown(value, (*YAML, *UNUSED), at)


def complaints(hats: Sequence[Hat], persistent: bool, promise: str = "LOOP_COMPLETE") -> tuple[str, ...]:
    """What cannot work in a set of hats, each in a sentence; () when all of it can.

    Two hats of one name, a topic but the promise that nobody hears, a hat that nothing calls, nobody to start
    with, and a persistent loop that nobody takes up again.
    """
    return (
        *_doubles(hats),
        *_unheard(hats, promise),
        *_unreached_hats(hats, promise),
        *_unheard_starts(hats, persistent),
    )


# --- reading ----------------------------------------------------------------------------


def _make_hat(fields: dict[str, Any]) -> Hat:
    """Denied tools that are commands are denied as commands; triggers left out are the built-in hat's."""
    tools = fields.get("tools_denied", ())
    commands = tuple(found for tool in tools if (found := _command(tool)))
    fields["tools_denied"] = tuple(tool for tool in tools if not _command(tool))
    fields["commands_denied"] = tuple(dict.fromkeys((*fields.get("commands_denied", ()), *commands)))
    usual = HATS.get(fields["name"])
    if usual is not None:
        fields = {"triggers": usual.triggers, "publishes": usual.publishes} | fields
    return Hat(**fields)


def _command(tool: str) -> str:
    found = COMMAND.fullmatch(tool.strip())
    return found[1].strip() if found else tool.strip() if " " in tool.strip() else ""


def _fields(value: Mapping[str, Any], table: Table, where: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, item in value.items():
        if key in table and item is not None:
            name, read, wanted = table[key]
            try:
                fields[name] = read(item)
            except TypeError:
                raise _wrong(where, key, wanted) from None
    return fields


def _unknown(keys: Sequence[str] | Mapping[str, Any], known: Sequence[str] | Table, where: str) -> tuple[str, ...]:
    return tuple(f"{where}: {key} means nothing here{_near(key, tuple(known))}" for key in keys if key not in known)


def _near(word: str, known: Sequence[str]) -> str:
    last = {name.rpartition(".")[2]: name for name in known}
    near = get_close_matches(word, known, 1) or get_close_matches(word.rpartition(".")[2], last, 1)
    return f", did you mean {last.get(near[0], near[0])}?" if near else ""


def _wrong(where: str, key: str, wanted: str) -> UserError:
    return UserError(f"{where}: {key} must be {wanted}", "see docs/hats.md", usage=True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: object) -> str:
    name = _text(value).strip()
    if not NAME.fullmatch(name):
        raise TypeError
    return name


def _texts(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise TypeError
    return tuple(items)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


Table = Mapping[str, tuple[str, Callable[[object], Any], str]]
A_TEXT, A_LIST = (_text, "a text"), (_texts, "a list of texts")
SHARED: Table = {
    "description": ("description", *A_TEXT),
    "triggers": ("triggers", *A_LIST),
    "publishes": ("publishes", *A_LIST),
    "default_publishes": ("default_publishes", *A_TEXT),
    "instructions": ("instructions", *A_TEXT),
    "model": ("model", *A_TEXT),
    "max_tokens": ("max_tokens", _count, "a whole number"),
}
TOML: Table = {
    "hat.name": ("name", _name, "a name of letters, digits, spaces, dots and dashes"),
    **{f"hat.{key}": row for key, row in SHARED.items()},
    "context.load": ("context", *A_LIST),
    "tools.denied": ("tools_denied", *A_LIST),
    "tools.commands": ("commands_denied", *A_LIST),
    "files.write_allowed": ("write_allowed", *A_LIST),
    "files.write_denied": ("write_denied", *A_LIST),
    "exit.emit_event": ("emit_event", *A_TEXT),
    "exit.payload": ("payload", *A_LIST),
}
YAML: Table = {
    **SHARED,
    "name": ("label", *A_TEXT),
    "subscribes_to": ("triggers", *A_LIST),
    "extra_instructions": ("extra_instructions", *A_LIST),
    "disallowed_tools": ("tools_denied", *A_LIST),
    "commands_denied": ("commands_denied", *A_LIST),
    "write_allowed": ("write_allowed", *A_LIST),
    "write_denied": ("write_denied", *A_LIST),
    "context": ("context", *A_LIST),
    "payload": ("payload", *A_LIST),
}
UNUSED = ("backend", "backend_args", "max_activations", "timeout", "concurrency", "aggregate", "color", "emoji")
"""Keys of ralph-orchestrator (2.10) that have no meaning here and are no mistakes."""


# --- what is wrong with a set -------------------------------------------------------------


def _doubles(hats: Sequence[Hat]) -> Iterator[str]:
    names = [hat.name for hat in hats]
    yield from (f"two hats are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1)


def _unheard(hats: Sequence[Hat], promise: str) -> Iterator[str]:
    triggers = tuple(trigger for hat in hats for trigger in hat.triggers)
    for hat in hats:
        for topic in dict.fromkeys((*hat.publishes, *filter(None, (hat.default_publishes,)))):
            if topic not in (promise, CONVERGED) and not _meet((topic,), triggers):
                yield f"{hat.name} publishes {topic}, which nobody hears{_near(topic, triggers)}"


def _unreached_hats(hats: Sequence[Hat], promise: str) -> Iterator[str]:
    said = {START, RESUME, VERIFICATION_FAILED, promise, *ALIASES.get(START, ())}
    topics = (*said, *(topic for hat in hats for topic in (*hat.publishes, hat.default_publishes) if topic))
    for hat in hats:
        if not hat.triggers:
            yield f"{hat.name} has no triggers, so nothing calls it"
        elif not _meet(topics, hat.triggers):
            yield f"nothing calls {hat.name}: nobody says {' or '.join(hat.triggers)}{_near(hat.triggers[0], topics)}"


def _unheard_starts(hats: Sequence[Hat], persistent: bool) -> Iterator[str]:
    if hats and find_hat(hats, LoopEvent(START)) is None:
        yield f"nobody listens to {START}, so the first session wears no hat"
    if persistent and find_hat(hats, LoopEvent(RESUME)) is None:
        yield f"a persistent loop needs a hat that listens to {RESUME}"


def _meet(topics: Sequence[str], triggers: Sequence[str]) -> bool:
    """Whether one of the topics is heard; published topics may be patterns as well."""
    return any(fnmatchcase(topic, trigger) or fnmatchcase(trigger, topic) for topic in topics for trigger in triggers)
