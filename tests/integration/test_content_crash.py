"""Publishing dies at every moment there is, and goes on: a network has the text once, or a person is told of doubt."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.mission.effects import Comment, Publish
from tests.crash.dying import dying as dying_there
from tests.crash.dying import told, writes
from tests.crash.past import Snapshot
from tests.crash.witness import duplicates, watched
from tests.integration.at_content import Networks, asked, cycle, publish, with_networks
from tests.integration.at_work import Place, on_hub, on_this_machine
from tests.integration.dying import PORTS, dying
from tests.integration.test_content import CONFIG, YES
from tests.integration.world import World

pytestmark = pytest.mark.long  # takes ten seconds or more
WAYS: dict[str, Callable[[Place], Any]] = {"cycles": lambda place: (cycle(place), cycle(place)), "command": publish}
CALLS = (*PORTS, (Networks, "publish"))
ROUNDS = 5


def to_rest(place: Place) -> None:
    """Cycles until the issue is closed."""
    for _ in range(ROUNDS):
        cycle(place)
        if place.issue(1).state == "closed":
            return
    raise AssertionError(f"it never came to rest: {place.state()}")


def check(place: Place, networks: Networks, died: str) -> None:
    """Each network has it once; one of which nobody can tell has it once at most, and a person is told."""
    state = place.state()
    got = {name: len(networks.got(name)) for name in networks.networks}
    store = place.house().store
    doubts = [record.effect for record in store.records(state.unknown, store.recall()).values()]  # type: ignore[union-attr]  # effects alone are in doubt
    posts = [effect for effect in doubts if isinstance(effect, Publish)]
    said = place.comments(1)
    assert all(count <= 1 for count in got.values()), died
    assert len(got) - sum(got.values()) <= len(posts), (died, got, doubts)
    assert len(said) == 1 or (not said and any(isinstance(effect, Comment) for effect in doubts)), died
    assert not said or sum("nobody can tell" in line for line in said[0].splitlines()) == len(posts), died
    assert (state.effects, state.claim, state.missions) == ((), None, ()), died
    assert "content:published" in place.labels(1) and "content:review" not in place.labels(1), died
    assert dict(state.acceptance)["content"].accepted == 1, died


@contextmanager
def approved(folder: Path, networks: Networks) -> Iterator[Place]:
    """A text that was said yes to, here."""
    with on_this_machine(folder, CONFIG) as found:
        place = with_networks(found, networks)
        assert asked(place) == 1
        place.person().label(1, YES)
        yield place


def copied(place: Place, folder: Path, networks: Networks) -> Place:
    """The same repository somewhere else, at the same time."""
    assert place.local is not None
    shutil.copytree(place.local.repo, folder, symlinks=True)
    local = World(folder, place.local.now)
    return with_networks(replace(place, house=local.house, person=local.person, local=local), networks)


@pytest.mark.parametrize("way", WAYS)
def test_a_death_at_any_moment_leaves_each_network_one_text_or_one_doubt(tmp_path, way):
    with approved(tmp_path, Networks()) as start:
        with dying(0, CALLS) as life:
            whole = Networks()
            WAYS[way](copied(start, tmp_path / "whole", whole))
        assert len(whole.said) == 2 and len(life.moments) >= 12
        for at, moment in enumerate(life.moments, 1):
            networks = Networks()
            place = copied(start, tmp_path / f"at-{at}", networks)
            with dying(at, CALLS):
                WAYS[way](place)
            to_rest(place)
            check(place, networks, f"died {moment}")
            shutil.rmtree(tmp_path / f"at-{at}")


def test_a_death_after_any_write_there_leaves_each_network_one_text_or_one_doubt(tmp_path):
    networks = Networks()
    with on_hub(tmp_path, CONFIG) as found:
        place, harbour = with_networks(found, networks), found.hub
        assert harbour is not None and asked(place) == 1
        place.person().label(1, YES)
        start = Snapshot.of(harbour, "start")
        with dying_there(harbour) as life:
            assert publish(place).outcome == "published"
        points = [at for at, one in enumerate(life.requests, 1) if writes(one)]
        for at in points:
            start.restore(harbour)
            networks.said.clear()
            died = f"died after request {at}, {told(life.requests[at - 1])}"
            with watched(harbour) as witness:
                with dying_there(harbour, at, "after"):
                    publish(place)
                to_rest(place)
            assert (duplicates(harbour), witness.wrong) == ([], []), died
            check(place, networks, died)
        assert len(points) >= 6
