"""`ralph fleet run`: one machine, many repositories; each keeps its own memory, and one that is broken is one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.sandbox.ourselves import OwnProcess, TellEnd
from ralph_mission.app import fleet
from ralph_mission.cli.fleet import read_fleet
from ralph_mission.mission.fleet.model import parse_state
from tests.helpers import cli_here, commit, git, make_repo

TYPO = {"README.md": "# Sample\n\nThis is teh first sentence, and it is recieved with joy.\n"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a fleet.yml and three repositories, one of them with settings that cannot be read."""
    make_repo(tmp_path / "quay", TYPO)
    make_repo(tmp_path / "pier")
    make_repo(tmp_path / "mole", {"ralph.yml": "limits: {usd_per_day: 1000}\n"})
    (tmp_path / "folder").mkdir()
    (tmp_path / "fleet.yml").write_text("repositories: ['./*', ./gone]\nexclude: ['./left-*']\n")
    return tmp_path


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> list[OwnProcess]:
    """Cycles in this process, one after the other; what was started."""
    started: list[OwnProcess] = []

    def run(jobs: Iterable[OwnProcess], at_once: int, tell_end: TellEnd) -> None:
        for job in jobs:
            started.append(job)
            done = cli_here(*job.arguments, env=job.env)
            tell_end(job, done.code, done.out.encode(), 61.0)

    monkeypatch.setattr(fleet, "run_side_by_side", run)
    return started


def test_each_repository_has_its_own_cycle_and_memory_and_a_broken_one_costs_one_line(
    base: Path, in_turn: list[OwnProcess]
) -> None:
    make_repo(base / "left-alone")
    first = cli_here("fleet", "run", repo=base)
    lines = first.out.splitlines()
    assert first.code == 0, first.err
    assert lines[0] == "2 of 4 repositories are due"
    assert [line.partition(":")[0] for line in lines[1:3]] == ["./pier", "./quay"]
    assert lines[3].startswith("4 repositories: ")
    assert "2 failing" in lines[3]
    assert git(base / "quay", "rev-parse", "ralph-memory") != git(base / "pier", "rev-parse", "ralph-memory")
    assert not (base / "left-alone" / ".ralph").exists()
    page, issue = ((base / ".ralph" / name).read_text() for name in ("fleet.html", "fleet.md"))
    for text in (page, issue):
        assert "limits.usd_per_day is 1000; the ceiling is 10" in text
        assert "it is not a folder: correct fleet.yml" in text
    assert "ralph pr show" in issue
    state = parse_state((base / ".ralph" / "fleet.json").read_text())
    assert (dict(state.bookings), dict(state.minutes)) == ({}, {"./pier": 2, "./quay": 2})

    del in_turn[:]
    cli_here("fleet", "run", repo=base)  # one more where something was written: somebody may have spoken meanwhile
    assert [job.name for job in in_turn] == ["./quay"]
    del in_turn[:]
    again = cli_here("fleet", "run", "--json", repo=base)
    assert in_turn == []
    told = json.loads(again.out)
    assert {row["name"]: row["standing"] for row in told["rows"]}["./quay"] == "on time"


def test_a_cycle_of_which_nothing_came_is_told_and_tried_again(base: Path, in_turn: list[OwnProcess]) -> None:
    (base / "fleet.yml").write_text("repositories: [./quay]\n")
    git(base / "quay", "symbolic-ref", "HEAD", "refs/heads/nowhere")
    git(base / "quay", "branch", "-D", "main")
    said = cli_here("fleet", "run", repo=base).out
    assert "there is no commit" in said or "no commits" in said
    assert "1 failing" in said
    assert parse_state((base / ".ralph" / "fleet.json").read_text()).bookings["./quay"].tries == 1
    commit(base / "quay", TYPO)
    assert "0 failing" in cli_here("fleet", "run", repo=base).out


def test_a_person_who_spoke_is_heard_before_the_time(base: Path, in_turn: list[OwnProcess]) -> None:
    (base / "fleet.yml").write_text("repositories: [./quay]\n")
    cli_here("fleet", "run", repo=base)
    pull = base / "quay" / ".ralph" / "forge" / "pulls" / "0001.md"
    spoken = datetime.now(UTC) + timedelta(minutes=5)
    pull.write_text(
        re.sub(r"^updated_at: .*$", f"updated_at: {spoken:%Y-%m-%dT%H:%M:%S.000Z}", pull.read_text(), flags=re.M)
    )
    _, plan = fleet.look_at_folders(read_fleet(base), base, spoken)
    assert [(one.name, one.spoke) for one in plan.starts] == [("./quay", True)]
    cli_here("fleet", "run", repo=base)
    assert [json.loads(job.env["RALPH_FLEET"])["spoke"] for job in in_turn] == [False, True]


