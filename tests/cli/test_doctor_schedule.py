"""`ralph doctor` on what keeps it awake: runner, workflow, schedule, and the way it is woken."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.wakers.ways import WakeFacts
from ralph_mission.cli.doctor.github import far_off, parked_ahead, wakes, waking
from ralph_mission.mission.memory.schedule import Rhythm
from ralph_mission.mission.model.mission import Action, Mission, Status, Tier
from tests.cli.doctor_place import Place
from tests.helpers import NOON, cli_here, make_repo


@pytest.mark.parametrize(
    ("kind", "private", "status"),
    [("self-hosted", False, "wrong"), ("self-hosted", True, "ok"), ("github-hosted", False, "ok"), ("", False, None)],
)
def test_a_self_hosted_runner_of_a_public_repository_is_wrong(
    here: Place, kind: str, private: bool, status: str | None
) -> None:
    here.environment = {"RUNNER_ENVIRONMENT": kind}
    here.changes = {"private": private}
    check = here.checks().get("runner")
    assert (check.status if check else None) == status
    if check and status == "wrong":
        assert check.mend.startswith("never use a self-hosted runner on a public repository")


@pytest.mark.parametrize(
    ("runs_on", "private", "status"),
    [
        ("self-hosted", False, "wrong"),
        ("[Self-Hosted, linux]", False, "wrong"),
        ("{group: ours, labels: [self-hosted]}", False, "wrong"),
        ("self-hosted", True, None),
        ("ubuntu-latest", False, None),
        ("[", False, None),
        pytest.param("[" * 5_000, False, None, id="nested"),
    ],
)
def test_a_clone_of_a_public_repository_whose_workflow_asks_for_a_self_hosted_runner_is_wrong(
    here: Place, runs_on: str, private: bool, status: str | None
) -> None:
    here.changes = {"private": private}
    check = here.checks(workflow=f"jobs:\n  lint: {{}}\n  cycle:\n    runs-on: {runs_on}\n").get("runner")
    assert (check.status if check else None) == status
    if check:
        assert "the workflow asks for a self-hosted one, and the repository is public" in check.found


@pytest.mark.parametrize(
    ("state", "status"),
    [("active", "ok"), ("disabled_inactivity", "wrong"), ("disabled_fork", "wrong"), ("disabled_manually", "note")],
)
def test_a_workflow_that_is_switched_off_is_found(here: Place, state: str, status: str) -> None:
    here.fake.workflow(".github/workflows/ralph-loop.yml", state=state)
    assert here.checks()["workflow"].status == status


def test_a_workflow_that_is_missing_is_wrong(here: Place) -> None:
    here.fake.world.workflows.clear()
    here.fake.workflow(".github/workflows/ci.yml")
    assert here.checks()["workflow"].found == "the default branch has no ralph-loop.yml"


@pytest.mark.parametrize(("days", "private", "status"), [(44, False, "ok"), (46, False, "note"), (300, True, None)])
def test_a_public_repository_that_falls_asleep_is_told_in_time(
    here: Place, days: int, private: bool, status: str | None
) -> None:
    at = here.fake.clock.now - timedelta(days=days)
    here.changes = {"pushed_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "private": private}
    check = here.checks().get("schedule")
    assert (check.status if check else None) == status


@pytest.mark.parametrize(("drifts", "status"), [((), None), ((0, 40, 9_000), "ok"), ((9_000, 9_000, 0), "note")])
def test_how_late_the_last_wakes_were(drifts: tuple[int, ...], status: str | None) -> None:
    found = list(wakes([(NOON, drift) for drift in drifts]))
    assert [check.status for check in found] == ([status] if status else [])
    if status:
        assert "2 h 30 min" in found[0].found


def test_the_way_of_waking_that_is_in_force_is_named() -> None:
    cron = 'types: [ralph-loop-trigger]\n  schedule:\n    - cron: "7 * * * *"\n'
    (check,) = waking("auto", WakeFacts(cron))
    assert (check.status, check.found) == ("ok", "heartbeat: 1 cron line in the workflow")
    (check,) = waking("timer", WakeFacts(cron, instance="srv-repo"))
    assert check.status == "wrong" and "ralph init --wake timer" in check.mend
    (check,) = waking("auto", WakeFacts())
    assert check.found.startswith("nothing wakes it")


# --- the next cycle ---------------------------------------------------------------------


def next_cycle(repo: Path) -> dict[str, str]:
    checks = cli_here("doctor", "--json", repo=repo).json["checks"]
    return next((check for check in checks if check["name"] == "next cycle"), {})


@pytest.mark.parametrize("settings", ["", "schedule: {low: 2h, medium: 30m}\n"])
@pytest.mark.parametrize("wrong", [timedelta(days=3), timedelta(days=400)])
def test_a_clock_that_was_ahead_silences_nothing(tmp_path: Path, wrong: timedelta, settings: str) -> None:
    repo = make_repo(tmp_path)
    (repo / "ralph.yml").write_text(settings + "observers:\n  code: {markers: {}}\n")
    ahead = datetime.now(UTC) + wrong
    assert cli_here("cycle", "--now", ahead.isoformat(), repo=repo).code == 0
    check = next_cycle(repo)
    assert check["status"] == "note"
    assert "a clock that was ahead wrote it" in check["found"]
    assert "ralph cycle" in check["mend"]
    assert cli_here("due", repo=repo).code == 0
    assert cli_here("status", "--json", repo=repo).json["due"] is True
    assert cli_here("cycle", repo=repo).code == 0
    assert next_cycle(repo) == {}
    assert cli_here("due", repo=repo).code == 10


def test_a_mission_that_such_a_clock_has_parked_is_named() -> None:
    parked = Mission(3, "k", "t", "todo", Action.OPEN_PROPOSAL, Tier.LOW, Status.PARKED, 0, NOON, NOON, issue=7)
    (check,) = parked_ahead([parked, replace(parked, status=Status.IN_REVIEW)], NOON - timedelta(days=1))
    assert "#3" in check.found
    assert "issue #7" in check.mend
    assert list(parked_ahead([parked], NOON)) == []


@pytest.mark.parametrize(("hours", "notes"), [(-1, 0), (7, 0), (7.01, 1)])
def test_only_what_no_pause_explains_is_a_note(hours: float, notes: int) -> None:
    assert len(list(far_off(NOON + timedelta(hours=hours), NOON, Rhythm()))) == notes
    longer = Rhythm(medium=timedelta(hours=8))
    assert list(far_off(NOON + timedelta(hours=hours), NOON, longer)) == []


def test_memory_without_a_next_time_promises_nothing() -> None:
    assert list(far_off(None, NOON, Rhythm())) == []
