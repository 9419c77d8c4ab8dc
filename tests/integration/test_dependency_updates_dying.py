"""A runner that dies around the pull of an update: the next cycle makes exactly one of it, on either forge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests import packages_world as packages
from tests.crash.dying import dying as dying_at_a_request
from tests.crash.dying import told
from tests.crash.past import Snapshot
from tests.crash.stages import come_to_rest
from tests.crash.witness import duplicates, watched
from tests.fakes.registry import Registry, serving
from tests.helpers import git
from tests.integration.dying import dying
from tests.integration.hub import hub
from tests.integration.world import World, world

pytestmark = pytest.mark.long  # takes ten seconds or more

NOW = timedelta(0)
FILES = {"requirements.txt": "buoy==1.4.2\nanchor==0.3.1\n"}
CONFIG = "observers: {code: {markers: {}}, dependencies: {}}\nhands: {fixers: []}\n"
TITLE = "Apply 2 patch-level updates in requirements.txt"
WANTED = "buoy==1.4.4\nanchor==0.3.2"
NEWER = "buoy==1.4.5\nanchor==0.3.2"  # where a person said that nothing was sent, and it began anew
MOMENTS = {
    "the intent is written, nothing is pushed": ("LocalForge.perform(PushBranch)", "before"),
    "the branch is pushed": ("LocalForge.perform(PushBranch)", "after"),
    "the pull is not opened": ("LocalForge.perform(OpenPull)", "before"),
    "the pull is opened, and not written down": ("LocalForge.perform(OpenPull)", "after"),
}
REQUESTS = {
    "the intent is written, nothing is pushed": ("POST /git-receive-pack", 0, "after"),
    "the branch does not arrive": ("POST /git-receive-pack", 1, "before"),
    "the branch is pushed, and nobody heard": ("POST /git-receive-pack", 1, "after"),
    "the pull does not arrive": ("POST /pulls", 0, "before"),
    "the pull is opened, and nobody heard": ("POST /pulls", 0, "after"),
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """One that has moved on since the pins were written."""
    with serving(packages.young()) as served:
        packages.grow(served)
        for name, value in {"OSV_API_URL": served.url, "PIP_INDEX_URL": served.index}.items():
            monkeypatch.setenv(name, value)
        yield served


@pytest.fixture(params=["as it was", "moved on"])
def meanwhile(request: pytest.FixtureRequest, registry: Registry) -> Iterator[str]:
    """What the registry says when the next cycle asks: a newer patch still must not become a second pull."""
    yield request.param


def move_on(registry: Registry, meanwhile: str, clone: Path) -> None:
    if meanwhile == "moved on":
        registry.python["buoy"]["1.4.5"] = {}
        shutil.rmtree(clone / ".ralph" / "cache", ignore_errors=True)  # or the old answer would be believed


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_death_on_this_machine_leaves_exactly_one_pull(
    tmp_path: Path, registry: Registry, meanwhile: str, moment: str
) -> None:
    start = world(tmp_path / "start", FILES, CONFIG)
    rehearsal = World(Path(shutil.copytree(start.repo, tmp_path / "rehearsal", symlinks=True)), start.now)
    with dying() as undisturbed:
        rehearsal.cycle(NOW)
    what, when = MOMENTS[moment]
    with dying(undisturbed.moments.index(f"{when} {what}") + 1) as death:
        start.cycle(NOW)
    assert death.moments[-1] == f"{when} {what}"
    move_on(registry, meanwhile, start.repo)
    for _ in range(3):
        start.cycle(NOW)
    (pull,) = start.pulls
    assert (pull.title, pull.state) == (TITLE, "open")
    assert start.git("show", f"{pull.head}:requirements.txt") == WANTED
    assert len(start.git("for-each-ref", "refs/heads/ralph").splitlines()) == 1


@pytest.mark.parametrize("moment", REQUESTS)
def test_a_death_at_a_request_leaves_exactly_one_pull(
    tmp_path: Path, registry: Registry, meanwhile: str, moment: str
) -> None:
    what, place, when = REQUESTS[moment]
    with hub(tmp_path, dict(FILES), CONFIG) as harbour:
        start = Snapshot.of(harbour, "start")
        with dying_at_a_request(harbour) as undisturbed:
            harbour.cycle(NOW)
        at = [number for number, one in enumerate(undisturbed.requests, 1) if told(one) == what][place]
        start.restore(harbour)
        with watched(harbour) as witness:
            with dying_at_a_request(harbour, at, when) as life:
                harbour.cycle(NOW)
            assert life.over
            move_on(registry, meanwhile, harbour.clone)
            assert come_to_rest(harbour).converged  # a person is asked where nobody can tell whether it was sent
        (pull,) = harbour.pulls
        assert pull.title == TITLE
        anew = meanwhile == "moved on" and moment == "the intent is written, nothing is pushed"
        sent = git(harbour.fake.bare, "show", f"{harbour.head_name(pull.number)}:requirements.txt")
        assert sent == (NEWER if anew else WANTED)
        assert (witness.wrong, duplicates(harbour)) == ([], [])
