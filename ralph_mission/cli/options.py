"""`--repo`, `--config` and `--json`: declared once, taken before or behind the name of every command that uses them.

`ralph --json status` and `ralph status --json` are the same; what stands further behind wins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

Function = Callable[..., Any]
GIVEN = "ralph_mission.given"
"""Where a command line keeps the shared options that it names, in click's memory of it."""


class SharedOption(click.Option):
    """An option that may also stand before the name of its command."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Its value: what was said here, else what was said before the command."""
        value, rest = super().handle_parse_result(ctx, opts, args)
        given = ctx.meta.setdefault(GIVEN, {})
        assert self.name is not None, "each has a name of its own"
        if ctx.get_parameter_source(self.name) is ParameterSource.COMMANDLINE:
            given[self.name] = value
        elif self.name in given and self.expose_value:
            value = ctx.params[self.name] = given[self.name]
        return value, rest


PATH = click.Path(path_type=Path)
SHARED: Mapping[str, Mapping[str, Any]] = {
    "--repo": {"type": PATH, "default": Path(), "metavar": "DIR", "help": "The repository.  [default: .]"},
    "--config": {"type": PATH, "metavar": "FILE", "help": "Settings to use instead of ralph.yml."},
    "--json": {"is_flag": True, "help": "Print one JSON document instead of text."},
}
"""The options of every command, and of the groups before them."""
NAMES = {"--repo": "repo", "--config": "config", "--json": "as_json"}


def _shared(flag: str) -> Callable[[Function], Function]:
    return click.option(flag, NAMES[flag], cls=SharedOption, **SHARED[flag])


repo_option, config_option, json_option = map(_shared, SHARED)
now_option = click.option("--now", metavar="ISO8601", help="Act as if it were this moment.")


class SharedGroup(click.Group):
    """A group that takes the shared options for its commands."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        known = {parameter.name for parameter in self.params}
        self.params += [
            SharedOption([flag, NAMES[flag]], expose_value=False, **settings)
            for flag, settings in SHARED.items()
            if NAMES[flag] not in known
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was asked for; one that has no use for an option that was given says so."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            known = {parameter.name for parameter in command.params}
            for flag, parameter in NAMES.items():
                if parameter in ctx.meta.get(GIVEN, {}) and parameter not in known:
                    raise click.UsageError(f"{name} has no option {flag}", ctx)
        return name, command, rest


def at_repository(command: Function) -> Function:
    """`--repo` and `--config`: where to work."""
    return repo_option(config_option(command))


def named_repo() -> Path | None:
    """The repository that the command line names; None when it names none."""
    named: Path | None = click.get_current_context().meta.get(GIVEN, {}).get("repo")
    return named


def print_json(value: object) -> None:
    """The one JSON document of a command, on standard output.

    A runner that shows the output takes `##[` anywhere in a line for a command to itself.
    """
    click.echo(json.dumps(value, indent=2).replace("##[", "##\\u005b"))
