"""`ralph completion`: the script by which a shell completes our commands; click makes it."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

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
