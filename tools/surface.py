"""How much there is for people to learn: commands, options, keys of `ralph.yml`. `python -m tools.surface` prints it.

A leaf command is one that `--help` lists and that has none below it. An option is counted for each command that has it,
but the shared ones (`--repo`, `--config`, `--json`; `--as` of the local forge) once. A leaf of the settings is a place
of the published schema that holds a value; one that several types may have counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from ralph_mission.cli.app import app
from ralph_mission.cli.options import SharedOption
from ralph_mission.config import reading

Schema = Mapping[str, Any]


def commands(command: click.Command = app, name: str = "ralph") -> Iterator[tuple[str, click.Command]]:
    """Every command that `--help` lists, with its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        if found is not None and not found.hidden:
            yield from commands(found, f"{name} {below}")


def options() -> list[str]:
    """Every option, as `ralph run --preset`; the shared ones as `ralph --json`."""
    return list(dict.fromkeys(_options([("ralph", app), *commands()])))


def _options(every: Iterable[tuple[str, click.Command]]) -> Iterator[str]:
    for name, command in every:
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield f"{'ralph' if isinstance(parameter, SharedOption) else name} {parameter.opts[-1]}"


def keys() -> list[str]:
    """Every leaf of the settings, as `observers.web[].url`."""
    schema = reading.schema()
    return list(dict.fromkeys(_leaves(schema, schema.get("$defs", {}), "")))


def _leaves(node: Schema, defined: Mapping[str, Schema], place: str) -> Iterator[str]:
    if "$ref" in node:
        node = defined[node["$ref"].rpartition("/")[2]]
    found = [leaf for below, part in _parts(node, place) for leaf in _leaves(part, defined, below)]
    yield from [leaf for leaf in found if leaf != place] or [place]


def _parts(node: Schema, place: str) -> Iterator[tuple[str, Schema]]:
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield place, one
    for key, part in node.get("properties", {}).items():
        yield f"{place}.{key}".lstrip("."), part
    for word, below in (("additionalProperties", f"{place}.*"), ("items", f"{place}[]")):
        if isinstance(node.get(word), dict) and _is_section(node[word]):
            yield below, node[word]


def _is_section(node: Schema) -> bool:
    return bool({"$ref", "properties"} & node.keys()) or any(map(_is_section, node.get("anyOf", ())))


if __name__ == "__main__":
    print(f"{len(list(commands()))} commands, {len(options())} options, {len(keys())} keys of ralph.yml")
