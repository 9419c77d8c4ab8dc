"""Never twice, never too much, never without a trace: caps, crashes, races, staged runs, replay."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from ralph_mission.adapters.report import to_document
from ralph_mission.adapters.report.summary import schema
from ralph_mission.cli.options import decide_again
from ralph_mission.errors import UserError
from ralph_mission.mission.operations import control
from tests.integration.test_life import BUG, BUGS, edit_memory
from tests.integration.world import BUGS_CONFIG, statuses, verdicts, world

pytestmark = pytest.mark.long  # takes ten seconds or more

CRASHING = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from ralph_mission.app.cycle import build_app
from ralph_mission.adapters.forges.local import LocalForge
from ralph_mission.mission.cycle import CycleRequest, run_cycle

repo, moment, where, survive = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
house = build_app(Path(repo), now=datetime.fromisoformat(moment))
perform, count = LocalForge.perform, 0

def dying(self, effect):
    global count
    count += 1
    if count > survive and where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    receipt = perform(self, effect)
    if count > survive:
        os.kill(os.getpid(), signal.SIGKILL)
    return receipt

LocalForge.perform = dying
run_cycle(house.ports, house.settings, CycleRequest(force=True), house.secrets)
"""


def crash(hub, where: str, survive: int) -> None:
    hub.now += timedelta(hours=7)
    command = [sys.executable, "-c", CRASHING, str(hub.repo), hub.now.isoformat(), where, str(survive)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("survive", [0, 1])
def test_a_kill_around_any_effect_leads_to_the_same_end_without_a_duplicate(tmp_path, where, survive):
    hub, calm = world(tmp_path / "a"), world(tmp_path / "b")
    crash(hub, where, survive)
    report, _ = hub.cycle(after=timedelta(0))
    calm.cycle()
    calm.cycle(after=timedelta(0))
    assert [issue.title for issue in hub.issues] == [issue.title for issue in calm.issues]
    assert [pull.title for pull in hub.pulls] == [pull.title for pull in calm.pulls]
    assert statuses(report) == ["IN_REVIEW"]
    assert hub.git("branch", "--list", "ralph/*").count("ralph/") == 1


def test_what_a_dead_runner_did_is_adopted_and_told(tmp_path):
    hub = world(tmp_path)
    crash(hub, "after", 0)
    report, _ = hub.cycle(after=timedelta(0))
    assert [(line.action, line.kind, line.status) for line in report.effects][:3] == [
        ("reconcile", "push_branch", "adopted"),
        ("open-fix", "push_branch", "adopted"),
        ("open-fix", "open_pull", "done"),
    ]


def test_two_runners_at_once_one_acts_and_the_other_leaves_quietly(tmp_path):
    hub = world(tmp_path)
    command = [sys.executable, "-m", "ralph_mission", "cycle", "--force", "--json", "--repo", str(hub.repo)]
    runners = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    answers = [runner.communicate() for runner in runners]
    assert [runner.returncode for runner in runners] == [0, 0, 0], answers
    assert (len(hub.issues), len(hub.pulls)) == (0, 1)


def test_the_same_cycle_asked_for_again_changes_nothing(tmp_path):
    hub = world(tmp_path)
    hub.cycle(cycle_id="run-17")
    head = hub.git("rev-parse", "ralph-memory")
    report, _ = hub.cycle(cycle_id="run-17")
    assert report.outcome == "not_due"
    assert hub.git("rev-parse", "ralph-memory") == head


def test_six_cycles_on_sixty_findings_never_exceed_a_cap(tmp_path):
    bugs = "".join(f"src/m{n}.py:1: bug number {n}\n" for n in range(30))
    files = {"bugs.txt": bugs, **{f"src/m{n}.py": f"x = {n}\n" for n in range(30)}}
    files |= {f"docs/{n:02}.md": "We recieve it, and it is seperate.\n" for n in range(30)}
    hub = world(tmp_path, files, BUGS_CONFIG)
    held = []
    for _ in range(6):
        report, _ = hub.cycle()
        assert (
            sum(line.status.value in ("PLANNED", "EXECUTING", "IN_REVIEW", "FIXING") for line in report.missions) <= 3
        )
        allowed = [line for line in report.decisions if line.verdict.value == "allow"]
        assert len(allowed) <= 3
        assert sum(line.action == "open-fix" for line in allowed) <= 1
        held += [line.rules for line in report.decisions if line.verdict.value == "hold"]
        jsonschema.validate(to_document(report), schema())
    assert 3 <= len(report.missions) <= 5  # as many threads as a week has
    assert any("thread-cap" in rules for rules in held)
    assert "thread-cap" in verdicts(report)[0][2]


def snapshot(repo: Path) -> dict[str, bytes]:
    """Every file but loose objects, which no ref reaches."""
    files = {str(path.relative_to(repo)): path for path in sorted(repo.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if "objects/" not in name}


def test_a_staged_cycle_changes_nothing_and_says_what_would_happen(tmp_path):
    hub = world(tmp_path)
    refs, files = hub.git("for-each-ref"), snapshot(hub.repo)
    report, _ = hub.cycle(staged=True)
    assert {line.status for line in report.effects} == {"staged"}
    assert [line.kind for line in report.effects] == ["push_branch", "open_pull"]
    assert hub.git("for-each-ref") == refs
    assert snapshot(hub.repo) == files
    jsonschema.validate(to_document(report), schema())


def test_a_recorded_cycle_replays_to_the_same_decisions(tmp_path):
    hub = world(tmp_path)
    first, _ = hub.cycle()
    hub.person().review(1, "approved")
    second, _ = hub.cycle()
    for report in (first, second):
        assert list(decide_again(hub.house(), report.cycle_id)) == []


def test_pausing_stops_before_the_next_effect_of_a_running_cycle(tmp_path, monkeypatch):
    hub = world(tmp_path)
    hub.cycle()
    hub.person().review(1, "changes_requested", "hm")
    house = hub.house()
    perform = type(house.forge).perform

    def pausing(self, effect):
        receipt = perform(self, effect)
        control.pause(hub.house().store)
        return receipt

    monkeypatch.setattr(type(house.forge), "perform", pausing)
    report, _ = hub.cycle()
    monkeypatch.undo()
    assert report.outcome == "paused"
    assert [line.kind for line in report.effects] == ["comment"]
    assert hub.cycle()[0].outcome == "paused"
    control.resume(hub.house().store)
    report, _ = hub.cycle()
    assert statuses(report) == ["ESCALATED"]
    assert "ralph:escalated" in hub.pulls[0].labels and len(hub.house().forge.pull(1).remarks) == 1


@pytest.mark.attack(22)
def test_a_deleted_memory_stops_the_cycle_before_any_effect(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    hub.git("update-ref", "-d", "refs/heads/ralph-memory")
    with pytest.raises(UserError) as problem:
        hub.cycle()
    assert "recover" in problem.value.next_step
    assert len(hub.pulls) == 1


@pytest.mark.attack(18)
def test_a_machine_field_changed_by_hand_stops_the_cycle(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    edit_memory(hub, hub.memory().replace("IN_REVIEW", "COMPLETED") + "\n")
    with pytest.raises(UserError) as problem:
        hub.cycle()
    assert "recover" in problem.value.next_step


@pytest.mark.benign("memory")
def test_a_note_under_learnings_is_welcome_and_kept_byte_for_byte(tmp_path):
    hub = world(tmp_path)
    hub.cycle()
    note = "- the pilots call it *the narrows*  \n\n  and mean it\n"
    edit_memory(hub, hub.memory().replace("## Learnings\n", f"## Learnings\n\n{note}", 1) + "\n")
    hub.cycle()
    assert note in hub.memory()


def test_an_effect_in_doubt_is_never_resent_and_a_person_settles_it(tmp_path, monkeypatch):
    hub = world(tmp_path, BUGS, BUG)
    house = hub.house()
    perform = type(house.forge).perform

    def doubtful(self, effect):
        raise ConnectionError("reset by peer")

    monkeypatch.setattr(type(house.forge), "perform", doubtful)
    report, cycle_summary = hub.cycle()
    assert [line.status for line in report.effects] == ["unknown"]
    key = report.effects[0].key
    assert any(f"ralph journal resolve {key}" in line for line in cycle_summary.remarks)
    monkeypatch.setattr(type(house.forge), "perform", perform)
    hub.cycle()
    assert hub.issues == ()
    control.resolve(hub.house().store, key, sent=False)
    report, _ = hub.cycle()
    assert statuses(report) == ["DISCOVERED"]
    assert len(hub.issues) == 1
