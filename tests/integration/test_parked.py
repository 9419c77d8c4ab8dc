"""What waits and for how long: missions parked for 90 days, findings that others hold up, what comes first."""

from __future__ import annotations

from datetime import timedelta

from tests.helpers import commit
from tests.integration.world import BUGS_CONFIG, CALM, statuses, verdicts, world


def test_a_closed_monitoring_issue_teaches_only_when_its_closer_counts(tmp_path):
    config = "owners: [mara]\nhands: {fixers: []}\n"
    harbour = world(tmp_path, {"a.py": "# TODO: one\nx = 1\n"}, config)
    harbour.cycle()
    harbour.person("passer-by").close_issue(1)
    harbour.cycle()
    assert "people accepted" not in harbour.memory()


def test_a_mission_parked_for_90_days_leaves_the_state(tmp_path):
    harbour = world(tmp_path)
    harbour.cycle()
    harbour.cycle(after=timedelta(days=14))
    harbour.cycle(after=timedelta(days=91))
    assert harbour.house().store.recall().state.missions == ()


def test_a_mission_parked_for_90_days_is_brought_back_by_a_persons_label_and_by_nothing_else(tmp_path):
    harbour = world(tmp_path)
    harbour.cycle()
    harbour.cycle(after=timedelta(days=14))
    harbour.cycle(after=timedelta(days=91))
    assert harbour.cycle()[0].missions == ()
    harbour.person().unlabel(1, ("ralph:mission",))
    harbour.person().label(1, ("ralph:mission",))
    assert statuses(harbour.cycle()[0]) == ["PLANNED"]


def test_a_persons_mission_that_was_parked_for_90_days_does_not_begin_anew_by_itself(tmp_path):
    harbour = world(tmp_path, {"a.txt": "fine\n"})
    number = harbour.person().create_issue("Add a chart of the springs")
    harbour.person().label(number, ("ralph:mission",))
    told = [statuses(harbour.cycle(after=timedelta(days=days))[0]) for days in (1, 1, 1, 1, 8, 91, 1)]
    assert told[-3:] == [["PARKED"], ["PARKED"], []]


def test_what_waits_on_an_observer_that_is_configured_no_longer_is_forgotten(tmp_path):
    bugs = "src/a.py:1: one\nsrc/a.py:2: two\n"
    harbour = world(tmp_path, {"bugs.txt": bugs, "src/a.py": "x = 1\ny = 2\n"}, BUGS_CONFIG)
    harbour.cycle()
    commit(harbour.repo, {"ralph.yml": CALM}, message="No more checks")
    report, _ = harbour.cycle()
    assert report.findings == ()
    assert harbour.house().store.recall().state.backlog == ()


def test_one_file_that_fails_the_checks_holds_up_neither_the_rest_nor_the_next_cycles(tmp_path):
    files = {f"docs/{n}.md": "We recieve it by mail.\n" for n in range(8)}
    config = CALM.replace("[typos]", "[typos], verify: ['! grep -rq receive docs/1.md']")
    harbour = world(tmp_path, files, config)
    for _ in range(3):
        harbour.cycle()
    changed = {touch.path for pull in harbour.pulls for touch in harbour.house().forge.pull(pull.number).touches}
    assert changed
    assert "docs/1.md" not in changed


def test_a_pull_of_a_person_holds_up_only_the_file_it_touches(tmp_path):
    harbour = world(tmp_path)
    harbour.git("checkout", "-q", "-b", "hers")
    commit(harbour.repo, {"docs/guide.md": "# Guide\n\nThis is the way to read a table.\n"}, message="Rewrite")
    harbour.git("checkout", "-q", "main")
    harbour.person().open_pull("hers", "main", "Rewrite the guide")
    report, _ = harbour.cycle()
    (ours,) = [pull for pull in harbour.pulls if pull.author.is_bot]
    assert {touch.path for touch in ours.touches} == {"README.md"}
    assert statuses(report) == ["IN_REVIEW"]


def test_a_pull_of_a_person_does_not_hide_that_a_question_waits_for_it(tmp_path):
    files = {"bugs.txt": "src/a.py:1: one\nsrc/b.py:1: two\n", "src/a.py": "x = 1\n", "src/b.py": "y = 1\n"}
    harbour = world(tmp_path, files, BUGS_CONFIG)
    harbour.git("checkout", "-q", "-b", "hers")
    commit(harbour.repo, {"src/a.py": "x = 2\n"}, message="Mend it")
    harbour.git("checkout", "-q", "main")
    harbour.person().open_pull("hers", "main", "Mend it")
    report, _ = harbour.cycle()
    assert ["human-duplicate" in rules for _, _, rules in verdicts(report)].count(True) == 1


def test_bugs_that_wait_for_a_slot_keep_urgency_high_for_four_cycles_only(tmp_path):
    files = {"bugs.txt": "src/a.py:1: one\nsrc/a.py:2: two\nsrc/a.py:3: three\n", "src/a.py": "x = 1\ny = 2\nz = 3\n"}
    harbour = world(tmp_path, files, BUGS_CONFIG + "limits: {active_missions: 1}\n")
    assert [harbour.cycle()[0].urgency for _ in range(6)] == ["high"] * 4 + ["medium"] * 2


def test_a_weight_in_the_settings_changes_what_comes_first(tmp_path):
    files = {"a.md": "We recieve it.\n", "a.py": "# TODO: one\n"}
    config = "hands: {{fixers: [typos]}}\nthinker: {{weights: {{{}: 100}}}}\n"
    first = []
    for kind in ("spelling", "todo"):
        harbour = world(tmp_path / kind, files, config.format(kind))
        report, _ = harbour.cycle()
        first.append(max(report.findings, key=lambda line: line.score).kind)
    assert first == ["spelling", "todo"]
