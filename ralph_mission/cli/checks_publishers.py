"""Whether each network can be posted to now: who we are there, asked by the cheapest read it has. Nothing is posted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ralph_mission.cli.checks_line import Check, mend
from ralph_mission.extras import install_command, missing_module
from ralph_mission.trouble import Trouble

if TYPE_CHECKING:
    from ralph_mission.config import Config
    from ralph_mission.gateways.git import Git
    from ralph_mission.publishers.channel import Channel


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
