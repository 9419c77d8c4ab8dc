"""What documents say of the code, written by the code: `python -m tools.docs`.

A page marks a part with `<!-- generated: NAME -->` and `<!-- end -->`; `PARTS` names what comes between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from ralph_mission.adapters.observers.commands import RECIPES
from ralph_mission.cli.app import COMMANDS, UNLISTED, app
from ralph_mission.cli.options import SHARED, SharedOption
from ralph_mission.config import reading
from ralph_mission.mission.model.mission import Verdict
from ralph_mission.mission.policy import RULES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MARK = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FIRST = "ralph run"  # the command whose options others share
SAME = "The same as"  # how the help of another name for a command begins
DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def commands() -> Iterator[str]:
    """Each command that `--help` lists, with its options; those that mean the same as of `ralph run` by name alone."""
    listed = {name: command for name, command, is_listed in _every_command() if is_listed}
    shared = dict(_rows(listed[FIRST]))
    yield from (_command(name, command, {} if name == FIRST else shared) for name, command in listed.items())


def plumbing() -> Iterator[str]:
    """Each command that agents, timers and scripts call, in a sentence; `--help` says the rest."""
    for name, command, is_listed in _every_command():
        told = _sentences(command, name)
        if not is_listed and not told.startswith(SAME):
            yield f"- `{_usage(name, command)}`: {re.split(r'(?<=[.:]) (?=[A-Z])', told)[0]}"


def _every_command(
    command: click.Command = app, name: str = "ralph", is_listed: bool = True
) -> Iterator[tuple[str, click.Command, bool]]:
    """Every command with its whole name, and whether `--help` lists it."""
    if not isinstance(command, click.Group):
        yield name, command, is_listed
        return
    if command.invoke_without_command and name != "ralph":
        yield name, command, is_listed
    context = click.Context(command, info_name=name)
    for below in (*command.list_commands(context), *(UNLISTED if name == "ralph" else ())):
        found = command.get_command(context, below)
        if found is not None:
            listed = is_listed and not found.hidden and (name != "ralph" or below not in ("agent", *UNLISTED))
            yield from _every_command(found, f"{name} {below}", listed)


def _command(name: str, command: click.Command, shared: Mapping[str, str]) -> str:
    told = f"### `{_usage(name, command)}`\n\n{_sentences(command, name)}\n"
    rows = _rows(command)
    same = [option for option, says in rows if says and shared.get(option) == says]
    lines = [f"- {option}: {says}\n" if says else f"- {option}\n" for option, says in rows if option not in same]
    lines += [f"- As for `{FIRST}`: {', '.join(re.sub(r'=[^`]+', '', option) for option in same)}\n"] if same else []
    return told + ("\n" + "".join(lines) if lines else "")


def _rows(command: click.Command) -> list[tuple[str, str]]:
    return [_option(part) for part in command.params if isinstance(part, click.Option) and _is_own(part)]


def _usage(name: str, command: click.Command) -> str:
    return " ".join(
        (name, *(part.make_metavar(click.Context(command)) for part in command.params if _is_argument(part)))
    )


def _is_argument(part: click.Parameter) -> bool:
    return isinstance(part, click.Argument)


def _is_own(option: click.Option) -> bool:
    return not option.hidden and not isinstance(option, SharedOption) and not set(option.opts) & SHARED.keys()


def _sentences(command: click.Command, name: str) -> str:
    """What `--help` says above the options."""
    told = command.help or COMMANDS.get(name.split()[1], ("", ""))[1]
    told = re.sub(r"\x08.*?(\n\n|$)", "", told, flags=re.DOTALL)  # lines that are laid out for a terminal
    return " ".join(told.split())


def _option(option: click.Option) -> tuple[str, str]:
    value = "" if option.is_flag or option.count else f"={option.make_metavar(click.Context(app))}"
    *others, last = sorted((*option.opts, *option.secondary_opts), key=len)
    names = ", ".join(f"`{name}`" for name in (*others, last + value))
    more = " May be repeated." if option.multiple and "repeated" not in (option.help or "") else ""
    return names, " ".join((option.help or "").split()) + more


def keys() -> str:
    """Each key of `ralph.yml` with its default and what it means, as the schema says, but for sections always there."""
    schema = reading.schema()
    rows = dict.fromkeys(_keys(schema, schema["$defs"], ""))
    sections = {key.rpartition(".")[0] for key, _, _ in rows}
    told = [(key, json.loads(default), says) for key, default, says in rows if says]
    shown = ((key, _default(value), says) for key, value, says in told if not (value and key in sections))
    return "\n".join(f"- `{key}`{f' ({default})' if default else ''}: {says}" for key, default, says in shown)


def _keys(node: Mapping[str, Any], defs: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    for part in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
        part = defs[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        for key, below in part.get("properties", {}).items():
            path = f"{place}.{key}".lstrip(".")
            yield path, json.dumps(below.get("default")), below.get("description", "")
            yield from _keys(below, defs, path)
        for word, end in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(part.get(word), Mapping):
                yield from _keys(part[word], defs, place + end)


def _default(value: object) -> str:
    """As a person writes it in `ralph.yml`; a section's own stand in its rows."""
    if value in (None, "", [], {}) or isinstance(value, Mapping):
        return ""
    if isinstance(value, str) and (found := DURATION.fullmatch(value)) and any(found.groups()):
        return "`" + "".join(f"{part}{unit}" for part, unit in zip(found.groups(), "dhms", strict=True) if part) + "`"
    return f"`{yaml.safe_dump(value, default_flow_style=True, width=1000).split(chr(10))[0]}`"


