"""`ralph schema` and `ralph completion`: the published contracts as JSON Schema, and what shells complete by."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from ralph_mission.cli.options import print_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    For bash: ralph completion bash >> ~/.bash_completion
    """
    made = get_completion_class(shell)
    assert made is not None, "click knows every shell of SHELLS"
    # The base class's method: bash's own starts a bash first, only to ask for its version.
    click.echo(ShellComplete.source(made(context.find_root().command, {}, "ralph", "_RALPH_COMPLETE")))


@click.command()
@click.argument("name", type=click.Choice(["config", "cycle-report"]))
def schema(name: str) -> None:
    """Print the JSON Schema of ralph.yml (config) or of what `ralph cycle --json` prints (cycle-report)."""
    if name == "config":
        from ralph_mission import config

        print_json(config.schema())
    else:
        from ralph_mission.adapters.report import summary

        print_json(summary.schema())
