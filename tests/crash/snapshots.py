"""A (fake) GitHub, networks and a clone as they once were, to begin from there again and again on the same servers."""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from tests.crash.dying import describe_request, dying
from tests.integration.hub import Hub

INTENTS = "POST /git-receive-pack"  # the first of a cycle that does anything
FIXED = ("lock", "bare", "url", "ids")  # what no snapshot holds


@dataclass(frozen=True)
class Snapshot:
    """Everything that the server keeps, its repository, the clone of the hub's runner, and what networks were told."""

    values: dict[str, Any]
    next_id: int
    place: Path
    runner: str
    now: datetime
    actions: dict[str, str]
    posted: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]]

    @classmethod
    def of(cls, hub: Hub, name: str) -> Snapshot:
        """How it stands now; `name` is a folder of its own beside the clones."""
        world, place = hub.fake.world, hub.folder / "snapshots" / name
        clone = hub.clone
        with world.lock:
            next_id = next(world.ids)
            world.ids = count(next_id)
            values = {f.name: getattr(world, f.name) for f in fields(world) if f.name not in FIXED}
            values = copy.deepcopy(values)
            shutil.copytree(hub.fake.bare, place / "server", symlinks=True)
            shutil.copytree(clone, place / "clone", symlinks=True)
        posted = {name: (tuple(one.delivered), tuple(one.twice)) for name, one in networks_of(hub).items()}
        return cls(values, next_id, place, hub.runner, hub.now, dict(hub.actions), posted)

    def restore(self, hub: Hub) -> Hub:
        """The same hub, at that time: faults, hooks and the journal of requests are gone too."""
        fake, world = hub.fake, hub.fake.world
        with world.lock:
            for name, value in copy.deepcopy(self.values).items():
                setattr(world, name, value)
            world.ids = count(self.next_id)
            _replaced(fake.bare, self.place / "server")
            world.bare.merged_tree.cache_clear()  # the trees that it had written are gone
        fake.faults.clear()
        fake.journal.clear()
        for name, network in networks_of(hub).items():
            network.delivered[:], network.twice[:] = self.posted[name]
            network.faults.clear()
        hub.runner, hub.now, hub.actions = self.runner, self.now, dict(self.actions)
        _replaced(hub.folder / self.runner, self.place / "clone")
        return hub


def networks_of(hub: Hub) -> dict[str, Any]:
    """The networks beside the hub, if it has any."""
    return getattr(hub, "networks", {})


def _replaced(place: Path, by: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(by, place, symlinks=True)


def number_of(hub: Hub, what: str, place: int = 0) -> int:
    """The number of a request of the next cycle, counted in a rehearsal; `place`: the how-manieth like it."""
    start = Snapshot.of(hub, f"before {what}".replace("/", "-"))
    lag, hub.fake.list_lag = hub.fake.list_lag, 0
    with dying(hub) as life:
        hub.cycle(timedelta(0))
    start.restore(hub)
    hub.fake.list_lag = lag
    return [at for at, request in enumerate(life.requests, 1) if describe_request(request) == what][place]
