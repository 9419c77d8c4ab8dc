"""`ralph config show`: the settings that are in force, and the file that each of them comes from."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from ralph_mission.adapters.git.git import Git
from ralph_mission.cli.options import SharedGroup, at_repository, json_option, print_json

WIDEST = 60  # columns before an origin


@click.group("config", cls=SharedGroup)
def config_group() -> None:
    """Show the settings of this repository."""


@config_group.command()
@at_repository
@json_option
def show(repo: Path, config: Path | None, as_json: bool) -> None:
    """Print each value that is set, and which file sets it; the rest are defaults."""
    from ralph_mission.config.reading import read
    from ralph_mission.safety.text import sanitise

    settings = read(Git.open(repo), config)
    if as_json:
        values = [{"key": _dotted(path), "value": value, "file": file} for path, value, file in settings.origins]
        print_json({"set": values, "settings": settings.model_dump(mode="json", by_alias=True)})
        return
    lines = [(f"{_dotted(path)}: {_flow(value)}", file) for path, value, file in settings.origins]
    width = min(max((len(line) for line, _ in lines), default=0), WIDEST)
    for line, file in lines:
        click.echo(sanitise(f"{line:<{width}}  # {file}", "log"))
    click.echo(f"# everything{' else' if lines else ''} has its default: docs/configuration.md")


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("...").rstrip()
