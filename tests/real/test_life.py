"""Missions that need no pull, cycle by cycle, beside an emulator of GitHub; memory is pushed to the fake's git."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ralph_mission.adapters.forges.github import people, threads
from ralph_mission.app.cycle import build_app
from ralph_mission.mission.cycle import CycleRequest, run_cycle
from ralph_mission.mission.model.cycle import CycleReport
from tests.fakes.github.server import FakeGitHub
from tests.helpers import git, make_repo
from tests.integration.hub import unpaced
from tests.integration.test_life import BUG, BUGS
from tests.integration.world import statuses
from tests.real.emulator import BOT, Emulator, Person, may_push, running

pytestmark = pytest.mark.real  # needs large software


@dataclass(frozen=True, slots=True)
class Harbour:
    """A runner's clone of a repository with a bug that nobody but a person can decide on."""

    emulator: Emulator
    repository: FakeGitHub
    token: str
    clone: Path

    def cycle(self) -> CycleReport:
        """One cycle, now."""
        environ = {
            "GITHUB_TOKEN": self.token,
            "GITHUB_REPOSITORY": self.emulator.repository,
            "GITHUB_API_URL": self.emulator.url,
            "GITHUB_SERVER_URL": self.repository.url,
        }
        with mock.patch.dict(os.environ, environ), unpaced():
            house = build_app(self.clone, forge="github")
            report, _ = run_cycle(house.ports, house.settings, CycleRequest(force=True), house.secrets)
        return report

    def person(self, login: str = "mara") -> Person:
        return self.emulator.person(login)

    @property
    def issues(self) -> list[Any]:
        """All of them, but for the standing one; the oldest first."""
        found = self.emulator.ask(BOT, "GET", "./issues?state=all&direction=asc").body
        return [issue for issue in found if "ralph:anchor" not in issue["body"]]

    def said(self, number: int) -> list[str]:
        return [told["body"] for told in self.emulator.ask(BOT, "GET", f"./issues/{number}/comments").body]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harbour]:
    monkeypatch.setattr(threads, "NEAR", timedelta(0))  # the emulator tells milliseconds, and has no GraphQL
    monkeypatch.setattr(people, "versions", lambda api, number: ())
    start = make_repo(tmp_path / "start", {**BUGS, "ralph.yml": BUG})
    git(start, "clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    git(tmp_path, "clone", "--quiet", str(tmp_path / "bare.git"), str(tmp_path / "clone"))
    with FakeGitHub(tmp_path / "bare.git") as repository:
        token = may_push(repository)
        with running(tmp_path, token) as emulator:
            yield Harbour(emulator, repository, token, tmp_path / "clone")


def proposed(hub: Harbour) -> int:
    """The number of the issue that asks."""
    report = hub.cycle()
    assert statuses(report) == ["DISCOVERED"], report
    (issue,) = hub.issues
    assert issue["state"] == "open" and issue["user"]["login"] == BOT
    return int(issue["number"])


def test_proposal_is_made_once_and_memory_survives_on_the_server(hub: Harbour) -> None:
    number = proposed(hub)
    said = hub.said(number)
    assert statuses(hub.cycle()) == ["DISCOVERED"]
    assert [issue["number"] for issue in hub.issues] == [number]
    assert hub.said(number) == said
    assert "\ncycle: 2\n" in git(hub.repository.bare, "show", "ralph-memory:memory/ralph-log.md")


def test_labelled_yes_carries_a_proposal_on(hub: Harbour) -> None:
    hub.person().label(proposed(hub), ("ralph:approved",))
    assert statuses(hub.cycle()) == ["PLANNED"]


def test_commented_no_ends_a_proposal_for_good(hub: Harbour) -> None:
    number = proposed(hub)
    hub.person().comment(number, "/ralph reject we know")
    assert statuses(hub.cycle()) == ["REJECTED"]
    (issue,) = hub.issues
    assert issue["state"] == "closed"
    assert statuses(hub.cycle()) == []
    assert len(hub.issues) == 1


def test_edited_proposal_is_asked_anew(hub: Harbour) -> None:
    number = proposed(hub)
    body = hub.issues[0]["body"]
    hub.person().do("PATCH", f"./issues/{number}", {"body": f"Edited. {body}"})
    hub.person().label(number, ("ralph:approved",))
    assert statuses(hub.cycle()) == ["DISCOVERED"]
    assert "proposal is now" in hub.said(number)[-1]
    hub.person().comment(number, "/ralph approve")
    assert statuses(hub.cycle()) == ["PLANNED"]


def test_persons_label_makes_a_mission_and_an_outsiders_does_not(hub: Harbour) -> None:
    number = hub.person().create_issue("Paint the quay", "It is grey.")
    hub.person("harbour").do("PUT", "./collaborators/jonas", {"permission": "triage"})
    hub.person("jonas").label(number, ("ralph:mission",))
    assert all(line.issue != number for line in hub.cycle().missions)
    hub.person().unlabel(number, ("ralph:mission",))
    hub.person().label(number, ("ralph:mission",))
    assert any(line.issue == number for line in hub.cycle().missions)
