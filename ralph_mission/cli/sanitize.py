"""`ralph sanitize`: makes a text safe for where it will be shown; standard input to standard output."""

from __future__ import annotations

import sys

import click

SINKS = ("issue", "pr", "commit", "post", "summary", "log", "prompt")


@click.command()
@click.option("--sink", type=click.Choice(SINKS), required=True, help="Where the text goes; titles go to `commit`.")
def sanitize(sink: str) -> None:
    """Make untrusted text inert: no pings, no closing keywords, no comments, no invisible characters, no commands."""
    from ralph_mission.safety.text import sanitise

    click.echo(sanitise(_text(), sink), nl=False)


def _text() -> str:
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read().decode("utf-8", "replace") if buffer else sys.stdin.read()
