"""The local forge for people: `ralph issue` and `ralph pr`, who is acting, and plain output of untrusted text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.options import SharedGroup, SharedOption, json_option, print_json, read_settings, repo_option
from ralph_mission.cli.spelling import iso, spell
from ralph_mission.errors import UserError
from ralph_mission.mission.lifecycle.comment_commands import WORDS, addresses_us, read_command
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.safety.markdown import CONTROL, INVISIBLE, SURROGATE, without_unseen

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.local import LocalForge, Person

CYCLE = "ralph cycle"
AS: Mapping[str, Any] = {"metavar": "LOGIN", "help": "Act as this person; the default is your login."}
as_option = click.option("--as", "login", cls=SharedOption, **AS)


class LocalForgeGroup(SharedGroup):
    """`ralph issue` and `ralph pr`, which take `--as` for their commands too."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.append(SharedOption(["--as", "login"], expose_value=False, **AS))


class LocalForgeSession:
    """One command's view: the forge of a repository, the person acting, and whether to print JSON."""

    def __init__(self, repo: Path, login: str | None, as_json: bool) -> None:
        from ralph_mission.adapters.forges.local import LocalForge
        from ralph_mission.adapters.git.git import Git

        self.forge: LocalForge = LocalForge(Git.open(repo))
        self.repo, self.login, self.as_json = repo, login, as_json

    @property
    def person(self) -> Person:
        """Who is acting: `--as`, else the operating system's user."""
        from ralph_mission.adapters.forges.local import Person

        return Person(self.forge, self.login if self.login is not None else _user())

    def reader(self, number: int) -> Callable[[int], Issue | Pull]:
        """What reads the thread of this number: issues and pulls share their numbers."""
        pulls = {pull.number for pull in self.forge.pulls("all")}
        return self.forge.pull if number in pulls else self.forge.issue

    def say(self, line: str, value: Issue | Pull, then: str = "") -> None:
        """The outcome of an action: a line for people and the command to go on with, or what it was done to as JSON."""
        if self.as_json:
            print_json(document(value))
            return
        click.echo(plain_line(line))
        if then:
            click.echo(f"next: {spell(then, self.repo)}")

    def tell(self, values: Sequence[Issue | Pull], name: str, none: str) -> None:
        """A list, aligned; with JSON an object with one key."""
        if self.as_json:
            print_json({name: [document(value) for value in values]})
        else:
            click.echo(_table([_row(value) for value in values]) if values else none)

    def show(self, value: Issue | Pull) -> None:
        """One issue or pull request with its thread."""
        if self.as_json:
            print_json(document(value))
        else:
            click.echo("\n".join(_page(value)))


def common(command: Callable[..., None]) -> Callable[..., None]:
    """The options every command here has; it gets a `LocalForgeSession` in their place."""

    @wraps(command)
    def with_store(repo: Path, login: str | None, as_json: bool, **rest: Any) -> None:
        command(LocalForgeSession(repo, login, as_json), **rest)

    return repo_option(as_option(json_option(with_store)))


def text_of(argument: str) -> str:
    """A text given as an argument, or by "-" on standard input."""
    text = sys.stdin.read() if argument == "-" else argument
    if not text.strip():
        raise UserError("the text is empty", "give one, or - to read it from standard input", usage=True)
    return text


def plain_line(text: str) -> str:
    """The same on one line."""
    return " ".join(without_unseen(text).split())


def reveal_hidden(text: str) -> str:
    """Text in which what a terminal would obey or hide is written out, such as <U+202E>. Lines and tabs stay."""
    for pattern in (CONTROL, INVISIBLE, SURROGATE):
        text = pattern.sub(lambda found: f"<U+{ord(found.group()):04X}>", text)
    return text.replace("\r", "<U+000D>")


def document(value: Issue | Pull) -> dict[str, Any]:
    """An issue or pull as JSON carries it."""
    plain_data: dict[str, Any] = json.loads(json.dumps(asdict(value), default=_simple))
    return plain_data


