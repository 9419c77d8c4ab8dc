"""Options that many commands share, said once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Function = Callable[..., Any]

repo_option = click.option(
    "--repo", type=click.Path(path_type=Path), default=Path(), show_default=".", metavar="DIR", help="The repository."
)
config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings to use instead of ralph.yml."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
now_option = click.option("--now", metavar="ISO8601", help="Act as if it were this moment.")


def at_repository(command: Function) -> Function:
    """`--repo` and `--config`: where to work."""
    return repo_option(config_option(command))


def print_json(value: object) -> None:
    """The one JSON document of a command, on standard output.

    A runner that shows the output takes `##[` anywhere in a line for a command to itself.
    """
    click.echo(json.dumps(value, indent=2).replace("##[", "##\\u005b"))
