"""What `ralph doctor` asks of every source and network that is configured: one bounded look, of which nothing is kept.

Each is ready, not configured, or broken with what to do about it. Nothing is posted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.extras import install_command, missing_module
from ralph_mission.gateways.git import Git
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config
    from ralph_mission.gateways.database.queries import Database
    from ralph_mission.gateways.packages.model import Project
    from ralph_mission.observers.database import Observing
    from ralph_mission.observers.web import Settings
    from ralph_mission.publishers.channel import Channel

AT_A_TIME = 4
ROLE_ADVICE = "give it a role that may SELECT and nothing else: docs/observers.md tells how"
SHOWN = 3
MODEL_PATIENCE = 10.0  # seconds


# --- the web --------------------------------------------------------------------------


def web(settings: Config, environment: Mapping[str, str]) -> list[Check]:
    """Ready, not configured, or broken and how to mend it: a line for each source."""
    if not settings.observers.web:
        return [Check("web", "note", "not configured", "to look at feeds and pages: observers.web in ralph.yml")]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda source: _source(source, environment), settings.observers.web))


def _source(settings: Settings, environment: Mapping[str, str]) -> Check:
    from ralph_mission.observers.web import Unset, build

    name = f"web {settings.name}"
    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        try:
            found = build(settings, environment=environment).try_out(Path(scratch), datetime.now(UTC))
        except Unset as unset:
            return Check(name, "note", unset.what, unset.next_step)
        except Trouble as trouble:
            return Check(name, "wrong", f"broken: {trouble.what}", mend(trouble))
    return Check(name, "ok", f"ready: {settings.kind}, {found}")


# --- dependencies ---------------------------------------------------------------------


def dependencies(settings: Config, git: Git) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; a note for each package manager that is missing."""
    from ralph_mission.mission.model import Branch
    from ralph_mission.mission.ports import Gaze
    from ralph_mission.observers.dependencies import build

    chosen, commit = settings.observers.dependencies, git.resolve("HEAD")
    if chosen is None or not commit:
        yield Check(
            "dependencies", "note", "not configured", "to look after them: observers: {dependencies: {}} in ralph.yml"
        )
        return
    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        try:
            gaze = Gaze(Branch("", commit), datetime.now(UTC), None, "", scratch)
            found, projects = build(chosen, git).try_out(gaze)
        except Trouble as trouble:
            yield Check("dependencies", "wrong", f"broken: {trouble.what}", mend(trouble))
            return
    yield Check("dependencies", "ok", f"ready: {found}")
    yield from _managers(projects)


def _managers(projects: Iterable[Project]) -> Iterator[Check]:
    from ralph_mission.gateways.packages.managers import MANAGERS, located

    for project in projects:
        manager = MANAGERS.get(project.tool)
        if manager and not located(manager):
            what = f"{manager.program} is not installed: updates of {project.path} are told, not made"
            yield Check("dependencies", "note", what, f"install {manager.program}")


# --- the database ---------------------------------------------------------------------


