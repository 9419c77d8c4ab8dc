"""What an agent says of a secret that the runner knows is in no line of ours: as processes, on both streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local.forge import LocalForge
from ralph_mission.adapters.forges.local.people import Person
from ralph_mission.adapters.git.git import Git
from tests.cli.loop_world import World, world

pytestmark = pytest.mark.long  # takes ten seconds or more

SECRET = "violet-Kettle-41-harbour"
FAILS = f"sys.stderr.write('bad key {SECRET}\\n')\nsys.exit(1)\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    return world(tmp_path, {"ralph.yml": "hands: {fixers: []}\n"})


@pytest.mark.attack(33)
@pytest.mark.parametrize("command", ["run", "work"])
def test_why_a_session_failed_is_told_without_the_secret_in_it(shop: World, command: str) -> None:
    mara = Person(LocalForge(Git.open(shop.repo)), "mara")
    mara.label(mara.create_issue("Add a cart", "With a sum."), ("ralph-ready",))
    options = ["build it"] if command == "run" else ["--once"]
    done = shop.ralph(command, *options, "--json", *shop.agent(FAILS))
    assert done.code == 1 and "bad key [redacted: known-value]" in done.err
    assert SECRET not in done.err + done.out