def test_the_fleets_settings_are_those_of_a_repository_without_any(base: Path, in_turn: list[OwnProcess]) -> None:
    (base / "base.yml").write_text("limits: {auto_prs_per_cycle: 0}\n")
    (base / "fleet.yml").write_text("repositories: [./quay, ./pier]\nextends: ./base.yml\n")
    commit(base / "pier", {"ralph.yml": "owners: [mara]\n"})
    cli_here("fleet", "run", cwd=base)
    given = {job.name: job.arguments[4:] for job in in_turn}
    assert given == {"./quay": ("--config", str(base / ".ralph" / "fleet-defaults.yml")), "./pier": ()}
    assert not list((base / "quay" / ".ralph" / "forge" / "pulls").glob("*.md"))

    (base / "fleet.yml").write_text("repositories: [./quay]\nextends: ./nowhere.yml\n")
    cli_here("fleet", "run", repo=base)
    assert "nowhere.yml" in (base / ".ralph" / "fleet.md").read_text()
    (base / "fleet.yml").write_text("repositories: [./quay]\n")
    assert "0 failing" in cli_here("fleet", "run", repo=base).out  # what is no longer named is no longer in force


def test_a_repository_of_several_names_is_looked_after_once(base: Path, in_turn: list[OwnProcess]) -> None:
    (base / "link").symlink_to(base / "quay")
    git(base / "quay", "worktree", "add", "-q", str(base / "other"))
    (base / "fleet.yml").write_text(f"repositories: [./quay, ./quay/, {base}/quay, ./link, ./other]\n")
    cli_here("fleet", "run", repo=base)
    assert [job.name for job in in_turn] == ["./quay"]


def test_a_repository_is_asked_once_by_a_pull_request_and_merged_means_on(
    base: Path, in_turn: list[OwnProcess]
) -> None:
    (base / "base.yml").write_text("limits: {auto_prs_per_cycle: 0}\n")
    (base / "fleet.yml").write_text("repositories: [./quay, ./pier]\nextends: ./base.yml\nonboard: true\n")
    said = cli_here("fleet", "run", repo=base).out
    assert said.count("asked by a pull request whether to look after it") == 2
    pull = json.loads(cli_here("pr", "show", "1", "--json", repo=base / "quay").out)
    assert (pull["title"], pull["head"]) == ("Configure Ralph", "ralph/configure")
    assert "recieved" in pull["body"] and "What the first cycle would open" in pull["body"]
    for name in ("quay", "pier"):
        assert git(base / name, "branch", "--list", "ralph-memory") == ""
        assert f'extends: "{base}/base.yml"' in git(base / name, "show", "ralph/configure:ralph.yml")

    del in_turn[:]
    waits = cli_here("fleet", "due", repo=base).out
    assert waits.count("waits for somebody to merge the pull request that turns it on") == 2
    cli_here("fleet", "run", repo=base)
    assert in_turn == []

    cli_here("pr", "merge", "1", "--as", "mara", repo=base / "quay")
    cli_here("pr", "close", "1", "--as", "mara", repo=base / "pier")
    on = cli_here("fleet", "run", repo=base)
    assert [job.name for job in in_turn] == ["./quay"], on.out
    assert "cycle 1 done" in on.out
    assert git(base / "quay", "branch", "--list", "ralph-memory")
    assert "are not asked again" in cli_here("fleet", "due", repo=base).out
    assert not git(base / "pier", "branch", "--list", "ralph-memory")


def test_what_people_decided_elsewhere_reaches_the_others(base: Path, in_turn: list[OwnProcess]) -> None:
    cli_here("fleet", "run", repo=base)
    cli_here("pr", "merge", "1", "--as", "mara", repo=base / "quay")
    del in_turn[:]
    cli_here("cycle", "--force", repo=base / "quay")
    make_repo(base / "wharf", TYPO)
    cli_here("fleet", "run", repo=base)
    terms = {job.name: json.loads(job.env["RALPH_FLEET"]) for job in in_turn}
    assert terms["./wharf"]["priors"] == {"spelling": [1, 0]}
    assert "What people decided" in (base / ".ralph" / "fleet.html").read_text()


def test_two_runs_of_one_fleet_do_not_overlap(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        assert "another ralph fleet run" in cli_here("fleet", "run", repo=base).err

    monkeypatch.setattr(fleet, "run_side_by_side", run)
    assert cli_here("fleet", "run", repo=base).code == 0


def test_a_fleet_without_folders_says_where_it_is_looked_after(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text("repositories: [harbour/quay]\n")
    said = cli_here("fleet", "run", repo=tmp_path)
    assert said.code == 2
    assert "fleet.yml names no folder" in said.err