def rules() -> str:
    """The rules by verdict."""
    heads = {Verdict.HOLD: "These **hold**", Verdict.DENY: "These **deny**"}
    named = {of: ", ".join(f"[`{rule.id}`](#{rule.id})" for rule in RULES if rule.verdict is of) for of in heads}
    return "\n\n".join(f"{head}: {named[of]}." for of, head in heads.items())


def _of_action(kind: str) -> str:
    named = yaml.safe_load((ROOT / "action.yml").read_text())[kind]
    told = ((name, row.get("default"), " ".join(row["description"].split())) for name, row in named.items())
    return "\n".join(f"- `{name}`{f' (`{default}`)' if default else ''}: {says}" for name, default, says in told)


def recipes() -> Iterator[str]:
    """Ready-made entries of `observers.commands`."""
    for recipe in RECIPES:
        entry = yaml.safe_dump([dict(recipe.settings)], sort_keys=False, allow_unicode=True, width=1000)
        entry = re.sub(r"(?:\n  - \d+)+", lambda found: f" [{', '.join(found[0].split()[1::2])}]", entry)
        part = {"pyproject.toml": f"`[tool.{recipe.tool}]` in `pyproject.toml`"}
        found = f"With {' or '.join(part.get(name, f'`{name}`') for name in recipe.signs)}:\n\n" if recipe.signs else ""
        yield f"### {recipe.tool}: {recipe.summary}\n\n{found}```yaml\n{entry}```\n"


PARTS = {
    "commands": lambda: "\n".join(commands()),
    "plumbing": lambda: "\n".join(plumbing()),
    "keys": keys,
    "rules": rules,
    "inputs": lambda: _of_action("inputs"),
    "outputs": lambda: _of_action("outputs"),
    "recipes": lambda: "\n".join(recipes()),
}


def written(text: str) -> str:
    """A page with its parts as the code has them now."""
    return MARK.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]().strip()}\n\n{found[3]}", text)


def main() -> None:
    """Write every part of every page anew."""
    for page in DOCS.glob("*.md"):
        page.write_text(written(page.read_text()))


if __name__ == "__main__":
    main()