def database(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; lines for the role, the schema and each watch."""
    from ralph_mission.observers.database import Unset, build

    chosen = settings.observers.database
    if chosen is None:
        yield Check(
            "database", "note", "not configured", "to watch one: observers.database of ralph.yml (docs/observers.md)"
        )
        return
    observing = build(chosen, git, environment)
    try:
        with observing.opened(git.resolve("HEAD")) as opened:
            yield Check("database", "ok", f"ready: {opened.engine}")
            yield from _role(opened, observing)
            yield from _schema(opened)
            yield from _watches(opened, observing)
    except Unset as unset:
        yield Check("database", "note", unset.what, unset.next_step)
    except Trouble as trouble:
        yield Check("database", "wrong", f"broken: {trouble.what}", mend(trouble))


def _role(opened: Database, observing: Observing) -> Iterator[Check]:
    """By tables that can be described; those that cannot are told by their watch."""
    tried: list[tuple[str, ...]] = []
    for watch in observing.settings.watches:
        with suppress(Trouble):
            tried.append(opened.writable(watch.interest))
    could = tuple(dict.fromkeys(name for names in tried for name in names))
    if could:
        more = f" and {len(could) - SHOWN} more" if len(could) > SHOWN else ""
        yield Check("database role", "wrong", f"it may write: {', '.join(could[:SHOWN])}{more}", ROLE_ADVICE)
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


# --- the thinker ----------------------------------------------------------------------


def thinker(settings: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it; then a line for a price that nobody knows."""
    from ralph_mission.bootstrap.thinking import price

    chosen = settings.thinker
    if chosen.kind == "rules":
        yield Check("thinker", "ok", "rules, which need no model")
        return
    yield _model(chosen.model, environ)
    if price(settings, 1, 1) is None:
        words = f"no price is known for {chosen.model}: a careful one is assumed"
        yield Check("thinker", "note", words, "set cost.prices in ralph.yml (docs/thinking.md)")


def _model(model: str, environ: Mapping[str, str]) -> Check:
    from ralph_mission.thinkers import models, wire

    try:
        access = wire.access(model, environ)
    except Trouble as trouble:
        return Check("thinker", "wrong", f"broken: {trouble.what}", mend(trouble))
    if find_spec("pydantic_ai") is None or find_spec(access.provider.partition("-")[0]) is None:
        return Check("thinker", "wrong", "broken: the part of ralph that asks models is not installed", models.EXTRA)
    if said := models.reached(access, MODEL_PATIENCE):
        what, _, step = said.partition(": ")
        return Check("thinker", "wrong", f"broken: {what}", step or "look at its address in the environment")
    return Check("thinker", "ok", f"ready: {model}")


# --- publishers -----------------------------------------------------------------------


def publishers(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[Check]:
    """Ready, not configured, or broken and how to mend it: a line for each network, and what stands in for none."""
    from ralph_mission.bootstrap.press import BUILDS, channels, outbox
    from ralph_mission.bootstrap.stand_ins import SystemClock

    told = settings.publishers
    made = dict(channels(told, environment))
    for network in BUILDS:
        if network in made:
            yield _network(network, made[network])
        else:
            yield Check(network, "note", "not configured", f"to post there: publishers.{network} in ralph.yml")
    if told.outbox is not None or not any(not isinstance(one, Trouble) for one in made.values()):
        yield _network("outbox", outbox(told, git, SystemClock()))
    yield from _texts(settings)


def _network(name: str, made: Channel | Trouble) -> Check:
    from ralph_mission.publishers.channel import Unset

    if isinstance(made, Unset):
        return Check(name, "note", made.what, made.next_step)
    if isinstance(made, Trouble):
        return Check(name, "wrong", f"broken: {made.what}", mend(made))
    try:
        return Check(name, "ok", f"ready: {made.check()}")
    except Trouble as trouble:
        return Check(name, "wrong", f"broken: {trouble.what}", mend(trouble))


def _texts(settings: Config) -> Iterator[Check]:
    from ralph_mission.config.extras import needed_extras

    told = settings.publishers
    if told.templates or told.announce:
        names = [*told.templates, *(f"completed {kind}" for kind in told.announce)]
        yield Check("templates", "ok", f"said at once: {', '.join(names)}")
    if "charts" in needed_extras(settings) and (module := missing_module("charts")):
        yield Check("charts", "note", f"{module} is not installed: posts go without", install_command("charts"))


# --- the chat, and social networks ----------------------------------------------------


def social(settings: Config, environment: Mapping[str, str]) -> list[Check]:
    """Ready, not configured, or broken and how to mend it: a line for orders, and one for each network."""
    return [*_orders(settings, environment), *_read_networks(settings, environment)]


def _orders(settings: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    from ralph_mission.bootstrap.orders import SETUP, bot_of

    told, name = settings.telegram, "orders by Telegram"
    if not settings.robot.enabled or not (told.chats or told.users):
        why = "not configured" if settings.robot.enabled else "switched off by RObot.enabled"
        yield Check(name, "note", why, "to steer from a chat: docs/telegram.md")
        return
    bot = bot_of(environment)
    if bot is None:
        yield Check(name, "wrong", "chats are listed, and there is no bot", SETUP)
        return
    try:
        named, hooked = bot.ask("getMe"), bot.ask("getWebhookInfo")
    except Trouble as trouble:
        yield Check(name, "wrong", f"broken: {trouble.what}", mend(trouble))
        return
    if not (isinstance(named, dict) and isinstance(hooked, dict)):
        yield Check(name, "wrong", "broken: Telegram answers with something else", "look at TELEGRAM_API_URL")
    elif hooked.get("url"):
        yield Check(name, "wrong", "broken: the bot has a webhook that hears it alone", "take it off: deleteWebhook")
    elif not told.users and all(chat < 0 for chat in told.chats):
        yield Check(name, "wrong", "groups are listed, and nobody in them", "list people's ids in telegram.users")
    else:
        listed = f"{len(told.chats)} chats, {len(told.users)} people"
        yield Check(name, "ok", f"ready: @{named.get('username', 'unnamed')}, {listed}")


def _read_networks(settings: Config, environment: Mapping[str, str]) -> Iterator[Check]:
    from ralph_mission.observers.social import networks

    if settings.observers.social is None:
        yield Check("social", "note", "not configured", "to see what becomes of posts: observers.social in ralph.yml")
        return
    found = dict(networks(settings.observers.social, environment))
    if not found:
        yield Check("social", "note", "no network has its token in the environment", "docs/social.md says which")
    for name, network in found.items():
        try:
            words = network.look((), datetime.now(UTC)).words
        except Trouble as trouble:
            yield Check(f"social {name}", "wrong", f"broken: {trouble.what}", mend(trouble))
        else:
            yield Check(f"social {name}", "ok", f"ready: {words}")
