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


def approved(harbour: World) -> None:
    harbour.cycle()
    harbour.person().review(1, "approved")


def released(harbour: World) -> None:
    harbour.cycle()
    harbour.person().label(1, ("ralph:approved",))


def more_markers(harbour: World) -> None:
    harbour.cycle()
    commit(harbour.repo, {"b.py": "y = 2\n# FIXME: two\n"}, message="More")


def died_before_merging(path: Path) -> World:
    harbour = world(path)
    approved(harbour)
    with dying(3) as death:
        harbour.cycle()
    assert death.moments[-1] == "before LocalForge.perform(MergePull)"
    return harbour


def test_a_yes_that_is_taken_back_after_a_death_merges_nothing(tmp_path):
    harbour = died_before_merging(tmp_path)
    harbour.person().review(1, "changes_requested", "wait")
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"], "the merge may wait in a queue: first it leaves that"
    assert statuses(harbour.cycle()[0]) == ["ESCALATED"]
    assert harbour.pulls[0].state == "open"


@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_a_fix_that_a_dead_runner_began_is_opened_once(tmp_path, at):
    harbour = world(tmp_path)
    with dying(at) as death:
        harbour.cycle()
    assert death.moments[-1].partition("perform(")[2] in ("PushBranch)", "OpenPull)")
    for _ in range(2):
        report, _ = harbour.cycle()
        assert statuses(report) == ["IN_REVIEW"]
    assert (len(harbour.pulls), harbour.issues) == (1, ())
    assert len(harbour.git("branch", "--list", "ralph/*").splitlines()) == 1


def test_a_fix_that_a_dead_runner_pushed_is_drafted_anew_from_what_is_there_now(tmp_path):
    harbour = world(tmp_path)
    with dying(5) as death:
        harbour.cycle()
    assert death.moments[-1] == "before LocalForge.perform(OpenPull)"
    commit(harbour.repo, {"more.txt": "x\n"}, message="Moved on")
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
    (pull,) = harbour.pulls
    assert harbour.git("merge-base", pull.head, "main") == harbour.git("rev-parse", "main")


def test_a_pause_before_the_first_effect_leaves_nothing_half_done(tmp_path, monkeypatch):
    harbour = world(tmp_path)
    harbour.cycle(staged=True)
    asked = []
    monkeypatch.setattr(
        "ralph_mission.adapters.storage.memory.branch.BranchStore.paused", lambda self: bool(asked.append(1) or True)
    )
    report, _ = harbour.cycle()
    assert (report.outcome, report.missions, asked) == ("paused", (), [1])
    monkeypatch.undo()
    monkeypatch.setattr(LocalForge, "lists_at_once", False)  # where a list is no proof, nothing is in doubt either
    report, _ = harbour.cycle()
    assert statuses(report) == ["IN_REVIEW"]
    assert {line.status for line in report.effects} == {"done"}


@pytest.mark.parametrize("at", [3, 4])
def test_a_list_that_a_dead_runner_began_is_carried_on(tmp_path, at):
    harbour = world(tmp_path, TODO, MARKERS)
    with dying(at) as death:
        harbour.cycle()
    assert death.moments[-1].endswith("LocalForge.show_dashboard(str)")
    harbour.cycle()
    commit(harbour.repo, {"b.py": "y = 2\n# FIXME: two\n"}, message="More")
    harbour.cycle()
    page = (harbour.repo / ".ralph/forge/dashboard.md").read_text()
    assert (page.count("1 TODO marker"), page.count("FIXME in b.py"), harbour.issues) == (1, 1, ())


def test_lines_changed_by_a_dead_runner_still_count_against_the_week(tmp_path):
    harbour = world(tmp_path)
    with dying(5):
        harbour.cycle()
    harbour.cycle()
    past = harbour.house().store.recall()
    assert past is not None
    assert [path for _, path, _ in past.state.recent] == ["README.md", "docs/guide.md"]


# --- what fails -------------------------------------------------------------------------


def failing(monkeypatch, kind: str, status: str = "failed") -> None:
    perform = LocalForge.perform

    def sometimes(self, effect):
        return Receipt(effect.key, status, detail="no") if type(effect).__name__ == kind else perform(self, effect)

    monkeypatch.setattr(LocalForge, "perform", sometimes)


def test_a_merge_in_conflict_escalates_and_is_merged_once_a_person_has_mended_it(tmp_path):
    harbour = world(tmp_path)
    approved(harbour)
    commit(harbour.repo, {"docs/guide.md": "# Guide\n\nThis is another way.\n"}, message="Moved on")
    assert [statuses(harbour.cycle()[0]) for _ in range(2)] == [["ESCALATED"]] * 2
    remark = harbour.house().forge.pull(1).remarks[-1]
    assert "The merge has conflicts with its base: solve them in its branch." in remark.body
    head = harbour.git("rev-parse", "ralph-memory")
    assert harbour.cycle()[0].effects == ()
    assert harbour.git("rev-list", "--count", f"{head}..ralph-memory") == "1"
    harbour.git("checkout", "-q", harbour.pulls[0].head)
    harbour.git("-c", "user.name=m", "-c", "user.email=m@x", "merge", "-q", "-X", "theirs", "main")
    harbour.git("checkout", "-q", "main")
    harbour.person().review(1, "approved")
    harbour.person().unlabel(1, ("ralph:escalated",))
    assert statuses(harbour.cycle()[0]) == ["IN_REVIEW"]
    assert statuses(harbour.cycle()[0]) == ["COMPLETED"]


# --- what people do meanwhile -------------------------------------------------------------


@pytest.mark.parametrize(("thread", "left"), [("pulls/0002", "DISCOVERED"), ("issues/0001", "IN_REVIEW")])
def test_a_deleted_thread_ends_its_mission_and_nothing_else(tmp_path, thread, left):
    harbour = world(tmp_path, {**TYPOS, **BUGS}, BUGS_CONFIG)
    harbour.cycle()
    harbour.cycle()
    (harbour.repo / f".ralph/forge/{thread}.md").unlink()
    report, _ = harbour.cycle()
    assert sorted(statuses(report)) == sorted(["REJECTED", left])
    assert "people accepted" not in harbour.memory()
    assert statuses(harbour.cycle()[0]) == [left]


def test_a_refused_mission_of_a_person_is_not_made_again_when_its_issue_is_reopened(tmp_path):
    harbour = world(tmp_path, {"a.txt": "fine\n"})
    number = harbour.person().create_issue("Add a chart of the springs")
    harbour.person().label(number, ("ralph:mission",))
    harbour.cycle()
    harbour.person().label(number, ("ralph:rejected",))
    assert statuses(harbour.cycle()[0]) == ["REJECTED"]
    file = harbour.repo / f".ralph/forge/issues/{number:04}.md"
    text = file.read_text()
    file.write_text(
        "".join(
            line
            for line in text.replace("state: closed", "state: open").splitlines(keepends=True)
            if not line.startswith(("closed_", "state_reason"))
        )
    )
    assert [harbour.cycle()[0].missions for _ in range(2)] == [(), ()]
    assert harbour.memory().count("Mission: Add a chart") == 1


def test_a_clock_that_went_back_does_not_make_an_old_yes_new(tmp_path):
    harbour = world(tmp_path, BUGS, BUG)
    harbour.cycle()
    file = harbour.repo / ".ralph/forge/issues/0001.md"
    harbour.person().comment(1, "/ralph approve")
    file.write_text(file.read_text().replace("division by zero", "delete everything"))
    for _ in range(2):
        report, _ = harbour.cycle(after=timedelta(hours=-48))
        assert statuses(report) == ["DISCOVERED"]
