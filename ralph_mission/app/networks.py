"""The composition root of publishing: which networks are named in ralph.yml and set up in the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.publishers.channel import Channel, OutboxFolder
from ralph_mission.adapters.publishers.charts import png
from ralph_mission.adapters.publishers.publisher import PublisherByNetwork
from ralph_mission.app.extensions import build_extensions
from ralph_mission.app.extras import needed_extras
from ralph_mission.config.publishers import NETWORKS, Publishers
from ralph_mission.config.publishers import OutboxSettings as OutboxSettings
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.extras import install_command, missing_module
from ralph_mission.mission.model.forge import OUTBOX
from ralph_mission.mission.ports import CycleClock, PostPublisher


def build_publishers(
    settings: Config,
    git: Git,
    clock: CycleClock,
    note: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> PostPublisher:
    """The networks that can be used; of each that cannot, `note` is told why. The outbox stands in for all others."""
    publishers, ready = settings.publishers, dict[str, Channel]()
    for network, made in build_channels(publishers, environment):
        if isinstance(made, UserError):
            note(f"publishers: {made.what}; {made.next_step}")
        else:
            ready[network] = made
    if "charts" in needed_extras(settings) and (module := missing_module("charts")):
        note(f"publishers: posts go without charts, which need {module}; {install_command('charts')}")
    for channel in build_extensions(settings, "publisher", git.work_tree, environment):
        if channel.network in (*NETWORKS, *ready):
            raise UserError(f"there are two networks {channel.network}", "take one out of ralph.yml", usage=True)
        ready[channel.network] = channel
    outboxed = outbox(publishers, git, clock)
    if publishers.outbox is not None or not ready:
        ready[OUTBOX] = outboxed
    order = [network for network in dict.fromkeys((*NETWORKS, *ready)) if network in ready]
    return PublisherByNetwork(publishers, tuple(ready[network] for network in order), outboxed)


def build_channels(settings: Publishers, environment: Mapping[str, str]) -> Iterator[tuple[str, Channel | UserError]]:
    """Each network that is named: itself, or why it cannot be used, for want of its secrets (`Unset`) or otherwise."""
    for network in NETWORKS:
        if network != OUTBOX and getattr(settings, network) is not None:
            module = import_module(f"ralph_mission.adapters.publishers.{network}")  # few settings name all of them
            try:
                yield network, module.build(png, environment)
            except UserError as problem:
                yield network, problem


def outbox(settings: Publishers, git: Git, clock: CycleClock) -> OutboxFolder:
    """The folder: as configured, else beside what else is kept out of git."""
    if settings.outbox is None or settings.outbox == OutboxSettings() or git.work_tree is None:
        folder = git.state_dir / "outbox"
    else:
        folder = git.work_tree / settings.outbox.path
    return OutboxFolder(folder, clock.now, png)
