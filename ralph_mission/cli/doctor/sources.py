"""The checks of `ralph doctor` for configured sources, networks, models and agents; nothing is stored or posted.

Each is ready, not configured, or broken with what to do about it: one bounded look at a source or a network; of
agents, which are installed and have a key, how far they are isolated, and whether `ralph work` could take an issue now.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ralph_mission.adapters.agents import clients
from ralph_mission.adapters.agents.clients import Presence
from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.git.remote import acts_on_github
from ralph_mission.adapters.sandbox.isolation import Found, describe_level, missing_bwrap
from ralph_mission.app import workplaces
from ralph_mission.cli.doctor import DoctorLine, attempt, off, wrong
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command, missing_module

if TYPE_CHECKING:
    from ralph_mission.adapters.database.model import Database
    from ralph_mission.adapters.observers.database import DatabaseObserver
    from ralph_mission.adapters.publishers.channel import Channel
    from ralph_mission.config.observers import WebSettings
    from ralph_mission.config.settings import Config

AT_A_TIME = 4
ROLE_ADVICE = "give it a role that may SELECT and nothing else: see docs/observers.md#databases"
SHOWN = 3
MODEL_PATIENCE = 10.0  # seconds


def sources(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    """Lines of sources, the thinker, networks and the chat, in the order in which they are shown."""
    yield from web(settings, environment)
    for name, check in (
        ("dependencies", _dependencies(settings, git)),
        ("scanners", _scanners(git)),
        ("database", _database(settings, git, environment)),
        ("thinker", _thinker(settings, environment)),
    ):
        yield from attempt(name, check)
    yield from publishers(settings, git, environment)
    yield from attempt("Telegram commands", _orders(settings, environment))
    yield from _social(settings, environment)


# --- what observers look at -----------------------------------------------------------


def web(settings: Config, environment: Mapping[str, str]) -> list[DoctorLine]:
    """A line for each source."""
    if not settings.observers.web:
        return [off("web", "to look at feeds and pages: observers.web in ralph.yml")]

    def look(source: WebSettings) -> list[DoctorLine]:
        return list(attempt(f"web {source.name}", _source(source, environment)))

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return [line for lines in pool.map(look, settings.observers.web) for line in lines]


def _source(settings: WebSettings, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    from ralph_mission.adapters.observers.web import build

    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        found = build(settings, environment=environment).try_out(Path(scratch), datetime.now(UTC))
    yield DoctorLine(f"web {settings.name}", "ok", f"ready: {settings.kind}, {found}")


def _dependencies(settings: Config, git: Git) -> Iterator[DoctorLine]:
    """Then a note for each missing package manager."""
    from ralph_mission.adapters.fixers.bumps import MANAGERS, find_program
    from ralph_mission.adapters.observers.dependencies.observer import build
    from ralph_mission.mission.model.forge import Branch
    from ralph_mission.mission.model.proposal import ObservationContext

    chosen, commit = settings.observers.dependencies, git.resolve("HEAD")
    if chosen is None or not commit:
        yield off("dependencies", "to look after them: observers: {dependencies: {}} in ralph.yml")
        return
    with tempfile.TemporaryDirectory(prefix="ralph-") as scratch:
        context = ObservationContext(Branch("", commit), datetime.now(UTC), None, "", scratch)
        try:
            found, projects = build(chosen, git).try_out(context)
        except UserError as problem:
            if chosen.updates:
                raise
            yield DoctorLine("dependencies", "note", f"no advisories: {problem.what}", problem.next_step)
            return
    yield DoctorLine("dependencies", "ok", f"ready: {found}")
    for project in projects if chosen.updates else ():
        manager = MANAGERS.get(project.tool)
        if manager and not find_program(manager):
            what = f"{manager.program} is not installed: updates of {project.path} are reported, not made"
            yield DoctorLine("dependencies", "note", what, f"install {manager.program}")


def _scanners(git: Git) -> Iterator[DoctorLine]:
    """The scanners that fit here; a missing one is a note."""
    from ralph_mission.adapters.observers.scanners import fitting_scanners, is_installed

    commit = git.resolve("HEAD")
    fitting = [
        one
        for one in (fitting_scanners(entry.path for entry in git.listing(commit)) if commit else ())
        if not one.used[1] or one.used[1] in git.try_text("show", f"HEAD:{one.used[0]}")
    ]
    ready = [one.name for one in fitting if is_installed(one.name)]
    yield DoctorLine("scanners", "ok", f"ready: {', '.join(ready) or 'none' if fitting else 'none fits here'}")
    for one in fitting:
        if one.name not in ready:
            how = install_command(one.extra) if one.extra else one.install or f"install {one.name}"
            yield DoctorLine("scanners", "note", f"{one.name} is not installed: what it finds is not reported", how)


def _database(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    """Then lines for the role, the schema and each watch."""
    from ralph_mission.adapters.observers.database import build

    chosen = settings.observers.database
    if chosen is None:
        yield off("database", "to watch one: observers.database of ralph.yml (docs/observers.md#databases)")
        return
    observing = build(chosen, git, environment)
    with observing.opened(git.resolve("HEAD")) as opened:
        yield DoctorLine("database", "ok", f"ready: {opened.engine}")
        yield from _role(opened, observing)
        if lines := opened.drift():
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            yield DoctorLine("database schema", "note", f"{lines[0]}{more}", "migrate the database, or fix the schema")
        yield from _watches(opened, observing)


def _role(opened: Database, observing: DatabaseObserver) -> Iterator[DoctorLine]:
    """By tables that can be described; their watches report the others."""
    from ralph_mission.adapters.observers.database import watch_interest

    tried: list[tuple[str, ...]] = []
    for watch in observing.settings.watches:
        with suppress(UserError):
            tried.append(opened.writable(watch_interest(watch)))
    could = tuple(dict.fromkeys(name for names in tried for name in names))
    if could:
        more = f" and {len(could) - SHOWN} more" if len(could) > SHOWN else ""
        yield DoctorLine("database role", "wrong", f"it may write: {', '.join(could[:SHOWN])}{more}", ROLE_ADVICE)
    elif tried:
        yield DoctorLine("database role", "ok", "it may not write: what was tried was refused")


def _watches(opened: Database, observing: DatabaseObserver) -> Iterator[DoctorLine]:
    """Each runs a first check, without storing results."""
    from ralph_mission.adapters.observers.database.results import WatchState

    for watch in observing.settings.watches:
        look = observing.look(opened, watch, WatchState(), datetime.now(UTC))
        if look.problem:
            yield wrong(f"database {watch.name}", look.problem, "broken: ")


# --- the thinker ----------------------------------------------------------------------


def _thinker(settings: Config, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """Then a line for an unknown price."""
    from ralph_mission.app.ports import price

    chosen = settings.thinker
    if chosen.kind == "rules":
        yield DoctorLine("thinker", "ok", "rules, which need no model")
        return
    yield from attempt("thinker", _model(chosen.model, environ))
    if price(settings, 1, 1) is None:
        words = f"no price is known for {chosen.model}: a careful one is assumed"
        yield DoctorLine("thinker", "note", words, "set cost.prices in ralph.yml (docs/thinking.md)")


def _model(model: str, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    from ralph_mission.adapters.thinkers import models

    access = models.access(model, environ)
    if find_spec("pydantic_ai") is None or find_spec(access.provider.partition("-")[0]) is None:
        raise UserError("the part of ralph that asks models is not installed", models.EXTRA)
    if problem := models.why_unreachable(access, MODEL_PATIENCE):
        what, _, step = problem.partition(": ")
        raise UserError(what, step or "check its address in the environment")
    yield DoctorLine("thinker", "ok", f"ready: {model}")


# --- networks and the chat ------------------------------------------------------------


def publishers(settings: Config, git: Git, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    """A line for each network, and what stands in for none."""
    from ralph_mission.app.extras import needed_extras
    from ralph_mission.app.hosting import SystemClock
    from ralph_mission.app.ports import build_channels, outbox
    from ralph_mission.config.settings import NETWORKS
    from ralph_mission.mission.model.forge import OUTBOX

    configured = settings.publishers
    channels = dict(build_channels(configured, environment))
    for network in NETWORKS:
        if network in channels:
            yield from attempt(network, _network(network, channels[network]))
        elif network != OUTBOX:
            yield off(network, f"to post there: publishers.{network} in ralph.yml")
    if configured.outbox is not None or all(isinstance(one, UserError) for one in channels.values()):
        yield from attempt(OUTBOX, _network(OUTBOX, outbox(configured, git, SystemClock())))
    if configured.templates or configured.announce:
        names = [*configured.templates, *(f"completed {kind}" for kind in configured.announce)]
        yield DoctorLine("templates", "ok", f"posted at once: {', '.join(names)}")
    if "charts" in needed_extras(settings) and (module := missing_module("charts")):
        yield DoctorLine("charts", "note", f"{module} is not installed: posts go without", install_command("charts"))


def _network(name: str, channel: Channel | UserError) -> Iterator[DoctorLine]:
    if isinstance(channel, UserError):
        raise channel
    yield DoctorLine(name, "ok", f"ready: {channel.check()}")


def _orders(settings: Config, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    from ralph_mission.app.ports import SETUP, bot_of

    telegram, name = settings.telegram, "Telegram commands"
    if not (telegram.chats or telegram.users):
        yield off(name, "to steer from a chat: docs/publishing.md#telegram")
        return
    bot = bot_of(environment)
    if bot is None:
        yield DoctorLine(name, "wrong", "chats are listed, and there is no bot", SETUP)
        return
    named, hooked = bot.ask("getMe"), bot.ask("getWebhookInfo")
    if not (isinstance(named, dict) and isinstance(hooked, dict)):
        raise UserError("Telegram answers with something else", "look at TELEGRAM_API_URL")
    if hooked.get("url"):
        raise UserError("the bot has a webhook that receives its messages instead", "take it off: deleteWebhook")
    if not telegram.users and all(chat < 0 for chat in telegram.chats):
        yield DoctorLine(
            name, "wrong", "groups are listed, but none of their members", "list people's ids in telegram.users"
        )
    else:
        listed = f"{len(telegram.chats)} chats, {len(telegram.users)} people"
        yield DoctorLine(name, "ok", f"ready: @{named.get('username', 'unnamed')}, {listed}")


def _social(settings: Config, environment: Mapping[str, str]) -> Iterator[DoctorLine]:
    from ralph_mission.adapters.observers.social import Network, find_networks

    if settings.observers.social is None:
        yield off("social", "to see reactions to posts: observers.social in ralph.yml")
        return

    def look(name: str, network: Network) -> Iterator[DoctorLine]:
        yield DoctorLine(name, "ok", f"ready: {network.look((), datetime.now(UTC)).words}")

    found = dict(find_networks(settings.observers.social, environment))
    if not found:
        yield DoctorLine(
            "social", "note", "no network has its token in the environment", "docs/publishing.md says which"
        )
    for network, port in found.items():
        yield from attempt(f"social {network}", look(f"social {network}", port))


# --- agents ---------------------------------------------------------------------------

OTHERS = ("command", "scripted")
"""Agents without a program of that name."""
NEEDS = ("forge", "GitHub", "token", "repository on GitHub", "issues", "memory", "isolation")
"""Required lines; the label's must not even be a note, since people could not set it."""
LABEL = "label ralph-ready"


