"""Worlds of either forge, and how somebody who can push to `ralph-memory` writes a memory of their own there."""

from __future__ import annotations

import pytest

from ralph_mission.mission.model.ledger import MemoryBatch
from tests.helpers import commit, git
from tests.integration.hub import Hub, open_hub
from tests.integration.world import CALM, TYPOS, world

ASKING = CALM + "limits: {auto_prs_per_cycle: 0}\n"  # every change is shown in an issue first


@pytest.fixture(params=["local", "github"])
def place(request, tmp_path):
    """Makes a world of either forge."""
    opened = []

    def make(files=TYPOS, config=CALM):
        if request.param == "local":
            return world(tmp_path / "repo", files, config)
        opened.append(open_hub(tmp_path, files, config))
        return opened[-1].__enter__()

    yield make
    for each in opened:
        each.__exit__(None, None, None)


def server(place):
    return place.fake.bare if isinstance(place, Hub) else place.repo


def forge_memory(place, change) -> None:
    """One commit with serial + 1 and everything that `change(state)` makes of it: (state, records)."""
    if isinstance(place, Hub):
        place.runner = "thief"
    store = place.house().store
    past = store.recall()
    state, records = change(past.state)
    store.commit(MemoryBatch(past.memory, state, tuple(records), "ralph: cycle"), past)
    if isinstance(place, Hub):
        place.runner = "one"


def issue(place, number):
    return place.house().forge.issue(number)


def pull(place, number):
    return place.house().forge.pull(number)


def branches(place) -> list[str]:
    return git(server(place), "for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/").split()


def push_branch(place, name, files) -> None:
    """A branch of a person's, pushed."""
    if isinstance(place, Hub):
        place.fake.push(name, {path: text.encode() for path, text in files.items()}, base="main")
        return
    place.git("checkout", "-q", "-b", name)
    commit(place.repo, files, message="Hers")
    place.git("checkout", "-q", "main")


def untouched(place, number, before) -> None:
    """Nothing was written there, closed, labelled or assigned."""
    after = issue(place, number)
    kept = ("title", "body", "state", "labels", "assignees", "remarks", "events")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


def state_of(place):
    return place.house().store.recall().state