def _simple(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    assert isinstance(value, frozenset)
    return sorted(value)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise UserError("the system has no name for you", "say who you are with --as LOGIN", usage=True) from None


def _row(value: Issue | Pull) -> tuple[str, ...]:
    labels = ", ".join(sorted(value.labels))
    branch = (f"{value.head} -> {value.base}",) if isinstance(value, Pull) else ()
    title = plain_line(value.title)
    return (f"#{value.number}", value.state, *map(plain_line, (value.author.login, *branch)), title, plain_line(labels))


def _none(what: str, state: str) -> str:
    if state == "open":
        return f"No open {what}. Closed ones: --state all."
    return f"No {what}."


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    from rich.cells import cell_len

    rows = list(rows)
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


VERBS = {"approved": "approved {}", "changes_requested": "requested changes to {}", "commented": "commented on {}"}
"""What a reviewer did with a commit."""


def _page(value: Issue | Pull) -> list[str]:
    lines = [f"#{value.number} {plain_line(value.title)}", *_facts(value), "", without_unseen(value.body).strip()]
    entries = [(r.created_at, r.author.login, "commented", r.body) for r in value.remarks]
    if isinstance(value, Pull):
        entries += [
            (r.at, r.author.login, VERBS.get(r.state, r.state).format(r.sha[:12]), r.body) for r in value.reviews
        ]
    for at, login, verb, body in sorted(entries):
        lines += [
            "",
            f"--- {plain_line(login)} {verb} on {iso(at)}",
            *([without_unseen(body).strip()] if body.strip() else []),
        ]
    return lines


def _facts(value: Issue | Pull) -> list[str]:
    reason = getattr(value, "state_reason", "").replace("_", " ")
    state = f"{value.state} ({reason})" if reason else value.state
    facts = [("state", state), ("author", value.author.login), ("opened", iso(value.created_at) or "")]
    if isinstance(value, Pull):
        facts += [("branch", f"{value.head} -> {value.base} at {value.head_sha[:12] or 'no commit: it was deleted'}")]
        facts += [("merged", value.merged_sha[:12])] if value.merged_sha else []
    facts += [("labels", ", ".join(sorted(value.labels)))] if value.labels else []
    return [f"{name + ':':<8} {plain_line(fact)}" for name, fact in [*facts, ("file", value.url)]]


HINTS = {
    "ralph:mission": "the next cycle makes it a mission",
    "ralph:approved": "the next cycle acts on it",
    "ralph:rejected": "the next cycle takes it as a rejection and remembers it",
}

OURS = (*HINTS, "ralph-ready", "ralph:parked", "ralph:escalated", "content:approved")
"""Labels that people set to ask for something, or take off."""
PULL_HINTS = {
    "ralph:mission": "the next cycle continues it",
    "ralph:approved": "a pull request is approved by `ralph pr approve`",
}


@click.group(cls=LocalForgeGroup)
def issue() -> None:
    """Read and answer issues of the local forge."""


@issue.command("list")
@click.option("--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@click.option("--label", "labels", multiple=True, metavar="NAME", help="With this label; may be repeated.")
@common
def list_issues(store: LocalForgeSession, state: str, labels: tuple[str, ...]) -> None:
    """List issues, lowest number first."""
    store.tell(store.forge.issues(state, labels), "issues", _none("issues", state))


@issue.command("show")
@click.argument("number", type=int)
@common
def show_issue(store: LocalForgeSession, number: int) -> None:
    """Show one issue with its comments."""
    store.show(store.forge.issue(number))


@issue.command()
@click.option("--title", required=True)
@click.option("--body", default="", metavar="TEXT", help="The text, or - to read it from standard input.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="May be repeated.")
@common
def create(store: LocalForgeSession, title: str, body: str, labels: tuple[str, ...]) -> None:
    """Open an issue."""
    number = store.person.create_issue(title, text_of(body) if body else "", labels)
    opened = store.forge.issue(number)
    store.say(f"Opened #{number}: {opened.url}", opened)


@issue.command()
@click.argument("number", type=int)
@click.argument("text")
@common
def comment(store: LocalForgeSession, number: int, text: str) -> None:
    """Add a comment, to a pull request too; - reads it from standard input."""
    read = store.reader(number)
    read(number)
    words = text_of(text)
    store.person.comment(number, words)
    unknown = addresses_us(words) and not read_command(words)[0]
    hint = f", which is nothing that Ralph knows: /ralph {', '.join(WORDS)}" if unknown else ""
    store.say(f"Commented on #{number}{hint}.", read(number))


@issue.command()
@click.argument("number", type=int)
@click.argument("labels", nargs=-1, required=True, metavar="NAME...")
@click.option("--remove", is_flag=True, help="Remove them.")
@common
def label(store: LocalForgeSession, number: int, labels: tuple[str, ...], remove: bool) -> None:
    """Add or remove labels; `ralph:approved` and `ralph:rejected` answer a proposal."""
    read = store.reader(number)
    before = read(number)
    if remove:
        store.person.unlabel(number, labels)
        store.say(f"Took labels off #{number}.", read(number))
        return
    if isinstance(before, Pull) and before.state != "open" and set(labels) & HINTS.keys():
        how = "merged" if before.merged_sha else "closed"
        raise UserError(f"#{number} is a pull request and is {how}", "see what waits: ralph status", usage=True)
    if set(labels) <= before.labels:
        raise UserError(f"#{number} has that already", "to set it again, take it off first with --remove", usage=True)
    store.person.label(number, labels)
    hints = {**HINTS, **PULL_HINTS} if isinstance(before, Pull) else HINTS
    hint = next((f"; {hints[name]}" for name in reversed(hints) if name in labels), "")
    near = [one for name in labels if name not in OURS for one in get_close_matches(name, OURS, 1, 0.8)]
    hint += f"; did you mean {near[0]}?" if near else ""
    if hint and _nobody_makes_it(before, labels, store.repo):
        hint += ", and no agent is configured (hands.agent) to make the change: it stays with you"
    store.say(f"Labelled #{number}{hint}{'' if near else '.'}", read(number), CYCLE if hint and not near else "")


@issue.command("close")
@click.argument("number", type=int)
@click.option("--reason", type=click.Choice(["completed", "not-planned"]), help="Why; default: no reason.")
@common
def close_issue(store: LocalForgeSession, number: int, reason: str | None) -> None:
    """Close an issue, which rejects a proposal, unless it is fixed or the reason is `completed`."""
    store.person.close_issue(number, (reason or "").replace("-", "_"))
    closed = store.forge.issue(number)
    verdict = "as done" if reason == "completed" else "as a rejection and remembers it, unless it is fixed by then"
    hint, then = (f"; the next cycle takes it {verdict}", CYCLE) if closed.author.is_bot else ("", "")
    store.say(f"Closed #{number}{hint}.", closed, then)


@click.group(cls=LocalForgeGroup)
def pr() -> None:
    """Review and merge pull requests of the local forge."""


@pr.command("list")
@click.option("--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@common
def list_prs(store: LocalForgeSession, state: str) -> None:
    """List pull requests, lowest number first; merged ones are closed."""
    store.tell(store.forge.pulls(state), "pulls", _none("pull requests", state))


@pr.command("show")
@click.argument("number", type=int)
@click.option("--diff", is_flag=True, help="Show its changes, invisible characters escaped.")
@common
def show_pr(store: LocalForgeSession, number: int, diff: bool) -> None:
    """Show one pull request with its reviews and comments, or its changes."""
    if not diff:
        store.show(store.forge.pull(number))
        return
    text = store.forge.diff(number)
    if store.as_json:
        print_json({"number": number, "diff": text})
    else:
        click.echo(reveal_hidden(text), nl=not text.endswith("\n"))


@pr.command()
@click.argument("number", type=int)
@click.argument("text", required=False)
@common
def approve(store: LocalForgeSession, number: int, text: str | None) -> None:
    """Approve it at its current commit."""
    store.person.review(number, "approved", text_of(text) if text else "")
    pull = store.forge.pull(number)
    why_not, by_hand = _why_not_merged(pull, store.forge.default_branch().name), f"ralph pr merge {number}"
    hint, then = (f"; {why_not}", by_hand) if why_not else ("; the next cycle merges it", CYCLE)
    hint, then = (hint, then) if pull.author.is_bot else ("", by_hand)
    store.say(f"Approved #{number} at {pull.head_sha[:12]}{hint}.", pull, then)


def _why_not_merged(pull: Pull, default: str) -> str:
    """Why a cycle does not merge Ralph's approved pull request, as far as the pull request shows."""
    from ralph_mission.mission.lifecycle.approval import standing_label
    from ralph_mission.mission.model.effects import MARKER

    if pull.base != default:
        return f"Ralph does not merge it, because its base is {pull.base} and not {default}"
    if set(pull.commits) - pull.own:
        return "Ralph does not merge it, because somebody else committed there"
    label = standing_label(pull.as_issue(), "ralph:mission")
    if not MARKER.search(pull.body) and (label is None or label.actor.is_bot):
        return "Ralph does not merge it, because its text lost Ralph's marker and ralph:mission was not set again"
    return ""


def _nobody_makes_it(issue: Issue | Pull, labels: Collection[str], repo: Path) -> bool:
    """Whether what a person asks for by a label of an issue is left to people."""
    asks = "ralph:mission" in labels or ("ralph:approved" in labels and "It closes once " in issue.body)
    return isinstance(issue, Issue) and asks and not _has_agent(repo)


def _has_agent(repo: Path) -> bool:
    try:
        return read_settings(repo).hands.agent is not None
    except UserError:  # which the cycle says better
        return True


@pr.command("request-changes")
@click.argument("number", type=int)
@click.argument("text")
@common
def request_changes(store: LocalForgeSession, number: int, text: str) -> None:
    """Request changes; - reads TEXT from standard input."""
    store.person.review(number, "changes_requested", text_of(text))
    pull = store.forge.pull(number)
    hint, then = ("; the agent makes them in the next cycles", CYCLE) if pull.author.is_bot else ("", "")
    if hint and not _has_agent(store.repo):
        work = "; or run `ralph work --agent NAME`" if pull.head.startswith("ralph/issue-") else ""
        hint, then = f": no agent is configured (hands.agent) to make them, so the next cycle will ask you{work}", ""
    store.say(f"Requested changes on #{number}{hint}.", pull, then)


@pr.command()
@click.argument("number", type=int)
@click.option("--method", type=click.Choice(["squash", "merge"]), default="squash", show_default=True)
@common
def merge(store: LocalForgeSession, number: int, method: str) -> None:
    """Merge it now. A clean work tree with the base checked out follows."""
    store.person.merge(number, method)
    pull = store.forge.pull(number)
    store.say(f"Merged #{number} into {pull.base} as {pull.merged_sha[:12]}.", pull)


@pr.command("close")
@click.argument("number", type=int)
@common
def close_pr(store: LocalForgeSession, number: int) -> None:
    """Close it without merging."""
    store.person.close_pull(number)
    pull = store.forge.pull(number)
    hint, then = (
        ("; the next cycle takes it as a rejection and remembers it", CYCLE) if pull.author.is_bot else ("", "")
    )
    store.say(f"Closed #{number}{hint}.", pull, then)