def agents(settings: Config, environ: Mapping[str, str]) -> Iterator[DoctorLine]:
    """A line for each agent, then one for the isolation that is in force. Only the agents' programs are started."""
    choice = settings.hands.agent
    names, found = (choice.kind, *choice.fallback) if choice else (), list[Presence]()
    with tempfile.TemporaryDirectory(prefix="ralph-doctor-") as folder:
        home = Path(folder)
        for client in clients.CLIENTS.values():
            words = workplaces.split_command(choice.run) if choice and choice.kind == client.name else ()
            found.append(clients.presence(clients.find_client(client.name, words), home, environ))
        for name in names:
            if name == "acp" or name in clients.ACP_CLIENTS:
                words = workplaces.split_command(choice.run) if choice and choice.kind == name else ()
                found.append(clients.presence(clients.find_client(name, words), home, environ))
    hides_login = choice is not None and choice.sandbox == "bwrap"
    yield from (line(one, names, hides_login) for one in found)
    for name in names:
        if name not in OTHERS and name != "acp" and not clients.is_client(name):
            known = ", ".join((*OTHERS, "acp", *clients.CLIENTS, *clients.ACP_CLIENTS))
            yield DoctorLine(
                f"agent {name}", "wrong", "there is none of that name", f"name one of {known} in ralph.yml"
            )
    yield isolation(settings, environ, next((one for one in found if names[:1] == (one.name,)), None))


