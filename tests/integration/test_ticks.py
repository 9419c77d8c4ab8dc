"""A person ticks a box of the dashboard: it is obeyed once, on each forge, and only if they may decide."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.mission.lifecycle.checkboxes import find_boxes, find_ticked, tick
from ralph_mission.mission.memory.text import parse_memory
from ralph_mission.mission.operations.control import resume
from tests.helpers import make_repo
from tests.integration.hub import Hub
from tests.integration.world import BUGS_CONFIG, CALM, TYPOS, World, begun_once, statuses

SOON = timedelta(minutes=2)


def box(page: str, verb: str) -> str:
    return next(order for order in sorted(find_boxes(page)) if order.startswith(f"{verb} "))


def dashboard(hub: Hub) -> tuple[int, str]:
    (thread,) = [thread for thread in hub.fake.threads.values() if thread.title == "Ralph"]
    return thread.number, thread.body or ""


def test_on_github_a_tick_of_who_may_decide_merges_at_once_and_anybody_elses_does_nothing(reviewed: Hub) -> None:
    (pull,), (number, page) = reviewed.pulls, dashboard(reviewed)
    approve = box(page, "approve")
    assert approve == f"approve {pull.number} {reviewed.fake.branch(reviewed.head_name(pull.number))}"
    ticked = tick(page, {approve, "pause 0"})
    reviewed.person("eve", "triage").edit_issue(number, body=ticked)
    run = partial(reviewed.fake.workflow_run, 5, "completed", event="pull_request", path=".github/workflows/ci.yml")
    run(conclusion="action_required", head_sha=approve.split(" ")[2])
    reviewed.cycle(SOON, force=False, trigger="person")
    assert not reviewed.merged(pull.number) and not parse_memory(reviewed.memory().encode()).header.paused
    said = dashboard(reviewed)[1]
    assert "ticked by eve, but only people with write access decide here" in said
    assert "“Approve workflows to run” ([details](http" in said
    run(conclusion="success", head_sha=approve.split(" ")[2])
    reviewed.person("mara").edit_issue(number, body=page)
    reviewed.person("mara").edit_issue(number, body=tick(page, {approve}))
    report, _ = reviewed.cycle(SOON, force=False, trigger="person")
    assert reviewed.merged(pull.number) and statuses(report) == ["COMPLETED"]
    assert approve not in find_boxes(dashboard(reviewed)[1])


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(make_repo(tmp_path / "repo", {**TYPOS, "ralph.yml": CALM}))
    begun_once(made, "a cycle", made.cycle)
    return made


def page_of(world: World) -> Path:
    return world.repo / ".ralph/forge/dashboard.md"


def test_here_a_death_after_obeying_and_before_the_page_is_shown_obeys_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = page_of(world)
    text = path.read_text()
    path.write_text(tick(text, {box(text, "park"), "pause 0"}))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalForge, "show_dashboard", dies)
        with pytest.raises(KeyboardInterrupt):
            world.cycle()
    assert parse_memory(world.memory().encode()).header.paused
    assert find_ticked(path.read_text())  # it stands as it was
    resume(world.house().store)
    report, _ = world.cycle()
    assert report.outcome == "done" and not parse_memory(world.memory().encode()).header.paused
    assert find_ticked(path.read_text()) <= {box(text, "park")}


def test_who_stops_a_list_has_not_rejected_what_is_on_it(tmp_path: Path) -> None:
    listed = BUGS_CONFIG.replace("kind: bug", "kind: dead-code")
    files = {"bugs.txt": "src/a.py:1: unused\n", "src/a.py": "x = 1\n", "ralph.yml": listed}
    here = World(make_repo(tmp_path / "repo", files))
    here.cycle()
    path = page_of(here)
    path.write_text(tick(path.read_text(), {"unlist dead-code"}))
    here.cycle()
    state = here.house().store.recall().state
    assert state.silenced == ("dead-code",) and state.acceptance == ()
    assert "people accepted" not in here.memory()
