"""Whether the database can be watched: reached, read and not written, its schema as the repository says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config
    from ralph_mission.gateways.database.queries import Database
    from ralph_mission.observers.database import Observing

NAME = "database"
ROLE = "give it a role that may SELECT and nothing else: docs/observers.md tells how"
SHOWN = 3


def database(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; lines for the role, the schema and each watch."""
    from ralph_mission.observers.database import Unset, build

    chosen = settings.observers.database
    if chosen is None:
        yield Check(NAME, "note", "not configured", "to watch one: observers.database of ralph.yml (docs/observers.md)")
        return
    observing = build(chosen, git, environment)
    try:
        with observing.opened(git.resolve("HEAD")) as opened:
            yield Check(NAME, "ok", f"ready: {opened.engine}")
            yield from _role(opened, observing)
            yield from _schema(opened)
            yield from _watches(opened, observing)
    except Unset as unset:
        yield Check(NAME, "note", unset.what, unset.next_step)
    except Trouble as trouble:
        yield Check(NAME, "wrong", f"broken: {trouble.what}", mend(trouble))


def _role(opened: Database, observing: Observing) -> Iterator[Check]:
    """By tables that can be described; those that cannot are told by their watch."""
    tried: list[tuple[str, ...]] = []
    for watch in observing.settings.watches:
        with suppress(Trouble):
            tried.append(opened.writable(watch.interest))
    could = tuple(dict.fromkeys(name for names in tried for name in names))
    if could:
        more = f" and {len(could) - SHOWN} more" if len(could) > SHOWN else ""
        yield Check("database role", "wrong", f"it may write: {', '.join(could[:SHOWN])}{more}", ROLE)
    elif tried:
        yield Check("database role", "ok", "it may not write: what was tried was refused")


def _schema(opened: Database) -> Iterator[Check]:
    lines = opened.drift()
    if lines:
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield Check("database schema", "note", f"{lines[0]}{more}", "migrate the database, or mend the schema")


def _watches(opened: Database, observing: Observing) -> Iterator[Check]:
    """Each takes a first look, of which nothing is kept."""
    from ralph_mission.observers.database.state import State

    for watch in observing.settings.watches:
        look = observing.look(opened, watch, State(), datetime.now(UTC))
        if look.trouble:
            yield Check(f"database {watch.name}", "wrong", f"broken: {look.trouble.what}", mend(look.trouble))