def line(found: Presence, names: Sequence[str], hides_login: bool = False) -> DoctorLine:
    """One agent. Only what the configuration asks for can be lacking: its first, or one that would take over.

    `hides_login`: the configuration asks for bwrap.
    """
    name, level = f"agent {found.name}", "wrong" if names[:1] == (found.name,) else "note"
    keys = " or ".join(found.needs)
    if not found.version:
        if found.name not in names:
            return DoctorLine(name, "ok", "not installed, and not asked for")
        return DoctorLine(
            name, level, "not installed, or it does not report its version", found.install or f"install {found.name}"
        )
    if not found.key and found.login:
        if found.name in names and hides_login:
            hint = f"{found.token}, or take sandbox: bwrap out of ralph.yml"
            return DoctorLine(name, level, f"{found.version}, {found.login}, which bwrap hides", hint)
        return DoctorLine(name, "ok", f"{found.version}, {found.login}: its sessions run at the level env")
    if not found.key and found.needs:
        hint = f"set {keys} in the environment" if found.name in names else ""
        return DoctorLine(name, level if hint else "ok", f"{found.version}, no key", hint)
    return DoctorLine(name, "ok", f"{found.version}, key {found.key}" if found.key else found.version)


def isolation(settings: Config, environ: Mapping[str, str], agent: Presence | None = None) -> DoctorLine:
    """The isolation that agents really get here; wrong when what is asked for cannot be had. `agent`: the first."""
    try:
        found = workplaces.agent_level(settings, environ)
    except UserError as problem:
        return DoctorLine("isolation", "wrong", problem.what, problem.next_step)
    why, remedy = missing_bwrap() if found.level == "env" else ("", "")
    if found.level == "env" and not why and not found.wrap:
        remedy = "leave hands.agent.sandbox out of ralph.yml"
        return DoctorLine("isolation", "note", f"{describe_level(found)}; bwrap can be had", remedy)
    if found.lacking:
        return DoctorLine("isolation", "note", f"env: bwrap is not available ({why})", remedy)
    choice = settings.hands.agent
    only_login = agent is not None and bool(agent.login) and not agent.key
    if found.level == "bwrap" and only_login and choice and choice.sandbox is None and not acts_on_github(environ):
        what = f"{describe_level(Found('env'))}, as {choice.kind} has only your login, which bwrap hides"
        return DoctorLine("isolation", "note", what, f"for bwrap: {agent.token if agent else ''}")
    return DoctorLine("isolation", "ok", describe_level(found))


