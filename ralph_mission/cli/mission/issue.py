"""`ralph issue`: what a person does with issues of the local forge."""

from __future__ import annotations

import click

from ralph_mission.cli.mission.local import CYCLE, LocalForgeGroup, LocalForgeSession, common, text_of

HINTS = {
    "ralph:mission": "the next cycle makes it a mission",
    "ralph:approved": "the next cycle acts on it",
    "ralph:rejected": "the next cycle takes it as a rejection and remembers it",
}


@click.group(cls=LocalForgeGroup)
def issue() -> None:
    """Read and answer issues of the local forge."""


@issue.command("list")
@click.option("--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Only with this label; may be repeated.")
@common
def list_issues(desk: LocalForgeSession, state: str, labels: tuple[str, ...]) -> None:
    """List issues, lowest number first."""
    desk.tell(desk.forge.issues(state, labels), "issues", "No issues.")


@issue.command("show")
@click.argument("number", type=int)
@common
def show_issue(desk: LocalForgeSession, number: int) -> None:
    """Show one issue with all that was said."""
    desk.show(desk.forge.issue(number))


@issue.command()
@click.option("--title", required=True)
@click.option("--body", default="", metavar="TEXT", help="The text, or - to read it from standard input.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="May be repeated.")
@common
def create(desk: LocalForgeSession, title: str, body: str, labels: tuple[str, ...]) -> None:
    """Open an issue."""
    number = desk.person.create_issue(title, text_of(body) if body else "", labels)
    opened = desk.forge.issue(number)
    desk.say(f"Opened #{number}: {opened.url}", opened)


@issue.command()
@click.argument("number", type=int)
@click.argument("text")
@common
def comment(desk: LocalForgeSession, number: int, text: str) -> None:
    """Say something; TEXT is - to read it from standard input."""
    desk.forge.issue(number)
    desk.person.comment(number, text_of(text))
    desk.say(f"Commented on #{number}.", desk.forge.issue(number))


@issue.command()
@click.argument("number", type=int)
@click.argument("labels", nargs=-1, required=True, metavar="NAME...")
@click.option("--remove", is_flag=True, help="Take them off.")
@common
def label(desk: LocalForgeSession, number: int, labels: tuple[str, ...], remove: bool) -> None:
    """Set labels, or take them off. `ralph:approved` and `ralph:rejected` answer a proposal."""
    desk.forge.issue(number)
    if remove:
        desk.person.unlabel(number, labels)
        desk.say(f"Took labels off #{number}.", desk.forge.issue(number))
        return
    desk.person.label(number, labels)
    hint = next((f"; {HINTS[name]}" for name in reversed(HINTS) if name in labels), "")
    desk.say(f"Labelled #{number}{hint}.", desk.forge.issue(number), CYCLE if hint else "")


@issue.command("close")
@click.argument("number", type=int)
@click.option("--reason", type=click.Choice(["completed", "not-planned"]), help="Why; no reason when left out.")
@common
def close_issue(desk: LocalForgeSession, number: int, reason: str | None) -> None:
    """Close an issue. A proposal that is closed is refused, unless the reason is `completed`."""
    desk.person.close_issue(number, (reason or "").replace("-", "_"))
    closed = desk.forge.issue(number)
    verdict = "as done" if reason == "completed" else "as a rejection and remembers it"
    hint, then = (f"; the next cycle takes it {verdict}", CYCLE) if closed.author.is_bot else ("", "")
    desk.say(f"Closed #{number}{hint}.", closed, then)
