"""What `ralph issue` and `ralph pr` share: their options, who is acting, and plain output of untrusted text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralph_mission.cli.command_hints import spell
from ralph_mission.cli.moments import iso
from ralph_mission.cli.options import SharedGroup, SharedOption, json_option, print_json, repo_option
from ralph_mission.errors import UserError
from ralph_mission.mission.model.forge import Issue, Pull
from ralph_mission.safety.markdown import CONTROL, INVISIBLE, SURROGATE, without_controls, without_invisible

if TYPE_CHECKING:
    from ralph_mission.adapters.forges.local.forge import LocalForge, Person

CYCLE = "ralph cycle --force"
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
        from ralph_mission.adapters.forges.local.forge import LocalForge
        from ralph_mission.adapters.git.git import Git

        self.forge: LocalForge = LocalForge(Git.open(repo))
        self.repo, self.login, self.as_json = repo, login, as_json

    @property
    def person(self) -> Person:
        """Who is acting: `--as`, else the operating system's user."""
        from ralph_mission.adapters.forges.local.forge import Person

        return Person(self.forge, self.login if self.login is not None else _user())

    def say(self, line: str, value: Issue | Pull, then: str = "") -> None:
        """The outcome of a deed: a line for people and the command to go on with, or what it was done to as JSON."""
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
        """One issue or pull with all that was said."""
        if self.as_json:
            print_json(document(value))
        else:
            click.echo("\n".join(_page(value)))


def common(command: Callable[..., None]) -> Callable[..., None]:
    """The options every command here has; it gets a `Desk` in their place."""

    @wraps(command)
    def with_desk(repo: Path, login: str | None, as_json: bool, **rest: Any) -> None:
        command(LocalForgeSession(repo, login, as_json), **rest)

    return repo_option(as_option(json_option(with_desk)))


def text_of(argument: str) -> str:
    """A text given as an argument, or by "-" on standard input."""
    text = sys.stdin.read() if argument == "-" else argument
    if not text.strip():
        raise UserError("the text is empty", "give one, or - to read it from standard input", usage=True)
    return text


def plain(text: str) -> str:
    """Untrusted text without terminal escapes, controls and invisible characters; its lines stay."""
    return without_invisible(without_controls(text))


def plain_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def reveal_hidden(text: str) -> str:
    """Text in which what a terminal would obey or hide is written out, such as <U+202E>. Lines and tabs stay."""
    for odd in (CONTROL, INVISIBLE, SURROGATE):
        text = odd.sub(lambda found: f"<U+{ord(found.group()):04X}>", text)
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


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    from rich.cells import cell_len

    rows = list(rows)
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _page(value: Issue | Pull) -> list[str]:
    lines = [f"#{value.number} {plain_line(value.title)}", *_facts(value), "", plain(value.body).strip()]
    entries = [(r.created_at, r.author.login, "said", r.body) for r in value.remarks]
    if isinstance(value, Pull):
        entries += [(r.at, r.author.login, f"{r.state.replace('_', ' ')} {r.sha[:12]}", r.body) for r in value.reviews]
    for at, login, verb, body in sorted(entries):
        lines += ["", f"--- {plain_line(login)} {verb} on {iso(at)}", *([plain(body).strip()] if body.strip() else [])]
    return lines


def _facts(value: Issue | Pull) -> list[str]:
    reason = getattr(value, "state_reason", "").replace("_", " ")
    state = f"{value.state} ({reason})" if reason else value.state
    facts = [("state", state), ("author", value.author.login), ("opened", iso(value.created_at) or "")]
    if isinstance(value, Pull):
        facts += [("branch", f"{value.head} -> {value.base} at {value.head_sha[:12] or 'no commit: it is gone'}")]
        facts += [("merged", value.merged_sha[:12])] if value.merged_sha else []
    facts += [("labels", ", ".join(sorted(value.labels)))] if value.labels else []
    return [f"{name + ':':<8} {plain_line(fact)}" for name, fact in [*facts, ("file", value.url)]]