def work(settings: Config, found: Sequence[DoctorLine]) -> DoctorLine:
    """Ready, or what is lacking first and how to fix it. Never wrong: nobody has to want it."""
    kind = agent_kind(settings)
    if not kind:
        return off("ralph work", "to have an agent work on issues: hands: {agent: {kind: claude}} in ralph.yml")
    blocker = next(_lacking(settings, found), None)
    if blocker is None:
        return DoctorLine(
            "ralph work", "ok", f"ready: {kind} takes issues labelled ralph-ready (agent:NAME chooses another agent)"
        )
    return DoctorLine("ralph work", "note", f"not ready: {blocker.name}: {blocker.found}", blocker.hint)


def _lacking(settings: Config, found: Sequence[DoctorLine]) -> Iterator[DoctorLine]:
    kind = agent_kind(settings)
    if kind == "command" and (program := _program(settings)) and not shutil.which(program):
        yield DoctorLine("agent command", "wrong", f"{program} is not installed", "install it, or change ralph.yml")
    names = (*NEEDS, f"agent {kind}")
    yield from (check for check in found if check.status == "wrong" and check.name in names)
    yield from (check for check in found if check.name == LABEL)


def agent_kind(settings: Config) -> str:
    """The agent that the settings name, "" for none."""
    return settings.hands.agent.kind if settings.hands.agent else settings.cli.backend


def _program(settings: Config) -> str:
    """The program of the agent `command`, "" if only a shell knows."""
    choice = settings.hands.agent
    words = workplaces.split_command(choice.run if choice else settings.cli.command)
    return words[0] if words and "=" not in words[0] else ""
