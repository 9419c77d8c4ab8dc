"""`ralph pr`: what a person does with pull requests of the local forge."""

from __future__ import annotations

import click

from ralph_mission.cli.mission.local import CYCLE, LocalForgeGroup, LocalForgeSession, common, reveal_hidden, text_of
from ralph_mission.cli.options import print_json


@click.group(cls=LocalForgeGroup)
def pr() -> None:
    """Review and merge pull requests of the local forge."""


@pr.command("list")
@click.option("--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@common
def list_prs(desk: LocalForgeSession, state: str) -> None:
    """List pull requests, lowest number first; closed ones include those that were merged."""
    desk.tell(desk.forge.pulls(state), "pulls", "No pull requests.")


@pr.command("show")
@click.argument("number", type=int)
@click.option("--diff", is_flag=True, help="What it changes; what a terminal would hide or obey is written out.")
@common
def show_pr(desk: LocalForgeSession, number: int, diff: bool) -> None:
    """Show one pull request with its reviews and comments, or with --diff what it changes."""
    if not diff:
        desk.show(desk.forge.pull(number))
        return
    text = desk.forge.diff(number)
    if desk.as_json:
        print_json({"number": number, "diff": text})
    else:
        click.echo(reveal_hidden(text), nl=not text.endswith("\n"))


@pr.command()
@click.argument("number", type=int)
@click.argument("text", required=False)
@common
def approve(desk: LocalForgeSession, number: int, text: str | None) -> None:
    """Approve it at the commit it is at now."""
    desk.person.review(number, "approved", text_of(text) if text else "")
    pull = desk.forge.pull(number)
    hint, then = ("; the next cycle merges it", CYCLE) if pull.author.is_bot else ("", f"ralph pr merge {number}")
    desk.say(f"Approved #{number} at {pull.head_sha[:12]}{hint}.", pull, then)


@pr.command("request-changes")
@click.argument("number", type=int)
@click.argument("text")
@common
def request_changes(desk: LocalForgeSession, number: int, text: str) -> None:
    """Say what must change; TEXT is - to read it from standard input."""
    desk.person.review(number, "changes_requested", text_of(text))
    pull = desk.forge.pull(number)
    hint, then = ("; the next cycle answers", CYCLE) if pull.author.is_bot else ("", "")
    desk.say(f"Asked for changes to #{number}{hint}.", pull, then)


@pr.command()
@click.argument("number", type=int)
@click.option("--method", type=click.Choice(["squash", "merge"]), default="squash", show_default=True)
@common
def merge(desk: LocalForgeSession, number: int, method: str) -> None:
    """Merge it now, yourself. A work tree that has the base checked out moves along when it is clean."""
    desk.person.merge(number, method)
    pull = desk.forge.pull(number)
    desk.say(f"Merged #{number} into {pull.base} as {pull.merged_sha[:12]}.", pull)


@pr.command("close")
@click.argument("number", type=int)
@common
def close_pr(desk: LocalForgeSession, number: int) -> None:
    """Close it without merging."""
    desk.person.close_pull(number)
    pull = desk.forge.pull(number)
    hint, then = (
        ("; the next cycle takes it as a rejection and remembers it", CYCLE) if pull.author.is_bot else ("", "")
    )
    desk.say(f"Closed #{number}{hint}.", pull, then)
