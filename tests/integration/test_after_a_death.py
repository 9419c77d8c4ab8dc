"""What people say and do after a runner died, and what fails without one: the next cycle heeds both."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.mission.model.effects import Receipt
from tests.helpers import commit
from tests.integration.dying import dying
from tests.integration.test_life import BUG, BUGS, MISSPELT, SENTENCE
from tests.integration.world import BUGS_CONFIG, TYPOS, World, statuses, world

pytestmark = pytest.mark.long  # takes ten seconds or more

NOW = timedelta(0)
MARKERS = "hands: {fixers: []}\nthinker: {weights: {todo: 3}}\n"
TODO = {"a.py": "# TODO: one\nx = 1\n"}
LONG = {"docs/long.md": "".join(f"{SENTENCE} {SENTENCE} We read {word} in that log.\n\n" for word in MISSPELT)}


def approved(hub: World) -> None:
    hub.cycle()
    hub.person().review(1, "approved")


def released(hub: World) -> None:
    hub.cycle()
    hub.person().label(1, ("ralph:approved",))


def more_markers(hub: World) -> None:
    hub.cycle()
    commit(hub.repo, {"b.py": "y = 2\n# FIXME: two\n"}, message="More")


def died_before_merging(path: Path) -> World:
    hub = world(path)
    approved(hub)
    with dying(3) as death:
        hub.cycle()
    assert death.moments[-1] == "before LocalForge.perform(MergePull)"
    return hub


def test_a_yes_that_is_taken_back_after_a_death_merges_nothing(tmp_path):
    hub = died_before_merging(tmp_path)
    hub.person().review(1, "changes_requested", "wait")
    assert statuses(hub.cycle()[0]) == ["IN_REVIEW"], "the merge may wait in a queue: first it leaves that"
    assert statuses(hub.cycle()[0]) == ["ESCALATED"]
    assert hub.pulls[0].state == "open"


@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_a_fix_that_a_dead_runner_began_is_opened_once(tmp_path, at):
    hub = world(tmp_path)
    with dying(at) as death:
        hub.cycle()
    assert death.moments[-1].partition("perform(")[2] in ("PushBranch)", "OpenPull)")
    for _ in range(2):
        report, _ = hub.cycle()
        assert statuses(report) == ["IN_REVIEW"]
    assert (len(hub.pulls), hub.issues) == (1, ())
    assert len(hub.git("branch", "--list", "ralph/*").splitlines()) == 1


def test_a_fix_that_a_dead_runner_pushed_is_drafted_anew_from_what_is_there_now(tmp_path):
    hub = world(tmp_path)
    with dying(5) as death:
        hub.cycle()
    assert death.moments[-1] == "before LocalForge.perform(OpenPull)"
    commit(hub.repo, {"more.txt": "x\n"}, message="Moved on")
    assert statuses(hub.cycle()[0]) == ["IN_REVIEW"]
    (pull,) = hub.pulls
    assert hub.git("merge-base", pull.head, "main") == hub.git("rev-parse", "main")


def test_a_pause_before_the_first_effect_leaves_nothing_half_done(tmp_path, monkeypatch):
    hub = world(tmp_path)
    hub.cycle(staged=True)
    asked = []
    monkeypatch.setattr(
        "ralph_mission.adapters.storage.memory.branch.BranchStore.paused", lambda self: bool(asked.append(1) or True)
    )
    report, _ = hub.cycle()
    assert (report.outcome, report.missions, asked) == ("paused", (), [1])
    monkeypatch.undo()
    monkeypatch.setattr(LocalForge, "lists_at_once", False)  # where a list is no proof, nothing is in doubt either
    report, _ = hub.cycle()
    assert statuses(report) == ["IN_REVIEW"]
    assert {line.status for line in report.effects} == {"done"}


@pytest.mark.parametrize("at", [3, 4])
def test_a_list_that_a_dead_runner_began_is_carried_on(tmp_path, at):
    hub = world(tmp_path, TODO, MARKERS)
    with dying(at) as death:
        hub.cycle()
    assert death.moments[-1].endswith("LocalForge.show_dashboard(str)")
    hub.cycle()
    commit(hub.repo, {"b.py": "y = 2\n# FIXME: two\n"}, message="More")
    hub.cycle()
    page = (hub.repo / ".ralph/forge/dashboard.md").read_text()
    assert (page.count("1 TODO marker"), page.count("FIXME in b.py"), hub.issues) == (1, 1, ())


def test_lines_changed_by_a_dead_runner_still_count_against_the_week(tmp_path):
    hub = world(tmp_path)
    with dying(5):
        hub.cycle()
    hub.cycle()
    past = hub.house().store.recall()
    assert past is not None
    assert [path for _, path, _ in past.state.recent] == ["README.md", "docs/guide.md"]


# --- what fails -------------------------------------------------------------------------


def failing(monkeypatch, kind: str, status: str = "failed") -> None:
    perform = LocalForge.perform

    def sometimes(self, effect):
        return Receipt(effect.key, status, detail="no") if type(effect).__name__ == kind else perform(self, effect)

    monkeypatch.setattr(LocalForge, "perform", sometimes)


def test_a_merge_in_conflict_escalates_and_is_merged_once_a_person_has_mended_it(tmp_path):
    hub = world(tmp_path)
    approved(hub)
    commit(hub.repo, {"docs/guide.md": "# Guide\n\nThis is another way.\n"}, message="Moved on")
    assert [statuses(hub.cycle()[0]) for _ in range(2)] == [["ESCALATED"]] * 2
    remark = hub.house().forge.pull(1).remarks[-1]
    assert "The merge has conflicts with its base: solve them in its branch." in remark.body
    head = hub.git("rev-parse", "ralph-memory")
    assert hub.cycle()[0].effects == ()
    assert hub.git("rev-list", "--count", f"{head}..ralph-memory") == "1"
    hub.git("checkout", "-q", hub.pulls[0].head)
    hub.git("-c", "user.name=m", "-c", "user.email=m@x", "merge", "-q", "-X", "theirs", "main")
    hub.git("checkout", "-q", "main")
    hub.person().review(1, "approved")
    hub.person().unlabel(1, ("ralph:escalated",))
    assert statuses(hub.cycle()[0]) == ["IN_REVIEW"]
    assert statuses(hub.cycle()[0]) == ["COMPLETED"]


# --- what people do meanwhile -------------------------------------------------------------


@pytest.mark.parametrize(("thread", "left"), [("pulls/0002", "DISCOVERED"), ("issues/0001", "IN_REVIEW")])
def test_a_deleted_thread_ends_its_mission_and_nothing_else(tmp_path, thread, left):
    hub = world(tmp_path, {**TYPOS, **BUGS}, BUGS_CONFIG)
    hub.cycle()
    hub.cycle()
    (hub.repo / f".ralph/forge/{thread}.md").unlink()
    report, _ = hub.cycle()
    assert sorted(statuses(report)) == sorted(["REJECTED", left])
    assert "people accepted" not in hub.memory()
    assert statuses(hub.cycle()[0]) == [left]


def test_a_refused_mission_of_a_person_is_not_made_again_when_its_issue_is_reopened(tmp_path):
    hub = world(tmp_path, {"a.txt": "fine\n"})
    number = hub.person().create_issue("Add a chart of the springs")
    hub.person().label(number, ("ralph:mission",))
    hub.cycle()
    hub.person().label(number, ("ralph:rejected",))
    assert statuses(hub.cycle()[0]) == ["REJECTED"]
    file = hub.repo / f".ralph/forge/issues/{number:04}.md"
    text = file.read_text()
    file.write_text(
        "".join(
            line
            for line in text.replace("state: closed", "state: open").splitlines(keepends=True)
            if not line.startswith(("closed_", "state_reason"))
        )
    )
    assert [hub.cycle()[0].missions for _ in range(2)] == [(), ()]
    assert hub.memory().count("Mission: Add a chart") == 1


def test_a_clock_that_went_back_does_not_make_an_old_yes_new(tmp_path):
    hub = world(tmp_path, BUGS, BUG)
    hub.cycle()
    file = hub.repo / ".ralph/forge/issues/0001.md"
    hub.person().comment(1, "/ralph approve")
    file.write_text(file.read_text().replace("division by zero", "delete everything"))
    for _ in range(2):
        report, _ = hub.cycle(after=timedelta(hours=-48))
        assert statuses(report) == ["DISCOVERED"]
